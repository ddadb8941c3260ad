// Special functions of generated kernels. Plain MSL.
namespace numpy {

// x + x Q(x^2) near zero; beyond, erfc is the exponential function of a polynomial. Both were
// fitted by weighted least squares and add 0.02 ULP to the errors of rounding.
METAL_FUNC float erf(float x) {
  const float size = metal::fabs(x), square = x * x;
  float near = 7.853844e-05f;
  near = fma(near, square, -8.01018847e-04f);
  near = fma(near, square, 5.18832728e-03f);
  near = fma(near, square, -2.6853811e-02f);
  near = fma(near, square, 1.12835854e-01f);
  near = fma(near, square, -3.7612626e-01f);
  near = fma(near, square, 1.28379166e-01f);
  const float t = metal::fmin(size, 4.0f);
  float far = 1.86379824e-04f;
  far = fma(far, t, -2.94766459e-03f);
  far = fma(far, t, 2.18380895e-02f);
  far = fma(far, t, -1.03106804e-01f);
  far = fma(far, t, -6.38144791e-01f);
  far = fma(far, t, -1.12708926f);
  far = fma(far, t, -3.41514009e-04f);
  // The comparison is false for NaN.
  return size >= 1.0f ? metal::copysign(1.0f - metal::exp(far), x) : fma(near, x, x);
}

// M. Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition, 2011.
METAL_FUNC float erfinv(float x) {
  const float w = -metal::log((1.0f - x) * (1.0f + x));
  const bool is_central = w < 5.0f;
  const float t = is_central ? w - 2.5f : metal::sqrt(w) - 3.0f;
  float p = is_central ? 2.81022636e-08f : -2.00214257e-04f;
  p = fma(p, t, is_central ? 3.43273939e-07f : 1.00950558e-04f);
  p = fma(p, t, is_central ? -3.5233877e-06f : 1.34934322e-03f);
  p = fma(p, t, is_central ? -4.39150654e-06f : -3.67342844e-03f);
  p = fma(p, t, is_central ? 2.1858087e-04f : 5.73950773e-03f);
  p = fma(p, t, is_central ? -1.25372503e-03f : -7.6224613e-03f);
  p = fma(p, t, is_central ? -4.17768164e-03f : 9.43887047e-03f);
  p = fma(p, t, is_central ? 2.46640727e-01f : 1.00167406f);
  p = fma(p, t, is_central ? 1.50140941f : 2.83297682f);
  return metal::fabs(x) == 1.0f ? x * INFINITY : p * x;
}

template <typename T>
METAL_FUNC T erf(T x) { return T(erf(float(x))); }
template <typename T>
METAL_FUNC T erfinv(T x) { return T(erfinv(float(x))); }

}  // namespace numpy
