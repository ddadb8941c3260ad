// The forms in which a math function exists, from one implementation in float.
#pragma once

#include "metal_componentwise.h"

// The forms of a function of one, two or three floats. `function` is its qualified name, and
// `implementation` computes it for float. For bfloat and integers the scalar form is a template:
// MLX and others add a plain `bfloat exp(bfloat)` to the same namespace.
#define METALLOID_MATH_FUNCTION1(name, function, implementation) \
  METALLOID_INLINE float name(float x) { return implementation(x); } \
  METALLOID_INLINE half name(half x) { return half(implementation(float(x))); } \
  template <class T, metalloid::if_bfloat_or_integer<T> = 0> \
  METALLOID_INLINE metalloid::float_result<T> name(T x) { \
    return metalloid::float_result<T>(implementation(float(x))); \
  } \
  METALLOID_VECTOR_FORMS1(T, name, function)

#define METALLOID_MATH_FUNCTION2(name, function, implementation) \
  METALLOID_INLINE float name(float x, float y) { return implementation(x, y); } \
  METALLOID_INLINE half name(half x, half y) { return half(implementation(float(x), float(y))); } \
  template <class A, class B, metalloid::if_operands<A, B> = 0> \
  METALLOID_INLINE metalloid::float_result<A, B> name(A x, B y) { \
    return metalloid::float_result<A, B>(implementation(float(x), float(y))); \
  } \
  METALLOID_VECTOR_FORMS2(T, name, function)

#define METALLOID_MATH_FUNCTION3(name, function, implementation) \
  METALLOID_INLINE float name(float x, float y, float z) { return implementation(x, y, z); } \
  METALLOID_INLINE half name(half x, half y, half z) { \
    return half(implementation(float(x), float(y), float(z))); \
  } \
  template <class A, class B, class C, metalloid::if_operands<A, B, C> = 0> \
  METALLOID_INLINE metalloid::float_result<A, B, C> name(A x, B y, C z) { \
    return metalloid::float_result<A, B, C>(implementation(float(x), float(y), float(z))); \
  } \
  METALLOID_VECTOR_FORMS3(T, name, function)
