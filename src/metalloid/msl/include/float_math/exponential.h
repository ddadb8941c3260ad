// exp, exp2, exp10.
//
// Method (Cody & Waite 1980; Muller, Elementary Functions, 3rd ed., ch. 11): x = n ln 2 + r with n
// the nearest integer, exp(x) = 2^n exp(r), |r| <= ln(2)/2. The coefficients are our own minimax
// fits of the relative error, rounded to float one by one with the rest refitted.
#pragma once

#include "constants.h"
#include "core.h"
#include "fast_nvptx.h"
#include "instructions_avx512.h"

namespace metalloid::float_math {

// round_shift plus the bias that scale_by_power_of_two expects, so that the bits of
// fused(x, 1/step, scale_shift) go straight into it.
constexpr float scale_shift = round_shift + scale_bias;

// value * 2^n for shifted = scale_shift + n.
METALLOID_INLINE float scale_by_shifted(float value, float shifted) {
  METALLOID_STRICT_FP
#if defined(METALLOID_HAS_AVX512)
  return __avx512_scalef(value, shifted - scale_shift);
#else
  return scale_by_power_of_two(value, bits_of(shifted));
#endif
}

// 2^r - 1 over r for |r| <= 1/2: relative error of 1 + r p(r) below 2^-28.3.
METALLOID_INLINE float exp2_slope(float r) {
  return polynomial(r, 0x1.62e43p-1f, 0x1.ebfbdcp-3f, 0x1.c6af7cp-5f, 0x1.3b2dep-7f,
                    0x1.5f082ep-10f, 0x1.416b6p-13f);
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2: relative error of 1 + r + r^2 q(r) below 2^-28.2.
METALLOID_INLINE float exp_curvature(float r) {
  return polynomial(r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558acp-5f, 0x1.123974p-7f,
                    0x1.6a504cp-10f);
}

// The fast variants scale by one power of two, 2^(n-1), and double the polynomial instead: n then
// reaches 128, and what is below 2^-125.5 is flushed to zero.
constexpr float fast_scale_shift = round_shift + 126;

}  // namespace metalloid::float_math

namespace metalloid::precise {

// e^x; subnormal results are rounded once. Clamping keeps n in the range of scale_by_power_of_two;
// beyond the limits the result is 0 or infinity anyway. Largest error 0.90 ulp.
METALLOID_INLINE float exp(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float clamped = at_least(at_most(x, 89.0f), -104.0f);
  const float shifted = fused(clamped, log2_e, scale_shift);
  const float n = shifted - scale_shift;
  const float r = fused(n, -ln2_low, fused(n, -ln2_high, clamped));
  const float p = polynomial(r, 1.0f, 1.0f, exp_curvature(r));
  return scale_by_shifted(p, shifted);
}

// 2^x; exact for integers. Largest error 0.88 ulp.
METALLOID_INLINE float exp2(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float clamped = at_least(at_most(x, 129.0f), -151.0f);
  const float shifted = clamped + scale_shift;
  const float r = clamped - (shifted - scale_shift);
  const float p = fused(r, exp2_slope(r), 1.0f);
  return scale_by_shifted(p, shifted);
}

// 10^x = 2^n 10^r, |r| <= log10(2)/2: relative error of the polynomial below 2^-28.5. Largest error
// 1.01 ulp.
METALLOID_INLINE float exp10(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float clamped = at_least(at_most(x, 39.0f), -46.0f);
  const float shifted = fused(clamped, log2_10, scale_shift);
  const float n = shifted - scale_shift;
  const float r = fused(n, -log10_2_low, fused(n, -log10_2_high, clamped));
  const float p = polynomial(r, 1.0f, 0x1.26bb1cp+1f, 0x1.53524ap+1f, 0x1.046f9cp+1f,
                             0x1.2bd9fcp+0f, 0x1.156a34p-1f, 0x1.a640a4p-3f);
  return scale_by_shifted(p, shifted);
}

}  // namespace metalloid::precise

namespace metalloid::fast {

#if !defined(__NVPTX__)  // these have instructions there: fast_nvptx.h

// e^x, polynomial 2^-23.2; the one-constant reduction costs |x| 2^-27. Largest error 0.70 of the
// 3 + floor(|2x|) ulp allowed.
METALLOID_INLINE float exp(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float clamped = at_least(at_most(x, 89.0f), -87.3f);
  const float shifted = fused(clamped, log2_e, fast_scale_shift);
  const float n = shifted - fast_scale_shift;
  const float r = fused(n, -ln2_high, clamped);
  const float doubled = polynomial(r, 2.0f, 2.0f, 0x1.fffdfcp-1f, 0x1.5557aep-2f, 0x1.572a24p-4f,
                                   0x1.1062ep-6f);
  return doubled * from_bits(bits_of(shifted) << 23);
}

// 2^x, polynomial 2^-23.4. Largest error 0.65 of the 3 + floor(|2x|) ulp allowed.
METALLOID_INLINE float exp2(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float clamped = at_least(at_most(x, 128.0f), -126.0f);
  const float shifted = clamped + fast_scale_shift;
  const float r = clamped - (shifted - fast_scale_shift);
  const float doubled = polynomial(r, 2.0f, 0x1.62e42ap+0f, 0x1.ebf9c2p-2f, 0x1.c6b6d8p-4f,
                                   0x1.3ce8acp-6f, 0x1.5bda42p-9f);
  return doubled * from_bits(bits_of(shifted) << 23);
}

#endif

// 10^x, polynomial 2^-23.4. Largest error 0.66 of the 3 + floor(|2x|) ulp allowed.
METALLOID_INLINE float exp10(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float clamped = at_least(at_most(x, 38.6f), -37.9f);
  const float shifted = fused(clamped, log2_10, fast_scale_shift);
  const float n = shifted - fast_scale_shift;
  const float r = fused(n, -log10_2_low, fused(n, -log10_2_high, clamped));
  const float doubled = polynomial(r, 2.0f, 0x1.26bb16p+2f, 0x1.5350d2p+2f, 0x1.047446p+2f,
                                   0x1.2d818ap+1f, 0x1.12b734p+0f);
  return doubled * from_bits(bits_of(shifted) << 23);
}

}  // namespace metalloid::fast
