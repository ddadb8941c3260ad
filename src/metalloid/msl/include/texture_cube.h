// Cube textures: from a direction to a face and a position on it (MSL specification, "Cube Maps").
#pragma once

#include "texture_sampling.h"

namespace metalloid {

struct cube_position {
  uint face;  // +x, -x, +y, -y, +z, -z
  float s, t;
};

// The face that a direction meets, with the specification's table of coordinates.
METALLOID_INLINE cube_position face_of(metal::float3 r) {
  const metal::float3 a = metal::fabs(r);
  float s, t, along;
  uint face;
  if (a.z >= a.x && a.z >= a.y) {
    face = r.z < 0 ? 5 : 4;
    along = a.z, s = r.z < 0 ? -r.x : r.x, t = -r.y;
  } else if (a.y >= a.x) {
    face = r.y < 0 ? 3 : 2;
    along = a.y, s = r.x, t = r.y < 0 ? -r.z : r.z;
  } else {
    face = r.x < 0 ? 1 : 0;
    along = a.x, s = r.x < 0 ? r.z : -r.z, t = -r.y;
  }
  return {face, 0.5f * (s / along + 1), 0.5f * (t / along + 1)};
}

// The texel (i, j) of a face, where one of them may lie one step outside: that is the adjacent one
// on the face across the edge. In integers: the direction to the centre of a texel has the components
// 2i + 1 - n and 2j + 1 - n next to n, and across an edge n + 1 is the largest of them.
struct cube_texel {
  uint face;
  int i, j;
};

METALLOID_INLINE cube_texel over_the_edge(uint face, int i, int j, int n) {
  if (uint(i) < uint(n) && uint(j) < uint(n)) return {face, i, j};
  if (uint(i) >= uint(n)) j = metal::clamp(j, 0, n - 1);  // a corner belongs to no face: take one
  const int s = 2 * i + 1 - n, t = 2 * j + 1 - n;
  metal::int3 r;
  switch (face) {
    case 0: r = {n, -t, -s}; break;
    case 1: r = {-n, -t, s}; break;
    case 2: r = {s, n, t}; break;
    case 3: r = {s, -n, -t}; break;
    case 4: r = {s, -t, n}; break;
    default: r = {-s, -t, -n}; break;
  }
  int a, b;
  if (metal::abs(r.x) > n) {
    face = r.x < 0, a = r.x < 0 ? r.z : -r.z, b = -r.y;
  } else if (metal::abs(r.y) > n) {
    face = 2 + (r.y < 0), a = r.x, b = r.y < 0 ? -r.z : r.z;
  } else {
    face = 4 + (r.z < 0), a = r.z < 0 ? -r.x : r.x, b = -r.y;
  }
  const int along = n + 1;
  return {face, n * (a + along) / (2 * along), n * (b + along) / (2 * along)};
}

// The four texels around a position of a face, whose faces start at `first_slice`, and their weights.
METALLOID_INLINE void find_cube_taps(constant texture_level& level, uint format, bool is_linear,
                                     cube_position at, uint first_slice, axis_taps (&taps)[2],
                                     const device uchar* (&addresses)[4]) {
  const int n = level.width;
  const float coords[2] = {at.s, at.t};
  for (int axis = 0; axis < 2; ++axis) {
    const float u = cut_off(coords[axis] * float(n), n) - (is_linear ? 0.5f : 0.0f);
    const float low = metal::floor(u);
    // A direction on the very edge counts as inside.
    const int i = is_linear ? metal::clamp(int(low), -1, n - 1) : metal::clamp(int(low), 0, n - 1);
    taps[axis] = {{i, i + 1}, u - low};
  }
  for (int i = 0; i < 4 && (i == 0 || is_linear); ++i) {
    const cube_texel texel =
        over_the_edge(at.face, taps[0].index[i & 1], taps[1].index[i >> 1], n);
    addresses[i] = texel_address(level, format, texel.i, texel.j, first_slice + texel.face);
  }
}

template <class T, class Map>
METALLOID_INLINE working_texel<T> sample_cube_level(uint format, constant texture_level& level,
                                                    metal::sampler s, bool is_linear, cube_position at,
                                                    uint first_slice, Map map) {
  is_linear = is_linear && is_float<T>;
  axis_taps taps[2];
  const device uchar* addresses[4];
  find_cube_taps(level, format, is_linear, at, first_slice, taps, addresses);
  if constexpr (is_float<T>) {
    if (is_linear) {
      return blend_codes<T, 2>(format, reduction_of(s), load_codes<T>(format, addresses), taps, map);
    }
  }
  return map(load_texel<T>(format, addresses[0], working_texel<T>(0)));
}

}  // namespace metalloid
