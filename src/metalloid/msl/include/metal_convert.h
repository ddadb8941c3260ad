// as_type and conversions (MSL specification, "Type Conversions and Re-interpreting Data").
#pragma once

#include "metal_packed.h"

namespace metalloid {

// From a value to its bits and back, through types that __builtin_bit_cast accepts.
template <class T>
METALLOID_INLINE constexpr T storage_of(T value) {
  return value;
}
template <class T, int N>
METALLOID_INLINE constexpr typename metal::vec<T, N>::storage storage_of(metal::vec<T, N> value) {
  return value.data;
}
template <class T, int N>
METALLOID_INLINE constexpr typename metal::vec<T, N>::storage storage_of(
    metal::packed_vec<T, N> value) {
  return metal::vec<T, N>(value).data;
}

template <class T>
struct reinterpreted {
  template <class Storage>
  METALLOID_INLINE static constexpr T of(Storage bits) {
    return __builtin_bit_cast(T, bits);
  }
};
template <class T, int N>
struct reinterpreted<metal::vec<T, N>> {
  using vector = metal::vec<T, N>;
  template <class Storage>
  METALLOID_INLINE static constexpr vector of(Storage bits) {
    return vector(from_storage(), __builtin_bit_cast(typename vector::storage, bits));
  }
};
template <class T, int N>
struct reinterpreted<metal::packed_vec<T, N>> {
  template <class Storage>
  METALLOID_INLINE static constexpr metal::packed_vec<T, N> of(Storage bits) {
    return reinterpreted<metal::vec<T, N>>::of(bits);
  }
};

// static_cast, and between half and bfloat through float: clang has no conversion between the
// two. The lowering writes it for the casts of a text that uses both types.
template <class To, class From>
METALLOID_INLINE constexpr To cast(From&& from) {
  if constexpr (are_half_and_bfloat<bare<To>, bare<From>>) {
    return static_cast<To>(static_cast<float>(from));
  } else {
    return static_cast<To>(static_cast<From&&>(from));
  }
}

// A copy in the unnamed space: both arms of `c ? p[i] : T()` must have the same type.
template <class T>
METALLOID_INLINE constexpr T value_of(T value) {
  return value;
}

// What a function constant holds while a library is checked, before a kernel gives it a value:
// with any other number clang would warn of divisions by it and of branches never taken.
template <class T>
T unknown();

}  // namespace metalloid

namespace metal {

template <class To, class From>
METALLOID_INLINE constexpr To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs two types of the same size");
  return metalloid::reinterpreted<To>::of(metalloid::storage_of(value));
}

}  // namespace metal

using metal::as_type;

// The names that the lowering writes into the user's text.
#define METALLOID_CAST ::metalloid::cast
#define METALLOID_VALUE ::metalloid::value_of
#define METALLOID_UNKNOWN(...) ::metalloid::unknown<__VA_ARGS__>()
#define METALLOID_COPIED_AS_BYTES(U) \
  U() = default; \
  METALLOID_INLINE U(const U& other) { __builtin_memcpy(this, &other, sizeof(U)); } \
  METALLOID_INLINE U& operator=(const U& other) { \
    __builtin_memcpy(this, &other, sizeof(U)); \
    return *this; \
  }
