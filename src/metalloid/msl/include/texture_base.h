// What the kinds of textures share: the handle, coordinates, and addresses of texels.
#pragma once

#include "metal_atomic.h"
#include "texture_cube.h"
#include "texture_options.h"

namespace metal {

enum class access { sample, read, write, read_write };
enum memory_coherence { memory_coherence_threadgroup, memory_coherence_device };

}  // namespace metal

namespace metalloid {

// Kinds in the order of `_TEXTURE_KINDS` in msl/layout.py.
enum class texture_kind : uint { d1, d1_array, d2, d2_array, d3, cube, cube_array, d2_ms, buffer };

// What every texture is: one word, the address of its descriptor. Code that is compiled for textures
// of known formats has them in the upper bits (`mtl_textures_are_known`).
struct texture_handle {
  ulong word;

  METALLOID_INLINE ulong address() const {
    return mtl_textures_are_known ? word & texture_address_mask : word;
  }
  METALLOID_INLINE constant texture_descriptor& descriptor() const {
    return *(constant texture_descriptor*)address();
  }
  METALLOID_INLINE uint format() const {
    return mtl_textures_are_known ? uint(word >> texture_format_shift) : descriptor().format;
  }
  METALLOID_INLINE uint levels() const {
    return mtl_textures_are_known && word & texture_has_one_level ? 1 : descriptor().levels;
  }
};

template <class T>
using if_texture = metal::enable_if_t<__is_base_of(texture_handle, T), int>;

template <class T>
inline constexpr bool is_texture_element =
    metal::is_same_v<T, float> || metal::is_same_v<T, half> || metal::is_same_v<T, int> ||
    metal::is_same_v<T, uint> || metal::is_same_v<T, short> || metal::is_same_v<T, ushort> ||
    is_long_texel<T>;

// ---- coordinates -------------------------------------------------------------------------------
// Coordinates of `axes` axes: a scalar for one.
template <class S, int axes>
struct coordinates {
  using type = metal::vec<S, axes>;
};
template <class S>
struct coordinates<S, 1> {
  using type = S;
};
template <class S, int axes>
using coordinates_t = typename coordinates<S, axes>::type;

template <class S>
METALLOID_INLINE S coordinate(S v, int) {
  return v;
}
template <class S, int axes>
METALLOID_INLINE S coordinate(metal::vec<S, axes> v, int axis) {
  return v[axis];
}

// Column, row and slice.
template <class S>
METALLOID_INLINE metal::uint3 grid_position(S v, uint slice) {
  return {uint(v), 0, slice};
}
template <class S>
METALLOID_INLINE metal::uint3 grid_position(metal::vec<S, 2> v, uint slice) {
  return {uint(v.x), uint(v.y), slice};
}
template <class S>
METALLOID_INLINE metal::uint3 grid_position(metal::vec<S, 3> v, uint) {
  return {uint(v.x), uint(v.y), uint(v.z)};
}

// The layer a call names: a float is rounded to the nearest even. Sampling stays within the array.
template <class L>
METALLOID_INLINE uint layer_of(L layer, uint layers) {
  if constexpr (is_float<L>) {
    return uint(metal::fmin(metal::fmax(metal::rint(float(layer)), 0.0f), float(layers - 1)));
  } else {
    return metal::min(uint(layer), layers - 1);
  }
}

#define METALLOID_CANNOT_SAMPLE \
  "only a texture of access::sample can be sampled, and none of ulong"

// ---- what the kinds share -----------------------------------------------------------------------
template <class T, metal::access mode, texture_kind texture_shape>
struct texture_base : texture_handle {
  static_assert(is_texture_element<T>,
                "the element of a texture is float, half, int, uint, short, ushort or ulong");
  using element = T;
  using texel = metal::vec<T, 4>;
  static constexpr metal::access access_mode = mode;
  static constexpr texture_kind kind = texture_shape;
  static constexpr bool is_depth = false;

  METALLOID_INLINE uint get_num_mip_levels() const { return this->levels(); }
  METALLOID_INLINE uint get_width(uint lod = 0) const {
    return lod < this->levels() ? this->descriptor().level[lod].width : 0;
  }
  // Writes and reads of one thread are in the order of the program anyway.
  METALLOID_INLINE void fence() const {}

 protected:
  METALLOID_INLINE uint height_of(uint lod) const {
    return lod < this->levels() ? this->descriptor().level[lod].height : 0;
  }
  METALLOID_INLINE uint slices_of(uint lod) const {
    return lod < this->levels() ? this->descriptor().level[lod].slices : 0;
  }
  METALLOID_INLINE bool has(metal::uint3 at, uint lod) const {
    return lod < this->levels() && is_inside(this->descriptor().level[lod], at.x, at.y, at.z);
  }
  // Address of a texel that there is.
  METALLOID_INLINE device uchar* address_of(metal::uint3 at, uint lod) const {
    return texel_address(this->descriptor().level[lod], this->format(), at.x, at.y, at.z);
  }

  // Reads and writes outside are defined (MSL 4, 6.12): black, opaque without alpha, and nothing.
  METALLOID_INLINE texel load(metal::uint3 at, uint lod) const {
    static_assert(mode != metal::access::write, "a texture of access::write cannot be read");
    if (!has(at, lod)) return texel(0, 0, 0, has_alpha(this->format()) ? 0 : 1);
    const device uchar* const there = address_of(at, lod);
    return texel(texture_code([=, format = this->format()]() METALLOID_INLINE_LAMBDA {
      const device uchar* const addresses[1] = {there};
      return load_texels<T>(format, addresses).texels[0];
    }));
  }
  METALLOID_INLINE void store(texel color, metal::uint3 at, uint lod) const {
    static_assert(mode == metal::access::write || mode == metal::access::read_write,
                  "only a texture of access::write or access::read_write can be written");
    if (!has(at, lod)) return;
    device uchar* const there = address_of(at, lod);
    texture_code([=, format = this->format()]() METALLOID_INLINE_LAMBDA {
      store_texel<T>(format, there, working_texel<T>(color));
      return nothing();
    });
  }

  template <int axes, class Map = unchanged>
  METALLOID_INLINE texel filtered(metal::sampler s, coordinates_t<float, axes> coord, uint slice,
                                  const sample_options& options, Map map = {}) const {
    static_assert(can_sample, METALLOID_CANNOT_SAMPLE);
    return texture_code([=, t = *this]() METALLOID_INLINE_LAMBDA {
      const auto at = position_to_sample<axes>(coord, slice, options.offset);
      const auto texels_of_level = [&](constant texture_level& level, bool is_linear) METALLOID_INLINE_LAMBDA {
        return sample_level<T, axes>(t.format(), level, s, is_linear, at, map);
      };
      return texel(sample_levels<T>(t.descriptor().level, t.levels(), s, options.lod, texels_of_level));
    });
  }
  template <class Map = unchanged>
  METALLOID_INLINE texel filtered_cube(metal::sampler s, metal::float3 direction, uint layer,
                                       const sample_options& options, Map map = {}) const {
    static_assert(can_sample, METALLOID_CANNOT_SAMPLE);
    return texture_code([=, t = *this]() METALLOID_INLINE_LAMBDA {
      const cube_position at = face_of(direction);
      const auto texels_of_level = [&](constant texture_level& level, bool is_linear) METALLOID_INLINE_LAMBDA {
        return sample_cube_level<T>(t.format(), level, s, is_linear, at, 6 * layer, map);
      };
      return texel(sample_levels<T>(t.descriptor().level, t.levels(), s, options.lod, texels_of_level));
    });
  }

  // A component of the four texels that linear filtering would blend, counter-clockwise from the
  // lower left.
  template <class Map = unchanged>
  METALLOID_INLINE texel gathered(metal::sampler s, metal::float2 coord, uint slice,
                                  metal::int2 offset, metal::component which, Map map = {}) const {
    static_assert(can_sample, METALLOID_CANNOT_SAMPLE);
    return texture_code([=, t = *this]() METALLOID_INLINE_LAMBDA {
      constant texture_level& level = t.descriptor().level[0];
      const uint format = t.format();
      const int offsets[3] = {offset.x, offset.y};
      const bool misses = may_miss<2>(s);
      axis_taps taps[2];
      const device uchar* addresses[4];
      find_taps(level, s, true, position_to_sample<2>(coord, slice, offsets), taps);
      find_corners<2>(level, format, taps, slice, misses, 4, addresses);
      return gathered(load_corners<T>(format, addresses, misses, border_of<T>(format, s)), which, map);
    });
  }
  template <class Map = unchanged>
  METALLOID_INLINE texel gathered_cube(metal::float3 direction, uint layer, metal::component which,
                                       Map map = {}) const {
    static_assert(can_sample, METALLOID_CANNOT_SAMPLE);
    return texture_code([=, t = *this]() METALLOID_INLINE_LAMBDA {
      axis_taps taps[2];
      const device uchar* addresses[4];
      find_cube_taps(t.descriptor().level[0], t.format(), true, face_of(direction), 6 * layer, taps,
                     addresses);
      return gathered(load_texels<T>(t.format(), addresses), which, map);
    });
  }

 private:
  static constexpr bool can_sample = mode == metal::access::sample && !is_long_texel<T>;

  template <class Map>
  static METALLOID_INLINE texel gathered(const texel_group<T, 4>& corners, metal::component which,
                                         Map map) {
    const int c = int(which);
    const auto& t = corners.texels;
    return texel(working_texel<T>(map(t[2])[c], map(t[3])[c], map(t[1])[c], map(t[0])[c]));
  }

  template <int axes>
  static METALLOID_INLINE sample_position<axes> position_to_sample(coordinates_t<float, axes> coord,
                                                             uint slice, const int (&offset)[3]) {
    sample_position<axes> at = {};
    for (int axis = 0; axis < axes; ++axis)
      at.coord[axis] = coordinate(coord, axis), at.offset[axis] = offset[axis];
    at.slice = slice;
    return at;
  }
};

#undef METALLOID_CANNOT_SAMPLE

}  // namespace metalloid
