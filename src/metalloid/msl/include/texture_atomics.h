// Atomic functions on textures of integers (MSL specification, "Texture Functions").
//
// They work on the first component of a texel, and on formats of one 32-bit component only
// (r32uint, r32sint), as in Metal; on others, and where there is no texel, they do nothing and
// return 0. Textures of ulong, whose format is rg32uint, have atomic_min and atomic_max.
#pragma once

#include "texture_base.h"

namespace metalloid {

template <class T, metal::access mode, texture_kind kind, int axes>
struct atomic_texture : texture_base<T, mode, kind> {
  using texel = metal::vec<T, 4>;
  using uints = coordinates_t<uint, axes>;

  METALLOID_INLINE texel atomic_load(uints coord, uint array = 0) const {
    auto* const there = atomic_address(coord, array);
    return there ? metal::atomic_load_explicit(there, relaxed) : T(0);
  }
  METALLOID_INLINE void atomic_store(texel color, uints coord, uint array = 0) const {
    if (auto* const there = atomic_address(coord, array))
      metal::atomic_store_explicit(there, color.x, relaxed);
  }
  METALLOID_INLINE bool atomic_compare_exchange_weak(uints coord, uint array,
                                                     thread texel* expected, texel desired) const {
    auto* const there = atomic_address(coord, array);
    T value = expected->x;
    const bool exchanged = there && metal::atomic_compare_exchange_weak_explicit(
                                        there, &value, desired.x, relaxed, relaxed);
    *expected = texel(value);
    return exchanged;
  }
  METALLOID_INLINE bool atomic_compare_exchange_weak(uints coord, thread texel* expected,
                                                     texel desired) const {
    return atomic_compare_exchange_weak(coord, 0, expected, desired);
  }

  // Read, modify and write; they return the value before.
#define METALLOID_TEXTURE_ATOMIC(name) \
  METALLOID_INLINE texel atomic_##name(uints coord, uint array, texel operand) const { \
    auto* const there = atomic_address(coord, array); \
    return there ? metal::atomic_##name##_explicit(there, operand.x, relaxed) : T(0); \
  } \
  METALLOID_INLINE texel atomic_##name(uints coord, texel operand) const { \
    return atomic_##name(coord, 0, operand); \
  }
  METALLOID_TEXTURE_ATOMIC(exchange)
  METALLOID_TEXTURE_ATOMIC(fetch_add)
  METALLOID_TEXTURE_ATOMIC(fetch_sub)
  METALLOID_TEXTURE_ATOMIC(fetch_min)
  METALLOID_TEXTURE_ATOMIC(fetch_max)
  METALLOID_TEXTURE_ATOMIC(fetch_and)
  METALLOID_TEXTURE_ATOMIC(fetch_or)
  METALLOID_TEXTURE_ATOMIC(fetch_xor)
#undef METALLOID_TEXTURE_ATOMIC

#define METALLOID_LONG_TEXTURE_ATOMIC(name) \
  METALLOID_INLINE void atomic_##name(uints coord, uint array, texel operand) const { \
    static_assert(is_long_texel<T>, "atomic_" #name " needs a texture of ulong"); \
    check_access(); \
    const metal::uint3 at = grid_position(coord, array); \
    if (!this->has(at, 0)) return; \
    auto* const there = (device metal::atomic<T>*)this->address_of(at, 0); \
    metal::atomic_##name##_explicit(there, operand.x, relaxed); \
  } \
  METALLOID_INLINE void atomic_##name(uints coord, texel operand) const { \
    atomic_##name(coord, 0, operand); \
  }
  METALLOID_LONG_TEXTURE_ATOMIC(min)
  METALLOID_LONG_TEXTURE_ATOMIC(max)
#undef METALLOID_LONG_TEXTURE_ATOMIC

 private:
  static constexpr metal::memory_order relaxed = metal::memory_order_relaxed;

  static METALLOID_INLINE constexpr void check_access() {
    static_assert(mode == metal::access::read_write,
                  "atomic functions need a texture of access::read_write");
  }

  METALLOID_INLINE device metal::atomic<T>* atomic_address(uints coord, uint array) const {
    check_access();
    static_assert(metal::is_same_v<T, int> || metal::is_same_v<T, uint>,
                  "atomic functions need a texture of int or uint");
    const uint format = this->format() & ~format_of_small_texture;
    const bool is_word = format == format_shape(component::uint32, 1) ||
                         format == format_shape(component::sint32, 1);
    const metal::uint3 at = grid_position(coord, array);
    if (!is_word || !this->has(at, 0)) return nullptr;
    return (device metal::atomic<T>*)this->address_of(at, 0);
  }
};

}  // namespace metalloid
