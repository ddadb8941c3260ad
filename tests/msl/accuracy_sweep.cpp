// Native half of test_math_accuracy.py: evaluates float_math functions over many arguments and
// reports the largest error against a double-precision oracle. Free of headers and of libm, so that
// its object code also shows whether any float_math function calls out; oracles come as pointers.
#include "float_math.h"

namespace {

using metalloid::float_math::bits_of;
using metalloid::float_math::from_bits;

using Oracle1 = double (*)(double);
using Oracle2 = double (*)(double, double);
using Evaluate1 = void (*)(const float*, float*, long);
using Evaluate2 = void (*)(const float*, const float*, float*, long);
using Unit = double (*)(double, double);

constexpr double pi = 3.14159265358979323846;
constexpr double impossible = __builtin_inf();

unsigned long long bits_of_double(double x) { return __builtin_bit_cast(unsigned long long, x); }
double double_from_bits(unsigned long long bits) { return __builtin_bit_cast(double, bits); }
bool is_nan_double(double x) { return (bits_of_double(x) << 1) > (0x7ffull << 53); }
bool is_negative_double(double x) { return bits_of_double(x) >> 63; }
double magnitude(double x) { return double_from_bits(bits_of_double(x) & ~(1ull << 63)); }

// 2^128 stands for infinity, so that overflow is judged like any other rounding.
double bounded(double x) {
  constexpr double limit = 0x1p128;
  return x > limit ? limit : x < -limit ? -limit : x;
}

// The error of `result` in units; infinite for a wrong NaN or a wrong sign of zero.
double error_in_units(float result, double exact, double unit) {
  const bool result_nan = metalloid::float_math::is_nan(result);
  if (result_nan || is_nan_double(exact)) {
    return result_nan && is_nan_double(exact) ? 0.0 : impossible;
  }
  if (result == 0.0f && metalloid::float_math::is_negative(result) != is_negative_double(exact)) {
    return impossible;
  }
  if (static_cast<float>(exact) == result) {
    // Correctly rounded: at most half a unit, and exactly right where the exact value overflows.
    const double difference = magnitude(static_cast<double>(result) - exact);
    return magnitude(exact) > 0x1.fffffefp127 ? 0.0 : difference / unit;
  }
  return magnitude(bounded(result) - bounded(exact)) / unit;
}

template <float (*function)(float)>
void evaluate(const float* x, float* result, long count) {
  for (long i = 0; i < count; ++i) result[i] = function(x[i]);
}
template <float (*function)(float, float)>
void evaluate(const float* x, const float* y, float* result, long count) {
  for (long i = 0; i < count; ++i) result[i] = function(x[i], y[i]);
}

// Functions with a second result or an integer, as functions of floats.
#define SECOND_FORMS(mode)                                                                      \
  namespace mode {                                                                              \
  METALLOID_INLINE float sincos_sine(float x) {                                                 \
    float cosine;                                                                               \
    return metalloid::mode::sincos(x, cosine);                                                  \
  }                                                                                             \
  METALLOID_INLINE float sincos_cosine(float x) {                                               \
    float cosine;                                                                               \
    metalloid::mode::sincos(x, cosine);                                                         \
    return cosine;                                                                              \
  }                                                                                             \
  METALLOID_INLINE float modf_fraction(float x) {                                               \
    float whole;                                                                                \
    return metalloid::mode::modf(x, whole);                                                     \
  }                                                                                             \
  METALLOID_INLINE float modf_whole(float x) {                                                  \
    float whole;                                                                                \
    metalloid::mode::modf(x, whole);                                                            \
    return whole;                                                                               \
  }                                                                                             \
  METALLOID_INLINE float frexp_mantissa(float x) {                                              \
    int exponent;                                                                               \
    return metalloid::mode::frexp(x, exponent);                                                 \
  }                                                                                             \
  METALLOID_INLINE float frexp_exponent(float x) {                                              \
    int exponent;                                                                               \
    metalloid::mode::frexp(x, exponent);                                                        \
    return static_cast<float>(exponent);                                                        \
  }                                                                                             \
  METALLOID_INLINE float ilogb(float x) {                                                       \
    return static_cast<float>(metalloid::mode::ilogb(x));                                       \
  }                                                                                             \
  METALLOID_INLINE float ldexp(float x, float y) {                                              \
    return metalloid::mode::ldexp(x, static_cast<int>(bits_of(y)) >> 20);                       \
  }                                                                                             \
  }
SECOND_FORMS(precise)
SECOND_FORMS(fast)

}  // namespace

#define UNARY(mode, name, function)                                             \
  extern "C" void mode##_##name(const float* x, float* result, long count) {    \
    evaluate<function>(x, result, count);                                       \
  }
#define BINARY(mode, name, function)                                                             \
  extern "C" void mode##_##name(const float* x, const float* y, float* result, long count) {     \
    evaluate<function>(x, y, result, count);                                                     \
  }
#define FUNCTION1(name)                           \
  UNARY(precise, name, metalloid::precise::name)  \
  UNARY(fast, name, metalloid::fast::name)
#define FUNCTION2(name)                            \
  BINARY(precise, name, metalloid::precise::name)  \
  BINARY(fast, name, metalloid::fast::name)
#define FORM1(name)                   \
  UNARY(precise, name, precise::name) \
  UNARY(fast, name, fast::name)

FUNCTION1(exp) FUNCTION1(exp2) FUNCTION1(exp10)
FUNCTION1(log) FUNCTION1(log2) FUNCTION1(log10)
FUNCTION1(sin) FUNCTION1(cos) FUNCTION1(tan) FORM1(sincos_sine) FORM1(sincos_cosine)
FUNCTION1(sinpi) FUNCTION1(cospi) FUNCTION1(tanpi)
FUNCTION1(asin) FUNCTION1(acos) FUNCTION1(atan)
FUNCTION1(sinh) FUNCTION1(cosh) FUNCTION1(tanh)
FUNCTION1(asinh) FUNCTION1(acosh) FUNCTION1(atanh)
FUNCTION1(sqrt) FUNCTION1(rsqrt)
FUNCTION1(ceil) FUNCTION1(floor) FUNCTION1(trunc) FUNCTION1(rint) FUNCTION1(round)
FUNCTION1(fract) FUNCTION1(fabs) FORM1(modf_fraction) FORM1(modf_whole)
FORM1(frexp_mantissa) FORM1(frexp_exponent) FORM1(ilogb)
FUNCTION2(pow) FUNCTION2(powr) FUNCTION2(atan2) FUNCTION2(divide) FUNCTION2(fmod)
FUNCTION2(fdim) FUNCTION2(fmin) FUNCTION2(fmax) FUNCTION2(copysign) FUNCTION2(nextafter)
BINARY(precise, ldexp, precise::ldexp) BINARY(fast, ldexp, fast::ldexp)

extern "C" {

// One unit in the last place of the float nearest to `exact`.
double unit_ulp(double, double exact) {
  const unsigned long long exponent = (bits_of_double(exact) >> 52) & 0x7ff;
  const unsigned long long smallest = 1023 - 126;
  const unsigned long long largest = 1023 + 127;
  const unsigned long long clamped =
      exponent < smallest ? smallest : exponent > largest ? largest : exponent;
  return double_from_bits((clamped - 23) << 52);
}
double unit_one(double, double) { return 1.0; }
// The fast-math table allows exp 3 + floor(|2x|) ulp, log 3 ulp or 2^-21 for x in [1/2, 2].
double unit_fast_exp(double x, double exact) {
  return unit_ulp(x, exact) * (3.0 + static_cast<double>(static_cast<long>(magnitude(2.0 * x))));
}
double unit_fast_log(double x, double exact) {
  return x >= 0.5 && x <= 2.0 ? 0x1p-21 : 3.0 * unit_ulp(x, exact);
}

double oracle_fract(double x) {
  const double below_one = 0x1.fffffep-1;
  const double difference = x - __builtin_elementwise_floor(x);
  return magnitude(x) == impossible ? 0.0 : difference > below_one ? below_one : difference;
}
double oracle_modf_fraction(double x) {
  const double fraction = x - __builtin_elementwise_trunc(x);
  return __builtin_elementwise_copysign(magnitude(x) == impossible ? 0.0 : fraction, x);
}
double oracle_rsqrt(double x) { return 1.0 / __builtin_elementwise_sqrt(x); }
double oracle_divide(double x, double y) { return x / y; }

// The largest error over the floats with bits first, first + stride, ... below last.
double worst_unary(Evaluate1 function, Oracle1 oracle, Unit unit, unsigned long long first,
                   unsigned long long last, unsigned long long stride, float* where) {
  constexpr long block = 1024;
  float x[block], result[block];
  double worst = 0.0;
  for (unsigned long long bits = first; bits < last;) {
    long count = 0;
    for (; count < block && bits < last; ++count, bits += stride) {
      x[count] = from_bits(static_cast<unsigned>(bits));
    }
    function(x, result, count);
    for (long i = 0; i < count; ++i) {
      const double exact = oracle(x[i]);
      const double error = error_in_units(result[i], exact, unit(x[i], exact));
      if (error > worst) {
        worst = error;
        *where = x[i];
      }
    }
  }
  return worst;
}

double worst_binary(Evaluate2 function, Oracle2 oracle, Unit unit, const float* x, const float* y,
                    float* result, long count, long* where) {
  double worst = 0.0;
  function(x, y, result, count);
  for (long i = 0; i < count; ++i) {
    const double exact = oracle(x[i], y[i]);
    const double error = error_in_units(result[i], exact, unit(x[i], exact));
    if (error > worst) {
      worst = error;
      *where = i;
    }
  }
  return worst;
}

}  // extern "C"
