// What the library asks about scalar types, on bare types (no reference, qualifier or address
// space).
#pragma once

#include "type_basics.h"

namespace metalloid {

// Variable templates of bare types: cheaper to instantiate than classes, and asked very often.
template <class T>
inline constexpr bool is_integer = false;
template <class T>
inline constexpr bool is_float = false;

#define METALLOID_IS_INTEGER(type) \
  template <> \
  inline constexpr bool is_integer<type> = true;
METALLOID_FOR_EACH_INTEGER(METALLOID_IS_INTEGER)
METALLOID_IS_INTEGER(bool)
METALLOID_IS_INTEGER(long long)
METALLOID_IS_INTEGER(unsigned long long)
#undef METALLOID_IS_INTEGER

template <>
inline constexpr bool is_float<half> = true;
template <>
inline constexpr bool is_float<bfloat> = true;
template <>
inline constexpr bool is_float<float> = true;
template <>
inline constexpr bool is_float<double> = true;

template <class T>
inline constexpr bool is_scalar = is_integer<T> || is_float<T>;

// What the functions of the library take. A double would be computed in float without a word, so it
// is left to the few functions that know it.
template <class T>
inline constexpr bool is_operand = is_scalar<T> && !metal::is_same_v<T, double>;

template <class T>
constexpr bool is_unsigned_integer() {
  if constexpr (is_integer<T>) {
    return T(-1) > T(0);
  } else {
    return false;
  }
}

template <int Bytes, bool Signed>
struct sized_integer;
template <>
struct sized_integer<1, true> {
  using type = signed char;
};
template <>
struct sized_integer<1, false> {
  using type = uchar;
};
template <>
struct sized_integer<2, true> {
  using type = short;
};
template <>
struct sized_integer<2, false> {
  using type = ushort;
};
template <>
struct sized_integer<4, true> {
  using type = int;
};
template <>
struct sized_integer<4, false> {
  using type = uint;
};
template <>
struct sized_integer<8, true> {
  using type = long;
};
template <>
struct sized_integer<8, false> {
  using type = ulong;
};

// The unsigned integer with the size of T: where a value travels as bare bits.
template <class T>
using bits_type = typename sized_integer<sizeof(T), false>::type;

// The two 16-bit floats, between which clang has no conversion.
template <class A, class B>
inline constexpr bool are_half_and_bfloat =
    (metal::is_same_v<A, half> && metal::is_same_v<B, bfloat>) ||
    (metal::is_same_v<A, bfloat> && metal::is_same_v<B, half>);

// What T becomes when two scalar operands meet, as in C++, and half with bfloat gives float.
template <class A, class B>
struct common_scalar {
  using type = decltype(true ? A() : B());
};
template <class A>
struct common_scalar<A, A> {
  using type = A;
};
template <>
struct common_scalar<half, bfloat> {
  using type = float;
};
template <>
struct common_scalar<bfloat, half> {
  using type = float;
};

// A parameter of this type takes no part in template deduction, so that a scalar can convert to it.
template <class T>
struct identity {
  using type = T;
};
template <class T>
using no_deduction = typename identity<T>::type;

// enable_if over the kinds, as the type of a defaulted template parameter: `if_integer<T> = 0`.
template <class T>
using if_integer = metal::enable_if_t<is_integer<T>, int>;
template <class... T>
using if_scalars = metal::enable_if_t<(is_scalar<T> && ...), int>;
template <class... T>
using if_operands = metal::enable_if_t<(is_operand<T> && ...), int>;

}  // namespace metalloid
