// asin, acos, atan, atan2.
//
// Every result is k pi/2 +- r with a small r from a polynomial. pi/2 is written as a product of two
// floats (to 2^-45.8), so one fma adds it with a single rounding. Our own minimax polynomials.
#pragma once

#include "constants.h"
#include "core.h"

namespace metalloid::float_math {

// quarter_turns * pi/2 + r for quarter_turns in {0, 1, 2}, given as quarter_turns * half_pi_factor.
METALLOID_INLINE float add_quarter_turns(float scaled_quarter_turns, float r) {
  return fused(scaled_quarter_turns, half_pi_cofactor, r);
}

// asin |x| for |x| <= 1/2, asin sqrt((1 - |x|) / 2) above (Cody & Waite 1980): there
// asin |x| = pi/2 - 2 r and acos |x| = 2 r. NaN outside [-1, 1].
struct ArcSine {
  float r;
  bool folded;
};
template <class Polynomial>
METALLOID_INLINE ArcSine fold_arcsine(float x, Polynomial asin_slope) {
  METALLOID_STRICT_FP
  const float magnitude = absolute(x);
  const bool folded = magnitude > 0.5f;
  const float half_complement = fused(magnitude, -0.5f, 0.5f);
  const float root = sqrt_rounded(half_complement);
  const float square = magnitude * magnitude;
  const float s = folded ? half_complement : square;
  const float argument = folded ? root : magnitude;
  return {fused(argument * s, asin_slope(s), argument), folded};
}

// (asin(x) - x) / x^3 of s = x^2 <= 1/4: relative error of asin below 2^-27.6.
struct AsinSlope {
  METALLOID_INLINE float operator()(float s) const {
    return polynomial(s, 0x1.5555c8p-3f, 0x1.330204p-4f, 0x1.747bbap-5f, 0x1.8c3e2ap-6f,
                      0x1.595c8cp-5f);
  }
};
// Below 2^-23.4.
struct FastAsinSlope {
  METALLOID_INLINE float operator()(float s) const {
    return polynomial(s, 0x1.554fa2p-3f, 0x1.34dc64p-4f, 0x1.47f472p-5f, 0x1.993e42p-5f);
  }
};

METALLOID_INLINE float asin_of(ArcSine a, float x) {
  METALLOID_STRICT_FP
  const float unfolded = add_quarter_turns(half_pi_factor, -2.0f * a.r);
  return with_sign_of(a.folded ? unfolded : a.r, x);
}

METALLOID_INLINE float acos_of(ArcSine a, float x) {
  METALLOID_STRICT_FP
  const float magnitude = a.folded ? 2.0f * a.r : a.r;
  const uint32 sign = a.folded ? sign_bit(x) : sign_bit(x) ^ sign_mask;
  const float folded_turns = is_negative(x) ? 2.0f * half_pi_factor : 0.0f;
  return add_quarter_turns(a.folded ? folded_turns : half_pi_factor, flip_sign(magnitude, sign));
}

// atan t, 0 <= t <= 1: relative error below 2^-25.8.
METALLOID_INLINE float atan_octant(float t) {
  METALLOID_STRICT_FP
  const float s = t * t;
  const float p = polynomial(s, -0x1.5554dcp-2f, 0x1.9978ecp-3f, -0x1.230a94p-3f, 0x1.b4deb4p-4f,
                             -0x1.3550f4p-4f, 0x1.61ef2ap-5f, -0x1.0c18cap-6f, 0x1.7ea966p-9f);
  return fused(t * s, p, t);
}
// Below 2^-23.1.
METALLOID_INLINE float fast_atan_octant(float t) {
  METALLOID_STRICT_FP
  const float s = t * t;
  const float p = polynomial(s, -0x1.5552dep-2f, 0x1.99127cp-3f, -0x1.1f916ap-3f, 0x1.985134p-4f,
                             -0x1.ed3512p-5f, 0x1.95465p-6f, -0x1.3c158p-8f);
  return fused(t * s, p, t);
}

// The octant's angle r back to the angle of (x, y) in (-pi, pi].
METALLOID_INLINE float unfold_octant(float r, bool steep, float y, float x) {
  METALLOID_STRICT_FP
  const bool left = is_negative(x);
  const float flat_turns = left ? 2.0f * half_pi_factor : 0.0f;
  const float turns = steep ? half_pi_factor : flat_turns;
  const float angle = add_quarter_turns(turns, flip_sign(r, steep != left ? sign_mask : 0u));
  return with_sign_of(angle, y);
}

}  // namespace metalloid::float_math

namespace metalloid::precise {

METALLOID_INLINE float asin(float x) {
  using namespace float_math;
  return asin_of(fold_arcsine(x, AsinSlope{}), x);
}

METALLOID_INLINE float acos(float x) {
  using namespace float_math;
  return acos_of(fold_arcsine(x, AsinSlope{}), x);
}

// Folded at 1: atan a = pi/2 - atan(1/a).
METALLOID_INLINE float atan(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude = absolute(x);
  const bool steep = magnitude > 1.0f;
  const float t = divide_rounded(steep ? 1.0f : magnitude, steep ? magnitude : 1.0f);
  const float r = atan_octant(t);
  const float unfolded = add_quarter_turns(half_pi_factor, -r);
  return with_sign_of(steep ? unfolded : r, x);
}

// The angle of the point (x, y), special cases as in C99 F.9.1.4: the quotient of the smaller by
// the larger magnitude is 0 for 0/0 and 1 for inf/inf.
METALLOID_INLINE float atan2(float y, float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude_y = absolute(y);
  const float magnitude_x = absolute(x);
  const bool steep = magnitude_y > magnitude_x;
  const float smaller = steep ? magnitude_x : magnitude_y;
  const float larger = steep ? magnitude_y : magnitude_x;
  const float quotient = divide_rounded(smaller, is_zero(larger) ? 1.0f : larger);
  const float t = is_infinite(smaller) ? 1.0f : quotient;
  const float angle = unfold_octant(atan_octant(t), steep, y, x);
  const float nan = x + y;
  return either_is_nan(x, y) ? nan : angle;
}

}  // namespace metalloid::precise

namespace metalloid::fast {

METALLOID_INLINE float asin(float x) {
  using namespace float_math;
  return asin_of(fold_arcsine(x, FastAsinSlope{}), x);
}

METALLOID_INLINE float acos(float x) {
  using namespace float_math;
  return acos_of(fold_arcsine(x, FastAsinSlope{}), x);
}

METALLOID_INLINE float atan(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude = absolute(x);
  const bool steep = magnitude > 1.0f;
  const float t = divide_rounded(steep ? 1.0f : magnitude, steep ? magnitude : 1.0f);
  const float r = fast_atan_octant(t);
  const float unfolded = add_quarter_turns(half_pi_factor, -r);
  return with_sign_of(steep ? unfolded : r, x);
}

// Without the cases of infinities; atan2(0, 0) stays 0, as shaders rely on it.
METALLOID_INLINE float atan2(float y, float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude_y = absolute(y);
  const float magnitude_x = absolute(x);
  const bool steep = magnitude_y > magnitude_x;
  const float smaller = steep ? magnitude_x : magnitude_y;
  const float larger = steep ? magnitude_y : magnitude_x;
  const float t = divide_rounded(smaller, at_least(larger, 0x1p-126f));
  return unfold_octant(fast_atan_octant(t), steep, y, x);
}

}  // namespace metalloid::fast
