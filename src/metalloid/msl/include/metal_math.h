// The chapter "Math Functions" of the MSL specification.
//
// float_math computes in float; here each of its functions gets its forms for half, bfloat,
// integers and vectors. Half and bfloat compute in float and round once. The functions that come in
// a fast and a precise version are defined in namespaces metal::fast and metal::precise; `metal::`
// itself takes one of the two by math mode. All others are defined in `metal::` and imported into both
// namespaces, by name: a using-directive would not be searched once a user declares a function of
// his own there.
#pragma once

#include "float_math/float_math.h"
#include "metal_math_exact.h"
#include "metal_math_forms.h"

// ---- functions with a fast and a precise version ------------------------------------------------
#define METALLOID_FOR_EACH_MODAL_FUNCTION1(X) \
  X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(cos) X(cosh) X(cospi) X(exp) X(exp10) \
  X(exp2) X(log) X(log10) X(log2) X(rsqrt) X(sin) X(sinh) X(sinpi) X(sqrt) X(tan) X(tanh) X(tanpi)
#define METALLOID_FOR_EACH_MODAL_FUNCTION2(X) X(atan2) X(divide) X(fmod) X(pow) X(powr)

namespace metal {

// sincos returns the sine and stores the cosine.
#define METALLOID_SINCOS(mode) \
  METALLOID_INLINE float sincos(float x, thread float& cosine) { \
    return metalloid::mode::sincos(x, cosine); \
  } \
  template <class T, metalloid::if_operands<T> = 0> \
  METALLOID_INLINE T sincos(T x, thread T& cosine) { \
    float wide; \
    T sine = T(metalloid::mode::sincos(float(x), wide)); \
    cosine = T(wide); \
    return sine; \
  } \
  template <class T, int N> \
  METALLOID_INLINE vec<T, N> sincos(vec<T, N> x, thread vec<T, N>& cosine) { \
    cosine = metal::mode::cos(x); \
    return metal::mode::sin(x); \
  }

namespace fast {
#define METALLOID_FAST1(name) \
  METALLOID_MATH_FUNCTION1(name, metal::fast::name, metalloid::fast::name)
#define METALLOID_FAST2(name) \
  METALLOID_MATH_FUNCTION2(name, metal::fast::name, metalloid::fast::name)
METALLOID_FOR_EACH_MODAL_FUNCTION1(METALLOID_FAST1)
METALLOID_FOR_EACH_MODAL_FUNCTION2(METALLOID_FAST2)
METALLOID_SINCOS(fast)
#undef METALLOID_FAST1
#undef METALLOID_FAST2
}  // namespace fast

namespace precise {
#define METALLOID_PRECISE1(name) \
  METALLOID_MATH_FUNCTION1(name, metal::precise::name, metalloid::precise::name)
#define METALLOID_PRECISE2(name) \
  METALLOID_MATH_FUNCTION2(name, metal::precise::name, metalloid::precise::name)
METALLOID_FOR_EACH_MODAL_FUNCTION1(METALLOID_PRECISE1)
METALLOID_FOR_EACH_MODAL_FUNCTION2(METALLOID_PRECISE2)
METALLOID_SINCOS(precise)
#undef METALLOID_PRECISE1
#undef METALLOID_PRECISE2
}  // namespace precise

#undef METALLOID_SINCOS

#ifdef __METALLOID_MATH_FAST__
#define METALLOID_USE(name) using fast::name;
#else
#define METALLOID_USE(name) using precise::name;
#endif
METALLOID_FOR_EACH_MODAL_FUNCTION1(METALLOID_USE)
METALLOID_FOR_EACH_MODAL_FUNCTION2(METALLOID_USE)
METALLOID_USE(sincos)
#undef METALLOID_USE

}  // namespace metal
