// sin, cos, sincos, tan and their multiples-of-pi forms.
//
// Method of sin and cos: |x| = n pi + r, |r| <= pi/2, and one minimax polynomial of sin r, signed by
// n mod 2. The others: x = n pi/2 + r, |r| <= pi/4, and polynomials of both sin r and cos r (cheaper
// than selecting coefficients), picked and signed by n mod 4. The polynomials are our own fits.
#pragma once

#include "constants.h"
#include "core.h"
#include "fast_nvptx.h"
#include "payne_hanek.h"
#include "power.h"

namespace metalloid::float_math {

// sin(n pi + r), |r| <= pi/2 or a little more: relative error below 2^-27.1. Of fits as good, one that
// is never above 1, and 1 for both floats next to pi/2 (and so is the cosine of 0).
METALLOID_INLINE float sin_half_turn(float r, uint32 n, uint32 sign) {
  METALLOID_STRICT_FP
  const float s = r * r;
  const float p = polynomial(s, -0x1.55554cp-3f, 0x1.110ed8p-7f, -0x1.9f7078p-13f,
                             0x1.5db8cep-19f);
  return flip_sign(fused(p * s, r, r), (n << 31) ^ sign);
}

// tan r, |r| <= pi/4: relative error below 2^-25.7.
METALLOID_INLINE float tan_quadrant(float r) {
  METALLOID_STRICT_FP
  const float s = r * r;
  const float p = polynomial(s, 0x1.5554dep-2f, 0x1.112df6p-3f, 0x1.b582bp-5f, 0x1.90881ap-6f,
                             0x1.954a54p-9f, 0x1.341abp-7f);
  return fused(p * s, r, r);
}

// Cody & Waite with fma: x - n half_pi_high is exact, and each further constant adds 24 bits of
// pi/2. Good while n is a small integer, |x| <= 2^16; larger ones take Payne & Hanek.
constexpr float small_angle_limit = 0x1p16f;
METALLOID_INLINE bool is_huge_angle(float x) {
  return magnitude_bits(x) > bits_of(small_angle_limit);
}
METALLOID_INLINE float small_quarter_turns(float x, uint32& quarters) {
  METALLOID_STRICT_FP
  const float shifted = fused(x, two_over_pi, round_shift);
  const float n = shifted - round_shift;
  const float r1 = fused(n, -half_pi_high, x);
  const float r2 = fused(n, -half_pi_middle, r1);
  quarters = bits_of(shifted);
  return fused(n, -half_pi_low, r2);
}
METALLOID_INLINE float minus_multiple_of_pi(float x, float n) {
  METALLOID_STRICT_FP
  return fused(n, -pi_lowest, fused(n, -pi_low, fused(n, -pi_high, x)));
}
METALLOID_INLINE float small_half_turns(float x, uint32& halves) {
  METALLOID_STRICT_FP
  const float shifted = fused(x, one_over_pi, round_shift);
  halves = bits_of(shifted);
  return minus_multiple_of_pi(x, shifted - round_shift);
}
// Of x + pi/2, whose sine is the cosine.
METALLOID_INLINE float small_half_turns_of_cosine(float x, uint32& halves) {
  METALLOID_STRICT_FP
  const float shifted = fused(x, one_over_pi, 0.5f) + round_shift;
  halves = bits_of(shifted);
  return minus_multiple_of_pi(x, shifted - round_shift - 0.5f);
}
// An odd quarter goes to the nearer half.
METALLOID_INLINE float half_turns(float rest, uint32 quarters, uint32& halves) {
  METALLOID_STRICT_FP
  const float factor = with_sign_of(half_pi_factor, rest);
  const float moved = fused(-factor, half_pi_cofactor, rest);
  const bool odd = (quarters & 1u) != 0;
  const uint32 upwards = is_negative(rest) ? 0u : 1u;
  halves = (quarters >> 1) + (odd ? upwards : 0u);
  return choose(odd, moved, rest);
}

// tan(n pi/2 + r) from tan r: -1 / tan r in the odd quadrants.
METALLOID_INLINE float pick_tangent(float tangent, uint32 n) {
  METALLOID_STRICT_FP
  const bool odd = (n & 1u) != 0;
  return divide_rounded(choose(odd, -1.0f, tangent), choose(odd, tangent, 1.0f));
}

// sin(n pi/2 + r) from sin r and cos r; the cosine is that with n + 1.
METALLOID_INLINE float pick_quadrant(float sine, float cosine, uint32 n) {
  METALLOID_STRICT_FP
  const float value = choose((n & 1u) != 0, cosine, sine);
  return flip_sign(value, (n & 2u) << 30);
}

// x = quarters * pi/2 + rest; only the low two bits of `quarters` mean anything.
struct QuarterTurns {
  float rest;
  uint32 quarters;
};

// For the *pi functions: |x| = 2k + n/2 + r exactly, |r| <= 1/4, n in 0..4. NaN for inf and NaN.
METALLOID_INLINE QuarterTurns reduce_half_turns(float x) {
  METALLOID_STRICT_FP
  const float magnitude = absolute(x);
  const float in_turn = fused(-2.0f, __builtin_elementwise_floor(0.5f * magnitude), magnitude);
  const float shifted = fused(2.0f, in_turn, round_shift);
  return {fused(-0.5f, shifted - round_shift, in_turn), bits_of(shifted)};
}

// sin(pi r), |r| <= 1/4: relative error below 2^-27.8; pi is a sum of two floats.
METALLOID_INLINE float sinpi_quadrant(float r) {
  METALLOID_STRICT_FP
  const float s = r * r;
  const float p = polynomial(s, -0x1.4abbbep+2f, 0x1.465facp+1f, -0x1.2db5cep-1f);
  const float low = fused(p, s, pi_low);
  return fused(r, pi_high, r * low);
}

// cos(pi r), |r| <= 1/4: relative error below 2^-31.
METALLOID_INLINE float cospi_quadrant(float r) {
  METALLOID_STRICT_FP
  const float s = r * r;
  return polynomial(s, 1.0f, -0x1.3bd3ccp+2f, 0x1.03c1bp+2f, -0x1.55b2b6p+0f, 0x1.d4f7eep-3f);
}

// tan(pi r), |r| <= 1/4: relative error below 2^-25.7.
METALLOID_INLINE float tanpi_quadrant(float r) {
  METALLOID_STRICT_FP
  const float s = r * r;
  const float p = polynomial(s, 0x1.4abb5cp+3f, 0x1.468df8p+5f, 0x1.42a3acp+7f, 0x1.6c17b8p+9f,
                             0x1.cb4f6ap+9f, 0x1.a9c22cp+14f);
  const float low = fused(p, s, pi_low);
  return fused(r, pi_high, r * low);
}

// sin(n pi + r), |r| <= pi/2 by one odd polynomial, absolute error below 2^-20; r is clamped, so
// that arguments too large for the reduction still give a value in [-1, 1].
METALLOID_INLINE float fast_sin_half_turn(float r, uint32 n) {
  METALLOID_STRICT_FP
  const float clamped = at_least(at_most(r, half_pi_high), -half_pi_high);
  const float s = clamped * clamped;
  const float p = polynomial(s, -0x1.555022p-3f, 0x1.10607p-7f, -0x1.83c01ap-13f);
  return flip_sign(fused(p * s, clamped, clamped), n << 31);
}

// sin(n pi + pi r), |r| <= 1/2, absolute error below 2^-20.
METALLOID_INLINE float fast_sinpi_half_turn(float r, uint32 n) {
  METALLOID_STRICT_FP
  const float p = polynomial(r * r, 0x1.921f5cp+1f, -0x1.4ab274p+2f, 0x1.455c9ap+1f,
                             -0x1.1bf52cp-1f);
  return flip_sign(p * r, n << 31);
}

}  // namespace metalloid::float_math

namespace metalloid::precise {

// Angles too large for the fast reduction take a branch that ordinary simdgroups skip.
// Largest error 2.0 ulp.
METALLOID_INLINE float sin(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude = absolute(x);
  uint32 halves;
  float rest = small_half_turns(magnitude, halves);
  const bool is_huge = is_huge_angle(magnitude);
  if (any_thread(is_huge)) {
    uint32 quarters, far_halves;
    const float far = reduce_huge_angle(magnitude, quarters);
    rest = choose(is_huge, half_turns(far, quarters, far_halves), rest);
    halves = is_huge ? far_halves : halves;
  }
  return sin_half_turn(rest, halves, sign_bit(x));
}

// Largest error 2.0 ulp.
METALLOID_INLINE float cos(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude = absolute(x);
  uint32 halves;
  float rest = small_half_turns_of_cosine(magnitude, halves);
  const bool is_huge = is_huge_angle(magnitude);
  if (any_thread(is_huge)) {
    uint32 quarters, far_halves;
    const float far = reduce_huge_angle(magnitude, quarters);
    rest = choose(is_huge, half_turns(far, quarters + 1u, far_halves), rest);
    halves = is_huge ? far_halves : halves;
  }
  return sin_half_turn(rest, halves, 0);
}

// The same bits as sin and cos.
METALLOID_INLINE float sincos(float x, float& cosine) {
  cosine = precise::cos(x);
  return precise::sin(x);
}

// Largest error 3.05 ulp.
METALLOID_INLINE float tan(float x) {
  using namespace float_math;
  uint32 quarters;
  float rest = small_quarter_turns(x, quarters);
  const bool is_huge = is_huge_angle(x);
  if (any_thread(is_huge)) {
    uint32 far_quarters;
    rest = choose(is_huge, reduce_huge_angle(x, far_quarters), rest);
    quarters = is_huge ? far_quarters : quarters;
  }
  return pick_tangent(tan_quadrant(rest), quarters);
}

// sin(pi x); exact zeros take the sign of x, as in C23. Largest error 1.00 ulp.
METALLOID_INLINE float sinpi(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const QuarterTurns t = reduce_half_turns(x);
  const float value = pick_quadrant(sinpi_quadrant(t.rest), cospi_quadrant(t.rest), t.quarters);
  return flip_sign(choose(is_zero(value), 0.0f, value), sign_bit(x));
}

// cos(pi x); exact zeros are +0, as in C23. Largest error 0.88 ulp.
METALLOID_INLINE float cospi(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const QuarterTurns t = reduce_half_turns(x);
  const uint32 n = t.quarters + 1u;
  const float value = pick_quadrant(sinpi_quadrant(t.rest), cospi_quadrant(t.rest), n);
  return choose(is_zero(value), 0.0f, value);
}

// tan(pi x); C23 expects tanpi(2k) = +0, tanpi(2k + 1) = -0, tanpi(2k + 1/2) = inf and
// tanpi(2k + 3/2) = -inf for x > 0, and the opposite for x < 0. Largest error 1.89 ulp.
METALLOID_INLINE float tanpi(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const QuarterTurns t = reduce_half_turns(x);
  const float value = pick_tangent(tanpi_quadrant(t.rest), t.quarters);
  const uint32 special_sign = (t.quarters & 2u) << 30;
  const bool special = is_zero(t.rest);
  const float signed_value = from_bits(magnitude_bits(value) | special_sign);
  return flip_sign(choose(special, signed_value, value), sign_bit(x));
}

}  // namespace metalloid::precise

namespace metalloid::fast {

#if !defined(__NVPTX__)  // these have instructions there: fast_nvptx.h

// Largest absolute error 2^-19.9 up to |x| = 10^4; garbage in [-1, 1] beyond 2^22 pi.
METALLOID_INLINE float sin(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float shifted = fused(x, one_over_pi, round_shift);
  const float n = shifted - round_shift;
  const float r = fused(n, -pi_low, fused(n, -pi_high, x));
  return fast_sin_half_turn(r, bits_of(shifted));
}

// cos x = sin(x + pi/2): x + pi/2 = n pi + r, so r = x - (n - 1/2) pi. Error as sin.
METALLOID_INLINE float cos(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float shifted = fused(x, one_over_pi, 0.5f) + round_shift;
  const float n = shifted - round_shift - 0.5f;
  const float r = fused(n, -pi_low, fused(n, -pi_high, x));
  return fast_sin_half_turn(r, bits_of(shifted));
}

#endif

METALLOID_INLINE float sincos(float x, float& cosine) {
  cosine = fast::cos(x);
  return fast::sin(x);
}

METALLOID_INLINE float tan(float x) { return fast::divide(fast::sin(x), fast::cos(x)); }

// Largest absolute error 2^-20.4, cospi too.
METALLOID_INLINE float sinpi(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float nearest = __builtin_elementwise_roundeven(x);
  const float in_turn = fused(-2.0f, __builtin_elementwise_floor(0.5f * nearest), nearest);
  return fast_sinpi_half_turn(x - nearest, in_turn != 0.0f ? 1u : 0u);
}

METALLOID_INLINE float cospi(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float lower = __builtin_elementwise_floor(x);
  const float in_turn = fused(-2.0f, __builtin_elementwise_floor(0.5f * lower), lower);
  const float r = 0.5f - (x - lower);
  return fast_sinpi_half_turn(r, in_turn != 0.0f ? 1u : 0u);
}

METALLOID_INLINE float tanpi(float x) { return fast::divide(fast::sinpi(x), fast::cospi(x)); }

}  // namespace metalloid::fast
