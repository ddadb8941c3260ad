// Fourier transforms of rows by simdgroups: the passes of Stockham's algorithm, whose lanes have
// neighbouring numbers in all passes but the first two (D. Bailey, "FFTs in external or
// hierarchical memory", 1990). Real and imaginary parts are in separate planes. Lengths are
// multiples of 32.
//
// The pass after `done` numbers are transformed, of `radix` r, reads x[q + done (p + m k)] for
// k < r and writes y[q + done (r p + k)] for all q < done, p < m. An inverse transform exchanges
// real and imaginary parts of what it reads and writes.
namespace numpy {

template <typename T>
struct Complex {
  T re, im;
};

template <typename T>
METAL_FUNC Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}

template <typename T>
METAL_FUNC Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}

template <typename T>
METAL_FUNC Complex<T> operator*(Complex<T> a, Complex<T> b) {
  #pragma clang fp contract(fast)
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// -i a.
template <typename T>
METAL_FUNC Complex<T> times_minus_i(Complex<T> a) {
  return {a.im, -a.re};
}

// SplitComplex of numbers, one plane after the other.
template <typename T, typename Pointer>
struct SplitComplex {
  Pointer memory;
  uint size;

  METAL_FUNC Complex<T> at(uint i) const { return {memory[i], memory[size + i]}; }
  METAL_FUNC void put(uint i, Complex<T> x) const {
    memory[i] = x.re;
    memory[size + i] = x.im;
  }
};

template <typename T>
struct ComplexRow {
  device const T *values;
  bool is_inverse;

  METAL_FUNC Complex<T> at(uint i) const {
    const T re = values[2 * i], im = values[2 * i + 1];
    return is_inverse ? Complex<T>{im, re} : Complex<T>{re, im};
  }
};

template <typename T>
struct ComplexResult {
  device T *values;
  T scale;
  bool is_inverse;

  METAL_FUNC void put(uint i, Complex<T> x) const {
    values[2 * i] = scale * (is_inverse ? x.im : x.re);
    values[2 * i + 1] = scale * (is_inverse ? x.re : x.im);
  }
};

template <typename T, uint radix>
METAL_FUNC void transform_radix(thread Complex<T> (&a)[radix]) {
  if constexpr (radix == 2) {
    const Complex<T> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  } else if constexpr (radix == 3) {
    const T sine = T(0.86602540378443864676l);
    const Complex<T> sum = a[1] + a[2], difference = times_minus_i(a[1] - a[2]);
    const Complex<T> even{a[0].re - T(0.5) * sum.re, a[0].im - T(0.5) * sum.im};
    const Complex<T> odd{sine * difference.re, sine * difference.im};
    a[0] = a[0] + sum;
    a[1] = even + odd;
    a[2] = even - odd;
  } else if constexpr (radix == 4) {
    const Complex<T> even = a[0] + a[2], odd = a[1] + a[3];
    const Complex<T> other = a[0] - a[2], rotated = times_minus_i(a[1] - a[3]);
    a[0] = even + odd;
    a[1] = other + rotated;
    a[2] = even - odd;
    a[3] = other - rotated;
  } else if constexpr (radix == 5) {
    const T c1 = T(0.30901699437494742410l), c2 = T(-0.80901699437494742410l);
    const T s1 = T(0.95105651629515357212l), s2 = T(0.58778525229247312917l);
    const Complex<T> u = a[1] + a[4], v = a[2] + a[3];
    const Complex<T> f = times_minus_i(a[1] - a[4]), g = times_minus_i(a[2] - a[3]);
    const Complex<T> e1{a[0].re + c1 * u.re + c2 * v.re, a[0].im + c1 * u.im + c2 * v.im};
    const Complex<T> e2{a[0].re + c2 * u.re + c1 * v.re, a[0].im + c2 * u.im + c1 * v.im};
    const Complex<T> o1{s1 * f.re + s2 * g.re, s1 * f.im + s2 * g.im};
    const Complex<T> o2{s2 * f.re - s1 * g.re, s2 * f.im - s1 * g.im};
    a[0] = a[0] + u + v;
    a[1] = e1 + o1;
    a[4] = e1 - o1;
    a[2] = e2 + o2;
    a[3] = e2 - o2;
  } else {
    const T diagonal = T(0.70710678118654752440l);
    Complex<T> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    transform_radix<T, 4>(even);
    transform_radix<T, 4>(odd);
    odd[1] = {diagonal * (odd[1].re + odd[1].im), diagonal * (odd[1].im - odd[1].re)};
    odd[2] = times_minus_i(odd[2]);
    odd[3] = {diagonal * (odd[3].im - odd[3].re), diagonal * (-odd[3].re - odd[3].im)};
    #pragma clang loop unroll(full)
    for (uint k = 0; k < 4; ++k) {
      a[k] = even[k] + odd[k];
      a[k + 4] = even[k] - odd[k];
    }
  }
}

// The first pass: 32 values of p. The result has memory for a multiple of 256 numbers.
template <typename T, typename From, typename To, typename Table>
METAL_FUNC void first_pass(From from, To to, Table twiddles, uint length, uint block, ushort lane) {
  const uint m = length / 8, p = 32 * block + lane;
  Complex<T> a[8];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < 8; ++k) {
    a[k] = {T(0), T(0)};
    if (p < m) {
      a[k] = from.at(p + m * k);
    }
  }
  transform_radix<T, 8>(a);
  if (p < m) {
    #pragma clang loop unroll(full)
    for (uint k = 1; k < 8; ++k) {
      a[k] = a[k] * twiddles.at((k - 1) * m + p);
    }
  }
  #pragma clang loop unroll(full)
  for (uint k = 0; k < 8; ++k) {
    to.put(8 * p + k, a[k]);
  }
}

template <typename T>
METAL_FUNC Complex<T> shuffle_complex(Complex<T> x, ushort mask) {
  if constexpr (sizeof(T) == 8) {
    return {as_type<T>(simd_shuffle_xor(as_type<uint2>(x.re), mask)),
            as_type<T>(simd_shuffle_xor(as_type<uint2>(x.im), mask))};
  } else {
    return {simd_shuffle_xor(x.re, mask), simd_shuffle_xor(x.im, mask)};
  }
}

template <typename T>
METAL_FUNC Complex<T> select_complex(Complex<T> a, Complex<T> b, bool is_second) {
  return {is_second ? b.re : a.re, is_second ? b.im : a.im};
}

// Exchanges lanes with bit `mask` of `a` and lanes without it of `b`.
template <typename T>
METAL_FUNC void exchange_lanes(thread Complex<T> &a, thread Complex<T> &b, ushort mask,
                               ushort lane) {
  const bool is_upper = (lane & mask) != 0;
  const Complex<T> sent = shuffle_complex(select_complex(b, a, is_upper), mask);
  a = select_complex(a, sent, is_upper);
  b = select_complex(sent, b, is_upper);
}

// The second pass, after 8: lanes have eight values of q for each of four values of p.
template <typename T, uint radix, typename From, typename To, typename Table>
METAL_FUNC void second_pass(From from, To to, Table twiddles, uint length, uint block,
                            ushort lane) {
  const uint step = length / radix, t = 32 * block + lane;
  Complex<T> a[radix];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < radix; ++k) {
    a[k] = {T(0), T(0)};
    if (t < step) {
      a[k] = from.at(t + step * k);
    }
  }
  transform_radix<T, radix>(a);
  if (t < step) {
    #pragma clang loop unroll(full)
    for (uint k = 1; k < radix; ++k) {
      a[k] = a[k] * twiddles.at((k - 1) * step + t);
    }
  }
  // Groups of eight lanes are transposed with four values of k.
  #pragma clang loop unroll(full)
  for (uint k = 0; k < radix; k += 4) {
    exchange_lanes(a[k], a[k + 1], 8, lane);
    exchange_lanes(a[k + 2], a[k + 3], 8, lane);
    exchange_lanes(a[k], a[k + 2], 16, lane);
    exchange_lanes(a[k + 1], a[k + 3], 16, lane);
  }
  #pragma clang loop unroll(full)
  for (uint k = 0; k < radix; ++k) {
    if (8 * (4 * block + k % 4) < step) {
      to.put(32 * radix * block + 8 * radix * (k % 4) + 32 * (k / 4) + lane, a[k]);
    }
  }
}

// Any other pass: 32 values of q.
template <typename T, uint radix, typename From, typename To, typename Table>
METAL_FUNC void next_pass(From from, To to, Table twiddles, uint length, uint done, uint block,
                          ushort lane) {
  const uint m = length / (done * radix), blocks = done / 32, p = block / blocks;
  const uint q = block % blocks * 32 + lane;
  Complex<T> a[radix];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < radix; ++k) {
    a[k] = from.at(q + done * (p + m * k));
  }
  transform_radix<T, radix>(a);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < radix; ++k) {
    if (k > 0 && m > 1) {
      a[k] = a[k] * twiddles.at((k - 1) * m + p);
    }
    to.put(q + done * (radix * p + k), a[k]);
  }
}

template <typename T, typename From, typename To, typename Table>
METAL_FUNC void next_passes(From from, To to, Table twiddles, uint length, uint done, uint radix,
                            ushort lane) {
  for (uint block = 0; 32 * radix * block < length; ++block) {
    switch (radix) {
      case 2: next_pass<T, 2>(from, to, twiddles, length, done, block, lane); break;
      case 3: next_pass<T, 3>(from, to, twiddles, length, done, block, lane); break;
      case 4: next_pass<T, 4>(from, to, twiddles, length, done, block, lane); break;
      case 5: next_pass<T, 5>(from, to, twiddles, length, done, block, lane); break;
      default: next_pass<T, 8>(from, to, twiddles, length, done, block, lane); break;
    }
  }
}

// ComplexRow that a table has for the first two passes, and for each other one.
METAL_FUNC uint first_twiddles(uint length) { return 7 * (length / 8); }
METAL_FUNC uint second_twiddles(uint length, uint radix) { return (radix - 1) * (length / radix); }
METAL_FUNC uint next_twiddles(uint length, uint done, uint radix) {
  return (radix - 1) * (length / (done * radix));
}

// All passes. `radices` has four bits for each pass after the second one, of which there is one.
template <typename T, uint second, typename From, typename To, typename Shared, typename Table>
METAL_FUNC void transform_row(From from, To to, Shared even, Shared odd, Table twiddles,
                              uint length, uint radices, ushort lane) {
  for (uint block = 0; 256 * block < length; ++block) {
    first_pass<T>(from, even, twiddles, length, block, lane);
  }
  twiddles.memory += first_twiddles(length);
  simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  for (uint block = 0; 32 * second * block < length; ++block) {
    second_pass<T, second>(even, odd, twiddles, length, block, lane);
  }
  twiddles.memory += second_twiddles(length, second);
  simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  uint done = 8 * second;
  for (; radices > 15; radices /= 16) {
    const uint radix = radices % 16;
    next_passes<T>(odd, even, twiddles, length, done, radix, lane);
    twiddles.memory += next_twiddles(length, done, radix);
    simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    const Shared other = odd;
    odd = even;
    even = other;
    done *= radix;
  }
  next_passes<T>(odd, to, twiddles, length, done, radices, lane);
}

// The first half of the transform of 2 * length real numbers, of which neighbours were taken as
// real and imaginary parts. `twiddles` has a half turn in `length` steps.
template <typename T, typename From, typename To, typename Table>
METAL_FUNC void finish_real(From from, To to, Table twiddles, uint length, ushort lane) {
  for (uint k = lane; k <= length; k += 32) {
    const Complex<T> a = from.at(k < length ? k : 0), b = from.at(k > 0 ? length - k : 0);
    const Complex<T> even{T(0.5) * (a.re + b.re), T(0.5) * (a.im - b.im)};
    const Complex<T> odd{T(0.5) * (a.im + b.im), T(0.5) * (b.re - a.re)};
    to.put(k, even + odd * twiddles.at(k));
  }
}

// The operand of the inverse of `finish_real`: complex numbers whose transform is pairs of real
// numbers. Real and imaginary parts are exchanged, as of all operands of an inverse transform.
template <typename T, typename Table>
struct HermitianRow {
  device const T *values;
  Table twiddles;
  uint length;
  bool is_inverse;

  METAL_FUNC Complex<T> at(uint k) const {
    const uint from_end = length - k;
    const T sign = k == 0 ? T(0) : is_inverse ? T(1) : T(-1);
    const Complex<T> a{values[2 * k], sign * values[2 * k + 1]};
    const Complex<T> b{values[2 * from_end], -sign * values[2 * from_end + 1]};
    const Complex<T> twiddle = twiddles.at(k);
    const Complex<T> even = a + b, odd = (a - b) * Complex<T>{twiddle.re, -twiddle.im};
    return {even.im + odd.re, even.re - odd.im};
  }
};

// The first half of a transform of real numbers, conjugate for an inverse transform.
template <typename T>
struct HermitianResult {
  device T *values;
  T scale;
  bool is_inverse;

  METAL_FUNC void put(uint i, Complex<T> x) const {
    values[2 * i] = scale * x.re;
    values[2 * i + 1] = is_inverse ? -scale * x.im : scale * x.im;
  }
};

}  // namespace numpy
