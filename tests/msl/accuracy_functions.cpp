// Every float_math function as an exported loop over arrays, for accuracy_sweep.cpp to judge. Apart
// from it, because this file is compiled under several floating-point modes and for the "no calls"
// test, and the judge must not be.
#include "float_math.h"

#if defined(__SYCL_DEVICE_ONLY__)
#define EXPORT extern "C" [[clang::sycl_external]]
#else
#define EXPORT extern "C"
#endif

namespace {

template <float (*function)(float)>
void evaluate(const float* x, float* result, long count) {
  for (long i = 0; i < count; ++i) result[i] = function(x[i]);
}
template <float (*function)(float, float)>
void evaluate(const float* x, const float* y, float* result, long count) {
  for (long i = 0; i < count; ++i) result[i] = function(x[i], y[i]);
}

namespace precise {
using namespace metalloid::precise;
}
namespace fast {
using namespace metalloid::fast;
}

// Functions with a second result or with integers, as functions of floats.
#define FUNCTIONS_OF_FLOATS(mode)                                                          \
  namespace mode {                                                                         \
  METALLOID_INLINE float sincos_sine(float x) {                                            \
    float cosine;                                                                          \
    return sincos(x, cosine);                                                              \
  }                                                                                        \
  METALLOID_INLINE float sincos_cosine(float x) {                                          \
    float cosine;                                                                          \
    sincos(x, cosine);                                                                     \
    return cosine;                                                                         \
  }                                                                                        \
  METALLOID_INLINE float modf_fraction(float x) {                                          \
    float whole;                                                                           \
    return modf(x, whole);                                                                 \
  }                                                                                        \
  METALLOID_INLINE float modf_whole(float x) {                                             \
    float whole;                                                                           \
    modf(x, whole);                                                                        \
    return whole;                                                                          \
  }                                                                                        \
  METALLOID_INLINE float frexp_mantissa(float x) {                                         \
    int exponent;                                                                          \
    return frexp(x, exponent);                                                             \
  }                                                                                        \
  METALLOID_INLINE float frexp_exponent(float x) {                                         \
    int exponent;                                                                          \
    frexp(x, exponent);                                                                    \
    return static_cast<float>(exponent);                                                   \
  }                                                                                        \
  METALLOID_INLINE float ilogb_value(float x) { return static_cast<float>(ilogb(x)); }     \
  METALLOID_INLINE float ldexp_by_bits(float x, float y) {                                 \
    return ldexp(x, static_cast<int>(metalloid::float_math::bits_of(y)) >> 20);            \
  }                                                                                        \
  METALLOID_INLINE float fma_square(float x, float y) { return fma(x, x, y); }             \
  }
FUNCTIONS_OF_FLOATS(precise)
FUNCTIONS_OF_FLOATS(fast)

}  // namespace

#define UNARY_IN(mode, name)                                                 \
  EXPORT void mode##_##name(const float* x, float* result, long count) {     \
    evaluate<mode::name>(x, result, count);                                  \
  }
#define BINARY_IN(mode, name)                                                                \
  EXPORT void mode##_##name(const float* x, const float* y, float* result, long count) {     \
    evaluate<mode::name>(x, y, result, count);                                               \
  }
#define UNARY(name) UNARY_IN(precise, name) UNARY_IN(fast, name)
#define BINARY(name) BINARY_IN(precise, name) BINARY_IN(fast, name)

UNARY(exp) UNARY(exp2) UNARY(exp10) UNARY(log) UNARY(log2) UNARY(log10)
UNARY(sin) UNARY(cos) UNARY(tan) UNARY(sincos_sine) UNARY(sincos_cosine)
UNARY(sinpi) UNARY(cospi) UNARY(tanpi)
UNARY(asin) UNARY(acos) UNARY(atan)
UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(asinh) UNARY(acosh) UNARY(atanh)
UNARY(sqrt) UNARY(rsqrt)
UNARY(ceil) UNARY(floor) UNARY(trunc) UNARY(rint) UNARY(round) UNARY(fract) UNARY(fabs)
UNARY(modf_fraction) UNARY(modf_whole) UNARY(frexp_mantissa) UNARY(frexp_exponent)
UNARY(ilogb_value)
BINARY(pow) BINARY(powr) BINARY(atan2) BINARY(divide) BINARY(fmod) BINARY(fdim)
BINARY(fmin) BINARY(fmax) BINARY(copysign) BINARY(nextafter)
BINARY(ldexp_by_bits) BINARY(fma_square)
