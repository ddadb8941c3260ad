// The judge of test_math_accuracy.py: runs a function from accuracy_functions.cpp over many floats
// and returns its largest error against a double-precision oracle. No headers here, so that building it
// needs no C library; oracles come as pointers from libm or from below.

extern "C" double sin(double);
extern "C" double cos(double);
extern "C" double pow(double, double);

namespace {

using Function1 = void (*)(const float*, float*, long);
using Function2 = void (*)(const float*, const float*, float*, long);
using Oracle1 = double (*)(double);
using Oracle2 = double (*)(double, double);
using Unit = double (*)(double, double);

constexpr double pi = 3.14159265358979323846;
constexpr double infinity = __builtin_inf();
constexpr double nan = __builtin_nan("");

unsigned bits_of(float x) { return __builtin_bit_cast(unsigned, x); }
unsigned long long bits_of(double x) { return __builtin_bit_cast(unsigned long long, x); }
double from_bits(unsigned long long bits) { return __builtin_bit_cast(double, bits); }
bool is_negative(double x) { return bits_of(x) >> 63 != 0; }
double magnitude(double x) { return __builtin_elementwise_abs(x); }
int exponent_of(double x) { return static_cast<int>((bits_of(x) >> 52) & 0x7ff) - 1023; }
double power_of_two(int k) { return from_bits(static_cast<unsigned long long>(1023 + k) << 52); }

// 2^128 stands for infinity, so that overflow is judged like any other rounding.
double bounded(double x) {
  constexpr double limit = 0x1p128;
  return x > limit ? limit : x < -limit ? -limit : x;
}

// Infinite for a NaN in the wrong place or a wrong sign of zero; 0 where the exact value rounds to
// infinity and the result is infinite.
double error_in_units(float result, double exact, double unit) {
  if (result != result || exact != exact) {
    return result != result && exact != exact ? 0.0 : infinity;
  }
  const bool absolute = unit == 1.0;  // an absolute error does not see the sign of a zero
  if (!absolute && result == 0.0f && is_negative(result) != is_negative(exact)) {
    return infinity;
  }
  constexpr double rounds_to_infinity = 0x1.ffffffp127;
  if (magnitude(exact) >= rounds_to_infinity && static_cast<float>(exact) == result) {
    return 0.0;
  }
  return magnitude(bounded(result) - bounded(exact)) / unit;
}

// sin(pi (|x| + turns / 2)) for finite x, reduced exactly.
double sine_of_half_turns(double x, int turns) {
  const double nearest = __builtin_elementwise_roundeven(2.0 * magnitude(x));
  const double angle = pi * (magnitude(x) - 0.5 * nearest);
  const double in_period = nearest - 4.0 * __builtin_elementwise_floor(0.25 * nearest);
  const int quadrant = (static_cast<int>(in_period) + turns) % 4;
  const double value = quadrant % 2 != 0 ? cos(angle) : sin(angle);
  return quadrant >= 2 ? -value : value;
}

}  // namespace

extern "C" {

// Units of error: one unit in the last place of the float nearest to `exact`,
double unit_ulp(double, double exact) {
  const int exponent = exponent_of(exact);
  return power_of_two((exponent < -126 ? -126 : exponent > 127 ? 127 : exponent) - 23);
}
// an absolute one,
double unit_one(double, double) { return 1.0; }
// and what the fast-math table allows exp (3 + floor |2x| ulp) and log (2^-21 in [1/2, 2]).
double unit_fast_exp(double x, double exact) {
  return unit_ulp(x, exact) * (3.0 + __builtin_elementwise_floor(magnitude(2.0 * x)));
}
double unit_fast_log(double x, double exact) {
  return x >= 0.5 && x <= 2.0 ? 0x1p-21 : 3.0 * unit_ulp(x, exact);
}

// Oracles that libm does not have everywhere. Zeros are signed as in C23.
double oracle_sinpi(double x) {
  if (!(magnitude(x) < infinity)) return nan;
  const double value = sine_of_half_turns(x, 0);
  const double unsigned_zero = value == 0.0 ? 0.0 : value;
  return is_negative(x) ? -unsigned_zero : unsigned_zero;
}
double oracle_cospi(double x) {
  if (!(magnitude(x) < infinity)) return nan;
  const double value = sine_of_half_turns(x, 1);
  return value == 0.0 ? 0.0 : value;
}
double oracle_tanpi(double x) { return oracle_sinpi(x) / oracle_cospi(x); }
double oracle_rsqrt(double x) { return 1.0 / __builtin_elementwise_sqrt(x); }
double oracle_fma_square(double x, double y) { return x * x + y; }
double oracle_divide(double x, double y) { return x / y; }
double oracle_fract(double x) {
  constexpr double below_one = 0x1.fffffep-1;
  const double difference = x - __builtin_elementwise_floor(x);
  return magnitude(x) == infinity ? 0.0 : difference > below_one ? below_one : difference;
}
double oracle_modf_fraction(double x) {
  const double fraction = x - __builtin_elementwise_trunc(x);
  return __builtin_elementwise_copysign(magnitude(x) == infinity ? 0.0 : fraction, x);
}
double oracle_frexp_mantissa(double x) {
  const bool special = x == 0.0 || !(magnitude(x) < infinity);
  return special ? x : x * power_of_two(-1 - exponent_of(x));
}
double oracle_frexp_exponent(double x) {
  const bool special = x == 0.0 || !(magnitude(x) < infinity);
  return special ? 0.0 : exponent_of(x) + 1;
}
double oracle_ilogb_value(double x) {
  const bool special = x == 0.0 || x != x;
  return special ? -0x1p31 : magnitude(x) == infinity ? 0x1p31 : exponent_of(x);
}
double oracle_ldexp_by_bits(double x, double y) {
  const int k = static_cast<int>(bits_of(static_cast<float>(y))) >> 20;
  return x * power_of_two(k < -600 ? -600 : k > 600 ? 600 : k);
}
double oracle_nextafter(double x, double y) {
  if (x != x || y != y || x == y) return x == y ? y : x + y;
  if (x == 0.0) return __builtin_elementwise_copysign(0x1p-149, y);
  const unsigned bits = bits_of(static_cast<float>(x));
  const unsigned neighbour = (x < y) == (x > 0.0) ? bits + 1 : bits - 1;
  return __builtin_bit_cast(float, neighbour);
}
// powr differs from pow where y log x is undefined.
double oracle_powr(double x, double y) {
  const bool undefined = x < 0.0 || x != x || y != y ||
                         ((x == 0.0 || x == infinity) && y == 0.0) ||
                         (x == 1.0 && magnitude(y) == infinity);
  return undefined ? nan : pow(magnitude(x), y);
}

// The largest error over the floats with bits first, first + stride, ... below last.
double worst_unary(Function1 function, Oracle1 oracle, Unit unit, unsigned long long first,
                   unsigned long long last, unsigned long long stride, float* where) {
  constexpr long block = 1024;
  float x[block], result[block];
  double worst = 0.0;
  for (unsigned long long bits = first; bits < last;) {
    long count = 0;
    for (; count < block && bits < last; ++count, bits += stride) {
      x[count] = __builtin_bit_cast(float, static_cast<unsigned>(bits));
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

// The largest error over `count` pairs; `result` is the function's workspace.
double worst_binary(Function2 function, Oracle2 oracle, Unit unit, const float* x, const float* y,
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
