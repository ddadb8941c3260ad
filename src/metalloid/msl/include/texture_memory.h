// What a texture is in memory: a descriptor, texels in rows, and the bits of a texel.
//
// The descriptor is written in Python (runtime/texture_memory.py) in exactly this form. A texture
// of MSL holds its address, so that it takes one word in an argument table or an argument buffer.
#pragma once

#include "metal_pack.h"

namespace metalloid {

// One mip level. Slices are the layers of an array, the faces of a cube (six per layer), the
// samples of a pixel, or the depth of a 3D texture. Strides are in bytes; a view of a NumPy array may
// have any, texels alone lie side by side.
struct texture_level {
  device uchar* texels;
  long row_stride, slice_stride;
  uint width, height, slices, texel_bytes;
};

struct texture_descriptor {
  uint format, levels;
  texture_level level[1];  // `levels` of them
};

// What surrounds a kernel says which code there is for textures. Where their formats are known,
// these stand in the upper bits of the words of textures, and the compiler sees constants; elsewhere
// the bits are zeros. Vector code cannot efficiently test for a format or a setting: it calls
// functions for each lane instead.
#if defined(__NVPTX__) || defined(__SPIRV__)
constexpr bool mtl_textures_are_known = false;
#if defined(__SPIRV__)
constexpr bool mtl_textures_by_lane = true;  // drivers that vectorise take minutes for such code
#else
constexpr bool mtl_textures_by_lane = false;
#endif
#else
extern "C" const bool mtl_textures_are_known, mtl_textures_by_lane;
#endif
constexpr ulong texture_address_mask = (1ul << 51) - 1;
constexpr ulong texture_has_one_level = 1ul << 52;
constexpr int texture_format_shift = 55;

// Called for each lane of a simdgroup (vectorize/scalar_calls.py): f, which returns R.
namespace by_lane {
template <class F, class R>
__attribute__((noinline)) void call(thread const F* f, thread R* result) {
  *result = (*f)();
}
}  // namespace by_lane

struct nothing {};

template <class F>
METALLOID_INLINE auto texture_code(const F& f) {
  if (mtl_textures_by_lane) {
    decltype(f()) result;
    by_lane::call(&f, &result);
    return result;
  }
  return f();
}

// ---- formats ------------------------------------------------------------------------------------
// A format is a component type, the number of components less one, and two flags.
enum class component : uint {
  unorm8, snorm8, uint8, sint8, unorm16, snorm16, uint16, sint16, float16, uint32, sint32, float32,
};

constexpr uint format_shape(component type, int channels) {
  return uint(type) | (channels - 1) << 4;
}
constexpr uint format_shape_mask = 0x3f;
METALLOID_INLINE uint texel_bytes_of(uint format) {
  const auto type = component(format & 15);
  const uint size = type < component::unorm16 ? 0 : type < component::uint32 ? 1 : 2;
  return ((format >> 4 & 3) + 1) << size;
}
METALLOID_INLINE bool has_alpha(uint format) {
  return (format >> 4 & 3) == 3;
}
constexpr uint format_is_srgb = 0x40;
constexpr uint format_is_bgra = 0x80;
// Of a known texture: no texel of a level is 2 GB or more from its first.
constexpr uint format_of_small_texture = 0x100;

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

// A texel of ulong is one number in the two components of rg32uint, the first the lower half.
template <class T>
inline constexpr bool is_long_texel = metal::is_same_v<T, ulong>;

// Texels in the type that computes: float, or integers of 32 bits, or ulong.
template <class T>
using working_type = metal::conditional_t<
    is_float<T>, float,
    metal::conditional_t<is_long_texel<T>, ulong,
                         metal::conditional_t<is_unsigned_integer<T>(), uint, int>>>;
template <class T>
using working_texel = metal::vec<working_type<T>, 4>;

typedef uint unaligned_word __attribute__((aligned(1)));

// For integers of at most 16 bits the same as `v / divisor`, bit for bit.
template <int divisor, class V>
METALLOID_INLINE V divided(V v) {
#if defined(__x86_64__) && !defined(__FMA__)
  return v / float(divisor);
#else
  constexpr float inverse = 1.0f / divisor;
  constexpr float rest = float(1.0 / divisor - double(inverse));
  return metal::fma(v, V(inverse), v * rest);
#endif
}

template <component type, int channels>
struct texel_code {
  using raw = typename component_bits<type>::raw;
  using value =
      metal::conditional_t<is_float<raw> || component_bits<type>::scale != 0, float,
                           metal::conditional_t<is_unsigned_integer<raw>(), uint, int>>;
  typedef raw raws __attribute__((ext_vector_type(channels), aligned(sizeof(raw))));
  typedef value values __attribute__((ext_vector_type(channels)));
  static constexpr float scale = component_bits<type>::scale;

  // As it is stored: what is normalised is `scale` times as large.
  static METALLOID_INLINE metal::vec<value, 4> load(const device uchar* address) {
    values v = __builtin_convertvector(components_at(address), values);
    // The most negative integer is one step below -1.
    if constexpr (scale != 0 && !is_unsigned_integer<raw>())
      v = __builtin_elementwise_max(v, (values)-scale);
    constexpr value one = scale != 0 ? value(scale) : value(1);
    if constexpr (channels == 1) return {v.x, 0, 0, one};
    else if constexpr (channels == 2) return {v.x, v.y, 0, one};
    else return {from_storage(), v};
  }

  // Normalised and integer components saturate; normalised ones round to the nearest even.
  static METALLOID_INLINE void store(device uchar* address, metal::vec<value, 4> texel) {
    values v;
    if constexpr (channels == 1) v = texel.x;
    else if constexpr (channels == 2) v = texel.data.xy;
    else v = texel.data;
    if constexpr (scale != 0) {
      const values least = is_unsigned_integer<raw>() ? 0.0f : -1.0f;
      if constexpr (!is_unsigned_integer<raw>()) v = v == v ? v : (values)0.0f;  // else max does it
      v = __builtin_elementwise_min(__builtin_elementwise_max(v, least), (values)1.0f);
      v = __builtin_elementwise_rint(v * scale);
      typedef int integers __attribute__((ext_vector_type(channels)));
      put(address, __builtin_convertvector(v, integers));
    } else {
      if constexpr (sizeof(raw) < sizeof(value) && is_integer<raw>) {
        v = __builtin_elementwise_min(__builtin_elementwise_max(v, (values)limits::min()),
                                      (values)limits::max());
      }
      put(address, v);
    }
  }

 private:
  using limits = metal::numeric_limits<raw>;
  static constexpr int bits = 8 * sizeof(raw), per_word = 32 / bits;
  // Vector code moves words: processors gather and scatter nothing smaller.
  static constexpr bool has_words = bits < 32 && channels * bits >= 32;
  using word_part = metal::conditional_t<bits == 8, uchar, ushort>;

  static METALLOID_INLINE raws components_at(const device uchar* address) {
    if constexpr (has_words) {
      if (mtl_textures_are_known) {
        raws v;
        for (int c = 0; c < channels; ++c) {
          const uint word = ((const device unaligned_word*)address)[c / per_word];
          v[c] = __builtin_bit_cast(raw, word_part(word >> c % per_word * bits));
        }
        return v;
      }
    }
    return *(const device raws*)address;
  }
  // v: floats, or integers of 32 bits that fit.
  template <class V>
  static METALLOID_INLINE void put(device uchar* address, V v) {
    if constexpr (has_words) {
      if (mtl_textures_are_known) {
        for (int i = 0; i < channels / per_word; ++i) {
          uint word = 0;
          for (int c = 0; c < per_word; ++c) word |= part_of_word(v[i * per_word + c]) << c * bits;
          ((device unaligned_word*)address)[i] = word;
        }
        return;
      }
    }
    *(device raws*)address = __builtin_convertvector(v, raws);
  }
  static METALLOID_INLINE uint part_of_word(float v) {
    return __builtin_bit_cast(word_part, raw(v));
  }
  static METALLOID_INLINE uint part_of_word(uint v) { return v; }
  static METALLOID_INLINE uint part_of_word(int v) {
    return is_unsigned_integer<raw>() ? uint(v) : uint(v) & (~0u >> (32 - bits));
  }
};

// X(component, channels) for the formats of textures of floats, and of unsigned and signed
// integers. Python lets no others come here.
#define METALLOID_FOR_EACH_CHANNELS(X, component) X(component, 1) X(component, 2) X(component, 4)
#define METALLOID_FOR_EACH_FLOAT_FORMAT(X) \
  METALLOID_FOR_EACH_CHANNELS(X, unorm8) METALLOID_FOR_EACH_CHANNELS(X, snorm8) \
  METALLOID_FOR_EACH_CHANNELS(X, unorm16) METALLOID_FOR_EACH_CHANNELS(X, snorm16) \
  METALLOID_FOR_EACH_CHANNELS(X, float16) METALLOID_FOR_EACH_CHANNELS(X, float32)
#define METALLOID_FOR_EACH_UNSIGNED_FORMAT(X) \
  METALLOID_FOR_EACH_CHANNELS(X, uint8) METALLOID_FOR_EACH_CHANNELS(X, uint16) \
  METALLOID_FOR_EACH_CHANNELS(X, uint32)
#define METALLOID_FOR_EACH_SIGNED_FORMAT(X) \
  METALLOID_FOR_EACH_CHANNELS(X, sint8) METALLOID_FOR_EACH_CHANNELS(X, sint16) \
  METALLOID_FOR_EACH_CHANNELS(X, sint32)
// The formats that most textures have; where formats are not known, code for the others is a call
// away.
#define METALLOID_FOR_EACH_COMMON_FLOAT_FORMAT(X) \
  X(unorm8, 4) X(unorm8, 1) X(float32, 4) X(float32, 1) X(float16, 4)
#define METALLOID_FOR_EACH_COMMON_UNSIGNED_FORMAT(X) X(uint8, 4) X(uint8, 1) X(uint32, 1)
#define METALLOID_FOR_EACH_COMMON_SIGNED_FORMAT(X) X(sint32, 1)

// switch (format) over the formats of T; METALLOID_TEXEL_CASE(component, channels) is a case.
#define METALLOID_SWITCH_OVER(which, format) \
  { \
    if constexpr (is_float<T>) { \
      switch (format) { METALLOID_FOR_EACH_##which##FLOAT_FORMAT(METALLOID_TEXEL_CASE) } \
    } else if constexpr (is_unsigned_integer<T>()) { \
      switch (format) { METALLOID_FOR_EACH_##which##UNSIGNED_FORMAT(METALLOID_TEXEL_CASE) } \
    } else { \
      switch (format) { METALLOID_FOR_EACH_##which##SIGNED_FORMAT(METALLOID_TEXEL_CASE) } \
    } \
  }

// ---- texels ------------------------------------------------------------------------------------
// Several at once, so that the format is looked at once.
template <class T, int count>
struct texel_group {
  working_texel<T> texels[count];
};

#define METALLOID_TEXEL_CASE(type, channels) \
  case format_shape(component::type, channels): \
    for (int i = 0; i < count; ++i) \
      group.texels[i] = texel_code<component::type, channels>::load(addresses[i]); \
    return group;

template <class T, int count>
METALLOID_INLINE texel_group<T, count> load_codes_of_shape(
    uint shape, const device uchar* const (&addresses)[count]) {
  texel_group<T, count> group = {};
  METALLOID_SWITCH_OVER(, shape)
  return group;
}

template <class T, int count>
METALLOID_INLINE texel_group<T, count> load_codes_of_format(
    uint format, const device uchar* const (&addresses)[count]) {
  auto group = load_codes_of_shape<T>(format & format_shape_mask, addresses);
  if constexpr (is_float<T>) {
    for (auto& v : group.texels)
      if (format & format_is_bgra) v = v.bgra;
  }
  return group;
}

template <class T, int count>
__attribute__((noinline)) texel_group<T, count> load_codes_of_any_format(
    uint format, const device uchar* const (&addresses)[count]) {
  return load_codes_of_format<T>(format, addresses);
}

// Texels as they are stored, in the order of rgba. All addresses must be valid.
template <class T, int count>
METALLOID_INLINE texel_group<T, count> load_codes(uint format,
                                                  const device uchar* const (&addresses)[count]) {
  texel_group<T, count> group;
  if constexpr (is_long_texel<T>) {
    for (int i = 0; i < count; ++i)
      group.texels[i] = {*(const device ulong*)addresses[i], 0, 0, 1};
    return group;
  } else {
    if (mtl_textures_are_known) return load_codes_of_format<T>(format, addresses);
    if (!mtl_textures_by_lane) METALLOID_SWITCH_OVER(COMMON_, format)
    return load_codes_of_any_format<T, count>(format, addresses);
  }
}
#undef METALLOID_TEXEL_CASE

// What normalised texels are divided by.
METALLOID_INLINE float scale_of(uint format) {
  switch (component(format & 15)) {
    case component::unorm8: return 255;
    case component::snorm8: return 127;
    case component::unorm16: return 65535;
    case component::snorm16: return 32767;
    default: return 1;
  }
}

// Texels from what is stored, or from a blend of it.
template <class T>
METALLOID_INLINE working_texel<T> decoded(uint format, working_texel<T> v) {
  if constexpr (is_float<T>) {
    switch (component(format & 15)) {
      case component::unorm8: v = divided<255>(v); break;
      case component::snorm8: v = divided<127>(v); break;
      case component::unorm16: v = divided<65535>(v); break;
      case component::snorm16: v = divided<32767>(v); break;
      default: break;
    }
    if (format & format_is_srgb)
      v = {linear_from_srgb(v.x), linear_from_srgb(v.y), linear_from_srgb(v.z), v.w};
  }
  return v;
}

template <class T, int count>
METALLOID_INLINE texel_group<T, count> load_texels(uint format,
                                                   const device uchar* const (&addresses)[count]) {
  auto group = load_codes<T>(format, addresses);
  for (auto& v : group.texels) v = decoded<T>(format, v);
  return group;
}

// A null address gives `outside`.
template <class T>
METALLOID_INLINE working_texel<T> load_texel(uint format, const device uchar* address,
                                             working_texel<T> outside) {
  if (!address) return outside;
  const device uchar* const addresses[1] = {address};
  return load_texels<T>(format, addresses).texels[0];
}

#define METALLOID_TEXEL_CASE(type, channels) \
  case format_shape(component::type, channels): \
    return texel_code<component::type, channels>::store(address, v);

template <class T>
METALLOID_INLINE void store_texel_of_format(uint format, device uchar* address, working_texel<T> v) {
  if constexpr (is_float<T>) {
    if (format & format_is_srgb)
      v = {srgb_from_linear(v.x), srgb_from_linear(v.y), srgb_from_linear(v.z), v.w};
    if (format & format_is_bgra) v = v.bgra;
  }
  METALLOID_SWITCH_OVER(, format & format_shape_mask)
}

template <class T>
__attribute__((noinline)) void store_texel_of_any_format(uint format, device uchar* address,
                                                         working_texel<T> v) {
  store_texel_of_format<T>(format, address, v);
}

template <class T>
METALLOID_INLINE void store_texel(uint format, device uchar* address, working_texel<T> v) {
  if constexpr (is_long_texel<T>) {
    *(device ulong*)address = v.x;
  } else {
    if (mtl_textures_are_known) return store_texel_of_format<T>(format, address, v);
    if (!mtl_textures_by_lane) METALLOID_SWITCH_OVER(COMMON_, format)
    store_texel_of_any_format<T>(format, address, v);
  }
}
#undef METALLOID_TEXEL_CASE
#undef METALLOID_SWITCH_OVER

// ---- addresses ----------------------------------------------------------------------------------
// Address of a texel that exists. Distances of 32 bits are half the work for vector code.
METALLOID_INLINE device uchar* texel_address(constant texture_level& level, uint format, uint x,
                                            uint y, uint slice) {
  const uint bytes = texel_bytes_of(format);
  if (format & format_of_small_texture) {
    // Signed, so that the compiler knows that nothing wraps.
    return level.texels + (int(slice) * int(level.slice_stride) + int(y) * int(level.row_stride) +
                           int(x) * int(bytes));
  }
  return level.texels + slice * level.slice_stride + y * level.row_stride + ulong(x) * bytes;
}

// Whether there is a texel. Unsigned coordinates make one comparison do for both ends of an axis.
METALLOID_INLINE bool is_inside(constant texture_level& level, uint x, uint y, uint slice) {
  return x < level.width && y < level.height && slice < level.slices;
}

// Address of a texel; null if there is none.
METALLOID_INLINE device uchar* texel_address_or_null(constant texture_level& level, uint format, uint x,
                                           uint y, uint slice) {
  return is_inside(level, x, y, slice) ? texel_address(level, format, x, y, slice) : nullptr;
}

}  // namespace metalloid
