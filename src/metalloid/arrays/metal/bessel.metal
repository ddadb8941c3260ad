// Modified Bessel functions of the first kind, of orders 0 and 1. Plain MSL.
namespace numpy {

// The sum of c[k] x^(N - 1 - k).
template <ushort N>
METAL_FUNC float polynomial(const thread float (&c)[N], float x) {
  float sum = c[0];
  for (ushort k = 1; k < N; ++k) {
    sum = metal::fma(sum, x, c[k]);
  }
  return sum;
}

// The series in (x / 2)^2 up to 8; beyond, exp(x) / sqrt(x) times a polynomial of 1 / x, which
// interpolates at Chebyshev nodes. The exponential function would overflow before the result.
METAL_FUNC float bessel_i(float x, float near, float far) {
  const float size = metal::fabs(x);
  const float root = metal::exp(size > 80.0f ? 0.5f * size : size);
  const float rest = size > 80.0f ? root : 1.0f;
  return size <= 8.0f ? near : size == INFINITY ? size : root * (far / metal::sqrt(size)) * rest;
}
METAL_FUNC float i0(float x) {
  constexpr float near[] = {1.31578005e-22f, 2.57892889e-20f, 4.35838982e-18f,
      6.27608135e-16f, 7.59405843e-14f, 7.59405843e-12f, 6.15118733e-10f, 3.93675989e-8f,
      1.92901235e-6f, 6.94444444e-5f, 0.00173611111f, 0.0277777778f, 0.25f, 1.0f, 1.0f};
  constexpr float far[] = {3.36358022e-8f, 1.09102329e-7f, 3.03833091e-7f, 1.47547564e-6f,
      1.11415422e-5f, 0.000136217408f, 0.00336055203f, 0.402176509f};
  const float size = metal::fabs(x), half_size = 0.5f * metal::fmin(size, 8.0f);
  const float t = 16.0f / metal::fmax(size, 8.0f) - 1.0f;
  return bessel_i(x, polynomial(near, half_size * half_size), polynomial(far, t));
}
METAL_FUNC float i1(float x) {
  constexpr float near[] = {8.77186697e-24f, 1.84209206e-21f, 3.35260756e-19f,
      5.23006779e-17f, 6.90368948e-15f, 7.59405843e-13f, 6.83465259e-11f, 4.92094986e-9f,
      2.75573192e-7f, 1.15740741e-5f, 0.000347222222f, 0.00694444444f, 0.0833333333f, 0.5f,
      1.0f};
  constexpr float far[] = {-3.78560248e-8f, -1.23184197e-7f, -3.54819542e-7f, -1.82500694e-6f,
      -1.50370471e-5f, -0.000219237385f, -0.00974957724f, 0.389398459f};
  const float size = metal::fabs(x), half_size = 0.5f * metal::fmin(size, 8.0f);
  const float t = 16.0f / metal::fmax(size, 8.0f) - 1.0f;
  const float result = half_size * polynomial(near, half_size * half_size);
  return metal::copysign(bessel_i(x, result, polynomial(far, t)), x);
}

template <typename T>
METAL_FUNC T i0(T x) { return T(i0(float(x))); }
template <typename T>
METAL_FUNC T i1(T x) { return T(i1(float(x))); }

}  // namespace numpy
