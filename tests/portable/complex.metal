#include <metal_stdlib>
using namespace metal;

// What generated kernels of arrays call: operations that MSL does not have, or that have other
// results there than NumPy's. Plain MSL.
namespace numpy {

// What numbers are computed in that are rounded once; MSL's own functions do so with half floats.
template <typename T>
using wide = conditional_t<sizeof(T) < 4, float, T>;

// Integers wrap around. MSL leaves the overflow of signed ones undefined, and short ones are
// computed as int.
template <typename T>
using wrapping = conditional_t<is_floating_point_v<T> || is_same_v<T, bfloat>, T,
                               conditional_t<sizeof(T) == 8, ulong, uint>>;

template <typename T>
METAL_FUNC T add(T a, T b) { return T(wrapping<T>(a) + wrapping<T>(b)); }
template <typename T>
METAL_FUNC T subtract(T a, T b) { return T(wrapping<T>(a) - wrapping<T>(b)); }
template <typename T>
METAL_FUNC T multiply(T a, T b) { return T(wrapping<T>(a) * wrapping<T>(b)); }
template <typename T>
METAL_FUNC T square(T x) { return multiply(x, x); }
METAL_FUNC bool add(bool a, bool b) { return a || b; }
METAL_FUNC bool multiply(bool a, bool b) { return a && b; }

template <typename T>
METAL_FUNC T negative(T x) {
  if constexpr (is_integral_v<T>) {
    return subtract(T(0), x);
  } else {
    return -x;
  }
}

template <typename T>
METAL_FUNC T absolute(T x) {
  if constexpr (is_integral_v<T>) {
    return x < T(0) ? negative(x) : x;
  } else {
    return metal::fabs(x);
  }
}
METAL_FUNC bool absolute(bool x) { return x; }

template <typename T>
METAL_FUNC T reciprocal(T x) { return T(1) / x; }

template <typename T>
METAL_FUNC bool isnan(T x) { return !(x == x); }
template <typename T>
METAL_FUNC bool isinf(T x) {
  if constexpr (is_integral_v<T>) {
    return false;
  } else {
    return x == x && !(x - x == x - x);
  }
}
template <typename T>
METAL_FUNC bool isfinite(T x) {
  if constexpr (is_integral_v<T>) {
    return true;
  } else {
    return x - x == x - x;
  }
}

// NaN if one of them is, as in NumPy; MSL's max and min give the other number.
template <typename T>
METAL_FUNC T maximum(T a, T b) { return a > b || isnan(a) ? a : b; }
template <typename T>
METAL_FUNC T minimum(T a, T b) { return a < b || isnan(a) ? a : b; }

template <typename T>
METAL_FUNC T sign(T x) {
  return isnan(x) ? x : T(int(x > T(0)) - int(x < T(0)));
}

template <typename T>
METAL_FUNC T floor(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::floor(x);
  }
}
template <typename T>
METAL_FUNC T ceil(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::ceil(x);
  }
}
template <typename T>
METAL_FUNC T trunc(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::trunc(x);
  }
}
template <typename T>
METAL_FUNC T round(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::rint(x);
  }
}

// Division by zero gives zero; the least number divided by -1 is itself.
template <typename T>
METAL_FUNC T floor_divide_integers(T a, T b) {
  if (b == T(0)) {
    return T(0);
  }
  if (b == T(-1) && T(-1) < T(0)) {
    return negative(a);
  }
  const T quotient = a / b;
  return a % b != T(0) && (a < T(0)) != (b < T(0)) ? T(quotient - 1) : quotient;
}
// Quotients of infinities and by them stay what they are: the standard asks for it, while NumPy has
// NaN for inf // 2 and -1 for 1 // -inf. The rounded quotient of others may be a whole number off;
// the exact remainder tells how many.
template <typename T>
METAL_FUNC T floor_divide_floats(T a, T b) {
  if (b == T(0) || isinf(a) || isinf(b)) {
    return a / b;
  }
  const T rest = metal::fmod(a, b);
  const bool is_above = rest != T(0) && (b < T(0)) != (rest < T(0));
  T quotient = metal::rint((a - rest) / b);
  if (metal::fabs(quotient) < T(1) / numeric_limits<T>::epsilon()) {
    quotient += metal::rint((metal::fma(-quotient, b, a) - rest) / b);
  }
  quotient -= is_above ? T(1) : T(0);
  return quotient == T(0) ? metal::copysign(T(0), a / b) : quotient;
}
template <typename T>
METAL_FUNC T floor_divide(T a, T b) {
  if constexpr (is_integral_v<T>) {
    return floor_divide_integers(a, b);
  } else {
    return T(floor_divide_floats(wide<T>(a), wide<T>(b)));
  }
}

template <typename T>
METAL_FUNC T remainder(T a, T b) {
  if constexpr (is_integral_v<T>) {
    if (b == T(0) || (b == T(-1) && T(-1) < T(0))) {
      return T(0);
    }
    const T rest = a % b;
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
  } else {
    const wide<T> divisor = wide<T>(b), rest = metal::fmod(wide<T>(a), divisor);
    if (rest == wide<T>(0)) {
      return metal::copysign(T(0), b);
    }
    return T((b < T(0)) != (rest < wide<T>(0)) ? rest + divisor : rest);
  }
}

// Of integers by repeated squares; of negative exponents what is left of the fraction.
template <typename T>
METAL_FUNC T power(T a, T b) {
  if constexpr (is_integral_v<T>) {
    if (b < T(0)) {
      const T odd = T(b & T(1));
      return a == T(1) ? T(1) : a == T(-1) ? (odd != T(0) ? a : T(1)) : T(0);
    }
    T result = T(1);
    for (wrapping<T> left = wrapping<T>(b); left != 0; left >>= 1) {
      result = (left & 1) != 0 ? multiply(result, a) : result;
      a = multiply(a, a);
    }
    return result;
  } else {
    return metal::pow(a, b);
  }
}

// W. Kahan's two, exact where e^x - 1 or log(1 + x) would cancel: the error of the rounded
// argument is divided out. N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 1.14.1.
template <typename T>
METAL_FUNC T expm1(T value) {
  const wide<T> one = wide<T>(1), x = wide<T>(value), power = metal::exp(x), less = power - one;
  if (power == one) {
    return value;
  }
  return T(less == -one || isinf(power) ? less : less * (x / metal::log(power)));
}
template <typename T>
METAL_FUNC T log1p(T value) {
  const wide<T> one = wide<T>(1), x = wide<T>(value), more = one + x;
  if (more == one) {
    return value;
  }
  return T(more == wide<T>(INFINITY) ? more : metal::log(more) * (x / (more - one)));
}

template <typename T>
METAL_FUNC T logaddexp(T a, T b) {
  const wide<T> high = wide<T>(maximum(a, b)), low = wide<T>(minimum(a, b));
  const bool is_special = isinf(high) || isnan(high);
  return T(is_special ? high : high + log1p(metal::exp(low - high)));
}

// The numbers are scaled by a power of two, so that their squares are normal floats.
template <typename T>
METAL_FUNC T hypot(T a, T b) {
  if (isinf(a) || isinf(b)) {
    return T(INFINITY);
  }
  const float x = metal::fabs(float(a)), y = metal::fabs(float(b)), high = maximum(x, y);
  const float scale = high > 0x1p62f ? 0x1p-66f : high < 0x1p-62f ? 0x1p88f : 1.0f;
  const float larger = scale * high, smaller = scale * minimum(x, y);
  return T(metal::sqrt(metal::fma(larger, larger, smaller * smaller)) / scale);
}

template <typename T>
METAL_FUNC T atan2(T y, T x) { return metal::atan2(y, x); }

template <typename T>
METAL_FUNC T invert(T x) { return T(~x); }
METAL_FUNC bool invert(bool x) { return !x; }

// Shifts by the number of bits or more leave nothing but the sign.
// In two steps, neither of them too long: a test clang would leave to an instruction of NVIDIA's,
// which looks at 32 of 64 bits. Negative amounts are large.
template <typename T>
METAL_FUNC T shift_left(T x, T amount) {
  const uint all = uint(metal::min(wrapping<T>(amount), wrapping<T>(8 * sizeof(T))));
  return T(wrapping<T>(x) << (all / 2) << (all - all / 2));
}
template <typename T>
METAL_FUNC T shift_right(T x, T amount) {
  const uint all = uint(metal::min(wrapping<T>(amount), wrapping<T>(8 * sizeof(T))));
  return T(x >> (all / 2) >> (all - all / 2));
}

template <typename T>
METAL_FUNC T real(T x) { return x; }
template <typename T>
METAL_FUNC T imag(T) { return T(0); }
template <typename T>
METAL_FUNC T conj(T x) { return x; }

// What an integer type cannot hold becomes the nearest number that it can, and NaN becomes 0: C++
// leaves both undefined, and NumPy has what the processor does.
template <typename To, typename From>
METAL_FUNC To cast(From x) {
  if constexpr (is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_integral_v<To> && !is_integral_v<From>) {
    // The greatest one is rounded up, if at all, so that all below it fit.
    const From least = From(numeric_limits<To>::min()), greatest = From(numeric_limits<To>::max());
    if (x >= greatest) {
      return numeric_limits<To>::max();
    }
    return x > least ? To(x) : isnan(x) ? To(0) : numeric_limits<To>::min();
  } else if constexpr (sizeof(From) == 2 && !is_integral_v<From>) {
    return To(float(x));  // half and bfloat have no conversion to each other
  } else {
    return To(x);
  }
}

// The least and the greatest number of a type: what maxima and minima start from.
template <typename T>
METAL_FUNC T lowest() {
  if constexpr (is_integral_v<T>) {
    return numeric_limits<T>::min();
  } else {
    return T(-INFINITY);
  }
}
template <typename T>
METAL_FUNC T highest() {
  if constexpr (is_integral_v<T>) {
    return numeric_limits<T>::max();
  } else {
    return T(INFINITY);
  }
}

}  // namespace numpy

// Complex numbers of generated kernels: the type and its arithmetic. Plain MSL.
template <typename T>
struct complex {
  T re;
  T im;

  complex() = default;
  constexpr complex(T re, T im = T(0)) : re(re), im(im) {}
};

namespace numpy {

template <typename T>
METAL_FUNC complex<T> add(complex<T> a, complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <typename T>
METAL_FUNC complex<T> subtract(complex<T> a, complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <typename T>
METAL_FUNC complex<T> multiply(complex<T> a, complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Of half the number, so that nothing overflows that does not in the result.
template <typename T>
METAL_FUNC complex<T> square(complex<T> z) {
  const T re = T(0.5) * z.re, im = T(0.5) * z.im;
  return {T(4) * ((re - im) * (re + im)), T(8) * (re * im)};
}
template <typename T>
METAL_FUNC complex<T> negative(complex<T> z) { return {-z.re, -z.im}; }
template <typename T>
METAL_FUNC T absolute(complex<T> z) { return hypot(z.re, z.im); }

template <typename T>
METAL_FUNC T real(complex<T> z) { return z.re; }
template <typename T>
METAL_FUNC T imag(complex<T> z) { return z.im; }
template <typename T>
METAL_FUNC complex<T> conj(complex<T> z) { return {z.re, -z.im}; }
template <typename T>
METAL_FUNC complex<T> round(complex<T> z) { return {metal::rint(z.re), metal::rint(z.im)}; }

template <typename T>
METAL_FUNC bool isnan(complex<T> z) { return isnan(z.re) || isnan(z.im); }
template <typename T>
METAL_FUNC bool isinf(complex<T> z) { return isinf(z.re) || isinf(z.im); }
template <typename T>
METAL_FUNC bool isfinite(complex<T> z) { return isfinite(z.re) && isfinite(z.im); }

template <typename T>
constant constexpr bool is_complex = false;
template <typename T>
constant constexpr bool is_complex<complex<T>> = true;

// To a real type: the real part.
template <typename To, typename T>
METAL_FUNC To cast(complex<T> z) {
  if constexpr (is_complex<To>) {
    return {decltype(To::re)(z.re), decltype(To::re)(z.im)};
  } else if constexpr (is_same_v<To, bool>) {
    return z.re != T(0) || z.im != T(0);
  } else {
    return cast<To>(z.re);
  }
}

template <typename T>
METAL_FUNC complex<T> from_lane(complex<T> z, ushort distance) {
  return {from_lane(z.re, distance), from_lane(z.im, distance)};
}

// The larger of the parts.
template <typename T>
METAL_FUNC T extent(complex<T> z) { return maximum(metal::fabs(z.re), metal::fabs(z.im)); }

// A power of 4 that keeps sums and quotients of parts of this size in the range of normal numbers.
template <typename T>
METAL_FUNC T middle_scale(T extent) {
  const bool is_huge = extent > T(0.0625) * numeric_limits<T>::max();
  const bool is_tiny = extent < T(0x1p54f) * numeric_limits<T>::min();
  return is_huge ? T(0x1p-6f) : is_tiny ? T(0x1p54f) : T(1);
}

// a b + c d, with the error of one rounding (W. Kahan; C.-P. Jeannerod, N. Louvet, J.-M. Muller,
// "Further analysis of Kahan's algorithm for the accurate computation of 2 x 2 determinants").
template <typename T>
METAL_FUNC T sum_of_products(T a, T b, T c, T d) {
  const T second = c * d;
  const T error = metal::fma(c, d, -second);
  return metal::fma(a, b, second) + (isfinite(error) ? error : T(0));
}

// 1 with a number's sign if it is infinite, else a zero.
template <typename T>
METAL_FUNC T direction(T x) { return metal::copysign(isinf(x) ? T(1) : T(0), x); }

// What the formula cannot tell: quotients of infinities, and by zero (C99, G.5.1).
template <typename T>
METAL_FUNC complex<T> special_quotient(complex<T> a, complex<T> b) {
  const T infinity = T(INFINITY);
  T scale = T(NAN);
  if (b.re == T(0) && b.im == T(0)) {
    scale = metal::copysign(infinity, b.re);
    return {scale * a.re, scale * a.im};
  }
  if (isinf(a) && isfinite(b)) {
    a = {direction(a.re), direction(a.im)};
    scale = infinity;
  } else if (isinf(b) && isfinite(a)) {
    b = {direction(b.re), direction(b.im)};
    scale = T(0);
  }
  return {scale * (a.re * b.re + a.im * b.im), scale * (a.im * b.re - a.re * b.im)};
}

}  // namespace numpy

template <typename T>
METAL_FUNC bool operator==(complex<T> a, complex<T> b) { return a.re == b.re && a.im == b.im; }
template <typename T>
METAL_FUNC bool operator!=(complex<T> a, complex<T> b) { return !(a == b); }

// Both numbers are scaled first, so that no intermediate result overflows or underflows that is not in
// the result (the example of C99, G.5.1, which scales the divisor).
template <typename T>
METAL_FUNC complex<T> operator/(complex<T> a, complex<T> b) {
  const T extent = numpy::extent(b);
  const bool is_plain = extent != T(0) && numpy::isfinite(extent);
  const int exponent = is_plain ? metal::ilogb(extent) : 0;
  const T re = metal::ldexp(b.re, -exponent), im = metal::ldexp(b.im, -exponent);
  const T scale = numpy::middle_scale(numpy::extent(a));
  const T across = scale * a.re, up = scale * a.im;
  const T square = metal::fma(re, re, im * im);
  const complex<T> quotient = {
      metal::ldexp(numpy::sum_of_products(across, re, up, im) / square, -exponent) / scale,
      metal::ldexp(numpy::sum_of_products(up, re, -across, im) / square, -exponent) / scale};
  const bool is_special = numpy::isnan(quotient.re) && numpy::isnan(quotient.im);
  return is_special ? numpy::special_quotient(a, b) : quotient;
}

namespace numpy {

template <typename T>
METAL_FUNC complex<T> reciprocal(complex<T> z) { return complex<T>(T(1)) / z; }

// The point of the unit circle in the direction of a number.
template <typename T>
METAL_FUNC complex<T> sign(complex<T> z) {
  if (isnan(z) || (isinf(z.re) && isinf(z.im))) {
    return {T(NAN), T(NAN)};
  }
  if (isinf(z)) {
    z = {direction(z.re), direction(z.im)};
  }
  const T scale = middle_scale(extent(z));
  const T length = hypot(scale * z.re, scale * z.im);
  if (length == T(0)) {
    return {T(0), T(0)};
  }
  return {scale * z.re / length, scale * z.im / length};
}

}  // namespace numpy

// The elementary functions of complex numbers. Plain MSL.
//
// Infinities, NaN and the signs of zeros are as C99, Annex G, has them. The formulas are those of
// W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit"
// (1987), where nothing else is said.

namespace numpy {

// Above this e^x overflows, or is near it.
template <typename T>
METAL_FUNC T exp_limit() { return sizeof(T) == 8 ? T(709) : T(88); }
// Above this 1 + x is x.
template <typename T>
METAL_FUNC T large() { return T(4) / numeric_limits<T>::epsilon(); }

// e^x (cos y, sin y) / divisor for a power of two, which may be finite where e^x is not.
template <typename T>
METAL_FUNC complex<T> exp_of(T x, T y, T divisor) {
  const T sine = metal::sin(y), cosine = metal::cos(y);
  if (x > exp_limit<T>()) {
    const T root = metal::exp(T(0.5) * x), rest = root / divisor;
    return {root * cosine * rest, root * sine * rest};
  }
  const T power = metal::exp(x) / divisor;
  return {power * cosine, power * sine};
}

}  // namespace numpy

template <typename T>
METAL_FUNC complex<T> exp(complex<T> z) {
  if (z.im == T(0)) {
    return {metal::exp(z.re), z.im};
  }
  if (numpy::isfinite(z.im)) {
    return numpy::exp_of(z.re, z.im, T(1));
  }
  if (z.re == -T(INFINITY)) {
    return {T(0), metal::copysign(T(0), z.im)};
  }
  return {z.re == T(INFINITY) ? z.re : T(NAN), T(NAN)};
}

template <typename T>
METAL_FUNC complex<T> sinh(complex<T> z) {
  if (z.im == T(0)) {
    return {metal::sinh(z.re), z.im};
  }
  if (!numpy::isfinite(z.im)) {
    return {z.re == T(0) || numpy::isinf(z.re) ? z.re : T(NAN), T(NAN)};
  }
  const T size = metal::fabs(z.re);
  if (size > numpy::exp_limit<T>()) {
    const complex<T> power = numpy::exp_of(size, z.im, T(2));
    return {z.re < T(0) ? -power.re : power.re, power.im};
  }
  return {metal::sinh(z.re) * metal::cos(z.im), metal::cosh(z.re) * metal::sin(z.im)};
}

template <typename T>
METAL_FUNC complex<T> cosh(complex<T> z) {
  if (z.im == T(0)) {
    return {metal::cosh(z.re), signbit(z.re) ? -z.im : z.im};
  }
  if (!numpy::isfinite(z.im)) {
    return {numpy::isinf(z.re) ? T(INFINITY) : T(NAN), z.re == T(0) ? T(0) : T(NAN)};
  }
  const T size = metal::fabs(z.re);
  if (size > numpy::exp_limit<T>()) {
    const complex<T> power = numpy::exp_of(size, z.im, T(2));
    return {power.re, z.re < T(0) ? -power.im : power.im};
  }
  return {metal::cosh(z.re) * metal::cos(z.im), metal::sinh(z.re) * metal::sin(z.im)};
}

template <typename T>
METAL_FUNC complex<T> tanh(complex<T> z) {
  const T size = metal::fabs(z.re), unit = metal::copysign(T(1), z.re);
  if (z.im == T(0)) {
    return {metal::tanh(z.re), z.im};
  }
  if (numpy::isinf(z.re)) {
    return {unit, metal::copysign(T(0), z.im)};
  }
  if (!numpy::isfinite(z.im)) {
    return {z.re == T(0) ? z.re : T(NAN), T(NAN)};
  }
  if (size > T(0.25) * numpy::exp_limit<T>()) {
    const T power = metal::exp(-size);
    return {unit, T(4) * metal::sin(z.im) * metal::cos(z.im) * power * power};
  }
  const T tangent = metal::tan(z.im), sine = metal::sinh(z.re);
  const T derivative = T(1) + tangent * tangent;
  const T divisor = T(1) + derivative * sine * sine;
  return {derivative * metal::sqrt(T(1) + sine * sine) * sine / divisor, tangent / divisor};
}

// Each of these is the hyperbolic function of iz, divided by i.
template <typename T>
METAL_FUNC complex<T> swapped(complex<T> z) { return {z.im, z.re}; }
template <typename T>
METAL_FUNC complex<T> sin(complex<T> z) { return swapped(sinh(swapped(z))); }
template <typename T>
METAL_FUNC complex<T> cos(complex<T> z) { return cosh(complex<T>(-z.im, z.re)); }
template <typename T>
METAL_FUNC complex<T> tan(complex<T> z) { return swapped(tanh(swapped(z))); }

template <typename T>
METAL_FUNC complex<T> sqrt(complex<T> z) {
  if (z.re == T(0) && z.im == T(0)) {
    return {T(0), z.im};
  }
  if (numpy::isinf(z.im)) {
    return {T(INFINITY), z.im};
  }
  if (numpy::isinf(z.re)) {
    const T other = numpy::isnan(z.im) ? z.im : T(0);
    return z.re > T(0) ? complex<T>(z.re, metal::copysign(other, z.im))
                       : complex<T>(other, metal::copysign(z.re, z.im));
  }
  const T scale = numpy::middle_scale(numpy::extent(z));
  const T re = scale * z.re, im = scale * z.im, size = metal::fabs(re);
  const T root = metal::sqrt(T(0.5) * (size + numpy::hypot(re, im)));
  const T back = T(1) / metal::sqrt(scale), far = back * root, near = back * (T(0.5) * im / root);
  return re < T(0) ? complex<T>(metal::fabs(near), metal::copysign(far, im))
                   : complex<T>(far, near);
}

namespace numpy {

// log |1 + x + iy| for numbers of moderate size. The argument of log1p is summed with the errors of
// its terms, so that it is right where they cancel, near the unit circle.
template <typename T>
METAL_FUNC T log_of_modulus(T x, T y) {
  const T xx = x * x, yy = y * y, twice = x + x;
  const T high = twice + xx, from_x = high - twice;
  const T sum = high + yy, from_y = sum - high;
  const T errors = (metal::fma(x, x, -xx) + metal::fma(y, y, -yy)) +
                   ((twice - (high - from_x)) + (xx - from_x)) +
                   ((high - (sum - from_y)) + (yy - from_y));
  const T excess = sum + errors;
  return excess == T(0) ? x : T(0.5) * log1p(excess);
}

}  // namespace numpy

// Near the unit circle as T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, "Implementing complex
// elementary functions using exception handling" (1994), have it.
template <typename T>
METAL_FUNC complex<T> log(complex<T> z) {
  const T x = metal::fabs(z.re), y = metal::fabs(z.im), angle = metal::atan2(z.im, z.re);
  const T high = numpy::maximum(x, y), low = numpy::minimum(x, y);
  if (numpy::isinf(z)) {
    return {T(INFINITY), angle};
  }
  if (high >= T(0.5) && high <= T(2)) {
    return {numpy::log_of_modulus(high - T(1), low), angle};
  }
  const T ratio = low == T(0) ? T(0) : low / high;
  return {metal::log(high) + T(0.5) * numpy::log1p(ratio * ratio), angle};
}
template <typename T>
METAL_FUNC complex<T> log2(complex<T> z) {
  const complex<T> w = log(z);
  return {w.re / metal::log(T(2)), w.im / metal::log(T(2))};
}
template <typename T>
METAL_FUNC complex<T> log10(complex<T> z) {
  const complex<T> w = log(z);
  return {w.re / metal::log(T(10)), w.im / metal::log(T(10))};
}

namespace numpy {

template <typename T>
METAL_FUNC complex<T> log1p(complex<T> z) {
  if (metal::fabs(z.re) < T(0.5) && metal::fabs(z.im) < T(2)) {
    return {log_of_modulus(z.re, z.im), metal::atan2(z.im, T(1) + z.re)};
  }
  return log(complex<T>(T(1) + z.re, z.im));
}

template <typename T>
METAL_FUNC complex<T> expm1(complex<T> z) {
  if (z.im == T(0)) {
    return {expm1(z.re) + T(0), z.im};  // of -0, too, it is +0
  }
  const complex<T> power = exp(z);
  if (!isfinite(z.im) || metal::fabs(z.re) > T(20)) {
    return {power.re - T(1), power.im};
  }
  const T sine = metal::sin(T(0.5) * z.im);
  return {expm1(z.re) * metal::cos(z.im) - T(2) * sine * sine, power.im};
}

// By repeated squares, which keeps what is whole so.
template <typename T>
METAL_FUNC complex<T> integer_power(complex<T> base, int exponent) {
  base = exponent < 0 ? reciprocal(base) : base;
  complex<T> result = T(1);
  for (int left = metal::abs(exponent); left != 0; left >>= 1) {
    result = (left & 1) != 0 ? multiply(result, base) : result;
    base = multiply(base, base);
  }
  return result;
}
template <typename T>
METAL_FUNC complex<T> power(complex<T> a, complex<T> b) {
  if (a.re == T(0) && a.im == T(0) && (b.re != T(0) || b.im != T(0))) {
    return b.re > T(0) ? complex<T>(T(0)) : complex<T>(T(NAN), T(NAN));
  }
  if (b.im == T(0) && b.re == metal::trunc(b.re) && metal::fabs(b.re) < T(100)) {
    const complex<T> result = integer_power(a, int(b.re));
    if (isfinite(result)) {
      return result;
    }
  }
  const complex<T> logarithm = log(a);
  return exp(complex<T>(sum_of_products(b.re, logarithm.re, -b.im, logarithm.im),
                        sum_of_products(b.re, logarithm.im, b.im, logarithm.re)));
}

}  // namespace numpy

// The angle and the height of asin; acos has the height with the other sign. No sum in these
// formulas cancels.
template <typename T>
METAL_FUNC complex<T> asin_of_finite(complex<T> z) {
  const complex<T> a = sqrt(complex<T>(T(1) - z.re, -z.im));
  const complex<T> b = sqrt(complex<T>(T(1) + z.re, z.im));
  return {metal::atan2(z.re, a.re * b.re - a.im * b.im),
          metal::asinh(a.re * b.im - a.im * b.re)};
}

// Where 1 is too small to matter it is log 2z, in the right half plane.
template <typename T>
METAL_FUNC complex<T> asinh(complex<T> z) {
  if (numpy::isnan(z) && !numpy::isinf(z)) {
    return {T(NAN), z.im == T(0) ? z.im : T(NAN)};
  }
  if (numpy::isnan(z)) {
    return numpy::isinf(z.re) ? z : complex<T>(z.im, T(NAN));
  }
  if (numpy::extent(z) > numpy::large<T>()) {
    const complex<T> w = log(complex<T>(metal::fabs(z.re), z.im));
    return {metal::copysign(w.re + metal::log(T(2)), z.re), w.im};
  }
  return swapped(asin_of_finite(swapped(z)));
}
template <typename T>
METAL_FUNC complex<T> asin(complex<T> z) { return swapped(asinh(swapped(z))); }

template <typename T>
METAL_FUNC complex<T> acos(complex<T> z) {
  if (numpy::isnan(z)) {
    const T height = numpy::isinf(z.re) ? T(INFINITY) : numpy::isinf(z.im) ? z.im : T(NAN);
    return {z.re == T(0) ? metal::acos(T(0)) : T(NAN), -height};
  }
  if (numpy::extent(z) > numpy::large<T>()) {
    const complex<T> w = log(z);
    const T height = w.re + metal::log(T(2));
    return {metal::fabs(w.im), signbit(z.im) ? height : -height};
  }
  const complex<T> a = sqrt(complex<T>(T(1) - z.re, -z.im));
  const complex<T> b = sqrt(complex<T>(T(1) + z.re, z.im));
  return {T(2) * metal::atan2(a.re, b.re), -asin_of_finite(z).im};
}
template <typename T>
METAL_FUNC complex<T> acosh(complex<T> z) {
  const complex<T> w = acos(z);
  return {metal::fabs(w.im), metal::copysign(w.re, z.im)};
}

template <typename T>
METAL_FUNC complex<T> atanh(complex<T> z) {
  const T x = metal::fabs(z.re), y = metal::fabs(z.im);
  const T quarter = metal::copysign(metal::acos(T(0)), z.im);
  if (z.re == T(0)) {
    return {z.re, metal::atan(z.im)};
  }
  if (z.im == T(0) && x <= T(1)) {
    return {metal::atanh(z.re), z.im};
  }
  if (numpy::isnan(z)) {
    return {numpy::isinf(z) ? metal::copysign(T(0), z.re) : T(NAN),
            numpy::isinf(z.im) ? quarter : T(NAN)};
  }
  if (x > numpy::large<T>() || y > numpy::large<T>()) {
    return {metal::copysign(numpy::reciprocal(z).re, z.re), quarter};
  }
  const T aside = x - T(1);
  const T re = aside == T(0) && y < T(1) / numpy::large<T>()
                   ? T(0.5) * (metal::log(T(2)) - metal::log(y))
                   : T(0.25) * numpy::log1p(T(4) * x / (aside * aside + y * y));
  const T im = T(0.5) * metal::atan2(y + y, -aside * (T(1) + x) - y * y);
  return {metal::copysign(re, z.re), metal::copysign(im, z.im)};
}
template <typename T>
METAL_FUNC complex<T> atan(complex<T> z) { return swapped(atanh(swapped(z))); }

struct Params {
  long p0_start;
  float n2_real;
  float n2_imag;
};

kernel void array_astype_multiply_exp(
    device const float *x0 [[buffer(0)]],
    device complex<float> *out [[buffer(1)]],
    constant Params &params [[buffer(2)]],
    uint3 at [[thread_position_in_grid]])
{
  device const float *p0 = x0 + params.p0_start;
  device complex<float> *to = out;
  const float v0 = p0[at.x];
  const complex<float> v1 = numpy::cast<complex<float>>(v0);
  const complex<float> v2 = complex<float>(params.n2_real, params.n2_imag);
  const complex<float> v3 = numpy::multiply(v1, v2);
  const complex<float> v4 = exp(v3);
  to[at.x] = v4;
}
