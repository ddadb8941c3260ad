// Sine, cosine and tangent of 64-bit floats.
namespace numpy {

// An angle as a multiple of pi/2 and a rest of at most pi/4, in two parts.
struct Angle {
  double high, low;
  int quarter;
};
constant constexpr double WIDEST_ANGLE = 0x1p30l;

// Pi/2 is the sum of three numbers (W. J. Cody, W. Waite, "Software Manual for the Elementary
// Functions"). What is left by the first is exact, as a small multiple of 2^-53.
METAL_FUNC Angle angle_of(double x) {
  constexpr double quarter_inverse = 0x1.45f306dc9c883p-1l, last = -0x1.f1976b7ed8fbcp-110l;
  const double n = metal::rint(x * quarter_inverse);
  const double near = metal::fma(-n, HALF_PI.high, x);
  const Pair second = product_of(n, HALF_PI.low), rest = sum_of(near, -second.high);
  const Pair sum = sum_of_larger(rest.high, rest.low - metal::fma(n, last, second.low));
  return {sum.high, sum.low, int(n)};
}

// The bits of 2/pi after 32 zeros.
constant constexpr uint TWO_OVER_PI[] = {
    0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
    0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu,
    0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u,
    0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu,
    0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau,
    0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u};

// The same for huge numbers (M. H. Payne, R. N. Hanek, "Radian reduction for trigonometric
// functions", 1983). A number is an integer below 2^53 times 2^e, so 192 bits of 2/pi, from that of
// weight 2^(1-e) on, decide on its product with 2/pi modulo 4: the first two bits are the quarter,
// the others its fraction, of which no more than 62 are zeros.
METAL_FUNC Angle angle_of_huge(double x) {
  const ulong bits = as_type<ulong>(x);
  const int e = int(bits >> 52 & 0x7FF) - 1075;
  const ulong integer = (bits & 0xFFFFFFFFFFFFFul) | 0x10000000000000ul;
  const ulong bottom = integer & 0xFFFFFFFFul, top = integer >> 32;
  const uint bit = uint(e + 30), word = bit >> 5, shift = bit & 31;

  ulong product[6], carry = 0, before = 0;
  for (short k = 5; k >= 0; --k) {
    const ulong both = ulong(TWO_OVER_PI[word + k]) << 32 | TWO_OVER_PI[word + k + 1];
    const ulong window = (both << shift) >> 32, low = bottom * window;
    const ulong sum = (low & 0xFFFFFFFFul) + (before & 0xFFFFFFFFul) + carry;
    product[k] = sum & 0xFFFFFFFFul;
    carry = (sum >> 32) + (low >> 32) + (before >> 32);
    before = top * window;
  }
  const ulong first = product[0] << 32 | product[1], second = product[2] << 32 | product[3];
  const ulong fraction = first << 2 | second >> 62;

  // To the nearest quarter: the other sign, and what is missing to a whole one.
  const bool is_above = fraction >> 63 != 0;
  const ulong high = is_above ? ~fraction : fraction, low = is_above ? ~(second << 2) : second << 2;
  const double highest = double(high);
  constexpr double unit = 0x1p-64l;
  const double rest = double(long(high - ulong(highest))) + double(low) * unit;
  const Pair of_quarter = sum_of_larger(highest * unit, rest * unit);
  const Pair angle = product_of(of_quarter, HALF_PI);
  const Pair sum = sum_of_larger(angle.high, angle.low);
  const bool is_negative = is_above != metal::signbit(x);
  const int quarter = int(first >> 62) + (is_above ? 1 : 0);
  return {x - x == 0.0 ? is_negative ? -sum.high : sum.high : NAN,
          is_negative ? -sum.low : sum.low, metal::signbit(x) ? -quarter : quarter};
}

// Simdgroups without huge numbers skip the branch.
METAL_FUNC Angle any_angle_of(double x) {
  const bool is_usual = metal::fabs(x) < WIDEST_ANGLE;
  Angle angle = angle_of(is_usual ? x : 0.0);
  if (!is_usual) {
    angle = angle_of_huge(x);
  }
  return angle;
}

// Minimax polynomials, errors below 2^-57 up to pi/4. The cosine's errors of 1 - x^2/2 are added as
// in fdlibm.
METAL_FUNC Pair sine(Angle x) {
  constexpr double series[] = {1.5896814951651236e-10l, -2.5050758436954479e-8l,
                               2.755731369389624e-6l,   -1.9841269829813275e-4l,
                               8.3333333333224201e-3l,  -1.6666666666666632e-1l};
  const double square = x.high * x.high, low = metal::fma(-0.5 * square, x.low, x.low);
  return {x.high, metal::fma(x.high * square, polynomial(series, square), low)};
}
METAL_FUNC Pair cosine(Angle x) {
  constexpr double series[] = {-1.1359660941236839e-11l, 2.0875723518038729e-9l,
                               -2.7557314354064302e-7l,  2.480158728948792e-5l,
                               -1.3888888888874133e-3l,  4.1666666666666602e-2l};
  const double square = x.high * x.high, halved = 0.5 * square, first_terms = 1.0 - halved;
  const double rest = metal::fma(square * square, polynomial(series, square), -x.high * x.low);
  return {first_terms, ((1.0 - first_terms) - halved) + rest};
}

// The sine of an angle some quarters further.
METAL_FUNC double sine(Angle x, int quarter) {
  const Pair across = sine(x), along = cosine(x);
  const double size = quarter & 1 ? along.high + along.low : across.high + across.low;
  return quarter & 2 ? -size : size;
}

}  // namespace numpy

namespace metal {

METAL_FUNC double sin(double x) {
  const numpy::Angle rest = numpy::any_angle_of(x);
  const double result = numpy::sine(rest, rest.quarter);
  return x == 0.0 ? x : result;
}
METAL_FUNC double cos(double x) {
  const numpy::Angle rest = numpy::any_angle_of(x);
  return numpy::sine(rest, rest.quarter + 1);
}
METAL_FUNC double tan(double x) {
  const numpy::Angle rest = numpy::any_angle_of(x);
  const numpy::Pair sine = numpy::sine(rest), cosine = numpy::cosine(rest);
  const numpy::Pair across = numpy::sum_of_larger(sine.high, sine.low);
  const numpy::Pair along = numpy::sum_of_larger(cosine.high, cosine.low);
  const bool is_odd = rest.quarter & 1;
  const numpy::Pair above = {is_odd ? -along.high : across.high, is_odd ? -along.low : across.low};
  const numpy::Pair below = {is_odd ? across.high : along.high, is_odd ? across.low : along.low};
  const numpy::Pair quotient = numpy::quotient_of(above, below);
  return x == 0.0 ? x : quotient.high + quotient.low;
}

}  // namespace metal
