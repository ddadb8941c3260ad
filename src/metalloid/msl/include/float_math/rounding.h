// ceil, floor, trunc, rint, round, fract, modf, fmod: exact, or correctly rounded (fract).
#pragma once

#include "core.h"

namespace metalloid::precise {

METALLOID_INLINE float ceil(float x) { return __builtin_elementwise_ceil(x); }
METALLOID_INLINE float floor(float x) { return __builtin_elementwise_floor(x); }
METALLOID_INLINE float trunc(float x) { return __builtin_elementwise_trunc(x); }

// To nearest, ties to even.
METALLOID_INLINE float rint(float x) { return __builtin_elementwise_roundeven(x); }

// To nearest, ties away from zero: the float below 1/2 is added, because 1/2 itself would carry
// the float below 1/2 up to 1, and odd integers above 2^23 up to the next.
METALLOID_INLINE float round(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float nudged = x + with_sign_of(0x1.fffffep-2f, x);
  return with_sign_of(__builtin_elementwise_trunc(nudged), x);
}

// min(x - floor(x), largest float below 1), as MSL defines it, so fract(-0) = +0. For infinities
// OpenCL's rule: +0. NaN stays NaN.
METALLOID_INLINE float fract(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float difference = x - __builtin_elementwise_floor(x);
  const float below_one = at_most(difference, 0x1.fffffep-1f);
  return choose(is_infinite(x), 0.0f, below_one);
}

// The parts have the sign of x; modf(+-inf) = +-0.
METALLOID_INLINE float modf(float x, float& integer) {
  METALLOID_STRICT_FP
  using namespace float_math;
  integer = __builtin_elementwise_trunc(x);
  const float difference = x - integer;
  return with_sign_of(choose(is_infinite(x), 0.0f, difference), x);
}

}  // namespace metalloid::precise

namespace metalloid::float_math {

// (remainder * 2^shift) mod divisor for 1 <= divisor < 2, 0 <= remainder < 2, 0 <= shift <= 23.
// The quotient is below 2^24 and at most one too large; all steps are exact.
METALLOID_INLINE float shift_modulo(float remainder, float divisor, int32 shift) {
  METALLOID_STRICT_FP
  const float shifted = remainder * from_bits(static_cast<uint32>(shift + 127) << 23);
  const float quotient = __builtin_elementwise_trunc(divide_rounded(shifted, divisor));
  const float rest = fused(-quotient, divisor, shifted);
  const float corrected = rest + divisor;
  return choose(rest < 0.0f, corrected, rest);
}

}  // namespace metalloid::float_math

namespace metalloid::precise {

// x - y trunc(x / y), exact, with the sign of x. Long division on the mantissas, 23 bits a step:
// the loop runs only when |x / y| exceeds 2^23, at most 12 times.
METALLOID_INLINE float fmod(float x, float y) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const Normalized dividend = normalize(absolute(x));
  const Normalized divisor = normalize(absolute(y));
  const int32 gap = dividend.exponent - divisor.exponent;
  const int32 distance = gap < 23 ? gap : 23;
  const int32 first = distance > 0 ? distance : 0;
  float rest = shift_modulo(dividend.mantissa, divisor.mantissa, first);
  for (int32 left = gap - first; left > 0; left -= 23) {
    rest = shift_modulo(rest, divisor.mantissa, left < 23 ? left : 23);
  }
  const uint32 biased = static_cast<uint32>(divisor.exponent + scale_bias);
  const float scaled = with_sign_of(scale_by_power_of_two(rest, biased), x);
  const bool smaller = magnitude_bits(x) < magnitude_bits(y);
  const float value = choose(smaller, x, scaled);
  const bool bad_dividend = is_nan_or_infinite(x);
  const bool bad_divisor = magnitude_bits(y) - 1u >= infinity_bits;
  return choose(bad_dividend | bad_divisor, quiet_nan(), value);
}

}  // namespace metalloid::precise

namespace metalloid::fast {

using precise::ceil;
using precise::floor;
using precise::fract;
using precise::modf;
using precise::rint;
using precise::round;
using precise::trunc;

// The formula of the MSL table, good while |x / y| < 2^24.
METALLOID_INLINE float fmod(float x, float y) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float quotient = __builtin_elementwise_trunc(divide_rounded(x, y));
  return fused(-quotient, y, x);
}

}  // namespace metalloid::fast
