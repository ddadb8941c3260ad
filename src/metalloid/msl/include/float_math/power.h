// pow, powr, sqrt, rsqrt, divide.
#pragma once

#include "constants.h"
#include "core.h"
#include "exponential.h"
#include "fast_nvptx.h"
#include "logarithm.h"
#include "power_avx512.h"

namespace metalloid::float_math {

// An unevaluated sum, |low| far below |high|.
struct FloatPair {
  float high;
  float low;
};

// log2 |x| to about 2^-29 relative, for finite x but 0: with p = (m - 1) / (m + 1),
// log2 m = 2 log2(e) (p + p^3/3 + ...), where p and its multiple are pairs and the rest is short.
// `low` is up to a hundredth of `high`.
METALLOID_INLINE FloatPair log2_pair(float x) {
  METALLOID_STRICT_FP
  const LogArgument a = split_positive(absolute(x), sqrt_half_bits);
  const float f = a.fraction;

  // p = quotient + rest; 1 / (m + 1) to 2^-16.6. Twice the quotient is so close to f that their
  // difference is exact.
  const float reciprocal = polynomial(f, 0x1.ffff0ap-2f, -0x1.ffe77p-3f, 0x1.00b3a6p-3f,
                                      -0x1.0788a4p-4f, 0x1.c9a5bep-6f);
  const float quotient = multiply_rounded(f, reciprocal);
  const float residual = fused(-quotient, f, fused(-2.0f, quotient, f));
  const float rest = multiply_rounded(residual, reciprocal);

  // Relative error of the series below 2^-36, and 2^-20 for what `rest` adds to it.
  constexpr float scale_high = 2.0f * log2_e;
  constexpr float scale_low = 2.0f * log2_e_low;
  const float s = quotient * quotient;
  const float cubic = polynomial(s, scale_low, 0x1.ec709cp-1f, 0x1.2776ep-1f, 0x1.a5d04p-2f,
                                 0x1.58915cp-2f);
  const float slope = polynomial(s, 0x1.71548ap+1f, 0x1.71246cp+1f, 0x1.8232f2p+1f);

  // What the sum of the exponent and the leading term loses is `lost`, exactly.
  const float high = fused(quotient, scale_high, a.exponent);
  const float lost = fused(quotient, scale_high, a.exponent - high);
  return {high, fused(quotient, cubic, fused(rest, slope, lost))};
}

// 2^(y (high + low)): 0 or infinity where that is beyond +-160.
METALLOID_INLINE float exp2_of_product(float y, FloatPair logarithm) {
  METALLOID_STRICT_FP
  const float shifted = fused(y, logarithm.high + logarithm.low, scale_shift);
  const float bounded = at_least(at_most(shifted, scale_shift + 160.0f), scale_shift - 160.0f);
  const float n = bounded - scale_shift;
  const float rest = fused(y, logarithm.low, fused(y, logarithm.high, -n));
  const float r = at_least(at_most(rest, 1.0f), -1.0f);
  return scale_by_power_of_two(fused(r, exp2_slope(r), 1.0f), bits_of(bounded));
}

// |x|^y. (Any |y| above 2^33 over- or underflows unless x = 1; the bound keeps y log2 x
// finite.)
METALLOID_INLINE float power_of_magnitude(float x, float y) {
  METALLOID_STRICT_FP
  const float bounded_y = at_least(at_most(y, 0x1p33f), -0x1p33f);
#if defined(METALLOID_HAS_AVX512)
  return power_by_tables(x, bounded_y);
#else
  return exp2_of_product(bounded_y, log2_pair(x));
#endif
}

// Whether x^y is not simply that.
METALLOID_INLINE bool is_special_power(float x, float y) {
  return !is_positive_finite(x) | is_zero(y) | is_nan(y);
}

// 1 / sqrt(a) for positive, finite, normal a, to about 2 ulp. Without an instruction for it: the
// bit trick (3.5 %) and two cubically convergent steps y (1 + e/2 + 3/8 e^2), e = 1 - a y^2.
METALLOID_INLINE float rsqrt_sharpened(float a, float y) {
  METALLOID_STRICT_FP
  const float e = fused(-a * y, y, 1.0f);
  return fused(y * e, fused(0.375f, e, 0.5f), y);
}
METALLOID_INLINE float rsqrt_estimate(float a) {
#if defined(__NVPTX__)
  return __nvvm_rsqrt_approx_f(a);
#else
  const float guess = from_bits(0x5f3759dfu - (bits_of(a) >> 1));
  return rsqrt_sharpened(a, rsqrt_sharpened(a, guess));
#endif
}

// rsqrt(+-0) = +-inf, rsqrt(+inf) = 0, rsqrt(negative) = rsqrt(NaN) = NaN; else `result`.
METALLOID_INLINE float with_rsqrt_special_cases(float x, float result) {
  METALLOID_STRICT_FP
  const float pole = with_sign_of(infinity(), x);
  const float nonzero = choose(bits_of(x) == infinity_bits, 0.0f, quiet_nan());
  const float special = choose(is_zero(x), pole, nonzero);
  return choose(is_positive_finite(x), result, special);
}

}  // namespace metalloid::float_math

namespace metalloid::precise {

// Special cases as in C99 F.9.4.4; ordinary simdgroups skip the branch. Largest error 3.9 ulp, or
// 4.3 with the tables of AVX-512.
METALLOID_INLINE float pow(float x, float y) {
  METALLOID_STRICT_FP
  using namespace float_math;
  float value = power_of_magnitude(x, y);
  const bool is_special = is_special_power(x, y);
  if (any_thread(is_special)) {
    // Infinite and huge y are even integers.
    const float half_y = 0.5f * y;
    const bool integer = __builtin_elementwise_trunc(y) == y;
    const bool odd = integer & (__builtin_elementwise_trunc(half_y) != half_y);
    const bool extreme = is_zero_or_infinite(x);
    const float limit = choose(is_zero(x) == is_negative(y), infinity(), 0.0f);
    const float unsigned_value = choose(extreme, limit, value);
    const float signed_value = flip_sign(unsigned_value, odd ? sign_bit(x) : 0u);
    const bool undefined = is_negative(x) & !integer & !extreme;
    const float nan = x + y;
    const float defined = choose(undefined, quiet_nan(), signed_value);
    const float not_one = choose(either_is_nan(x, y), nan, defined);
    const float special = choose((bits_of(x) == one_bits) | is_zero(y), 1.0f, not_one);
    value = choose(is_special, special, value);
  }
  return value;
}

// x^y as exp(y log x): no signs, and NaN wherever y log x is 0 * inf. Errors as pow has them.
METALLOID_INLINE float powr(float x, float y) {
  METALLOID_STRICT_FP
  using namespace float_math;
  float value = power_of_magnitude(x, y);
  const bool one_to_infinity = (bits_of(x) == one_bits) & is_infinite(y);
  const bool is_special = is_special_power(x, y) | one_to_infinity;
  if (any_thread(is_special)) {
    const bool extreme = is_zero_or_infinite(x);
    const float limit = choose(is_zero(x) == is_negative(y), infinity(), 0.0f);
    const bool negative = x < 0.0f;
    const bool undefined = negative | (extreme & is_zero(y)) | one_to_infinity;
    const float nan = x + y;
    const float defined = choose(undefined, quiet_nan(), choose(extreme, limit, value));
    value = choose(is_special, choose(either_is_nan(x, y), nan, defined), value);
  }
  return value;
}

METALLOID_INLINE float sqrt(float x) { return float_math::sqrt_rounded(x); }

METALLOID_INLINE float divide(float x, float y) { return float_math::divide_rounded(x, y); }

// Correctly rounded.
METALLOID_INLINE float rsqrt(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const bool subnormal = x < 0x1p-126f;
  const float lifted = x * 0x1p24f;
  const float a = choose(subnormal, lifted, x);
  const float estimate = rsqrt_estimate(a);
  // One more step, with the residual 1 - a estimate^2 computed as a pair.
  const float product = multiply_rounded(a, estimate);
  const float product_error = fused(a, estimate, -product);
  const float residual = fused(-product, estimate, 1.0f);
  const float e = fused(-product_error, estimate, residual);
  const float corrected = fused(estimate * e, fused(0.375f, e, 0.5f), estimate);
  const float value = choose(subnormal, corrected * 0x1p12f, corrected);
  return with_rsqrt_special_cases(x, value);
}

}  // namespace metalloid::precise

namespace metalloid::fast {

// The formula of the MSL table: NaN for negative x, an error that grows with |y log2 x|. With tables
// the precise function is quicker.
METALLOID_INLINE float pow(float x, float y) {
  METALLOID_STRICT_FP
#if defined(METALLOID_HAS_AVX512)
  return precise::pow(x, y);
#else
  return fast::exp2(y * fast::log2(x));
#endif
}
METALLOID_INLINE float powr(float x, float y) { return fast::pow(x, y); }

#if !defined(__NVPTX__)  // these have instructions there: fast_nvptx.h

using precise::divide;
using precise::sqrt;

// Subnormals count as zero, infinity as the largest float. Largest error 1.00 ulp.
METALLOID_INLINE float rsqrt(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float estimate = rsqrt_estimate(at_most(x, 0x1.fffffep+127f));
  const float special = choose(x < 0.0f, quiet_nan(), infinity());
  return choose(x < 0x1p-126f, special, estimate);
}

#endif

}  // namespace metalloid::fast
