// The math functions that are exact, or one rounding away from it, and so the same in every math
// mode: rounding, the representation, min and max under their C names (MSL specification, "Math
// Functions").
#pragma once

#include "float_math/manipulation.h"
#include "float_math/rounding.h"
#include "metal_convert.h"
#include "metal_math_forms.h"
#include "metal_min_max.h"

namespace metalloid {

// x - floor(x), kept below 1 where rounding would carry it there.
template <class T>
METALLOID_INLINE T fract(T x) {
  constexpr float below_one = 1.0f - float(metal::numeric_limits<T>::epsilon()) / 2;
  float fraction = precise::fract(float(x));
  return T(fraction > below_one ? below_one : fraction);
}

// The value of T itself, half or bfloat, next to x towards y. Values of one sign are ordered as
// their bits.
template <class T>
METALLOID_INLINE T nextafter(T x, T y) {
  using bits = bits_type<T>;
  constexpr bits sign = bits(1) << (8 * sizeof(T) - 1);
  bits from = metal::as_type<bits>(x);
  bool away_from_zero = (float(x) < float(y)) != ((from & sign) != 0);
  bits stepped = bits(from + (away_from_zero ? 1 : -1));
  // By a comparison: LLVM 22 makes a copysign of masking the sign bit of y, and loses it for bfloat.
  bits from_zero = float(y) < 0.0f ? bits(sign | 1) : bits(1);
  T adjacent = metal::as_type<T>(float(x) == 0.0f ? from_zero : stepped);
  T moved = float(x) == float(y) ? y : adjacent;
  return __builtin_isunordered(float(x), float(y)) ? T(float(x) + float(y)) : moved;
}
METALLOID_INLINE float nextafter(float x, float y) { return precise::nextafter(x, y); }

}  // namespace metalloid

namespace metal {

#define METALLOID_EXACT1(name) METALLOID_MATH_FUNCTION1(name, metal::name, metalloid::precise::name)
#define METALLOID_EXACT2(name) METALLOID_MATH_FUNCTION2(name, metal::name, metalloid::precise::name)
METALLOID_EXACT1(ceil)
METALLOID_EXACT1(fabs)
METALLOID_EXACT1(floor)
METALLOID_EXACT1(rint)
METALLOID_EXACT1(round)
METALLOID_EXACT1(trunc)
METALLOID_EXACT2(copysign)
METALLOID_EXACT2(fdim)
METALLOID_EXACT2(fmax)
METALLOID_EXACT2(fmin)
METALLOID_MATH_FUNCTION3(fma, metal::fma, metalloid::precise::fma)
METALLOID_MATH_FUNCTION3(fmax3, metal::fmax3, metalloid::max3)
METALLOID_MATH_FUNCTION3(fmedian3, metal::fmedian3, metalloid::median3)
METALLOID_MATH_FUNCTION3(fmin3, metal::fmin3, metalloid::min3)
#undef METALLOID_EXACT1
#undef METALLOID_EXACT2

// ---- functions that depend on the type itself ---------------------------------------------------
METALLOID_INLINE float fract(float x) { return metalloid::fract(x); }
METALLOID_INLINE half fract(half x) { return metalloid::fract(x); }
template <class T, metalloid::if_bfloat_or_integer<T> = 0>
METALLOID_INLINE metalloid::float_result<T> fract(T x) {
  return metalloid::fract(metalloid::float_result<T>(x));
}
METALLOID_VECTOR_FORMS1(T, fract, metal::fract)

METALLOID_INLINE float nextafter(float x, float y) { return metalloid::nextafter(x, y); }
METALLOID_INLINE half nextafter(half x, half y) { return metalloid::nextafter(x, y); }
template <class A, class B, metalloid::if_operands<A, B> = 0>
METALLOID_INLINE metalloid::float_result<A, B> nextafter(A x, B y) {
  return metalloid::nextafter<metalloid::float_result<A, B>>(x, y);
}
METALLOID_VECTOR_FORMS2(T, nextafter, metal::nextafter)

// ---- functions with an integer operand or a second result ---------------------------------------
template <class T, metalloid::if_operands<T> = 0>
METALLOID_INLINE int ilogb(T x) {
  return metalloid::precise::ilogb(float(x));
}
METALLOID_VECTOR_FORMS1(int, ilogb, metal::ilogb)

METALLOID_INLINE float ldexp(float x, int exponent) {
  return metalloid::precise::ldexp(x, exponent);
}
METALLOID_INLINE half ldexp(half x, int exponent) {
  return half(metalloid::precise::ldexp(float(x), exponent));
}
template <class T, metalloid::if_bfloat_or_integer<T> = 0>
METALLOID_INLINE metalloid::float_result<T> ldexp(T x, int exponent) {
  return metalloid::float_result<T>(metalloid::precise::ldexp(float(x), exponent));
}
template <class T, int N>
METALLOID_INLINE vec<T, N> ldexp(vec<T, N> x, metalloid::no_deduction<vec<int, N>> exponent) {
  METALLOID_COMPONENTWISE2(T, metal::ldexp, x, exponent)
}

template <class T, metalloid::if_operands<T> = 0>
METALLOID_INLINE metalloid::float_result<T> frexp(T x, thread int& exponent) {
  return metalloid::float_result<T>(metalloid::precise::frexp(float(x), exponent));
}
template <class T, int N>
METALLOID_INLINE vec<T, N> frexp(vec<T, N> x, thread vec<int, N>& exponent) {
  METALLOID_COMPONENTWISE2(T, metal::frexp, x, exponent)
}

// Returns the fraction and stores the integral part.
template <class T, metalloid::if_operands<T> = 0>
METALLOID_INLINE T modf(T x, thread T& integral) {
  float integer;
  T fraction = T(metalloid::precise::modf(float(x), integer));
  integral = T(integer);
  return fraction;
}
template <class T, int N>
METALLOID_INLINE vec<T, N> modf(vec<T, N> x, thread vec<T, N>& integral) {
  METALLOID_COMPONENTWISE2(T, metal::modf, x, integral)
}

// ---- the same functions in both modes -----------------------------------------------------------
#define METALLOID_FOR_EACH_EXACT_FUNCTION(X) \
  X(abs) X(ceil) X(clamp) X(copysign) X(fabs) X(fdim) X(floor) X(fma) X(fmax) X(fmax3) \
  X(fmedian3) X(fmin) X(fmin3) X(fract) X(frexp) X(ilogb) X(ldexp) X(max) X(max3) X(median3) \
  X(min) X(min3) X(modf) X(nextafter) X(rint) X(round) X(trunc)

#define METALLOID_USE(name) using metal::name;
namespace fast {
METALLOID_FOR_EACH_EXACT_FUNCTION(METALLOID_USE)
}  // namespace fast
namespace precise {
METALLOID_FOR_EACH_EXACT_FUNCTION(METALLOID_USE)
}  // namespace precise
#undef METALLOID_USE
#undef METALLOID_FOR_EACH_EXACT_FUNCTION

}  // namespace metal
