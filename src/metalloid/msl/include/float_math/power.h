// pow, powr, sqrt, rsqrt, divide.
#pragma once

#include "constants.h"
#include "core.h"
#include "exponential.h"
#include "fast_nvptx.h"
#include "logarithm.h"

namespace metalloid::float_math {

// An unevaluated sum, |low| far below |high|.
struct FloatPair {
  float high;
  float low;
};

// high + low for |high| >= |low| or high = 0 (Dekker 1971).
METALLOID_INLINE FloatPair fast_two_sum(float high, float low) {
  METALLOID_STRICT_FP
  const float sum = high + low;
  return {sum, low - (sum - high)};
}

// log2 x to about 2^-29 relative, for positive finite x: with p = (m - 1) / (m + 1),
// log2 m = 2 log2(e) (p + p^3/3 + ...), where p and its multiple are pairs and the rest is short.
// The mantissa m is centred on 1 (pivot sqrt(1/2)), which keeps p^3 and the cancellation smallest.
METALLOID_INLINE FloatPair log2_pair(float x) {
  METALLOID_STRICT_FP
  const LogArgument a = split_positive(x, sqrt_half_bits);
  const float f = a.fraction;
  const float denominator = 2.0f + f;
  const float denominator_low = f - (denominator - 2.0f);

  // 1 / (m + 1): quadratic (2^-9.6) and one Newton step; the residual then squares its error.
  const float guess = polynomial(f, 0x1.0029d8p-1f, -0x1.051ccp-2f, 0x1.deabap-4f);
  const float reciprocal = fused(guess, fused(-denominator, guess, 1.0f), guess);
  const float quotient = multiply_rounded(f, reciprocal);
  const float residual = fused(-quotient, denominator_low, fused(-quotient, denominator, f));
  const FloatPair p = fast_two_sum(quotient, multiply_rounded(residual, reciprocal));

  // Relative error of the series below 2^-36; its linear and cubic terms share the factor of p.low.
  const float s = p.high * p.high;
  const float cubic = polynomial(s, 0x1.ec709ep-1f, 0x1.2776ep-1f, 0x1.a5d048p-2f, 0x1.58901ep-2f);
  constexpr float scale_high = 2.0f * log2_e;
  constexpr float scale_low = 2.0f * log2_e_low;
  const float linear = multiply_rounded(p.high, scale_high);
  const float linear_error = fused(p.high, scale_high, -linear);
  const float slope = fused(scale_high, s, scale_high);
  const float linear_low = fused(p.low, slope, fused(p.high, scale_low, linear_error));
  const float low = fused(p.high * s, cubic, linear_low);

  const FloatPair sum = fast_two_sum(a.exponent, linear);
  return fast_two_sum(sum.high, sum.low + low);
}

// x^y for finite x > 0 and any y but NaN; x = 0 and x = inf follow 0^y = 1 / inf^y.
METALLOID_INLINE float pow_positive(float x, float y) {
  METALLOID_STRICT_FP
  // Any |y| above 2^33 over- or underflows unless x = 1; the clamp keeps y log2 x finite.
  const float bounded_y = at_least(at_most(y, 0x1p33f), -0x1p33f);
  const FloatPair logarithm = log2_pair(x);
  const float product = multiply_rounded(bounded_y, logarithm.high);
  const float error = fused(bounded_y, logarithm.high, -product);
  const float product_low = fused(bounded_y, logarithm.low, error);

  const float clamped = at_least(at_most(product, 160.0f), -160.0f);
  const float low = choose(clamped == product, product_low, 0.0f);
  const float shifted = clamped + scale_shift;
  const float r = (clamped - (shifted - scale_shift)) + low;
  const float value = scale_by_shifted(fused(r, exp2_slope(r), 1.0f), shifted);

  const float limit = choose(is_zero(x) == is_negative(y), infinity(), 0.0f);
  return choose(is_zero_or_infinite(x), limit, value);
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

// Special cases as in C99 F.9.4.4. Largest error 2.3 ulp.
METALLOID_INLINE float pow(float x, float y) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude = absolute(x);
  const float value = pow_positive(magnitude, y);

  // Infinite and huge y are even integers.
  const float half_y = 0.5f * y;
  const bool integer = __builtin_elementwise_trunc(y) == y;
  const bool half_integer = __builtin_elementwise_trunc(half_y) == half_y;
  const bool odd = integer & !half_integer;
  const uint32 sign = sign_bit(x);
  const float signed_value = flip_sign(value, odd ? sign : 0u);

  const bool negative = is_negative(x);
  const bool extreme = is_zero_or_infinite(x);
  const bool undefined = negative & !integer & !extreme;
  const float nan = x + y;
  const float defined = choose(undefined, quiet_nan(), signed_value);
  const float not_one = choose(either_is_nan(x, y), nan, defined);
  const bool x_is_one = bits_of(x) == one_bits;
  const bool y_is_zero = is_zero(y);
  return choose(x_is_one | y_is_zero, 1.0f, not_one);
}

// x^y as exp(y log x): no signs, and NaN wherever y log x is 0 * inf. Largest error 2.3 ulp.
METALLOID_INLINE float powr(float x, float y) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude = absolute(x);
  const float value = pow_positive(magnitude, y);
  const bool x_is_one = bits_of(x) == one_bits;
  const bool extreme_x = is_zero_or_infinite(x);
  const bool y_is_zero = is_zero(y);
  const bool y_is_infinite = is_infinite(y);
  const bool negative = x < 0.0f;
  const bool undefined = negative | (extreme_x & y_is_zero) | (x_is_one & y_is_infinite);
  const float nan = x + y;
  const float defined = choose(undefined, quiet_nan(), value);
  return choose(either_is_nan(x, y), nan, defined);
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

// The formula of the MSL table: NaN for negative x, an error that grows with |y log2 x|.
METALLOID_INLINE float pow(float x, float y) {
  METALLOID_STRICT_FP
  return fast::exp2(y * fast::log2(x));
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
