// log, log2, log10 and the log1p kernel of the inverse hyperbolic functions.
//
// Method: x = m 2^e with m in [3/4, 3/2), so f = m - 1 is exact, then one polynomial of f:
// log(1 + f) = f + f^2 q(f). Splitting at 3/4 instead of sqrt(1/2) lets x just below 1 keep e = 0,
// so nothing cancels there. The coefficients are our own minimax fits.
#pragma once

#include "constants.h"
#include "core.h"
#include "fast_nvptx.h"
#include "instructions_avx512.h"

namespace metalloid::float_math {

constexpr uint32 two_thirds_bits = 0x3f2aaaabu;
constexpr uint32 three_quarters_bits = 0x3f400000u;
constexpr uint32 sqrt_half_bits = 0x3f3504f3u;
constexpr uint32 exponent_mask = 0xff800000u;

// x = (1 + fraction) 2^exponent, pivot <= 1 + fraction < 2 pivot.
struct LogArgument {
  float fraction;
  float exponent;
};

// For positive, finite, normal x.
METALLOID_INLINE LogArgument split_normal(float x, float exponent_offset,
                                          uint32 pivot_bits = two_thirds_bits) {
  METALLOID_STRICT_FP
  const uint32 bits = bits_of(x);
  const uint32 exponent = (bits - pivot_bits) & exponent_mask;
  const float mantissa = from_bits(bits - exponent);
  const float exponent_times_2_23 = static_cast<float>(static_cast<int32>(exponent));
  return {mantissa - 1.0f, fused(exponent_times_2_23, 0x1p-23f, exponent_offset)};
}

// For positive, finite x.
METALLOID_INLINE LogArgument split_positive(float x, uint32 pivot_bits) {
  METALLOID_STRICT_FP
  const bool subnormal = x < 0x1p-126f;
  const float lifted = x * 0x1p23f;
  return split_normal(choose(subnormal, lifted, x), choose(subnormal, -23.0f, 0.0f), pivot_bits);
}

// For positive, finite x. AVX-512 gives NaN for negative ones, and exponents of -inf and inf for 0
// and inf, from which the logarithms follow.
METALLOID_INLINE LogArgument split_at_three_quarters(float x) {
  METALLOID_STRICT_FP
#if defined(METALLOID_HAS_AVX512)
  const float mantissa = __avx512_getmant(x);
  return {mantissa - 1.0f, __avx512_getexp(x) - __avx512_getexp(mantissa)};
#else
  return split_positive(x, three_quarters_bits);
#endif
}

// log(0) = -inf, log(+inf) = +inf, log(negative) = log(NaN) = NaN; else `result`.
METALLOID_INLINE float with_log_special_cases(float x, float result) {
  METALLOID_STRICT_FP
#if defined(METALLOID_HAS_AVX512)
  return result;  // has them already
#else
  const float same = x + x;
  const float nonzero = choose(is_negative(x), quiet_nan(), same);
  const float special = choose(is_zero(x), -infinity(), nonzero);
  return choose(is_positive_finite(x), result, special);
#endif
}

// log(0) = -inf and log(negative) = NaN are all that fast mode keeps; subnormals count as zero.
METALLOID_INLINE float with_fast_log_special_cases(float x, float result) {
  METALLOID_STRICT_FP
  const float special = choose(x < 0.0f, quiet_nan(), -infinity());
  return choose(x < 0x1p-126f, special, result);
}

// (log(1 + f) - f) / f^2, -1/4 <= f <= 1/2: relative error of f + f^2 q(f) below 2^-27.5.
METALLOID_INLINE float log_curvature(float f) {
  return polynomial(f, -0.5f, 0x1.5555a4p-2f, -0x1.00004ap-2f, 0x1.99699ep-3f, -0x1.54ed94p-3f,
                    0x1.288074p-3f, -0x1.0d9908p-3f, 0x1.acf57cp-4f, -0x1.71e4bcp-5f);
}

// log(1 + f) with two coefficients less: relative error below 2^-22.3.
METALLOID_INLINE float fast_log_mantissa(float f) {
  METALLOID_STRICT_FP
  const float q = polynomial(f, -0x1.ffffe6p-2f, 0x1.555e3ep-2f, -0x1.00107ep-2f, 0x1.95e0cep-3f,
                             -0x1.50b75cp-3f, 0x1.5bf45p-3f, -0x1.38a0f8p-3f);
  return fused(f * f, q, f);
}

// log(1 + z) + extra ln 2 for z >= 0, without rounding 1 + z: with 2^e the binade of 1 + z around
// [3/4, 3/2), f = z 2^-e + (2^-e - 1) is rounded once.
METALLOID_INLINE float log1p_plus_multiple_of_ln2(float z, float extra) {
  METALLOID_STRICT_FP
  const float sum = 1.0f + z;
  const uint32 exponent = (bits_of(sum) - three_quarters_bits) & exponent_mask;
  const float scaled = from_bits(bits_of(z) - exponent);
  const float four_over_power = from_bits(0x40800000u - exponent);
  const float f = fused(0.25f, four_over_power, -1.0f) + scaled;
  const float e = fused(static_cast<float>(static_cast<int32>(exponent)), 0x1p-23f, extra);
  return fused(e, ln2_high, fused(f * f, log_curvature(f), f));
}

}  // namespace metalloid::float_math

namespace metalloid::precise {

// Largest error 0.93 ulp.
METALLOID_INLINE float log(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const LogArgument a = split_at_three_quarters(x);
  const float f = a.fraction;
  const float log_mantissa = fused(f * f, log_curvature(f), f);
  return with_log_special_cases(x, fused(a.exponent, ln2_high, log_mantissa));
}

// Exact for powers of two. Polynomial of log2(1 + f) - f log2(e) below 2^-27.5. Largest error
// 1.88 ulp.
METALLOID_INLINE float log2(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const LogArgument a = split_at_three_quarters(x);
  const float f = a.fraction;
  const float q = polynomial(f, -0x1.715476p-1f, 0x1.ec710ap-2f, -0x1.7154f8p-2f, 0x1.2754fep-2f,
                             -0x1.ebda6ap-3f, 0x1.abaff8p-3f, -0x1.84dd28p-3f, 0x1.35975ep-3f,
                             -0x1.0b5078p-4f);
  const float log_mantissa = fused(f, log2_e, fused(f, log2_e_low, f * f * q));
  return with_log_special_cases(x, a.exponent + log_mantissa);
}

// Polynomial of log10(1 + f) - f log10(e) below 2^-27.6. Largest error 1.62 ulp.
METALLOID_INLINE float log10(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const LogArgument a = split_at_three_quarters(x);
  const float f = a.fraction;
  const float q = polynomial(f, -0x1.bcb7b2p-3f, 0x1.287abcp-3f, -0x1.bcb7d2p-4f, 0x1.639b8ep-4f,
                             -0x1.28273ep-4f, 0x1.019f9cp-4f, -0x1.d41e02p-5f, 0x1.7362f6p-5f,
                             -0x1.3f2bfcp-6f);
  const float log_mantissa = fused(f, log10_e, fused(f, log10_e_low, f * f * q));
  // log10(2), its first part rounded down: both times infinity have one sign.
  const float low = fused(a.exponent, 0x1.09f7ap-26f, log_mantissa);
  return with_log_special_cases(x, fused(a.exponent, 0x1.344134p-2f, low));
}

}  // namespace metalloid::precise

#if !defined(__NVPTX__)  // these have instructions there: fast_nvptx.h

namespace metalloid::fast {

// Largest errors for normal x: log 0.72, log2 0.56 and log10 0.97 of the 3 ulp (2^-21 absolute in
// [1/2, 2]) allowed.
METALLOID_INLINE float log(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const LogArgument a = split_normal(x, 0.0f);
  const float log_mantissa = fast_log_mantissa(a.fraction);
  return with_fast_log_special_cases(x, fused(a.exponent, ln2_high, log_mantissa));
}

METALLOID_INLINE float log2(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const LogArgument a = split_normal(x, 0.0f);
  const float log_mantissa = fast_log_mantissa(a.fraction);
  return with_fast_log_special_cases(x, fused(log_mantissa, log2_e, a.exponent));
}

METALLOID_INLINE float log10(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const LogArgument a = split_normal(x, 0.0f);
  const float log_mantissa = fast_log_mantissa(a.fraction);
  const float scaled = log_mantissa * log10_e;
  return with_fast_log_special_cases(x, fused(a.exponent, log10_2_high, scaled));
}

}  // namespace metalloid::fast

#endif
