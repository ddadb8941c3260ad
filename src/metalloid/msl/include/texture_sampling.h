// Reading a texture between its texels (MSL specification, "Texture Addressing and Filtering").
//
// Of a coordinate u in units of texels the nearest texel is floor(u); linear filtering takes the
// texels floor(u - 0.5) and the next one, with the fraction of u - 0.5 as the weight of the latter.
// Weights are floats, where GPUs may round them to 8 bits. A kernel has no derivatives: without a
// level, bias or gradient the level of detail is 0.
#pragma once

#include "metal_sampler.h"
#include "texture_memory.h"

namespace metalloid {

// ---- one axis -----------------------------------------------------------------------------------
// Index of the texel that stands for texel i of an axis; -1 for the border.
METALLOID_INLINE int wrap(metal::address mode, int i, int size) {
  switch (mode) {
    case metal::address::clamp_to_edge:
      return metal::min(metal::max(i, 0), size - 1);
    case metal::address::repeat:
      i %= size;
      return i < 0 ? i + size : i;
    case metal::address::mirrored_repeat:
      i %= 2 * size;
      i = i < 0 ? i + 2 * size : i;
      return i < size ? i : 2 * size - 1 - i;
    default:
      return uint(i) < uint(size) ? i : -1;
  }
}

// A normalised coordinate in units of texels. Far outside it stays within what an int can hold: the
// period is taken off, or it is cut off where the offset of a call cannot bring it back.
METALLOID_INLINE float unnormalized(metal::address mode, float u, int size) {
  if (mode == metal::address::repeat) u -= metal::floor(u);
  if (mode == metal::address::mirrored_repeat) u -= 2 * metal::floor(0.5f * u);
  return u * float(size);
}
constexpr int max_offset = 8;
METALLOID_INLINE float cut_off(float u, int size) {
  // fmax and fmin make a number of NaN.
  return metal::fmin(metal::fmax(u, -1.0f - max_offset), 2.0f * size + max_offset);
}

// The two texels on an axis and the weight of the second. With nearest filtering only the first
// counts.
struct axis_taps {
  int index[2];
  float weight;
};

METALLOID_INLINE axis_taps taps_of(metal::address mode, bool is_pixel, bool is_linear, float u,
                                   int size, int offset) {
  u = cut_off(is_pixel ? u : unnormalized(mode, u, size), size);
  offset = metal::clamp(offset, -max_offset, max_offset - 1);
  if (!is_linear) return {{wrap(mode, int(metal::floor(u)) + offset, size), -1}, 0};
  u -= 0.5f;
  const float low = metal::floor(u);
  const int i = int(low) + offset;
  return {{wrap(mode, i, size), wrap(mode, i + 1, size)}, u - low};
}

// ---- several axes -------------------------------------------------------------------------------
// Where to sample: the parts that kinds of textures do not use are 0.
template <int axes>
struct sample_position {
  float coord[axes];
  int offset[axes];
  uint slice;  // unused with 3 axes
};

METALLOID_INLINE metal::address address_of(metal::sampler s, int axis) {
  return metal::address(axis == 0   ? sampler_address_s::get(s.word)
                        : axis == 1 ? sampler_address_t::get(s.word)
                                    : sampler_address_r::get(s.word));
}

template <int axes>
METALLOID_INLINE void find_taps(constant texture_level& level, metal::sampler s, bool is_linear,
                                const sample_position<axes>& at, axis_taps (&taps)[axes]) {
  const int sizes[3] = {int(level.width), int(level.height), int(level.slices)};
  const bool is_pixel = sampler_coord::get(s.word);
  for (int axis = 0; axis < axes; ++axis)
    taps[axis] = taps_of(address_of(s, axis), is_pixel, is_linear, at.coord[axis], sizes[axis],
                         at.offset[axis]);
}

// Whether taps may lie outside of the texture: if not, bounds checks are omitted.
template <int axes>
METALLOID_INLINE bool may_miss(metal::sampler s) {
  bool result = false;
  for (int axis = 0; axis < axes; ++axis) {
    const auto mode = address_of(s, axis);
    result |= mode == metal::address::clamp_to_zero || mode == metal::address::clamp_to_border;
  }
  return result;
}

// Addresses of the corners of the footprint: bit n of a corner chooses between the taps of axis n.
template <int axes>
METALLOID_INLINE void find_corners(constant texture_level& level, uint format,
                                   const axis_taps (&taps)[axes], uint slice, bool may_miss,
                                   int count, const device uchar* (&addresses)[1 << axes]) {
  for (int corner = 0; corner < count; ++corner) {
    const int x = taps[0].index[corner & 1];
    int y = 0;
    if constexpr (axes > 1) y = taps[1].index[corner >> 1 & 1];
    if constexpr (axes > 2) slice = taps[2].index[corner >> 2];
    // -1 is outside as an unsigned number, too.
    addresses[corner] = may_miss ? texel_address_or_null(level, format, x, y, slice)
                              : texel_address(level, format, x, y, slice);
  }
}

// What lies outside: with clamp_to_zero transparent black, opaque for formats without alpha.
template <class T>
METALLOID_INLINE working_texel<T> border_of(uint format, metal::sampler s) {
  const bool is_zero = address_of(s, 0) == metal::address::clamp_to_zero ||
                       address_of(s, 1) == metal::address::clamp_to_zero;
  const auto color = metal::border_color(sampler_border::get(s.word));
  const bool is_opaque = is_zero ? !has_alpha(format)
                                 : color != metal::border_color::transparent_black;
  const int rest = !is_zero && color == metal::border_color::opaque_white;
  return {working_type<T>(rest), working_type<T>(rest), working_type<T>(rest),
          working_type<T>(is_opaque)};
}

// How texels become one: only where all filters are linear there is a choice.
METALLOID_INLINE metal::reduction reduction_of(metal::sampler s) {
  const bool is_linear = sampler_min::get(s.word) && sampler_mag::get(s.word) &&
                         metal::mip_filter(sampler_mip::get(s.word)) == metal::mip_filter::linear;
  return is_linear ? metal::reduction(sampler_reduction::get(s.word))
                   : metal::reduction::weighted_average;
}

// Two fused operations where the processor has them.
template <class V>
METALLOID_INLINE V mixed(V a, V b, float weight) {
#if defined(__x86_64__) && !defined(__FMA__)
  return a * (1 - weight) + b * weight;
#else
  return metal::fma(V(weight), b, metal::fma(V(-weight), a, a));
#endif
}

// Two values as one, `weight` being that of the second; what has none does not count.
template <class V>
METALLOID_INLINE V reduced(metal::reduction how, V a, V b, float weight) {
  if (how == metal::reduction::weighted_average) return mixed(a, b, weight);
  if (!(weight > 0)) return a;
  return how == metal::reduction::minimum ? metal::min(a, b) : metal::max(a, b);
}

// 2, 4 or 8 corners as one, axis by axis.
template <class V, int axes>
METALLOID_INLINE V blend(metal::reduction how, const V (&corners)[1 << axes],
                         const axis_taps (&taps)[axes]) {
  V values[1 << axes];
  for (int i = 0; i < 1 << axes; ++i) values[i] = corners[i];
  for (int axis = 0; axis < axes; ++axis) {
    for (int i = 0; i < 1 << (axes - 1 - axis); ++i)
      values[i] = reduced(how, values[2 * i], values[2 * i + 1], taps[axis].weight);
  }
  return values[0];
}

// What becomes of a texel before it is blended; comparisons of depth textures put theirs here.
struct unchanged {
  template <class V>
  METALLOID_INLINE V operator()(V texel) const {
    return texel;
  }
};

// The codes at several addresses; null gives `outside`.
template <class T, int count>
METALLOID_INLINE texel_group<T, count> load_corner_codes(
    uint format, const device uchar* const (&addresses)[count], bool may_miss,
    working_texel<T> outside) {
  if (!may_miss) return load_codes<T>(format, addresses);
  texel_group<T, count> group;
  for (int i = 0; i < count; ++i) {
    const device uchar* const address[1] = {addresses[i]};
    group.texels[i] = address[0] ? load_codes<T>(format, address).texels[0] : outside;
  }
  return group;
}

// The texels.
template <class T, int count>
METALLOID_INLINE texel_group<T, count> load_corners(uint format,
                                                    const device uchar* const (&addresses)[count],
                                                    bool may_miss, working_texel<T> outside) {
  if (!may_miss) return load_texels<T>(format, addresses);
  texel_group<T, count> group;
  for (int i = 0; i < count; ++i) group.texels[i] = load_texel<T>(format, addresses[i], outside);
  return group;
}

// Linear filtering. Codes are blended and then decoded, once, where that is the same but for rounding.
template <class T, int axes, class Map>
METALLOID_INLINE working_texel<T> blend_codes(uint format, metal::reduction how,
                                              texel_group<T, 1 << axes> corners,
                                              const axis_taps (&taps)[axes], Map map) {
  if (metal::is_same_v<Map, unchanged> && !(format & format_is_srgb))
    return decoded<T>(format, blend<working_texel<T>, axes>(how, corners.texels, taps));
  for (auto& corner : corners.texels) corner = map(decoded<T>(format, corner));
  return blend<working_texel<T>, axes>(how, corners.texels, taps);
}

// One level of a texture. Integers are never blended: Metal has no linear filter for them.
template <class T, int axes, class Map>
METALLOID_INLINE working_texel<T> sample_level(uint format, constant texture_level& level,
                                               metal::sampler s, bool is_linear,
                                               const sample_position<axes>& at, Map map) {
  is_linear = is_linear && is_float<T>;
  const bool misses = may_miss<axes>(s);
  const working_texel<T> border = border_of<T>(format, s);
  axis_taps taps[axes];
  const device uchar* addresses[1 << axes];
  find_taps(level, s, is_linear, at, taps);
  if constexpr (is_float<T>) {
    if (is_linear) {
      find_corners<axes>(level, format, taps, at.slice, misses, 1 << axes, addresses);
      const auto corners = load_corner_codes<T>(format, addresses, misses, border * scale_of(format));
      return blend_codes<T, axes>(format, reduction_of(s), corners, taps, map);
    }
  }
  find_corners<axes>(level, format, taps, at.slice, misses, 1, addresses);
  return map(load_texel<T>(format, addresses[0], border));
}

// ---- levels of detail ---------------------------------------------------------------------------
// What the options of a call say about the level of detail; the level itself is known once the size
// of the texture is.
struct lod_request {
  float level = 0, least = 0;
  float gradients[2][3] = {};
  bool has_gradients = false;
};

// log2 of how many texels of level 0 one step of the caller covers.
METALLOID_INLINE float lod_of_gradients(const lod_request& request, constant texture_level& base) {
  const float size[3] = {float(base.width), float(base.height), float(base.slices)};
  float longest = 0;
  for (const auto& gradient : request.gradients) {
    float squares = 0;
    for (int axis = 0; axis < 3; ++axis)
      squares += gradient[axis] * size[axis] * gradient[axis] * size[axis];
    longest = metal::fmax(longest, squares);
  }
  return 0.5f * metal::log2(longest);
}

METALLOID_INLINE float lod_of(const lod_request& request, metal::sampler s,
                              constant texture_level& base) {
  float lod = request.has_gradients ? lod_of_gradients(request, base) : request.level;
  lod = metal::fmax(lod + lod_bias_of(s.word), request.least);
  const float least = float(sampler_lod_min::get(s.word)) / lod_steps;
  const float max_lod = float(sampler_lod_max::get(s.word)) / lod_steps;
  return metal::fmin(metal::fmax(lod, least), max_lod);
}

// Calls f(level, is_linear) for the one or two levels that a level of detail means, and blends them
// unless they are integers.
template <class T, class F>
METALLOID_INLINE auto sample_levels(constant texture_level* all, uint levels, metal::sampler s,
                                    const lod_request& request, const F& f) {
  const float lod = lod_of(request, s, all[0]);
  const bool is_linear = lod > 0 ? sampler_min::get(s.word) : sampler_mag::get(s.word);
  const auto filter = metal::mip_filter(sampler_mip::get(s.word));
  int low = 0;
  float weight = 0;
  if (filter != metal::mip_filter::none && levels != 1) {
    const int last = levels - 1;
    const float level = metal::fmin(lod, float(last));
    if (filter == metal::mip_filter::nearest || !is_float<T>) {
      low = metal::min(int(level + 0.5f), last);
    } else {
      low = int(level);
      weight = level - float(low);
    }
  }
  auto texel = f(all[low], is_linear);
  if constexpr (is_float<T>) {
    if (weight > 0)
      texel = reduced(reduction_of(s), texel, f(all[low + 1], is_linear), weight);
  }
  return texel;
}

}  // namespace metalloid
