// 64-bit floats, which Metal lacks, for devices that have them: their parts, sums without errors,
// and functions that are exact, or nearly so. Others are in the files next to this one. A long
// double, as in 0.1l, is a constant of all digits, and is no type to compute in.
namespace metal {

#define DOUBLE_FUNCTION(name) \
  METAL_FUNC double name(double x) { return __builtin_##name(x); }
DOUBLE_FUNCTION(fabs)
DOUBLE_FUNCTION(floor)
DOUBLE_FUNCTION(ceil)
DOUBLE_FUNCTION(trunc)
DOUBLE_FUNCTION(rint)
DOUBLE_FUNCTION(sqrt)
#undef DOUBLE_FUNCTION

METAL_FUNC double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
METAL_FUNC double copysign(double x, double y) { return __builtin_copysign(x, y); }
METAL_FUNC bool signbit(double x) { return (as_type<ulong>(x) >> 63) != 0; }

}  // namespace metal

namespace numpy {

constant constexpr double LEAST_NORMAL = 0x1p-1022l;

METAL_FUNC double times_plus(double a, double b, double sum) { return metal::fma(a, b, sum); }

template <ushort N>
METAL_FUNC double polynomial(const thread double (&of)[N], double x) {
  double sum = of[0];
  for (ushort k = 1; k < N; ++k) {
    sum = metal::fma(sum, x, of[k]);
  }
  return sum;
}

// Between two limits; of NaN the first. A comparison and the choice are one instruction, fmin is
// not.
METAL_FUNC double within(double x, double lowest, double highest) {
  const double not_less = x > lowest ? x : lowest;
  return not_less < highest ? not_less : highest;
}

// 2^power for powers of normal numbers.
METAL_FUNC double power_of_two(int power) { return as_type<double>(ulong(power + 1023) << 52); }

// In two steps, so that results below the normal numbers are rounded once.
METAL_FUNC double scaled(double x, int power) {
  const int half_power = power >> 1;
  return x * power_of_two(half_power) * power_of_two(power - half_power);
}

// The sum of two numbers, not evaluated; most of it is in the first.
struct Pair {
  double high, low;
};

// Sums and products with their errors: T. J. Dekker, "A floating-point technique for extending the
// available precision" (1971), and D. E. Knuth, "The Art of Computer Programming", 4.2.2.
METAL_FUNC Pair sum_of_larger(double larger, double smaller) {
  const double sum = larger + smaller;
  return {sum, (larger - sum) + smaller};
}
METAL_FUNC Pair sum_of(double a, double b) {
  const double sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}
METAL_FUNC Pair product_of(double a, double b) {
  const double product = a * b;
  return {product, metal::fma(a, b, -product)};
}
METAL_FUNC Pair product_of(Pair a, Pair b) {
  const Pair product = product_of(a.high, b.high);
  return {product.high, metal::fma(a.high, b.low, metal::fma(a.low, b.high, product.low))};
}
// The quotient's remainder gives what the quotient lacks.
METAL_FUNC Pair quotient_of(Pair a, Pair b) {
  const double inverse = 1.0 / b.high, quotient = a.high * inverse;
  const double rest = metal::fma(-quotient, b.high, a.high) + metal::fma(-quotient, b.low, a.low);
  return {quotient, rest * inverse};
}
constant constexpr Pair HALF_PI = {0x1.921fb54442d18p+0l, 0x1.1a62633145c07p-54l};

// What a root lacks; of zero nothing.
METAL_FUNC double rest_of_root(double root, Pair square) {
  const double rest = metal::fma(-root, root, square.high) + square.low;
  return root == 0.0 ? 0.0 : rest / (root + root);
}

// Scaled by a power of two, so that the squares are normal numbers. The root is corrected by what
// its square lacks (C. F. Borges, "An improved algorithm for hypot(a, b)", 2019).
METAL_FUNC double hypot(double a, double b) {
  constexpr double huge = 0x1p500l, tiny = 0x1p-400l, up = 0x1p600l, down = 0x1p-600l;
  const double x = metal::fabs(a), y = metal::fabs(b), highest = x > y ? x : y;
  const double scale = highest > huge ? down : highest < tiny ? up : 1.0;
  const double back = highest > huge ? up : highest < tiny ? down : 1.0;
  const double larger = scale * highest, smaller = scale * (x > y ? y : x);
  const Pair square = product_of(larger, larger), other = product_of(smaller, smaller);
  const Pair sum = sum_of_larger(square.high, other.high);
  const double root = metal::sqrt(sum.high);
  const double rest = rest_of_root(root, {sum.high, sum.low + (square.low + other.low)});
  return x == INFINITY || y == INFINITY ? INFINITY : back * (root + rest);
}

// The bits of a number from `lowest` up to twice that, of which a positive one is a multiple by a
// power of two: counted from -1023, or from -1077 for those below the normal numbers.
struct Normalised {
  ulong bits;
  int power;
  bool is_small;
};
METAL_FUNC Normalised normalised(double x, double lowest) {
  const bool is_small = x < LEAST_NORMAL;
  const ulong bits = as_type<ulong>(is_small ? x * 0x1p54f : x), start = as_type<ulong>(lowest);
  const ulong above = bits + (0x3FF0000000000000ul - start);
  return {(above & 0xFFFFFFFFFFFFFul) + start, int(above >> 52), is_small};
}

}  // namespace numpy

namespace metal {

METAL_FUNC int ilogb(double x) {
  const double size = fabs(x);
  const numpy::Normalised of = numpy::normalised(size, 1.0);
  const int power = of.power - (of.is_small ? 1077 : 1023);
  return size > 0.0 ? size == INFINITY ? INT_MAX : power : INT_MIN;
}

// At most two steps of 2^1023 up, or of 2^-969 down, which leave 53 bits, before what remains.
METAL_FUNC double ldexp(double x, int power) {
  for (ushort k = 0; k < 2; ++k) {
    const int step = power > 1023 ? 1023 : power < -1022 ? -969 : 0;
    x *= numpy::power_of_two(step);
    power -= step;
  }
  return x * numpy::power_of_two(power > 1023 ? 1023 : power < -1022 ? -1022 : power);
}

// Numbers of one sign are ordered as their bits.
METAL_FUNC double nextafter(double x, double y) {
  const bool is_away = (x < y) != signbit(x);
  const double next = as_type<double>(as_type<ulong>(x) + (is_away ? 1ul : ~0ul));
  const double from_zero = copysign(as_type<double>(1ul), y);
  return x != x || y != y ? x + y : x == y ? y : x == 0.0 ? from_zero : next;
}

// Long division by 51 bits at a time, which are nearly always all. A quotient that is rounded up
// leaves a negative rest; both are exact.
METAL_FUNC double fmod(double a, double b) {
  const double size = fabs(b);
  double rest = fabs(a);
  const bool has_meaning = rest < INFINITY && size > 0.0;  // false for NaN
  const int lowest = ilogb(size);
  while (has_meaning && rest >= size) {
    const int beyond = ilogb(rest) - lowest - 51;
    const double step = numpy::scaled(size, beyond > 0 ? beyond : 0);
    const double left = fma(-trunc(rest / step), step, rest);
    rest = left < 0.0 ? left + step : left;
  }
  return has_meaning ? copysign(rest, a) : NAN;
}

}  // namespace metal
