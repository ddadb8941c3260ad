// Cube roots of 32- and 64-bit floats. Plain MSL.
namespace numpy {

// An estimate of x^(-1/3) within 4 %: a third of the exponent, with the first digits of the mantissa
// as a line between powers of two (W. Kahan, "Computing a real cube root", 1991).
template <typename T>
METAL_FUNC T estimated_inverse_cube_root(T x) {
  if constexpr (sizeof(T) == 8) {
    return as_type<T>(0x553EE80000000000ul - (as_type<ulong>(x) >> 32) * 0x55555555ul);
  } else {
    return as_type<T>(0x54A21000u - as_type<uint>(x) / 3);
  }
}

// Steps of the series of (1 - h)^(-1/3), without divisions: after them the errors are 2e-5, and 6e-10
// of 64-bit floats. The last step squares the error, as it knows what the cube lacks exactly.
template <typename T>
METAL_FUNC T cube_root(T x) {
  constexpr bool is_wide = sizeof(T) == 8;
  const T size = metal::fabs(x), third = T(1) / T(3);
  const bool is_small = size < T(0x1p-126f);
  const T scaled = is_small ? size * T(is_wide ? 0x1p54f : 0x1p24f) : size;
  T inverse = estimated_inverse_cube_root(scaled);
  T h = metal::fma(-scaled * inverse, inverse * inverse, T(1));
  T series = metal::fma(h, T(14) / T(81), T(2) / T(9));
  series = metal::fma(h, series, third);
  inverse = metal::fma(inverse, h * series, inverse);
  if constexpr (is_wide) {
    h = metal::fma(-scaled * inverse, inverse * inverse, T(1));
    inverse = metal::fma(inverse, h * third, inverse);
  }
  const T of_square = inverse * inverse, root = scaled * of_square;
  const T square = root * root, square_low = metal::fma(root, root, -square);
  const T lacks = metal::fma(-square, root, scaled) - square_low * root;
  const T exact = metal::fma(lacks * of_square, third, root);
  const T result = is_small ? exact * T(is_wide ? 0x1p-18f : 0x1p-8f) : exact;
  return size < T(INFINITY) ? metal::copysign(result, x) : x;
}

template <typename T>
METAL_FUNC T cbrt(T x) { return T(cube_root(wide<T>(x))); }

}  // namespace numpy
