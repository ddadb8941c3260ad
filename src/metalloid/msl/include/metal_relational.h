// The chapter "Relational Functions" of the MSL specification.
#pragma once

#include "metal_componentwise.h"
#include "metal_convert.h"

namespace metalloid {

template <class T>
METALLOID_INLINE bool isnan(T x) {
  return __builtin_isnan(float(x));
}
template <class T>
METALLOID_INLINE bool isinf(T x) {
  return __builtin_isinf(float(x));
}
template <class T>
METALLOID_INLINE bool isfinite(T x) {
  return __builtin_isfinite(float(x));
}
template <class T>
METALLOID_INLINE bool signbit(T x) {
  return metal::as_type<metal::make_signed_t<T>>(x) < 0;
}

// In the range of T itself: a subnormal half is a normal float.
template <class T>
METALLOID_INLINE bool isnormal(T x) {
  float magnitude = __builtin_fabsf(float(x));
  return magnitude >= float(metal::numeric_limits<T>::min()) && magnitude < __builtin_huge_valf();
}

}  // namespace metalloid

namespace metal {

// Every integer converts to float first, and so is finite and not NaN.
#define METALLOID_CLASSIFICATION(name) \
  METALLOID_INLINE bool name(float x) { return metalloid::name(x); } \
  METALLOID_INLINE bool name(half x) { return metalloid::name(x); } \
  template <class T, metalloid::if_bfloat_or_integer<T> = 0> \
  METALLOID_INLINE bool name(T x) { \
    return metalloid::name(metalloid::float_result<T>(x)); \
  } \
  METALLOID_VECTOR_FORMS1(bool, name, metal::name)

METALLOID_CLASSIFICATION(isnan)
METALLOID_CLASSIFICATION(isinf)
METALLOID_CLASSIFICATION(isfinite)
METALLOID_CLASSIFICATION(isnormal)
METALLOID_CLASSIFICATION(signbit)
#undef METALLOID_CLASSIFICATION

template <class A, class B, metalloid::if_operands<A, B> = 0>
METALLOID_INLINE bool isunordered(A a, B b) {
  return __builtin_isunordered(float(a), float(b));
}
METALLOID_VECTOR_FORMS2(bool, isunordered, metal::isunordered)

template <class A, class B, metalloid::if_operands<A, B> = 0>
METALLOID_INLINE bool isordered(A a, B b) {
  return !__builtin_isunordered(float(a), float(b));
}
METALLOID_VECTOR_FORMS2(bool, isordered, metal::isordered)

// ---- all, any -----------------------------------------------------------------------------------
METALLOID_INLINE bool all(bool a) { return a; }
METALLOID_INLINE bool all(vec<bool, 2> a) { return a.x & a.y; }
METALLOID_INLINE bool all(vec<bool, 3> a) { return a.x & a.y & a.z; }
METALLOID_INLINE bool all(vec<bool, 4> a) { return a.x & a.y & a.z & a.w; }

METALLOID_INLINE bool any(bool a) { return a; }
METALLOID_INLINE bool any(vec<bool, 2> a) { return a.x | a.y; }
METALLOID_INLINE bool any(vec<bool, 3> a) { return a.x | a.y | a.z; }
METALLOID_INLINE bool any(vec<bool, 4> a) { return a.x | a.y | a.z | a.w; }

// ---- select: b where the condition holds, else a ------------------------------------------------
template <class A, class B, metalloid::if_scalars<A, B> = 0>
METALLOID_INLINE common_type_t<A, B> select(A a, B b, bool condition) {
  using T = common_type_t<A, B>;
  return condition ? T(b) : T(a);
}

template <class T, int N>
METALLOID_INLINE vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<bool, N> condition) {
  METALLOID_COMPONENTWISE3(T, metal::select, a, b, condition)
}
template <class T, int N>
METALLOID_INLINE vec<T, N> select(vec<T, N> a, vec<T, N> b, bool condition) {
  return select(a, b, vec<bool, N>(condition));
}

// Scalars and packed vectors for a or b; an integer vector selects where it is not zero.
template <class A, class B, class C, class V = metalloid::common_vector<A, B>>
METALLOID_INLINE V select(A a, B b, C condition) {
  if constexpr (metalloid::vector_size<C> == 0) {
    return select(V(a), V(b), bool(condition));
  } else {
    return select(V(a), V(b), vec<bool, metalloid::vector_size<C>>(condition));
  }
}

}  // namespace metal
