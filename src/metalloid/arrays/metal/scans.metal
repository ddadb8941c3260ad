// Prefix scans: of rows, by a simdgroup for each chunk of a row, and of columns, by a thread each.
template <typename T>
struct complex;

namespace numpy {

// Sums of floats carry what rounding has cut off (W. Kahan, "Further remarks on reducing truncation
// errors", CACM 8, 1965, in the form of A. Neumaier, ZAMM 54, 1974).
template <typename T>
struct Sum {
  T total = T(0), lost = T(0);

  static METAL_FUNC T of(T a, T b) { return a + b; }
  METAL_FUNC void add(T x) {
    const T sum = total + x;
    if constexpr (is_floating_point_v<T>) {
      const bool is_larger = max(total, -total) >= max(x, -x);
      lost += is_larger ? (total - sum) + x : (x - sum) + total;
    }
    total = sum;
  }
  METAL_FUNC T upto(T x) const {
    if constexpr (is_floating_point_v<T>) {
      const T sum = total + (x + lost);
      return sum == sum ? sum : total + x;  // nothing is lost of infinity
    } else {
      return total + x;
    }
  }
};

template <typename T>
struct Sum<complex<T>> {
  complex<T> total = complex<T>(T(0));  // of no elements
  Sum<T> re, im;

  static METAL_FUNC complex<T> of(complex<T> a, complex<T> b) { return {a.re + b.re, a.im + b.im}; }
  METAL_FUNC void add(complex<T> x) {
    re.add(x.re);
    im.add(x.im);
  }
  METAL_FUNC complex<T> upto(complex<T> x) const { return {re.upto(x.re), im.upto(x.im)}; }
};

template <typename T>
struct Product {
  T total = T(1);

  static METAL_FUNC T of(T a, T b) { return multiply(a, b); }
  METAL_FUNC void add(T x) { total = multiply(total, x); }
  METAL_FUNC T upto(T x) const { return multiply(total, x); }
};

template <typename T>
struct Maximum {
  T total = lowest<T>();

  static METAL_FUNC T of(T a, T b) { return maximum(a, b); }
  METAL_FUNC void add(T x) { total = maximum(total, x); }
  METAL_FUNC T upto(T x) const { return maximum(total, x); }
};

template <typename T>
struct Minimum {
  T total = highest<T>();

  static METAL_FUNC T of(T a, T b) { return minimum(a, b); }
  METAL_FUNC void add(T x) { total = minimum(total, x); }
  METAL_FUNC T upto(T x) const { return minimum(total, x); }
};

// What the lane `distance` before has.
template <typename T>
METAL_FUNC T from_before(T x, ushort distance) {
  if constexpr (sizeof(T) == 8) {
    return as_type<T>(simd_shuffle_up(as_type<uint2>(x), distance));
  } else {
    return simd_shuffle_up(x, distance);
  }
}

template <typename T>
METAL_FUNC T of_last_lane(T x) {
  if constexpr (sizeof(T) == 8) {
    return as_type<T>(simd_broadcast(as_type<uint2>(x), 31));
  } else {
    return simd_broadcast(x, 31);
  }
}

template <typename T>
METAL_FUNC complex<T> from_before(complex<T> z, ushort distance) {
  return {from_before(z.re, distance), from_before(z.im, distance)};
}
template <typename T>
METAL_FUNC complex<T> of_last_lane(complex<T> z) {
  return {of_last_lane(z.re), of_last_lane(z.im)};
}

// Combines the values of all lanes up to the calling one.
template <typename Op, typename T>
METAL_FUNC T scan_lanes(T x, ushort lane) {
  #pragma clang loop unroll(full)
  for (ushort distance = 1; distance < 32; distance *= 2) {
    const T before = from_before(x, distance);
    x = lane >= distance ? Op::of(before, x) : x;
  }
  return x;
}

// Scans a chunk by a simdgroup, after what `state` has; returns what follows it.
template <typename Op, typename T>
METAL_FUNC Op scan_chunk(device const T *from, device T *to, uint count, Op state, ushort lane) {
  const uint full = count / 32 * 32;
  for (uint first = 0; first < full; first += 32) {
    const T x = scan_lanes<Op>(from[first + lane], lane);
    to[first + lane] = state.upto(x);
    state.add(of_last_lane(x));
  }
  if (full < count) {
    const uint i = full + lane;
    T own = Op().total;
    if (i < count) {
      own = from[i];
    }
    const T x = scan_lanes<Op>(own, lane);
    if (i < count) {
      to[i] = state.upto(x);
    }
    state.add(of_last_lane(x));
  }
  return state;
}

// The total of a chunk, by a simdgroup.
template <typename Op, typename T>
METAL_FUNC T total_chunk(device const T *from, uint count, ushort lane) {
  Op state;
  for (uint i = lane; i < count; i += 32) {
    state.add(from[i]);
  }
  return of_last_lane(scan_lanes<Op>(state.upto(Op().total), lane));
}

// Scans a column by a thread.
template <typename Op, typename T>
METAL_FUNC void scan_column(device const T *from, device T *to, uint count, ulong stride) {
  Op state;
  for (uint i = 0; i < count; ++i) {
    const T x = from[i * stride];
    to[i * stride] = state.upto(x);
    state.add(x);
  }
}

}  // namespace numpy
