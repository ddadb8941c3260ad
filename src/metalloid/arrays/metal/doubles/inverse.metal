// Inverse trigonometric functions of 64-bit floats.
namespace numpy {

// (asin(x) - x) / x of x^2 up to 1/4: minimax, errors below 2^-55.
METAL_FUNC double asin_series(double square) {
  constexpr double series[] = {3.1912169831359416e-2l, -1.622410659513927e-2l,
                               1.9528172398985733e-2l, 6.5280087802208602e-3l,
                               1.216920405293115e-2l,  1.3885236589922963e-2l,
                               1.7359704652863062e-2l, 2.237175805754487e-2l,
                               3.0381959136681295e-2l, 4.4642856828334854e-2l,
                               7.5000000003370079e-2l, 1.6666666666665408e-1l};
  return square * polynomial(series, square);
}

// asin(x) for numbers up to 1/2; above, asin(sqrt((1 - x) / 2)), which is half of the angle to pi/2
// (W. J. Cody, W. Waite). NaN beyond 1.
struct Arcsine {
  double high, low;
  bool is_above;
};
METAL_FUNC Arcsine arcsine_of(double size) {
  const bool is_above = size > 0.5;
  const double square = is_above ? 0.5 - 0.5 * size : size * size;
  const double root = metal::sqrt(square), rest = rest_of_root(root, {square, 0.0});
  const double high = is_above ? root : size;
  return {high, metal::fma(high, asin_series(square), is_above ? rest : 0.0), is_above};
}

// (atan(x) - x) / x of x^2 up to 1/16: minimax, errors below 2^-61.
METAL_FUNC double atan_series(double square) {
  constexpr double series[] = {-3.9983000115882385e-2l, 5.7244134496182722e-2l,
                               -6.6554702904067675e-2l, 7.6918242555115743e-2l,
                               -9.0908961639310407e-2l, 1.111111090174542e-1l,
                               -1.4285714283792897e-1l, 1.9999999999991347e-1l,
                               -3.333333333333332e-1l};
  return square * polynomial(series, square);
}

// The angle of a point of the octant: that of a slope of 0, 1/2 or 1 and the rest, as in fdlibm's
// atan. The differences are exact (P. H. Sterbenz: the numbers are within a factor of two).
METAL_FUNC Pair octant_angle(double smaller, double larger) {
  const bool is_flat = smaller < 0.25 * larger, is_steep = smaller > 0.71875 * larger;
  const double slope = is_flat ? 0.0 : is_steep ? 1.0 : 0.5, part = slope * smaller;
  const Pair below = sum_of_larger(larger, part);
  const Pair rest = quotient_of({smaller - slope * larger, 0.0}, below);
  constexpr double half_high = 0x1.dac670561bb4fp-2l, half_low = 0x1.a2b7f222f65e2p-56l;
  const double base = is_flat ? 0.0 : is_steep ? 0.5 * HALF_PI.high : half_high;
  const double base_low = is_flat ? 0.0 : is_steep ? 0.5 * HALF_PI.low : half_low;
  const Pair sum = sum_of_larger(base, rest.high);
  const double curve = metal::fma(rest.high, atan_series(rest.high * rest.high), rest.low);
  return {sum.high, sum.low + (base_low + curve)};
}

// The angle of (x, y) for numbers that are not negative, from their ratio and a rotation.
METAL_FUNC double angle_of(double y, double x, bool is_left) {
  constexpr double up = 0x1p500l, down = 0x1p-500l;
  const bool is_steep = y > x;
  const double larger = is_steep ? y : x, smaller = is_steep ? x : y;
  const double scale = larger > up ? down : up;  // for remainders that are normal numbers
  const bool is_infinite = larger == INFINITY;
  const double above = is_infinite ? smaller == INFINITY ? 1.0 : 0.0 : scale * smaller;
  const Pair octant = octant_angle(above, is_infinite || larger == 0.0 ? 1.0 : scale * larger);
  const bool turns = is_steep != is_left;
  const double turn = is_steep ? 1.0 : is_left ? 2.0 : 0.0;
  const Pair sum = sum_of_larger(turn * HALF_PI.high, turns ? -octant.high : octant.high);
  return sum.high + (sum.low + metal::fma(turn, HALF_PI.low, turns ? -octant.low : octant.low));
}

}  // namespace numpy

namespace metal {

METAL_FUNC double asin(double x) {
  const numpy::Arcsine arc = numpy::arcsine_of(fabs(x));
  const numpy::Pair sum = numpy::sum_of_larger(numpy::HALF_PI.high, -2.0 * arc.high);
  const double above = sum.high + (sum.low + (numpy::HALF_PI.low - 2.0 * arc.low));
  return copysign(arc.is_above ? above : arc.high + arc.low, x);
}
METAL_FUNC double acos(double x) {
  const numpy::Arcsine arc = numpy::arcsine_of(fabs(x));
  // The offset: 0, pi/2 or pi.
  const double turn = arc.is_above ? signbit(x) ? 2.0 : 0.0 : 1.0;
  const double size = arc.is_above ? 2.0 : 1.0, factor = signbit(x) == arc.is_above ? -size : size;
  const numpy::Pair sum = numpy::sum_of_larger(turn * numpy::HALF_PI.high, factor * arc.high);
  return sum.high + (sum.low + fma(factor, arc.low, turn * numpy::HALF_PI.low));
}
METAL_FUNC double atan(double x) { return copysign(numpy::angle_of(fabs(x), 1.0, false), x); }

// Special cases as in C99, F.9.1.4.
METAL_FUNC double atan2(double y, double x) {
  const double angle = numpy::angle_of(fabs(y), fabs(x), signbit(x));
  return x != x || y != y ? x + y : copysign(angle, y);
}

}  // namespace metal
