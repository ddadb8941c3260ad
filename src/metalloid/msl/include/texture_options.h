// What a call of sample() may say besides the coordinate: the level of detail, and an offset.
#pragma once

#include "texture_sampling.h"

namespace metal {

enum class component { x, y, z, w };

struct bias {
  float value;
  METALLOID_INLINE constexpr explicit bias(float value) : value(value) {}
};
struct level {
  float value;
  METALLOID_INLINE constexpr explicit level(float value) : value(value) {}
};
struct min_lod_clamp {
  float value;
  METALLOID_INLINE constexpr explicit min_lod_clamp(float value) : value(value) {}
};
struct gradient2d {
  float2 dx, dy;
  METALLOID_INLINE constexpr gradient2d(float2 dx, float2 dy) : dx(dx), dy(dy) {}
};
struct gradient3d {
  float3 dx, dy;
  METALLOID_INLINE constexpr gradient3d(float3 dx, float3 dy) : dx(dx), dy(dy) {}
};
struct gradientcube {
  float3 dx, dy;
  METALLOID_INLINE constexpr gradientcube(float3 dx, float3 dy) : dx(dx), dy(dy) {}
};

}  // namespace metal

namespace metalloid {

// The call's options, gathered.
struct sample_options {
  lod_request lod;
  int offset[3] = {};

  METALLOID_INLINE void take(metal::bias v) { lod.level += v.value; }
  METALLOID_INLINE void take(metal::level v) { lod.level = v.value; }
  METALLOID_INLINE void take(metal::min_lod_clamp v) { lod.least = v.value; }
  METALLOID_INLINE void take(metal::gradient2d v) {
    gradients({v.dx.x, v.dx.y, 0}, {v.dy.x, v.dy.y, 0});
  }
  METALLOID_INLINE void take(metal::gradient3d v) { gradients(v.dx, v.dy); }
  METALLOID_INLINE void take(metal::gradientcube v) { gradients(0.5f * v.dx, 0.5f * v.dy); }
  template <class T>
  METALLOID_INLINE void take(T v) {
    static_assert(is_integer<T>,
                  "an option of sample() is bias(), level(), gradient2d(), gradient3d(), "
                  "gradientcube(), min_lod_clamp() or an offset of int, int2 or int3");
    take(metal::int3(int(v)));
  }
  METALLOID_INLINE void take(metal::int2 v) { offset[0] = v.x, offset[1] = v.y; }
  METALLOID_INLINE void take(metal::int3 v) { offset[0] = v.x, offset[1] = v.y, offset[2] = v.z; }

 private:
  METALLOID_INLINE void gradients(metal::float3 dx, metal::float3 dy) {
    lod.has_gradients = true;
    for (int axis = 0; axis < 3; ++axis)
      lod.gradients[0][axis] = dx[axis], lod.gradients[1][axis] = dy[axis];
  }
};

template <class... Options>
METALLOID_INLINE sample_options options_of(Options... options) {
  sample_options result;
  (result.take(options), ...);
  return result;
}

}  // namespace metalloid
