// The functions of the standard library for 64-bit floats, which Metal lacks: for devices that have
// them. A long double, as in 0.1l, is a constant of all digits, and is no type to compute in.
namespace numpy {

template <ushort N>
METAL_FUNC double polynomial(const thread double (&of)[N], double x) {
  double sum = of[0];
  for (ushort k = 1; k < N; ++k) {
    sum = __builtin_fma(sum, x, of[k]);
  }
  return sum;
}

// The exponent of a number m 2^k with m about 1, and the series of log(m) = 2 atanh((m-1) / (m+1)).
// Its sum is put together as in fdlibm, so that m - 1 is added last.
METAL_FUNC double log(double x) {
  const bool is_small = x < as_type<double>(0x0010000000000000ul);  // below the normal numbers
  const ulong bits = as_type<ulong>(is_small ? x * 0x1p54f : x);
  // From sqrt(1/2) on, the next power of two.
  const ulong above = bits + (0x3FF0000000000000ul - 0x3FE6A09E667F3BCDul);
  const int power = int(above >> 52) - 1023 - (is_small ? 54 : 0);
  const double f = as_type<double>((above & 0xFFFFFFFFFFFFFul) + 0x3FE6A09E667F3BCDul) - 1.0;
  constexpr double series[] = {2.0l / 23, 2.0l / 21, 2.0l / 19, 2.0l / 17, 2.0l / 15, 2.0l / 13,
                               2.0l / 11, 2.0l / 9,  2.0l / 7,  2.0l / 5,  2.0l / 3};
  const double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
  const double rest = z * polynomial(series, z);
  constexpr double ln2_high = 6.93147180369123816490e-01l, ln2_low = 1.90821492927058770002e-10l;
  const double low = s * (half_square + rest) + power * ln2_low;
  const double result = power * ln2_high - ((half_square - low) - f);
  return x > 0.0 && x < INFINITY ? result : x == 0.0 ? -INFINITY : x < 0.0 ? NAN : x;
}

// 2^power (1 + (high + low)), where the bracket is e^high - 1 by its series for |high| < 0.35. The
// power goes in two steps, so that results below the normal numbers are rounded once.
METAL_FUNC double scaled_exp(double high, double low, int power) {
  constexpr double series[] = {1 / 6227020800.0l, 1 / 479001600.0l, 1 / 39916800.0l, 1 / 3628800.0l,
                               1 / 362880.0l,     1 / 40320.0l,     1 / 5040.0l,     1 / 720.0l,
                               1 / 120.0l,        1 / 24.0l,        1 / 6.0l,        1 / 2.0l};
  const double less = high + __builtin_fma(high * high, polynomial(series, high), low);
  const int half_power = power >> 1;
  const double first = as_type<double>(ulong(half_power + 1023) << 52);
  const double second = as_type<double>(ulong(power - half_power + 1023) << 52);
  return (1.0 + less) * first * second;
}

constant constexpr double LN2_HIGH = 0x1.62e42fefa39efp-1l, LN2_LOW = 0x1.abc9e3b39803fp-56l;
constant constexpr double LN2_INVERSE = 0x1.71547652b82fep+0l;

METAL_FUNC double exp(double x) {
  const double within = __builtin_fmin(__builtin_fmax(x, -1000.0), 1000.0);
  const double whole = __builtin_rint(within * LN2_INVERSE);
  const double near = __builtin_fma(-whole, LN2_HIGH, within), beyond = -whole * LN2_LOW;
  const double rest = near + beyond;
  const double result = scaled_exp(rest, (near - rest) + beyond, int(whole));
  return x != x ? x : result;
}
METAL_FUNC double exp2(double x) {
  const double within = __builtin_fmin(__builtin_fmax(x, -1400.0), 1400.0);
  const double whole = __builtin_rint(within), rest = within - whole, high = rest * LN2_HIGH;
  const double low = __builtin_fma(rest, LN2_LOW, __builtin_fma(rest, LN2_HIGH, -high));
  const double result = scaled_exp(high, low, int(whole));
  return x != x ? x : result;
}

// An angle as a multiple of pi/2 and a rest of at most pi/4, in two parts. Pi/2 is the sum of four
// numbers, of which three have 33 bits: their products with numbers below 2^20 are exact, and so is
// the error of the difference (W. J. Cody, W. Waite, "Software Manual for the Elementary Functions").
struct Angle {
  double high, low;
  int quarter;
};
constant constexpr double WIDEST_ANGLE = 0x1.0p20, QUARTER_INVERSE = 0x1.45f306dc9c883p-1l;
constant constexpr double QUARTER[] = {0x1.921fb544p+0l, 0x1.0b4611a6p-34l, 0x1.3198a2ep-69l,
                                       0x1.b839a252049c1p-104l};

METAL_FUNC Angle within_quarter(double x) {
  const double n = __builtin_rint(x * QUARTER_INVERSE);
  const double a = x - n * QUARTER[0];
  const double b = n * QUARTER[1], c = n * QUARTER[2];
  const double first = a - b, back = first - a;
  const double first_error = (a - (first - back)) - (b + back);
  const double second = first - c, again = second - first;
  const double second_error = (first - (second - again)) - (c + again);
  const double tail = (first_error + second_error) - n * QUARTER[3];
  const double high = second + tail;
  return {high, (second - high) + tail, int(n)};
}

// The series of Taylor, whose errors are below 1e-19 up to pi/4.
METAL_FUNC double sine(double high, double low) {
  constexpr double series[] = {1 / 355687428096000.0l, -1 / 1307674368000.0l, 1 / 6227020800.0l,
                               -1 / 39916800.0l,       1 / 362880.0l,         -1 / 5040.0l,
                               1 / 120.0l,             -1 / 6.0l};
  const double square = high * high;
  return high + __builtin_fma(high * square, polynomial(series, square), low - 0.5 * square * low);
}
METAL_FUNC double cosine(double high, double low) {
  constexpr double series[] = {-1 / 6402373705728000.0l, 1 / 20922789888000.0l, -1 / 87178291200.0l,
                               1 / 479001600.0l,         -1 / 3628800.0l,       1 / 40320.0l,
                               -1 / 720.0l,              1 / 24.0l};
  const double square = high * high, halved = 0.5 * square, near_one = 1.0 - halved;
  const double rest = __builtin_fma(square * square, polynomial(series, square), -high * low);
  return near_one + (((1.0 - near_one) - halved) + rest);
}

METAL_FUNC double sin(double x) {
  if (!(__builtin_fabs(x) < WIDEST_ANGLE)) {
    return __builtin_sin(x);
  }
  const Angle rest = within_quarter(x);
  const double size = rest.quarter & 1 ? cosine(rest.high, rest.low) : sine(rest.high, rest.low);
  return x == 0.0 ? x : rest.quarter & 2 ? -size : size;
}
METAL_FUNC double cos(double x) {
  if (!(__builtin_fabs(x) < WIDEST_ANGLE)) {
    return __builtin_cos(x);
  }
  const Angle rest = within_quarter(x);
  const double size = rest.quarter & 1 ? sine(rest.high, rest.low) : cosine(rest.high, rest.low);
  return (rest.quarter + 1) & 2 ? -size : size;
}
METAL_FUNC double tan(double x) {
  if (!(__builtin_fabs(x) < WIDEST_ANGLE)) {
    return __builtin_tan(x);
  }
  const Angle rest = within_quarter(x);
  const double across = sine(rest.high, rest.low), along = cosine(rest.high, rest.low);
  return x == 0.0 ? x : rest.quarter & 1 ? -along / across : across / along;
}

}  // namespace numpy

namespace metal {

#define DOUBLE_FUNCTION(name) \
  METAL_FUNC double name(double x) { return __builtin_##name(x); }
DOUBLE_FUNCTION(fabs)
DOUBLE_FUNCTION(floor)
DOUBLE_FUNCTION(ceil)
DOUBLE_FUNCTION(trunc)
DOUBLE_FUNCTION(rint)
DOUBLE_FUNCTION(sqrt)
DOUBLE_FUNCTION(log2)
DOUBLE_FUNCTION(log10)
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

METAL_FUNC double log(double x) { return numpy::log(x); }
METAL_FUNC double exp(double x) { return numpy::exp(x); }
METAL_FUNC double exp2(double x) { return numpy::exp2(x); }
METAL_FUNC double sin(double x) { return numpy::sin(x); }
METAL_FUNC double cos(double x) { return numpy::cos(x); }
METAL_FUNC double tan(double x) { return numpy::tan(x); }
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
METAL_FUNC double erf(double x) { return __builtin_erf(x); }

// As the one for floats, with polynomials of higher degrees: interpolated at Chebyshev's places,
// relative errors below 5e-17.
METAL_FUNC double erfinv(double x) {
  constexpr double low[] = {
      3.2407044593799019e-21l, -1.1134837698327019e-21l, -3.4996044354754178e-19l,
      1.150022252066253e-18l, 1.5574320246233252e-17l, -1.3016928016796445e-16l,
      -4.0282154327661742e-17l, 6.5964077124208341e-15l, -4.0012377350918959e-14l,
      -8.1183994430743532e-14l, 2.6304834740560441e-12l, -1.2976885526532076e-11l,
      -5.4142871980847161e-11l, 1.0512181539804127e-9l, -4.1126608200232401e-9l,
      -2.9070382262927266e-8l, 4.2347881737823393e-7l, -1.3654691850603575e-6l,
      -1.3882523394405317e-5l, 0.00018673420802464838l, -0.00074070253415447699l,
      -0.0060336708714278499l, 0.24015818242558832l, 1.6536545626831027l};
  constexpr double middle[] = {
      -1.5102695423335064e-8l, 6.969241977629694e-10l, 1.3104351499972014e-7l,
      -2.7134511054394561e-7l, -2.7004219280868946e-8l, 1.4987130784186126e-6l,
      -3.986084395214756e-6l, 2.9257291901789825e-6l, 1.2465167157087252e-5l,
      -4.7318984120112455e-5l, 6.8287086547533767e-5l, 2.4031257015092524e-5l,
      -0.00035503780975963811l, 0.00095328936374356372l, -0.0016882755357337072l,
      0.0024914420969817609l, -0.0037512085082155611l, 0.0053709145535716796l,
      1.0052589676941653l, 3.0838856104922206l};
  constexpr double high[] = {
      -9.9002433300356743e-12l, 1.4647802177936625e-11l, 7.6569920205700076e-11l,
      -3.0557794852107119e-10l, 7.1744391615656008e-10l, -1.6877439799651723e-9l,
      3.6623822092168959e-9l, -7.0398596168279896e-9l, 1.4470941585735901e-8l,
      -4.152263917857985e-8l, 1.693575853830829e-7l, -7.9624855196128587e-7l,
      3.747577389743533e-6l, -1.6589893725332541e-5l, 6.4690757802935802e-5l,
      -0.00017993907268887034l, -0.00021259950370020716l, 1.0102562759886649l, 4.9761913900162999l};
  const double w = -metal::log((1.0 - x) * (1.0 + x));
  const double root = metal::sqrt(w);
  const double p = w < 6.25     ? polynomial(low, w - 3.125)
                   : root < 4.0 ? polynomial(middle, root - 3.25)
                                : polynomial(high, root - 5.125);
  return metal::fabs(x) == 1.0 ? x * INFINITY : p * x;
}

}  // namespace numpy
