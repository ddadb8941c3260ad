// The chapter "Common Functions" of the MSL specification. clamp is in metal_min_max.h.
#pragma once

#include "metal_math.h"

namespace metalloid {

METALLOID_INLINE float mix(float x, float y, float weight) { return x + (y - x) * weight; }

METALLOID_INLINE float saturate(float x) { return clamp(x, 0.0f, 1.0f); }

METALLOID_INLINE float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }

METALLOID_INLINE float smoothstep(float edge0, float edge1, float x) {
  float t = saturate((x - edge0) / (edge1 - edge0));
  return t * t * (3.0f - 2.0f * t);
}

// Keeps the sign of a zero; 0 for NaN.
METALLOID_INLINE float sign(float x) {
  float magnitude = x < 0.0f || x > 0.0f ? 1.0f : 0.0f;
  return x == x ? __builtin_copysignf(magnitude, x) : 0.0f;
}

}  // namespace metalloid

namespace metal {

METALLOID_MATH_FUNCTION1(saturate, metal::saturate, metalloid::saturate)
METALLOID_MATH_FUNCTION1(sign, metal::sign, metalloid::sign)
METALLOID_MATH_FUNCTION2(step, metal::step, metalloid::step)
METALLOID_MATH_FUNCTION3(mix, metal::mix, metalloid::mix)
METALLOID_MATH_FUNCTION3(smoothstep, metal::smoothstep, metalloid::smoothstep)

#define METALLOID_USE_COMMON_FUNCTIONS \
  using metal::mix; \
  using metal::saturate; \
  using metal::sign; \
  using metal::smoothstep; \
  using metal::step;
namespace fast {
METALLOID_USE_COMMON_FUNCTIONS
}  // namespace fast
namespace precise {
METALLOID_USE_COMMON_FUNCTIONS
}  // namespace precise
#undef METALLOID_USE_COMMON_FUNCTIONS

}  // namespace metal
