// Samplers (MSL specification, "Samplers"): how a texture is read between its texels.
//
// A sampler is one word that holds all its settings, so that a constexpr one costs nothing and one
// that is an argument needs no memory. mtl.Sampler writes the same word (runtime/sampler.py).
#pragma once

#include "metal_common.h"

namespace metal {

enum class coord { normalized, pixel };
enum class address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class s_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class t_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class r_address { clamp_to_zero, clamp_to_edge, repeat, mirrored_repeat, clamp_to_border };
enum class border_color { transparent_black, opaque_black, opaque_white };
enum class filter { nearest, linear };
enum class mag_filter { nearest, linear };
enum class min_filter { nearest, linear };
enum class mip_filter { none, nearest, linear };
enum class reduction { weighted_average, minimum, maximum };
enum class compare_func {
  none, less, less_equal, greater, greater_equal, equal, not_equal, always, never,
};

struct max_anisotropy {
  int value;
  constexpr explicit max_anisotropy(int value) : value(value) {}
};
struct lod_bias {
  float value;
  constexpr explicit lod_bias(float value) : value(value) {}
};
struct lod_clamp {
  float minimum, maximum;
  constexpr lod_clamp(float minimum, float maximum) : minimum(minimum), maximum(maximum) {}
};

}  // namespace metal

namespace metalloid {

// A part of the word: `bits` bits from `offset` on.
template <int offset, int bits>
struct sampler_field {
  static constexpr ulong mask = (1ul << bits) - 1;
  static METALLOID_INLINE constexpr ulong get(ulong word) { return word >> offset & mask; }
  static METALLOID_INLINE constexpr ulong set(ulong word, ulong value) {
    return (word & ~(mask << offset)) | (value & mask) << offset;
  }
};

using sampler_coord = sampler_field<0, 1>;
using sampler_address_s = sampler_field<1, 3>;
using sampler_address_t = sampler_field<4, 3>;
using sampler_address_r = sampler_field<7, 3>;
using sampler_border = sampler_field<10, 2>;
using sampler_mag = sampler_field<12, 1>;
using sampler_min = sampler_field<13, 1>;
using sampler_mip = sampler_field<14, 2>;
using sampler_compare = sampler_field<16, 4>;
using sampler_anisotropy = sampler_field<20, 5>;
using sampler_reduction = sampler_field<25, 2>;
using sampler_lod_min = sampler_field<27, 13>;
using sampler_lod_max = sampler_field<40, 13>;
using sampler_lod_bias = sampler_field<53, 11>;

// Levels of detail are kept in steps of 1/256; 31.99 is above all levels that a texture may have.
constexpr float lod_steps = 256.0f;
constexpr ulong lod_bits(float lod) {
  return !(lod > 0) ? 0 : lod >= 8191 / lod_steps ? 8191 : ulong(lod * lod_steps + 0.5f);
}
// A bias is from -16 to 15.98, in steps of 1/64: the top of the word as a signed number.
constexpr float lod_bias_steps = 64.0f;
constexpr ulong lod_bias_bits(float bias) {
  const float steps = bias * lod_bias_steps;
  return ulong(!(steps > -1024) ? -1024 : steps >= 1023 ? 1023 : long(steps + 1024.5f) - 1024);
}
METALLOID_INLINE float lod_bias_of(ulong word) { return float(long(word) >> 53) / lod_bias_steps; }

template <class T>
inline constexpr bool is_sampler_option = false;
template <class... T>
using if_sampler_options = metal::enable_if_t<(is_sampler_option<T> && ...), int>;

// with(word, option): the word with one more setting made.
#define METALLOID_SAMPLER_OPTION(type, result) \
  template <> \
  inline constexpr bool is_sampler_option<metal::type> = true; \
  METALLOID_INLINE constexpr ulong with(ulong word, metal::type v) { return result; }
METALLOID_SAMPLER_OPTION(coord, sampler_coord::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(s_address, sampler_address_s::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(t_address, sampler_address_t::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(r_address, sampler_address_r::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(address, with(with(with(word, metal::s_address(v)), metal::t_address(v)),
                                       metal::r_address(v)))
METALLOID_SAMPLER_OPTION(border_color, sampler_border::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(mag_filter, sampler_mag::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(min_filter, sampler_min::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(filter, with(with(word, metal::mag_filter(v)), metal::min_filter(v)))
METALLOID_SAMPLER_OPTION(mip_filter, sampler_mip::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(reduction, sampler_reduction::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(compare_func, sampler_compare::set(word, ulong(v)))
METALLOID_SAMPLER_OPTION(max_anisotropy, sampler_anisotropy::set(word, ulong(v.value)))
METALLOID_SAMPLER_OPTION(lod_bias, sampler_lod_bias::set(word, lod_bias_bits(v.value)))
METALLOID_SAMPLER_OPTION(lod_clamp, sampler_lod_max::set(sampler_lod_min::set(
                                        word, lod_bits(v.minimum)), lod_bits(v.maximum)))
#undef METALLOID_SAMPLER_OPTION

// The settings of a sampler that is not told otherwise.
constexpr ulong default_sampler = with(with(0, metal::address::clamp_to_edge),
                                       metal::lod_clamp(0.0f, 32.0f));

}  // namespace metalloid

namespace metal {

struct sampler {
  ulong word;

  METALLOID_INLINE constexpr sampler() : word(metalloid::default_sampler) {}
  METALLOID_INLINE constexpr sampler(metalloid::from_storage, ulong word) : word(word) {}

  // Only for options: a sampler is copied, not taken for one.
  template <class... Options, metalloid::if_sampler_options<Options...> = 0>
  METALLOID_INLINE constexpr sampler(Options... options) : word(metalloid::default_sampler) {
    ((word = metalloid::with(word, options)), ...);
  }
};

}  // namespace metal
