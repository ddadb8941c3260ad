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
