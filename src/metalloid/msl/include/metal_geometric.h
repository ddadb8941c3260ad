// The chapter "Geometric Functions" of the MSL specification. half and bfloat compute in float.
#pragma once

#include "metal_math.h"

namespace metalloid {

METALLOID_INLINE float dot(metal::vec<float, 2> a, metal::vec<float, 2> b) {
  return a.x * b.x + a.y * b.y;
}
METALLOID_INLINE float dot(metal::vec<float, 3> a, metal::vec<float, 3> b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
METALLOID_INLINE float dot(metal::vec<float, 4> a, metal::vec<float, 4> b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// The vector with float components.
template <class V>
using in_float = metal::vec<float, V::size>;

}  // namespace metalloid

namespace metal {

#define METALLOID_GEOMETRIC_FORM1(name) \
  template <class T, int N> \
  METALLOID_INLINE auto name(packed_vec<T, N> a) { \
    return metal::name(vec<T, N>(a)); \
  }

template <class T, int N>
METALLOID_INLINE T dot(vec<T, N> a, vec<T, N> b) {
  return T(metalloid::dot(vec<float, N>(a), vec<float, N>(b)));
}
METALLOID_MIXED_FORM2(dot, metal::dot)

template <class T, int N>
METALLOID_INLINE T length_squared(vec<T, N> a) {
  return dot(a, a);
}
METALLOID_GEOMETRIC_FORM1(length_squared)

template <class T, int N>
METALLOID_INLINE T length(vec<T, N> a) {
  vec<float, N> wide(a);
  return T(metal::sqrt(metalloid::dot(wide, wide)));
}
METALLOID_GEOMETRIC_FORM1(length)

template <class T, metalloid::if_operands<T> = 0>
METALLOID_INLINE metalloid::float_result<T> length(T a) {
  return metal::fabs(a);
}

template <class T, int N>
METALLOID_INLINE T distance_squared(vec<T, N> a, vec<T, N> b) {
  vec<float, N> difference = vec<float, N>(a) - vec<float, N>(b);
  return T(metalloid::dot(difference, difference));
}
METALLOID_MIXED_FORM2(distance_squared, metal::distance_squared)

template <class T, int N>
METALLOID_INLINE T distance(vec<T, N> a, vec<T, N> b) {
  return T(length(vec<float, N>(a) - vec<float, N>(b)));
}
METALLOID_MIXED_FORM2(distance, metal::distance)

template <class A, class B, metalloid::if_operands<A, B> = 0>
METALLOID_INLINE metalloid::float_result<A, B> distance(A a, B b) {
  return metal::fabs(a - b);
}

template <class T, int N>
METALLOID_INLINE vec<T, N> normalize(vec<T, N> a) {
  vec<float, N> wide(a);
  return vec<T, N>(wide * metal::rsqrt(metalloid::dot(wide, wide)));
}
METALLOID_GEOMETRIC_FORM1(normalize)

template <class T>
METALLOID_INLINE vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  vec<float, 3> u(a), v(b);
  return vec<T, 3>(u.yzx * v.zxy - u.zxy * v.yzx);
}
METALLOID_MIXED_FORM2(cross, metal::cross)

template <class T, int N>
METALLOID_INLINE vec<T, N> reflect(vec<T, N> incident, vec<T, N> normal) {
  vec<float, N> i(incident), n(normal);
  return vec<T, N>(i - 2.0f * metalloid::dot(n, i) * n);
}
METALLOID_MIXED_FORM2(reflect, metal::reflect)

// `ratio` is the quotient of the indices of refraction; zero is the answer to total reflection.
template <class T, int N>
METALLOID_INLINE vec<T, N> refract(vec<T, N> incident, metalloid::no_deduction<vec<T, N>> normal,
                                   metalloid::no_deduction<T> ratio) {
  vec<float, N> i(incident), n(normal);
  float eta = float(ratio);
  float cosine = metalloid::dot(n, i);
  float k = 1.0f - eta * eta * (1.0f - cosine * cosine);
  vec<float, N> refracted = eta * i - (eta * cosine + metal::sqrt(metal::max(k, 0.0f))) * n;
  return vec<T, N>(k < 0.0f ? vec<float, N>(0.0f) : refracted);
}

template <class T, int N>
METALLOID_INLINE vec<T, N> faceforward(vec<T, N> normal,
                                       metalloid::no_deduction<vec<T, N>> incident,
                                       metalloid::no_deduction<vec<T, N>> reference) {
  return dot(reference, incident) < T(0) ? normal : -normal;
}

#undef METALLOID_GEOMETRIC_FORM1

#define METALLOID_USE_GEOMETRIC_FUNCTIONS \
  using metal::cross; \
  using metal::distance; \
  using metal::distance_squared; \
  using metal::dot; \
  using metal::faceforward; \
  using metal::length; \
  using metal::length_squared; \
  using metal::normalize; \
  using metal::reflect; \
  using metal::refract;
namespace fast {
METALLOID_USE_GEOMETRIC_FUNCTIONS
}  // namespace fast
namespace precise {
METALLOID_USE_GEOMETRIC_FUNCTIONS
}  // namespace precise
#undef METALLOID_USE_GEOMETRIC_FUNCTIONS

}  // namespace metal
