// Exponential functions, logarithms and powers of 64-bit floats.
namespace numpy {

constant constexpr double LN2_INVERSE = 0x1.71547652b82fep+0l;
constant constexpr Pair LN2 = {0x1.62e42fefa39efp-1l, 0x1.abc9e3b39803fp-56l};

// A number as power ln 2 + high + low, where the high part is at most ln(2) / 2 (W. J. Cody,
// W. Waite, "Software Manual for the Elementary Functions").
struct Exponent {
  double high, low;
  int power;
};
METAL_FUNC Exponent exponent_of(double high, double low = 0.0) {
  const double integer = metal::rint(high * LN2_INVERSE);
  // Exact, as the difference is small and a multiple of 2^-54.
  const double near = metal::fma(-integer, LN2.high, high);
  // Where the second is the larger one, both are negligible compared with 2^power.
  const Pair rest = sum_of_larger(near, metal::fma(-integer, LN2.low, low));
  return {rest.high, rest.low, int(integer)};
}

// Taylor's series of (sinh(x) - x) / x^3 and (cosh(x) - 1) / x^2 of x^2, whose errors are below
// 4e-18 up to ln(2) / 2.
METAL_FUNC double sinh_series(double square) {
  constexpr double series[] = {1 / 6227020800.0l, 1 / 39916800.0l, 1 / 362880.0l,
                               1 / 5040.0l,       1 / 120.0l,      1 / 6.0l};
  return polynomial(series, square);
}
METAL_FUNC double cosh_series(double square) {
  constexpr double series[] = {1 / 479001600.0l, 1 / 3628800.0l, 1 / 40320.0l,
                               1 / 720.0l,       1 / 24.0l,      1 / 2.0l};
  return polynomial(series, square);
}

// e^high - 1 - high, and the low part.
METAL_FUNC double beyond_linear(Exponent x) {
  const double square = x.high * x.high;
  const double curve = metal::fma(x.high, sinh_series(square), cosh_series(square));
  return metal::fma(square, curve, x.low);
}

METAL_FUNC double exp(Exponent x) {
  const Pair sum = sum_of_larger(1.0, x.high);
  return scaled(sum.high + (sum.low + beyond_linear(x)), x.power);
}

// 2^power ((1 - 2^-power) + (e^rest - 1)).
METAL_FUNC double expm1(double x) {
  const Exponent parts = exponent_of(within(x, -60.0, 710.0));
  const double before = 1.0 - power_of_two(parts.power < 64 ? -parts.power : -64);
  const Pair sum = sum_of(before, parts.high);
  const double result = scaled(sum.high + (sum.low + beyond_linear(parts)), parts.power);
  return x != x || x == 0.0 ? x : result;
}

// The series of (log((1 + s) / (1 - s)) - 2 s) / s^3 of s^2, but its first number 2/3, for
// mantissas from sqrt(1/2) to sqrt(2); minimax, the error of the logarithm is below 2^-66.
METAL_FUNC double log_series(double square) {
  constexpr double series[] = {1.199043390396845e-1l,  1.1674648160095555e-1l,
                               1.3336325799064636e-1l, 1.5384556653469869e-1l,
                               1.8181818873499236e-1l, 2.2222222217510537e-1l,
                               2.8571428571445218e-1l, 3.999999999999998e-1l};
  return square * polynomial(series, square);
}
constant constexpr Pair TWO_THIRDS = {0x1.5555555555555p-1l, 0x1.5555555555555p-55l};
// The first has 21 zeros at the end: its multiples are exact.
constant constexpr Pair LN2_CUT = {0x1.62e42fee00000p-1l, 0x1.a39ef35793c76p-33l};

// 2^power (1 + fraction).
struct Mantissa {
  double fraction, power;
};
METAL_FUNC Mantissa mantissa_of(double x) {
  constexpr double root_of_half = 0x1.6a09e667f3bcdp-1l;
  const Normalised of = normalised(x, root_of_half);
  return {as_type<double>(of.bits) - 1.0, double(of.power) - (of.is_small ? 1077.0 : 1023.0)};
}

// A logarithm in two parts, the first of which is rounded right nearly always: as in fdlibm's pow
// the series' first term, and what it is added to, have their errors with them.
METAL_FUNC Pair log_of(Mantissa x) {
  const double f = x.fraction, divisor = 2.0 + f, inverse = 1.0 / divisor;
  const double below = f - (divisor - 2.0), s = f * inverse;
  const double s_low = metal::fma(-s, below, metal::fma(-s, divisor, f)) * inverse;
  const Pair square = product_of({s, s_low}, {s, s_low});
  const Pair factor = sum_of_larger(TWO_THIRDS.high, log_series(square.high));
  const Pair rest = product_of(product_of(square, {s, s_low}),
                               {factor.high, factor.low + TWO_THIRDS.low});
  const Pair fraction = sum_of_larger(s + s, rest.high);
  const Pair sum = sum_of_larger(x.power * LN2_CUT.high, fraction.high);
  const double low = fraction.low + (s_low + s_low + rest.low);
  return sum_of_larger(sum.high, sum.low + metal::fma(x.power, LN2_CUT.low, low));
}

// log(0) and those of infinity, NaN and negative numbers.
METAL_FUNC double checked_log(double x, double result) {
  const double positive = x < INFINITY ? result : x;
  return x < 0.0 ? NAN : x == 0.0 ? -INFINITY : positive;
}

// The logarithm of 2^power (1 + f) and a little more, where s is f / (2 + f): put together as in
// fdlibm, so that f is added last.
METAL_FUNC double log_sum(double f, double s, double power, double more) {
  const double z = s * s, half_square = 0.5 * f * f;
  const double rest = half_square + z * (TWO_THIRDS.high + log_series(z));
  const double low = metal::fma(s, rest, metal::fma(power, LN2_CUT.low, more));
  return power * LN2_CUT.high - ((half_square - low) - f);
}

// The logarithm of 2^power (1 + f) is power ln 2 + high + low, where high is f - f^2 / 2; both are
// multiplied by the inverse of the base's logarithm (FreeBSD's e_log2.c). The logarithm of 2 to the
// base is cut, so that its multiples are exact.
METAL_FUNC double log_to_base(double x, Pair inverse, Pair of_two) {
  const Mantissa m = mantissa_of(x);
  const double f = m.fraction, s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
  const double rest = half_square + z * (TWO_THIRDS.high + log_series(z));
  const double square_low = metal::fma(0.5 * f, f, -half_square);
  const Pair start = sum_of_larger(f, -half_square);
  const double low = metal::fma(s, rest, start.low - square_low);
  const Pair product = product_of({start.high, low}, inverse);
  const Pair sum = sum_of_larger(m.power * of_two.high, product.high);
  return checked_log(x, sum.high + (sum.low + metal::fma(m.power, of_two.low, product.low)));
}

// The logarithm of 1 + high + low, times 2^more. What the sum of 1 and the high part lacks is added
// as its quotient by the sum, 1 / (1 + f) = (1 - s) / (1 + s), of which few digits matter.
METAL_FUNC double log1p_of(Pair x, double more = 0.0) {
  const Pair sum = sum_of(1.0, x.high);
  const Mantissa of_sum = mantissa_of(sum.high);
  const double power = of_sum.power;
  const double low = (sum.low + x.low) * power_of_two(-int(within(power, -64.0, 64.0)));
  const double f = power == 0.0 ? x.high : of_sum.fraction, s = f / (2.0 + f);
  const double lacks = power == 0.0 ? x.low : low;
  return log_sum(f, s, power + more, lacks * times_plus(s + s, s - 1.0, 1.0));
}
METAL_FUNC double log1p(double x) {
  constexpr double tiny = 0x1p-54l;
  const double result = log1p_of({x, 0.0});
  return metal::fabs(x) < tiny ? x : checked_log(1.0 + x, result);
}

// e^(exponent log(size)) for a size that is neither zero nor infinite.
METAL_FUNC double power_of(double size, double exponent) {
  const Pair logarithm = log_of(mantissa_of(size));
  const Pair product = product_of(logarithm, {exponent, 0.0});
  const double high = within(product.high, -800.0, 800.0);
  return exp(exponent_of(high, high == product.high ? product.low : 0.0));
}

}  // namespace numpy

namespace metal {

METAL_FUNC double exp(double x) {
  const double result = numpy::exp(numpy::exponent_of(numpy::within(x, -1000.0, 1000.0)));
  return x != x ? x : result;
}
METAL_FUNC double exp2(double x) {
  const double inside = numpy::within(x, -1400.0, 1400.0), integer = rint(inside);
  const numpy::Pair rest = numpy::product_of({inside - integer, 0.0}, numpy::LN2);
  const double result = numpy::exp(numpy::Exponent{rest.high, rest.low, int(integer)});
  return x != x ? x : result;
}

METAL_FUNC double log(double x) {
  const numpy::Mantissa m = numpy::mantissa_of(x);
  return numpy::checked_log(x, numpy::log_sum(m.fraction, m.fraction / (2.0 + m.fraction), m.power, 0.0));
}
METAL_FUNC double log2(double x) {
  constexpr numpy::Pair inverse = {0x1.71547652b82fep+0l, 0x1.777d0ffda0d24p-56l};
  return numpy::log_to_base(x, inverse, {1.0, 0.0});
}
METAL_FUNC double log10(double x) {
  constexpr numpy::Pair inverse = {0x1.bcb7b1526e50ep-2l, 0x1.95355baaafad3p-57l};
  constexpr numpy::Pair of_two = {0x1.3441350800000p-2l, 0x1.f79fef311f12bp-34l};
  return numpy::log_to_base(x, inverse, of_two);
}

// Special cases as in C99, F.9.4.4. Infinite and huge exponents are even numbers.
METAL_FUNC double pow(double x, double y) {
  const double size = fabs(x), half_y = 0.5 * y;
  const bool is_integer = trunc(y) == y, is_odd = is_integer && trunc(half_y) != half_y;
  const bool is_extreme = size == 0.0 || size == INFINITY;
  const double limit = (size == 0.0) == (y < 0.0) ? INFINITY : 0.0;
  const double usual = numpy::power_of(size, y);
  const double of_size = is_extreme ? limit : size == 1.0 ? 1.0 : usual;
  const double signed_power = is_odd && signbit(x) ? -of_size : of_size;
  const double defined = x < 0.0 && !is_integer && !is_extreme ? NAN : signed_power;
  return x == 1.0 || y == 0.0 ? 1.0 : x != x || y != y ? x + y : defined;
}

}  // namespace metal
