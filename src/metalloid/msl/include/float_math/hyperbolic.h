// sinh, cosh, tanh and their inverses.
#pragma once

#include "constants.h"
#include "core.h"
#include "exponential.h"
#include "logarithm.h"
#include "power.h"

namespace metalloid::float_math {

// sinh and cosh share |x| = n ln 2 + r and split e^r = 1 + even(r) + odd(r):
//   2 sinh |x| = (2^n - 2^-n) (1 + even) + (2^n + 2^-n) odd
//   2 cosh |x| = (2^n + 2^-n) (1 + even) + (2^n - 2^-n) odd
// At n = 0 the first is 2 odd alone, so small arguments need no case of their own and nothing is
// divided. `even` and `odd` are doubled and the powers halved twice, so that 2^(n-2) is finite up
// to the overflow of the result (n = 129).
struct HyperbolicParts {
  float power_sum;         // (2^n + 2^-n) / 4
  float power_difference;  // (2^n - 2^-n) / 4
  float even;              // 2 (cosh r - 1)
  float odd;               // 2 sinh r
};
METALLOID_INLINE HyperbolicParts split_hyperbolic(float x) {
  METALLOID_STRICT_FP
  constexpr int32 bias = 127 - 2;
  constexpr float shift = round_shift + bias;
  const float magnitude = at_most(absolute(x), 89.5f);
  const float shifted = fused(magnitude, log2_e, shift);
  const float n = shifted - shift;
  const float r = fused(n, -ln2_low, fused(n, -ln2_high, magnitude));
  const float s = r * r;
  const float doubled = r + r;
  // sinh: relative error below 2^-26.1; cosh - 1: error of cosh below 2^-33.2.
  const float odd = fused(doubled * s, polynomial(s, 0x1.5554bp-3f, 0x1.12279ap-7f), doubled);
  const float even = s * polynomial(s, 1.0f, 0x1.5554e6p-4f, 0x1.6d4f3cp-9f);

  const int32 power_exponent = static_cast<int32>(bits_of(shifted) - bits_of(round_shift));
  const int32 inverse_exponent = 2 * bias - power_exponent;
  const float power = from_bits(static_cast<uint32>(power_exponent) << 23);
  // 2^-n no longer matters where its exponent would leave the format.
  const int32 clamped_exponent = inverse_exponent > 0 ? inverse_exponent : 0;
  const float inverse = from_bits(static_cast<uint32>(clamped_exponent) << 23);
  return {power + inverse, power - inverse, even, odd};
}

// tanh |x| = m / (m + 2), m = e^(2|x|) - 1 = (2^n - 1) + 2^n (e^r - 1), rounded once at the end.
METALLOID_INLINE float exp_minus_one_of_double(float magnitude) {
  METALLOID_STRICT_FP
  constexpr float shift = round_shift + 127;
  const float doubled = magnitude + magnitude;
  const float shifted = fused(doubled, log2_e, shift);
  const float n = shifted - shift;
  const float r = fused(n, -ln2_low, fused(n, -ln2_high, doubled));
  const float growth = fused(r * r, exp_curvature(r), r);
  const float power = from_bits(bits_of(shifted) << 23);
  return fused(power, growth, power - 1.0f);
}

// Above this x and x + 1, or x and sqrt(x^2 + 1), are the same to a float logarithm.
constexpr float asymptotic_limit = 0x1p25f;

}  // namespace metalloid::float_math

namespace metalloid::precise {

// Largest error 1.94 ulp.
METALLOID_INLINE float sinh(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const HyperbolicParts h = split_hyperbolic(x);
  const float small = fused(h.power_difference, h.even, h.power_sum * h.odd);
  return with_sign_of(fused(h.power_difference, 2.0f, small), x);
}

// Largest error 1.85 ulp.
METALLOID_INLINE float cosh(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const HyperbolicParts h = split_hyperbolic(x);
  const float small = fused(h.power_sum, h.even, h.power_difference * h.odd);
  return fused(h.power_sum, 2.0f, small);
}

// tanh x = 1 to a float from 9.02 on. Largest error 2.61 ulp.
METALLOID_INLINE float tanh(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float m = exp_minus_one_of_double(at_most(absolute(x), 10.0f));
  return with_sign_of(divide_rounded(m, m + 2.0f), x);
}

// asinh a = log1p(a + a^2 / (1 + sqrt(1 + a^2))), log(2a) for large a. Largest error
// 1.93 ulp.
METALLOID_INLINE float asinh(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float a = absolute(x);
  const bool large = a > asymptotic_limit;
  const float square = multiply_rounded(a, a);
  const float excess = divide_rounded(square, 1.0f + sqrt_rounded(1.0f + square));
  const float z = choose(large, a, a + excess);
  const float value = log1p_plus_multiple_of_ln2(z, choose(large, 1.0f, 0.0f));
  return with_sign_of(choose(is_nan_or_infinite(x), a, value), x);
}

// acosh x = log1p(t + sqrt(t^2 + 2t)), t = x - 1; log(2x) for large x. Largest error 2.01 ulp.
METALLOID_INLINE float acosh(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const bool large = x > asymptotic_limit;
  const float t = x - 1.0f;
  const float root = sqrt_rounded(fused(t, t, t + t));
  const float z = choose(large, x, t + root);
  const float value = log1p_plus_multiple_of_ln2(z, choose(large, 1.0f, 0.0f));
  const float in_domain = choose(is_nan_or_infinite(x), x, value);
  return choose(x < 1.0f, quiet_nan(), in_domain);
}

// atanh a = log1p(2a / (1 - a)) / 2. Largest error 2.00 ulp.
METALLOID_INLINE float atanh(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float a = absolute(x);
  const float z = divide_rounded(a + a, 1.0f - a);
  const float value = 0.5f * log1p_plus_multiple_of_ln2(z, 0.0f);
  const float up_to_one = choose(a == 1.0f, infinity(), value);
  const float outside = choose(is_nan(x), x, quiet_nan());
  const float inside = with_sign_of(up_to_one, x);
  return choose(a <= 1.0f, inside, outside);
}

}  // namespace metalloid::precise

namespace metalloid::fast {

// The precise forms have no special cases worth dropping; tanh saves on the division.
using precise::acosh;
using precise::asinh;
using precise::atanh;
using precise::cosh;
using precise::sinh;

METALLOID_INLINE float tanh(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float m = exp_minus_one_of_double(at_most(absolute(x), 10.0f));
  return with_sign_of(fast::divide(m, m + 2.0f), x);
}

}  // namespace metalloid::fast
