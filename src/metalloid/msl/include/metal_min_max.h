// min, max, clamp and their relatives: the functions that the chapters on integers and on
// floating-point numbers share.
//
// For the scalar types these are plain overloads, because a user's own `template <class T> T min(T,
// T)` must lose against them. Operands of different types meet in their common type. For bfloat
// there is only the template: MLX and others add a plain `bfloat min(bfloat, bfloat)` to namespace
// metal.
#pragma once

#include "metal_componentwise.h"

namespace metalloid {

// Floating-point min and max return the number if the other operand is NaN, and -0 is less than 0.
// OpenCL's functions do not compare the signs of zeros: equal numbers have the same other bits.
template <class T>
METALLOID_INLINE constexpr T min(T a, T b) {
  if constexpr (metal::is_same_v<T, double>) {
    return __builtin_fmin(a, b);
  } else if constexpr (is_float<T>) {
#if defined(__SPIRV__)
    const float x = float(a), y = float(b);
    const uint bits = __builtin_bit_cast(uint, x) | __builtin_bit_cast(uint, y);
    return T(x == y ? __builtin_bit_cast(float, bits) : __builtin_fminf(x, y));
#else
    return T(__builtin_fminf(float(a), float(b)));
#endif
  } else {
    return b < a ? b : a;
  }
}

template <class T>
METALLOID_INLINE constexpr T max(T a, T b) {
  if constexpr (metal::is_same_v<T, double>) {
    return __builtin_fmax(a, b);
  } else if constexpr (is_float<T>) {
#if defined(__SPIRV__)
    const float x = float(a), y = float(b);
    const uint bits = __builtin_bit_cast(uint, x) & __builtin_bit_cast(uint, y);
    return T(x == y ? __builtin_bit_cast(float, bits) : __builtin_fmaxf(x, y));
#else
    return T(__builtin_fmaxf(float(a), float(b)));
#endif
  } else {
    return a < b ? b : a;
  }
}

template <class T>
METALLOID_INLINE constexpr T clamp(T x, T low, T high) {
  return min(max(x, low), high);
}
template <class T>
METALLOID_INLINE constexpr T min3(T a, T b, T c) {
  return min(a, min(b, c));
}
template <class T>
METALLOID_INLINE constexpr T max3(T a, T b, T c) {
  return max(a, max(b, c));
}
template <class T>
METALLOID_INLINE constexpr T median3(T a, T b, T c) {
  return max(min(a, b), min(max(a, b), c));
}

template <class T>
METALLOID_INLINE constexpr T abs(T x) {
  if constexpr (metal::is_same_v<T, double>) {
    return __builtin_fabs(x);
  } else if constexpr (is_float<T>) {
    return T(__builtin_fabsf(float(x)));
  } else if constexpr (is_unsigned_integer<T>()) {
    return x;
  } else {
    return x < 0 ? T(-x) : x;
  }
}

template <class... Operands>
using if_scalars_or_enums =
    metal::enable_if_t<((is_scalar<Operands> || __is_enum(Operands)) && ...), int>;

}  // namespace metalloid

namespace metal {

#define METALLOID_PLAIN1(name, T) \
  METALLOID_INLINE constexpr T name(T a) { return metalloid::name(a); }
#define METALLOID_PLAIN2(name, T) \
  METALLOID_INLINE constexpr T name(T a, T b) { return metalloid::name(a, b); }
#define METALLOID_PLAIN3(name, T) \
  METALLOID_INLINE constexpr T name(T a, T b, T c) { return metalloid::name(a, b, c); }

#define METALLOID_FOR_EACH_PLAIN_TYPE(X, name) \
  X(name, char) X(name, signed char) X(name, uchar) X(name, short) X(name, ushort) \
  X(name, int) X(name, uint) X(name, long) X(name, ulong) X(name, half) X(name, float)

METALLOID_FOR_EACH_PLAIN_TYPE(METALLOID_PLAIN1, abs)
METALLOID_FOR_EACH_PLAIN_TYPE(METALLOID_PLAIN2, min)
METALLOID_FOR_EACH_PLAIN_TYPE(METALLOID_PLAIN2, max)
METALLOID_FOR_EACH_PLAIN_TYPE(METALLOID_PLAIN3, clamp)
METALLOID_FOR_EACH_PLAIN_TYPE(METALLOID_PLAIN3, min3)
METALLOID_FOR_EACH_PLAIN_TYPE(METALLOID_PLAIN3, max3)
METALLOID_FOR_EACH_PLAIN_TYPE(METALLOID_PLAIN3, median3)
#undef METALLOID_PLAIN1
#undef METALLOID_PLAIN2
#undef METALLOID_PLAIN3
#undef METALLOID_FOR_EACH_PLAIN_TYPE

template <class T, metalloid::if_scalars<T> = 0>
METALLOID_INLINE constexpr T abs(T a) {
  return metalloid::abs(a);
}
METALLOID_VECTOR_FORMS1(T, abs, metal::abs)

#define METALLOID_MIXED_SCALARS2(name) \
  template <class A, class B, metalloid::if_scalars_or_enums<A, B> = 0> \
  METALLOID_INLINE constexpr common_type_t<A, B> name(A a, B b) { \
    return metalloid::name<common_type_t<A, B>>(a, b); \
  } \
  METALLOID_VECTOR_FORMS2(T, name, metal::name)

#define METALLOID_MIXED_SCALARS3(name) \
  template <class A, class B, class C, metalloid::if_scalars_or_enums<A, B, C> = 0> \
  METALLOID_INLINE constexpr common_type_t<A, B, C> name(A a, B b, C c) { \
    return metalloid::name<common_type_t<A, B, C>>(a, b, c); \
  } \
  METALLOID_VECTOR_FORMS3(T, name, metal::name)

METALLOID_MIXED_SCALARS2(min)
METALLOID_MIXED_SCALARS2(max)
METALLOID_MIXED_SCALARS3(clamp)
METALLOID_MIXED_SCALARS3(min3)
METALLOID_MIXED_SCALARS3(max3)
METALLOID_MIXED_SCALARS3(median3)
#undef METALLOID_MIXED_SCALARS2
#undef METALLOID_MIXED_SCALARS3

}  // namespace metal
