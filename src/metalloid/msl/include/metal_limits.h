// The header <metal_limits>: numeric_limits.
#pragma once

#include "metal_type_traits.h"

namespace metal {

// Published code specialises this name to add types of its own, so the numbers live in it.
template <class T>
struct _numeric_limits_impl {
  static constexpr bool is_specialized = false;
};

template <class T>
struct numeric_limits : _numeric_limits_impl<T> {};
template <class T>
struct numeric_limits<const T> : numeric_limits<T> {};
template <class T>
struct numeric_limits<volatile T> : numeric_limits<T> {};
template <class T>
struct numeric_limits<const volatile T> : numeric_limits<T> {};

}  // namespace metal

namespace metalloid {

template <class T>
struct integer_limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = !is_unsigned_integer<T>();
  static constexpr bool is_integer = true;
  static constexpr bool is_exact = true;
  static constexpr bool has_infinity = false;
  static constexpr bool has_quiet_NaN = false;
  static constexpr bool has_signaling_NaN = false;
  static constexpr int radix = 2;
  static constexpr int digits = metal::is_same_v<T, bool> ? 1 : 8 * int(sizeof(T)) - is_signed;
  static constexpr int digits10 = digits * 3 / 10;
  static constexpr int min_exponent = 0;
  static constexpr int min_exponent10 = 0;
  static constexpr int max_exponent = 0;
  static constexpr int max_exponent10 = 0;

  METALLOID_INLINE static constexpr T min() { return is_signed ? T(T(-1) - max()) : T(0); }
  METALLOID_INLINE static constexpr T max() { return T(~0ull >> (64 - digits)); }
  METALLOID_INLINE static constexpr T lowest() { return min(); }
  METALLOID_INLINE static constexpr T epsilon() { return T(0); }
  METALLOID_INLINE static constexpr T round_error() { return T(0); }
  METALLOID_INLINE static constexpr T infinity() { return T(0); }
  METALLOID_INLINE static constexpr T quiet_NaN() { return T(0); }
  METALLOID_INLINE static constexpr T signaling_NaN() { return T(0); }
  METALLOID_INLINE static constexpr T denorm_min() { return T(0); }
};

// Exact in double, and always evaluated by the compiler: the callers store it in a constexpr.
constexpr double power_of_two(int exponent) {
  double power = 1.0;
  for (; exponent > 0; --exponent) power *= 2.0;
  for (; exponent < 0; ++exponent) power *= 0.5;
  return power;
}

// An IEEE-like binary format with `Digits` significant bits and exponents up to 2^MaxExponent.
template <class T, int Digits, int MaxExponent>
struct float_limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr int radix = 2;
  static constexpr int digits = Digits;
  static constexpr int min_exponent = 3 - MaxExponent;
  static constexpr int max_exponent = MaxExponent;
  // log10(2) = 0.30103; integer division rounds towards zero, which is what all three ask for.
  static constexpr int digits10 = (Digits - 1) * 30103 / 100000;
  static constexpr int min_exponent10 = (min_exponent - 1) * 30103 / 100000;
  static constexpr int max_exponent10 = MaxExponent * 30103 / 100000;

  METALLOID_INLINE static constexpr T epsilon() {
    constexpr T value = T(power_of_two(1 - Digits));
    return value;
  }
  METALLOID_INLINE static constexpr T min() {
    constexpr T value = T(power_of_two(min_exponent - 1));
    return value;
  }
  METALLOID_INLINE static constexpr T denorm_min() {
    constexpr T value = T(power_of_two(min_exponent - Digits));
    return value;
  }
  METALLOID_INLINE static constexpr T max() {
    constexpr T value = T(power_of_two(MaxExponent - 1) * (2.0 - power_of_two(1 - Digits)));
    return value;
  }
  METALLOID_INLINE static constexpr T lowest() { return -max(); }
  METALLOID_INLINE static constexpr T round_error() { return T(0.5f); }
  METALLOID_INLINE static constexpr T infinity() { return T(__builtin_huge_valf()); }
  METALLOID_INLINE static constexpr T quiet_NaN() { return T(__builtin_nanf("")); }
  METALLOID_INLINE static constexpr T signaling_NaN() { return T(__builtin_nansf("")); }
};

}  // namespace metalloid

namespace metal {

#define METALLOID_INTEGER_LIMITS(type) \
  template <> \
  struct _numeric_limits_impl<type> : metalloid::integer_limits<type> {};
METALLOID_FOR_EACH_INTEGER(METALLOID_INTEGER_LIMITS)
METALLOID_INTEGER_LIMITS(bool)
METALLOID_INTEGER_LIMITS(long long)
METALLOID_INTEGER_LIMITS(unsigned long long)
#undef METALLOID_INTEGER_LIMITS

template <>
struct _numeric_limits_impl<half> : metalloid::float_limits<half, 11, 16> {};
template <>
struct _numeric_limits_impl<bfloat> : metalloid::float_limits<bfloat, 8, 128> {};
template <>
struct _numeric_limits_impl<float> : metalloid::float_limits<float, 24, 128> {};
template <>
struct _numeric_limits_impl<double> : metalloid::float_limits<double, 53, 1024> {};

}  // namespace metal
