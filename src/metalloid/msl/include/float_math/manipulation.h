// Functions of the representation: fabs, copysign, fmin, fmax, fdim, fma, ldexp, frexp, ilogb,
// nextafter. All exact, or correctly rounded where the result may not fit.
#pragma once

#include "core.h"

namespace metalloid::precise {

METALLOID_INLINE float fabs(float x) { return float_math::absolute(x); }
METALLOID_INLINE float copysign(float x, float y) { return float_math::with_sign_of(x, y); }

// IEEE 754-2008 minNum and maxNum: a NaN operand yields the other one.
METALLOID_INLINE float fmin(float x, float y) {
  METALLOID_STRICT_FP
  return __builtin_elementwise_minnum(x, y);
}
METALLOID_INLINE float fmax(float x, float y) {
  METALLOID_STRICT_FP
  return __builtin_elementwise_maxnum(x, y);
}

// x - y if x > y, else +0; NaN if either is NaN.
METALLOID_INLINE float fdim(float x, float y) {
  METALLOID_STRICT_FP
  const float difference = x - y;
  return float_math::choose(x <= y, 0.0f, difference);
}

METALLOID_INLINE float fma(float a, float b, float c) { return float_math::fused(a, b, c); }

// x 2^k, rounded once: the mantissa is scaled, so no intermediate result is subnormal.
METALLOID_INLINE float ldexp(float x, int k) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const Normalized parts = normalize(x);
  const int32 upper = k < 600 ? k : 600;
  const int32 bounded = upper > -600 ? upper : -600;
  const int32 exponent = parts.exponent + bounded;
  const int32 low_exponent = exponent < 200 ? exponent : 200;
  const int32 clamped = low_exponent > -200 ? low_exponent : -200;
  const uint32 biased = static_cast<uint32>(clamped + scale_bias);
  const float value = scale_by_power_of_two(parts.mantissa, biased);
  const float same = x + x;
  return choose(is_zero_nan_or_infinite(x), same, value);
}

// x = result 2^exponent with 1/2 <= |result| < 1; 0, inf and NaN come back with exponent 0.
METALLOID_INLINE float frexp(float x, int& exponent) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const Normalized parts = normalize(x);
  const bool special = is_zero_nan_or_infinite(x);
  const float half = 0.5f * parts.mantissa;
  exponent = special ? 0 : parts.exponent + 1;
  return choose(special, x, half);
}

// floor(log2 |x|); INT_MIN for 0 and NaN, INT_MAX for infinities.
METALLOID_INLINE int ilogb(float x) {
  using namespace float_math;
  constexpr int32 largest = 0x7fffffff;
  constexpr int32 smallest = -largest - 1;
  const int32 exponent = normalize(x).exponent;
  const int32 finite = is_zero(x) ? smallest : exponent;
  const int32 not_infinite = is_nan(x) ? smallest : finite;
  return is_infinite(x) ? largest : not_infinite;
}

// The float next to x towards y. Floats of one sign are ordered as their bits.
METALLOID_INLINE float nextafter(float x, float y) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const bool away_from_zero = (x < y) != is_negative(x);
  const uint32 stepped = bits_of(x) + (away_from_zero ? 1u : ~0u);
  const uint32 from_zero = sign_bit(y) | 1u;
  const float adjacent = choose(is_zero(x), from_bits(from_zero), from_bits(stepped));
  const float moved = choose(x == y, y, adjacent);
  const float nan = x + y;
  return choose(either_is_nan(x, y), nan, moved);
}

}  // namespace metalloid::precise

namespace metalloid::fast {

using precise::copysign;
using precise::fabs;
using precise::fdim;
using precise::fma;
using precise::fmax;
using precise::fmin;
using precise::frexp;
using precise::ilogb;
using precise::ldexp;
using precise::nextafter;

}  // namespace metalloid::fast
