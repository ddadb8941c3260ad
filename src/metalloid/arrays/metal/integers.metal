// Functions of integers. Plain MSL.
namespace numpy {

template <typename T>
METAL_FUNC make_unsigned_t<T> magnitude(T x) {
  return make_unsigned_t<T>(absolute(x));
}

// The bits of the absolute value, as in NumPy.
template <typename T>
METAL_FUNC uchar count_bits(T x) { return uchar(metal::popcount(magnitude(x))); }
METAL_FUNC uchar count_bits(bool x) { return x ? 1 : 0; }

// Euclid's algorithm.
template <typename T>
METAL_FUNC T gcd(T a, T b) {
  make_unsigned_t<T> x = magnitude(a), y = magnitude(b);
  while (y != 0) {
    const make_unsigned_t<T> rest = x % y;
    x = y;
    y = rest;
  }
  return T(x);
}
template <typename T>
METAL_FUNC T lcm(T a, T b) {
  const make_unsigned_t<T> divisor = make_unsigned_t<T>(gcd(a, b));
  return divisor == 0 ? T(0) : multiply(T(magnitude(a) / divisor), T(magnitude(b)));
}

}  // namespace numpy
