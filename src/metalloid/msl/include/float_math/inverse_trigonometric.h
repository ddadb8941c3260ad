// asin, acos, atan, atan2.
//
// Every result is k pi/2 +- r with a small r from a polynomial. pi/2 is written as a product of two
// floats (to 2^-45.8), so one fma adds it with a single rounding. Our own minimax polynomials.
#pragma once

#include "constants.h"
#include "core.h"
#include "power.h"

namespace metalloid::float_math {

// quarter_turns * pi/2 + r for quarter_turns in {0, 1, 2}, given as quarter_turns * half_pi_factor.
METALLOID_INLINE float add_quarter_turns(float scaled_quarter_turns, float r) {
  return fused(scaled_quarter_turns, half_pi_cofactor, r);
}

// asin |x| = asin a for |x| <= 1/2; above, asin |x| = pi/2 - 2 asin a and acos |x| = 2 asin a with
// a = sqrt((1 - |x|) / 2) (Cody & Waite 1980). NaN outside [-1, 1].
struct FoldedSine {
  float argument;  // a <= 1/2
  float square;    // a^2
  bool folded;
};
METALLOID_INLINE float half_complement(float x) { return fused(absolute(x), -0.5f, 0.5f); }
METALLOID_INLINE FoldedSine fold_sine(float x, float root_of_half_complement) {
  METALLOID_STRICT_FP
  const float magnitude = absolute(x);
  const bool folded = magnitude > 0.5f;
  return {choose(folded, root_of_half_complement, magnitude),
          choose(folded, half_complement(x), magnitude * magnitude), folded};
}

// (asin(a) - a) / a^3 of s = a^2 <= 1/4: relative error of asin below 2^-27.6.
METALLOID_INLINE float asin_slope(float s) {
  return polynomial(s, 0x1.5555c8p-3f, 0x1.330204p-4f, 0x1.747bbap-5f, 0x1.8c3e2ap-6f,
                    0x1.595c8cp-5f);
}
// Below 2^-23.4.
METALLOID_INLINE float fast_asin_slope(float s) {
  return polynomial(s, 0x1.554fa2p-3f, 0x1.34dc64p-4f, 0x1.47f472p-5f, 0x1.993e42p-5f);
}

METALLOID_INLINE float arcsine(FoldedSine a, float slope) {
  METALLOID_STRICT_FP
  return fused(a.argument * a.square, slope, a.argument);
}
METALLOID_INLINE float unfold_asin(FoldedSine a, float slope, float x) {
  METALLOID_STRICT_FP
  const float r = arcsine(a, slope);
  const float unfolded = add_quarter_turns(half_pi_factor, -2.0f * r);
  return with_sign_of(choose(a.folded, unfolded, r), x);
}
METALLOID_INLINE float unfold_acos(FoldedSine a, float slope, float x) {
  METALLOID_STRICT_FP
  const float r = arcsine(a, slope);
  const float magnitude = choose(a.folded, 2.0f * r, r);
  const uint32 sign = sign_bit(x) ^ (a.folded ? 0u : sign_mask);
  const float folded_turns = choose(is_negative(x), 2.0f * half_pi_factor, 0.0f);
  const float turns = choose(a.folded, folded_turns, half_pi_factor);
  return add_quarter_turns(turns, flip_sign(magnitude, sign));
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

// The octant's angle r back to atan x.
METALLOID_INLINE float unfold_atan(float r, bool steep, float x) {
  METALLOID_STRICT_FP
  return with_sign_of(choose(steep, add_quarter_turns(half_pi_factor, -r), r), x);
}

// The magnitudes of (x, y), folded at the diagonal.
struct Octant {
  float smaller, larger;
  bool steep;
};
METALLOID_INLINE Octant fold_octant(float y, float x) {
  const float magnitude_y = absolute(y), magnitude_x = absolute(x);
  const bool steep = magnitude_y > magnitude_x;
  return {choose(steep, magnitude_x, magnitude_y), choose(steep, magnitude_y, magnitude_x), steep};
}

// The octant's angle r back to the angle of (x, y) in (-pi, pi].
METALLOID_INLINE float unfold_octant(float r, bool steep, float y, float x) {
  METALLOID_STRICT_FP
  const bool left = is_negative(x);
  const float flat_turns = choose(left, 2.0f * half_pi_factor, 0.0f);
  const float turns = choose(steep, half_pi_factor, flat_turns);
  const float angle = add_quarter_turns(turns, flip_sign(r, steep != left ? sign_mask : 0u));
  return with_sign_of(angle, y);
}

}  // namespace metalloid::float_math

namespace metalloid::precise {

// Largest error 1.90 ulp.
METALLOID_INLINE float asin(float x) {
  using namespace float_math;
  const FoldedSine a = fold_sine(x, sqrt_rounded(half_complement(x)));
  return unfold_asin(a, asin_slope(a.square), x);
}

// Largest error 1.12 ulp.
METALLOID_INLINE float acos(float x) {
  using namespace float_math;
  const FoldedSine a = fold_sine(x, sqrt_rounded(half_complement(x)));
  return unfold_acos(a, asin_slope(a.square), x);
}

// Folded at 1: atan a = pi/2 - atan(1/a). Largest error 1.57 ulp.
METALLOID_INLINE float atan(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude = absolute(x);
  const bool steep = magnitude > 1.0f;
  const float t = divide_rounded(choose(steep, 1.0f, magnitude), choose(steep, magnitude, 1.0f));
  return unfold_atan(atan_octant(t), steep, x);
}

// The angle of the point (x, y), special cases as in C99 F.9.1.4: the quotient of the smaller by
// the larger magnitude is 0 for 0/0 and 1 for inf/inf. Largest error 1.72 ulp.
METALLOID_INLINE float atan2(float y, float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const Octant a = fold_octant(y, x);
  const float quotient = divide_rounded(a.smaller, choose(is_zero(a.larger), 1.0f, a.larger));
  const float t = choose(is_infinite(a.smaller), 1.0f, quotient);
  const float angle = unfold_octant(atan_octant(t), a.steep, y, x);
  const float nan = x + y;
  return choose(either_is_nan(x, y), nan, angle);
}

}  // namespace metalloid::precise

namespace metalloid::fast {

// Largest errors: asin 3.3, acos 2.6, atan 2.8 and atan2 3.2 ulp, up to 4 ulp where divide and sqrt
// are approximate (fast_nvptx.h).
METALLOID_INLINE float asin(float x) {
  using namespace float_math;
  const FoldedSine a = fold_sine(x, fast::sqrt(half_complement(x)));
  return unfold_asin(a, fast_asin_slope(a.square), x);
}

METALLOID_INLINE float acos(float x) {
  using namespace float_math;
  const FoldedSine a = fold_sine(x, fast::sqrt(half_complement(x)));
  return unfold_acos(a, fast_asin_slope(a.square), x);
}

METALLOID_INLINE float atan(float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const float magnitude = absolute(x);
  const bool steep = magnitude > 1.0f;
  const float t = fast::divide(choose(steep, 1.0f, magnitude), choose(steep, magnitude, 1.0f));
  return unfold_atan(fast_atan_octant(t), steep, x);
}

// Without the cases of infinities; atan2(0, 0) stays 0, as shaders rely on it.
METALLOID_INLINE float atan2(float y, float x) {
  METALLOID_STRICT_FP
  using namespace float_math;
  const Octant a = fold_octant(y, x);
  const float t = fast::divide(a.smaller, choose(is_zero(a.larger), 1.0f, a.larger));
  return unfold_octant(fast_atan_octant(t), a.steep, y, x);
}

}  // namespace metalloid::fast
