// The functions of the standard library for 64-bit floats, which Metal lacks: for devices that have
// them.
namespace metal {

#define DOUBLE_FUNCTION(name) \
  METAL_FUNC double name(double x) { return __builtin_##name(x); }
DOUBLE_FUNCTION(fabs)
DOUBLE_FUNCTION(floor)
DOUBLE_FUNCTION(ceil)
DOUBLE_FUNCTION(trunc)
DOUBLE_FUNCTION(rint)
DOUBLE_FUNCTION(sqrt)
DOUBLE_FUNCTION(exp)
DOUBLE_FUNCTION(exp2)
DOUBLE_FUNCTION(log)
DOUBLE_FUNCTION(log2)
DOUBLE_FUNCTION(log10)
DOUBLE_FUNCTION(sin)
DOUBLE_FUNCTION(cos)
DOUBLE_FUNCTION(tan)
DOUBLE_FUNCTION(asin)
DOUBLE_FUNCTION(acos)
DOUBLE_FUNCTION(atan)
DOUBLE_FUNCTION(sinh)
DOUBLE_FUNCTION(cosh)
DOUBLE_FUNCTION(tanh)
DOUBLE_FUNCTION(asinh)
DOUBLE_FUNCTION(acosh)
DOUBLE_FUNCTION(atanh)
#undef DOUBLE_FUNCTION

METAL_FUNC double fmod(double a, double b) { return __builtin_fmod(a, b); }
METAL_FUNC double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
METAL_FUNC double ldexp(double x, int exponent) { return __builtin_ldexp(x, exponent); }
METAL_FUNC int ilogb(double x) { return __builtin_ilogb(x); }
METAL_FUNC double pow(double a, double b) { return __builtin_pow(a, b); }
METAL_FUNC double atan2(double y, double x) { return __builtin_atan2(y, x); }
METAL_FUNC double copysign(double x, double y) { return __builtin_copysign(x, y); }
METAL_FUNC double nextafter(double x, double y) { return __builtin_nextafter(x, y); }
METAL_FUNC bool signbit(double x) { return (as_type<ulong>(x) >> 63) != 0; }

}  // namespace metal

namespace numpy {

METAL_FUNC double expm1(double x) { return __builtin_expm1(x); }
METAL_FUNC double log1p(double x) { return __builtin_log1p(x); }
METAL_FUNC double hypot(double x, double y) { return __builtin_hypot(x, y); }

}  // namespace numpy
