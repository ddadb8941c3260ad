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
