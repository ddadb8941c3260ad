// What a texture is in memory: a descriptor, texels in rows, and the bits of a texel.
//
// The descriptor is written in Python (runtime/texture_memory.py) in exactly this form. A texture
// of MSL holds its address, so that it takes one word in an argument table or an argument buffer.
#pragma once

#include "metal_pack.h"

namespace metalloid {

// One mip level. Slices are the layers of an array, the faces of a cube (six per layer), the samples
// of a pixel, or the depth of a 3D texture. Strides are in bytes; a view of a NumPy array may have
// any, texels alone lie side by side.
struct texture_level {
  device uchar* texels;
  long row_stride, slice_stride;
  uint width, height, slices, unused;
};

struct texture_descriptor {
  uint format, levels;
  texture_level level[1];  // `levels` of them
};

// ---- formats ------------------------------------------------------------------------------------
// A format is a component type, the number of components less one, and two flags.
enum class component : uint {
  unorm8, snorm8, uint8, sint8, unorm16, snorm16, uint16, sint16, float16, uint32, sint32, float32,
};

constexpr uint format_shape(component type, int channels) { return uint(type) | (channels - 1) << 4; }
constexpr uint format_shape_mask = 0x3f;
constexpr uint format_is_srgb = 0x40;
constexpr uint format_is_bgra = 0x80;

template <component>
struct component_bits;
#define METALLOID_COMPONENT_BITS(name, type, divisor) \
  template <> \
  struct component_bits<component::name> { \
    using raw = type; \
    static constexpr float scale = divisor; \
  };
METALLOID_COMPONENT_BITS(unorm8, uchar, 255.0f)
METALLOID_COMPONENT_BITS(snorm8, signed char, 127.0f)
METALLOID_COMPONENT_BITS(unorm16, ushort, 65535.0f)
METALLOID_COMPONENT_BITS(snorm16, short, 32767.0f)
METALLOID_COMPONENT_BITS(uint8, uchar, 0)
METALLOID_COMPONENT_BITS(sint8, signed char, 0)
METALLOID_COMPONENT_BITS(uint16, ushort, 0)
METALLOID_COMPONENT_BITS(sint16, short, 0)
METALLOID_COMPONENT_BITS(uint32, uint, 0)
METALLOID_COMPONENT_BITS(sint32, int, 0)
METALLOID_COMPONENT_BITS(float16, half, 0)
METALLOID_COMPONENT_BITS(float32, float, 0)
#undef METALLOID_COMPONENT_BITS

// X(component) for those that a texture of an element type can hold. Python refuses the others.
#define METALLOID_FOR_EACH_FLOAT_COMPONENT(X) \
  X(unorm8) X(float32) X(float16) X(unorm16) X(snorm8) X(snorm16)
#define METALLOID_FOR_EACH_UNSIGNED_COMPONENT(X) X(uint8) X(uint32) X(uint16)
#define METALLOID_FOR_EACH_SIGNED_COMPONENT(X) X(sint8) X(sint32) X(sint16)

// Texels in the type that computes: float for normalised and floating formats, else 32-bit integers.
template <class T>
using working_type = metal::conditional_t<is_float<T>, float,
                                          metal::conditional_t<is_unsigned_integer<T>(), uint, int>>;
template <class T>
using working_texel = metal::vec<working_type<T>, 4>;

template <component type, int channels>
struct texel_code {
  using raw = typename component_bits<type>::raw;
  using value =
      metal::conditional_t<is_float<raw> || component_bits<type>::scale != 0, float,
                           metal::conditional_t<is_unsigned_integer<raw>(), uint, int>>;
  typedef raw raws __attribute__((ext_vector_type(channels), aligned(sizeof(raw))));
  typedef value values __attribute__((ext_vector_type(channels)));
  static constexpr float scale = component_bits<type>::scale;

  static METALLOID_INLINE metal::vec<value, 4> load(const device uchar* place) {
    values v = __builtin_convertvector(*(const device raws*)place, values);
    if constexpr (scale != 0) {
      v = v / scale;
      // The most negative integer is one step below -1.
      if constexpr (!is_unsigned_integer<raw>()) v = __builtin_elementwise_max(v, (values)-1.0f);
    }
    if constexpr (channels == 1) return {v.x, 0, 0, 1};
    else if constexpr (channels == 2) return {v.x, v.y, 0, 1};
    else return {from_storage(), v};
  }

  // Normalised and integer components saturate; normalised ones round to the nearest even.
  static METALLOID_INLINE void store(device uchar* place, metal::vec<value, 4> texel) {
    values v;
    if constexpr (channels == 1) v = texel.x;
    else if constexpr (channels == 2) v = texel.data.xy;
    else v = texel.data;
    if constexpr (scale != 0) {
      v = v == v ? v : (values)0.0f;
      const values least = is_unsigned_integer<raw>() ? 0.0f : -1.0f;
      v = __builtin_elementwise_min(__builtin_elementwise_max(v, least), (values)1.0f);
      v = __builtin_elementwise_rint(v * scale);
      typedef int integers __attribute__((ext_vector_type(channels)));
      *(device raws*)place =
          __builtin_convertvector(__builtin_convertvector(v, integers), raws);
    } else {
      if constexpr (sizeof(raw) < sizeof(value) && is_integer<raw>) {
        v = __builtin_elementwise_min(__builtin_elementwise_max(v, (values)limits::min()),
                                      (values)limits::max());
      }
      *(device raws*)place = __builtin_convertvector(v, raws);
    }
  }

 private:
  using limits = metal::numeric_limits<raw>;
};

// The components of T's formats, each with 1, 2 and 4 channels: cases of a switch.
#define METALLOID_TEXEL_CASES(name) \
  METALLOID_TEXEL_CASE(component::name, 4) \
  METALLOID_TEXEL_CASE(component::name, 1) \
  METALLOID_TEXEL_CASE(component::name, 2)
#define METALLOID_FOR_EACH_FORMAT_OF(T) \
  if constexpr (is_float<T>) { \
    switch (format & format_shape_mask) { \
      METALLOID_FOR_EACH_FLOAT_COMPONENT(METALLOID_TEXEL_CASES) \
    } \
  } else if constexpr (is_unsigned_integer<T>()) { \
    switch (format & format_shape_mask) { \
      METALLOID_FOR_EACH_UNSIGNED_COMPONENT(METALLOID_TEXEL_CASES) \
    } \
  } else { \
    switch (format & format_shape_mask) { \
      METALLOID_FOR_EACH_SIGNED_COMPONENT(METALLOID_TEXEL_CASES) \
    } \
  }

// Several texels at once, so that the format is looked at once. A null place gives `outside`.
template <class T, int count>
METALLOID_INLINE void load_texels(uint format, const device uchar* const (&places)[count],
                                  working_texel<T> outside, working_texel<T> (&texels)[count]) {
#define METALLOID_TEXEL_CASE(type, channels) \
  case format_shape(type, channels): \
    for (int i = 0; i < count; ++i) \
      texels[i] = places[i] ? texel_code<type, channels>::load(places[i]) : outside; \
    break;
  for (int i = 0; i < count; ++i) texels[i] = outside;
  METALLOID_FOR_EACH_FORMAT_OF(T)
#undef METALLOID_TEXEL_CASE
  if constexpr (is_float<T>) {
    if (__builtin_expect(format & (format_is_srgb | format_is_bgra), 0)) {
      for (int i = 0; i < count; ++i) {
        if (!places[i]) continue;
        working_texel<T>& v = texels[i];
        if (format & format_is_bgra) v = v.bgra;
        if (format & format_is_srgb)
          v = {linear_from_srgb(v.x), linear_from_srgb(v.y), linear_from_srgb(v.z), v.w};
      }
    }
  }
}

template <class T>
METALLOID_INLINE working_texel<T> load_texel(uint format, const device uchar* place,
                                             working_texel<T> outside) {
  const device uchar* const places[1] = {place};
  working_texel<T> texels[1];
  load_texels<T>(format, places, outside, texels);
  return texels[0];
}

template <class T>
METALLOID_INLINE void store_texel(uint format, device uchar* place, working_texel<T> v) {
  if constexpr (is_float<T>) {
    if (__builtin_expect(format & (format_is_srgb | format_is_bgra), 0)) {
      if (format & format_is_srgb)
        v = {srgb_from_linear(v.x), srgb_from_linear(v.y), srgb_from_linear(v.z), v.w};
      if (format & format_is_bgra) v = v.bgra;
    }
  }
#define METALLOID_TEXEL_CASE(type, channels) \
  case format_shape(type, channels): \
    texel_code<type, channels>::store(place, v); \
    break;
  METALLOID_FOR_EACH_FORMAT_OF(T)
#undef METALLOID_TEXEL_CASE
}
#undef METALLOID_TEXEL_CASES
#undef METALLOID_FOR_EACH_FORMAT_OF

// ---- places -------------------------------------------------------------------------------------
// Address of a texel; null if there is none. Unsigned coordinates make one comparison do for both ends.
METALLOID_INLINE device uchar* texel_place(uint format, constant texture_level& level, uint x, uint y,
                                           uint slice) {
  if (x >= level.width || y >= level.height || slice >= level.slices) return nullptr;
  // Bytes of the component types in the order of the enumeration: 1, 2 or 4.
  const uint shift = (0x222'1'1111'0000u >> 4 * (format & 0xf)) & 0xf;
  return level.texels + slice * level.slice_stride + y * level.row_stride +
         (ulong(x) * ((format >> 4 & 3) + 1) << shift);
}

}  // namespace metalloid
