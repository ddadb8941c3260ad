// Complex numbers of generated kernels. Plain MSL.
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
METAL_FUNC complex<T> from_lane(complex<T> z, ushort distance) {
  return {from_lane(z.re, distance), from_lane(z.im, distance)};
}

}  // namespace numpy
