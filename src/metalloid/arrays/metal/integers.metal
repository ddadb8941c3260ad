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

// Eight truth values as the bits of a byte, the first one as the highest bit. The product adds them
// up in the highest byte of a word: each at a distance of its own.
template <bool is_aligned>
METAL_FUNC uchar pack_bits(device const uchar *x, bool is_little) {
  uchar packed = 0;
  if (is_aligned) {
    packed = uchar((*(device const ulong *)x * 0x8040201008040201ul) >> 56);
  } else {
    for (ushort k = 0; k < 8; ++k) {
      packed |= uchar(x[k] << (7 - k));
    }
  }
  return is_little ? reverse_bits(packed) : packed;
}

// The bits of a byte as eight bytes of 0 or 1, the highest bit first.
METAL_FUNC ulong unpack_bits(uchar packed, bool is_little) {
  const ulong bits = is_little ? reverse_bits(packed) : packed;
  return ((bits * 0x8040201008040201ul) >> 7) & 0x0101010101010101ul;
}

}  // namespace numpy
