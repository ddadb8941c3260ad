// The chapter "Integer Functions" of the MSL specification. abs, min, max, clamp, min3, max3 and
// median3 are in metal_min_max.h.
#pragma once

#include "metal_min_max.h"

namespace metalloid {

template <class T>
inline constexpr int width = 8 * int(sizeof(T));

template <class T>
using unsigned_of = metal::make_unsigned_t<T>;

template <class T>
METALLOID_INLINE constexpr T clz(T x) {
  return T(__builtin_clzg(unsigned_of<T>(x), width<T>));
}
template <class T>
METALLOID_INLINE constexpr T ctz(T x) {
  return T(__builtin_ctzg(unsigned_of<T>(x), width<T>));
}
template <class T>
METALLOID_INLINE constexpr T popcount(T x) {
  return T(__builtin_popcountg(unsigned_of<T>(x)));
}

template <class T>
METALLOID_INLINE constexpr T reverse_bits(T x) {
  if constexpr (sizeof(T) == 1) {
    return T(__builtin_bitreverse8(x));
  } else if constexpr (sizeof(T) == 2) {
    return T(__builtin_bitreverse16(x));
  } else if constexpr (sizeof(T) == 4) {
    return T(__builtin_bitreverse32(x));
  } else {
    return T(__builtin_bitreverse64(x));
  }
}

template <class T>
METALLOID_INLINE constexpr T rotate(T x, T count) {
  using U = unsigned_of<T>;
  U left = U(count) & (width<T> - 1);
  U right = U(-left) & (width<T> - 1);
  return T(U(U(x) << left) | U(U(x) >> right));
}

template <class T>
METALLOID_INLINE constexpr T addsat(T a, T b) {
  return __builtin_elementwise_add_sat(a, b);
}
template <class T>
METALLOID_INLINE constexpr T subsat(T a, T b) {
  return __builtin_elementwise_sub_sat(a, b);
}

template <class T>
METALLOID_INLINE constexpr unsigned_of<T> absdiff(T a, T b) {
  using U = unsigned_of<T>;
  return a < b ? U(U(b) - U(a)) : U(U(a) - U(b));
}

// (a + b) >> 1 without the carry: what a and b share, and half of what they do not.
template <class T>
METALLOID_INLINE constexpr T hadd(T a, T b) {
  return T((a & b) + ((a ^ b) >> 1));
}
template <class T>
METALLOID_INLINE constexpr T rhadd(T a, T b) {
  return T((a | b) - ((a ^ b) >> 1));
}

// From 32-bit halves: there is no 128-bit integer on every target.
METALLOID_INLINE constexpr ulong mulhi_unsigned(ulong a, ulong b) {
  ulong a_low = uint(a), a_high = a >> 32;
  ulong b_low = uint(b), b_high = b >> 32;
  ulong low_low = a_low * b_low;
  ulong middle = a_high * b_low + (low_low >> 32);
  ulong other_middle = a_low * b_high + uint(middle);
  return a_high * b_high + (middle >> 32) + (other_middle >> 32);
}

template <class T>
METALLOID_INLINE constexpr T mulhi(T a, T b) {
  if constexpr (sizeof(T) < 8) {
    using wide = metal::conditional_t<is_unsigned_integer<T>(), ulong, long>;
    return T(wide(a) * wide(b) >> width<T>);
  } else {
    ulong high = mulhi_unsigned(ulong(a), ulong(b));
    if constexpr (!is_unsigned_integer<T>()) {
      high -= (a < 0 ? ulong(b) : 0) + (b < 0 ? ulong(a) : 0);
    }
    return T(high);
  }
}

template <class T>
METALLOID_INLINE constexpr T madhi(T a, T b, T c) {
  using U = unsigned_of<T>;
  return T(U(U(mulhi(a, b)) + U(c)));
}

template <class T>
METALLOID_INLINE constexpr T madsat(T a, T b, T c) {
  constexpr T lowest = metal::numeric_limits<T>::min();
  constexpr T highest = metal::numeric_limits<T>::max();
  if constexpr (sizeof(T) < 8) {
    using wide = metal::conditional_t<is_unsigned_integer<T>(), ulong, long>;
    return T(clamp<wide>(wide(a) * wide(b) + wide(c), lowest, highest));
  } else {
    // The exact result is high:low; it fits if high repeats the sign of low.
    ulong low = ulong(a) * ulong(b) + ulong(c);
    ulong carry = low < ulong(c);
    if constexpr (is_unsigned_integer<T>()) {
      return mulhi(a, b) + carry == 0 ? low : highest;
    } else {
      long high = long(ulong(mulhi(a, b)) + carry - (c < 0 ? 1 : 0));
      T saturated = high < 0 ? lowest : highest;
      return high == long(low) >> 63 ? T(low) : saturated;
    }
  }
}

template <class T>
METALLOID_INLINE constexpr T extract_bits(T x, uint offset, uint bits) {
  uint above = width<T> - offset - bits;
  uint low_bits = width<T> - bits;
  // Up against the top and down again, so that the sign of a signed type follows.
  return bits == 0 ? T(0) : T(T(unsigned_of<T>(x) << above) >> low_bits);
}

template <class T>
METALLOID_INLINE constexpr T insert_bits(T base, T insert, uint offset, uint bits) {
  using U = unsigned_of<T>;
  U ones = bits == 0 ? U(0) : U(U(-1) >> (width<T> - bits));
  U mask = U(ones << offset);
  return T((U(base) & ~mask) | (U(U(insert) << offset) & mask));
}

// The low 24 bits, with their sign if the type has one.
template <class T>
METALLOID_INLINE constexpr T low_24_bits(T x) {
  return T(uint(x) << 8) >> 8;
}
template <class T>
METALLOID_INLINE constexpr T mul24(T a, T b) {
  return T(uint(low_24_bits(a)) * uint(low_24_bits(b)));
}
template <class T>
METALLOID_INLINE constexpr T mad24(T a, T b, T c) {
  return T(uint(mul24(a, b)) + uint(c));
}

}  // namespace metalloid

namespace metal {

#define METALLOID_INTEGER_FUNCTION1(name) \
  template <class T, metalloid::if_integer<T> = 0> \
  METALLOID_INLINE constexpr T name(T x) { \
    return metalloid::name(x); \
  } \
  METALLOID_VECTOR_FORMS1(T, name, metal::name)

#define METALLOID_INTEGER_FUNCTION2(R, name) \
  template <class A, class B, metalloid::if_integer<A> = 0, metalloid::if_integer<B> = 0, \
            class T = common_type_t<A, B>> \
  METALLOID_INLINE constexpr R name(A a, B b) { \
    return metalloid::name<T>(a, b); \
  } \
  METALLOID_VECTOR_FORMS2(R, name, metal::name)

#define METALLOID_INTEGER_FUNCTION3(name) \
  template <class A, class B, class C, metalloid::if_integer<A> = 0, \
            metalloid::if_integer<B> = 0, metalloid::if_integer<C> = 0, \
            class T = common_type_t<A, B, C>> \
  METALLOID_INLINE constexpr T name(A a, B b, C c) { \
    return metalloid::name<T>(a, b, c); \
  } \
  METALLOID_VECTOR_FORMS3(T, name, metal::name)

METALLOID_INTEGER_FUNCTION1(clz)
METALLOID_INTEGER_FUNCTION1(ctz)
METALLOID_INTEGER_FUNCTION1(popcount)
METALLOID_INTEGER_FUNCTION1(reverse_bits)

METALLOID_INTEGER_FUNCTION2(make_unsigned_t<T>, absdiff)
METALLOID_INTEGER_FUNCTION2(T, addsat)
METALLOID_INTEGER_FUNCTION2(T, subsat)
METALLOID_INTEGER_FUNCTION2(T, hadd)
METALLOID_INTEGER_FUNCTION2(T, rhadd)
METALLOID_INTEGER_FUNCTION2(T, mulhi)
METALLOID_INTEGER_FUNCTION2(T, mul24)

METALLOID_INTEGER_FUNCTION3(mad24)
METALLOID_INTEGER_FUNCTION3(madhi)
METALLOID_INTEGER_FUNCTION3(madsat)

#undef METALLOID_INTEGER_FUNCTION1
#undef METALLOID_INTEGER_FUNCTION2
#undef METALLOID_INTEGER_FUNCTION3

// The result has the type of the value: the count is only converted to it.
template <class A, class B, metalloid::if_integer<A> = 0, metalloid::if_integer<B> = 0>
METALLOID_INLINE constexpr A rotate(A x, B count) {
  return metalloid::rotate<A>(x, A(count));
}
METALLOID_VECTOR_FORMS2(T, rotate, metal::rotate)

template <class T, metalloid::if_integer<T> = 0>
METALLOID_INLINE constexpr T extract_bits(T x, uint offset, uint bits) {
  return metalloid::extract_bits(x, offset, bits);
}
template <class T, int N>
METALLOID_INLINE vec<T, N> extract_bits(vec<T, N> x, uint offset, uint bits) {
  METALLOID_COMPONENTWISE1(T, metalloid::extract_bits, x, offset, bits)
}

template <class T, metalloid::if_integer<T> = 0>
METALLOID_INLINE constexpr T insert_bits(T base, metalloid::no_deduction<T> insert, uint offset,
                                         uint bits) {
  return metalloid::insert_bits<T>(base, insert, offset, bits);
}
template <class T, int N>
METALLOID_INLINE vec<T, N> insert_bits(vec<T, N> base, metalloid::no_deduction<vec<T, N>> insert,
                                       uint offset, uint bits) {
  METALLOID_COMPONENTWISE2(T, metalloid::insert_bits, base, insert, offset, bits)
}

}  // namespace metal
