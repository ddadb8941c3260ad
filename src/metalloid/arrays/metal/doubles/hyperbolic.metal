// Hyperbolic functions of 64-bit floats, and their inverses.
namespace numpy {

// The functions of x = power ln 2 + r, from 0 on, divided by 2^(power - 1): with b = 4^-power they
// are (1 - b) cosh(r) + (1 + b) sinh(r) and (1 + b) cosh(r) + (1 - b) sinh(r), by the theorems of
// addition.
struct Hyperbolic {
  Pair sine, cosine;
  int power;
};
METAL_FUNC Hyperbolic hyperbolic(double size) {
  const Exponent x = exponent_of(within(size, 0.0, 712.0));
  const double b = power_of_two(x.power < 60 ? -2 * x.power : -120);
  const Pair more = sum_of_larger(1.0, b), less = sum_of_larger(1.0, -b);
  const double square = x.high * x.high;
  const double sinh_rest = metal::fma(x.high * square, sinh_series(square), x.low);
  const double cosh_rest = metal::fma(square, cosh_series(square), x.high * x.low);
  const Pair across = product_of(more, {x.high, 0.0}), along = product_of(less, {x.high, 0.0});
  const Pair sine = sum_of(less.high, across.high), cosine = sum_of_larger(more.high, along.high);
  const double sine_rest = metal::fma(less.high, cosh_rest, more.high * sinh_rest);
  const double cosine_rest = metal::fma(more.high, cosh_rest, less.high * sinh_rest);
  return {sum_of_larger(sine.high, sine.low + (across.low + less.low + sine_rest)),
          sum_of_larger(cosine.high, cosine.low + (along.low + more.low + cosine_rest)), x.power};
}

// Above this, 1 + x is x, and the square of x may be too large.
constant constexpr double ONE_IS_NEGLIGIBLE = 0x1p60l;

}  // namespace numpy

namespace metal {

METAL_FUNC double sinh(double x) {
  const numpy::Hyperbolic of = numpy::hyperbolic(fabs(x));
  const double result = numpy::scaled(of.sine.high, of.power - 1);
  return x != x ? x : copysign(result, x);
}
METAL_FUNC double cosh(double x) {
  const numpy::Hyperbolic of = numpy::hyperbolic(fabs(x));
  const double result = numpy::scaled(of.cosine.high, of.power - 1);
  return x != x ? x : result;
}
METAL_FUNC double tanh(double x) {
  const numpy::Hyperbolic of = numpy::hyperbolic(fabs(x));
  const numpy::Pair result = numpy::quotient_of(of.sine, of.cosine);
  return x != x ? x : copysign(result.high + result.low, x);
}

// log(x + sqrt(x^2 + 1)), where the logarithm's argument is 1 and the rest (fdlibm).
METAL_FUNC double asinh(double x) {
  const double size = fabs(x), square = size * size;
  const numpy::Pair sum = numpy::sum_of_larger(size, square / (1.0 + sqrt(1.0 + square)));
  const bool is_large = size > numpy::ONE_IS_NEGLIGIBLE;
  const numpy::Pair rest = {is_large ? size : sum.high, is_large ? 0.0 : sum.low};
  const double result = numpy::log1p_of(rest, is_large ? 1.0 : 0.0);
  constexpr double tiny = 0x1p-28l;
  return size > tiny && size < INFINITY ? copysign(result, x) : x;
}

// log(x + sqrt(x^2 - 1)); x^2 - 1 = 2 d + d^2.
METAL_FUNC double acosh(double x) {
  const double d = x - 1.0;
  const numpy::Pair of_d = numpy::product_of(d, d), square = numpy::sum_of(d + d, of_d.high);
  const numpy::Pair exact = {square.high, square.low + of_d.low};
  const double root = sqrt(exact.high), lacks = numpy::rest_of_root(root, exact);
  const numpy::Pair sum = numpy::sum_of(d, root);
  const bool is_large = x > numpy::ONE_IS_NEGLIGIBLE;
  const numpy::Pair rest = {is_large ? x : sum.high, is_large ? 0.0 : sum.low + lacks};
  const double result = numpy::log1p_of(rest, is_large ? 1.0 : 0.0);
  return x < 1.0 ? NAN : x == 1.0 ? 0.0 : x < INFINITY ? result : x;
}

// Half of log((1 + x) / (1 - x)), whose mantissa (1 + s) / (1 - s) has s as the quotient of
// (1 + x) - (1 - x) 2^power and the sum of the two: the logarithm's series starts from it.
METAL_FUNC double atanh(double x) {
  const double size = fabs(x);
  const numpy::Pair up = numpy::sum_of_larger(1.0, size), down = numpy::sum_of_larger(1.0, -size);
  const double power = numpy::mantissa_of(up.high / down.high).power;
  const double factor = numpy::power_of_two(int(power)), high = factor * down.high;
  const double low = factor * down.low;
  const numpy::Pair sum = numpy::sum_of_larger(up.high, high);
  const numpy::Pair quotient = numpy::quotient_of({up.high - high, up.low - low},
                                                  {sum.high, sum.low + (up.low + low)});
  const double s = power == 0.0 ? size : quotient.high, square = s * s;
  const double curve = square * (numpy::TWO_THIRDS.high + numpy::log_series(square));
  const double halves = 0.5 * power, rest = fma(0.5 * s, curve, power == 0.0 ? 0.0 : quotient.low);
  const numpy::Pair result = numpy::sum_of_larger(halves * numpy::LN2_CUT.high, s);
  const double inside = result.high + (result.low + fma(halves, numpy::LN2_CUT.low, rest));
  return size < 1.0 ? copysign(inside, x) : size == 1.0 ? x * INFINITY : x != x ? x : NAN;
}

}  // namespace metal
