// What the body of a metal_kernel finds declared: the types its signature is written with, and the
// helpers for indices, complex numbers and simdgroups that bodies written for MLX call by name.
//
// Plain MSL that precedes the generated kernel on every device.
#include <metal_stdlib>
using namespace metal;

typedef half float16_t;
typedef bfloat bfloat16_t;

template <bool condition, typename A, typename B>
struct ConditionalType {
  typedef A type;
};
template <typename A, typename B>
struct ConditionalType<false, A, B> {
  typedef B type;
};

// The quotient of non-negative integers, rounded up.
template <typename T, typename U>
METAL_FUNC constexpr T ceildiv(T n, U divisor) {
  return (n + divisor - 1) / divisor;
}

// Makes a kernel of a template; the further arguments are those of the template.
#define instantiate_kernel(name, function, ...) \
  template [[host_name(name)]] [[kernel]] decltype(function<__VA_ARGS__>) function<__VA_ARGS__>;

// ---- complex numbers ----------------------------------------------------------------------------

struct complex64_t {
  float real;
  float imag;

  complex64_t() = default;
  constexpr complex64_t(float real, float imag = 0) : real(real), imag(imag) {}

  // A complex number used as a real one is its real part, so that `T x = input[i]` suits every T.
  template <typename T, typename = enable_if_t<is_arithmetic_v<T>>>
  constexpr operator T() const thread {
    return static_cast<T>(real);
  }
  template <typename T, typename = enable_if_t<is_arithmetic_v<T>>>
  constexpr operator T() const device {
    return static_cast<T>(real);
  }
  template <typename T, typename = enable_if_t<is_arithmetic_v<T>>>
  constexpr operator T() const constant {
    return static_cast<T>(real);
  }
  template <typename T, typename = enable_if_t<is_arithmetic_v<T>>>
  constexpr operator T() const threadgroup {
    return static_cast<T>(real);
  }
};

constexpr complex64_t operator-(complex64_t z) { return {-z.real, -z.imag}; }
constexpr complex64_t operator+(complex64_t a, complex64_t b) {
  return {a.real + b.real, a.imag + b.imag};
}
constexpr complex64_t operator-(complex64_t a, complex64_t b) {
  return {a.real - b.real, a.imag - b.imag};
}
constexpr complex64_t operator*(complex64_t a, complex64_t b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
// R. L. Smith, "Algorithm 116: Complex division" (1962): no square of a component can overflow.
constexpr complex64_t operator/(complex64_t a, complex64_t b) {
  const bool is_wide = (b.real < 0 ? -b.real : b.real) >= (b.imag < 0 ? -b.imag : b.imag);
  if (is_wide) {
    const float ratio = b.imag / b.real, scale = b.real + b.imag * ratio;
    return {(a.real + a.imag * ratio) / scale, (a.imag - a.real * ratio) / scale};
  }
  const float ratio = b.real / b.imag, scale = b.real * ratio + b.imag;
  return {(a.real * ratio + a.imag) / scale, (a.imag * ratio - a.real) / scale};
}

// Complex numbers are ordered by their real parts, and by the imaginary ones where those are equal.
constexpr bool operator==(complex64_t a, complex64_t b) {
  return a.real == b.real && a.imag == b.imag;
}
constexpr bool operator!=(complex64_t a, complex64_t b) { return !(a == b); }
constexpr bool operator<(complex64_t a, complex64_t b) {
  return a.real < b.real || (a.real == b.real && a.imag < b.imag);
}
constexpr bool operator>(complex64_t a, complex64_t b) { return b < a; }
constexpr bool operator<=(complex64_t a, complex64_t b) { return a < b || a == b; }
constexpr bool operator>=(complex64_t a, complex64_t b) { return b < a || a == b; }

#define COMPLEX_WITH_REAL(result, op) \
  template <typename T, typename = enable_if_t<is_arithmetic_v<T>>> \
  constexpr result operator op(complex64_t a, T b) { \
    return a op complex64_t(static_cast<float>(b)); \
  } \
  template <typename T, typename = enable_if_t<is_arithmetic_v<T>>> \
  constexpr result operator op(T a, complex64_t b) { \
    return complex64_t(static_cast<float>(a)) op b; \
  }
COMPLEX_WITH_REAL(complex64_t, +)
COMPLEX_WITH_REAL(complex64_t, -)
COMPLEX_WITH_REAL(complex64_t, *)
COMPLEX_WITH_REAL(complex64_t, /)
COMPLEX_WITH_REAL(bool, ==)
COMPLEX_WITH_REAL(bool, !=)
COMPLEX_WITH_REAL(bool, <)
COMPLEX_WITH_REAL(bool, >)
COMPLEX_WITH_REAL(bool, <=)
COMPLEX_WITH_REAL(bool, >=)
#undef COMPLEX_WITH_REAL

// A value as another type; of a complex number the real part.
template <typename To, typename From>
METAL_FUNC constexpr To cast_to(From value) {
  return static_cast<To>(value);
}

// ---- limits: with infinities where the type has them, and without -------------------------------

template <typename T>
struct Limits {
  typedef numeric_limits<T> of;
  static constexpr constant T max = of::has_infinity ? of::infinity() : of::max();
  static constexpr constant T min = of::has_infinity ? T(-of::infinity()) : of::lowest();
  static constexpr constant T finite_max = of::max();
  static constexpr constant T finite_min = of::lowest();
};
template <>
struct Limits<complex64_t> {
  typedef Limits<float> part;
  static constexpr constant complex64_t max = complex64_t(part::max, part::max);
  static constexpr constant complex64_t min = complex64_t(part::min, part::min);
  static constexpr constant complex64_t finite_max =
      complex64_t(part::finite_max, part::finite_max);
  static constexpr constant complex64_t finite_min =
      complex64_t(part::finite_min, part::finite_min);
};

// ---- from indices to locations ------------------------------------------------------------------
// A location counts elements from the first one of an array; strides count elements, too.

// Location of the element that comes `index`-th in row-major order.
template <typename Location = int64_t>
METAL_FUNC Location elem_to_loc(Location index, constant const int* shape,
                                constant const int64_t* strides, int ndim) {
  Location location = 0;
  for (int axis = ndim - 1; axis >= 0; --axis) {
    location += Location(index % shape[axis]) * Location(strides[axis]);
    index /= shape[axis];
  }
  return location;
}

// The same for a three-dimensional grid: x runs along the last axis, y along the one before it, and
// z along all others in row-major order.
template <typename Location = int64_t>
METAL_FUNC Location elem_to_loc(uint3 index, constant const int* shape,
                                constant const int64_t* strides, int ndim) {
  Location location = 0;
  if (ndim > 0) location += Location(index.x) * Location(strides[ndim - 1]);
  if (ndim > 1) location += Location(index.y) * Location(strides[ndim - 2]);
  return location + elem_to_loc<Location>(Location(index.z), shape, strides, ndim - 2);
}

// The same for one, two and three axes, where the grid is of their shape.
template <typename Location = int64_t>
METAL_FUNC Location elem_to_loc_1(uint index, constant const int64_t& stride) {
  return Location(index) * Location(stride);
}
template <typename Location = int64_t>
METAL_FUNC Location elem_to_loc_2(uint2 index, constant const int64_t strides[2]) {
  return Location(index.x) * Location(strides[1]) + Location(index.y) * Location(strides[0]);
}
template <typename Location = int64_t>
METAL_FUNC Location elem_to_loc_3(uint3 index, constant const int64_t strides[3]) {
  return Location(index.x) * Location(strides[2]) + Location(index.y) * Location(strides[1]) +
         Location(index.z) * Location(strides[0]);
}

// Locations in two or three arrays of one shape.
template <typename Location = int64_t>
METAL_FUNC vec<Location, 2> elem_to_loc_2_nd(uint3 index, constant const int* shape,
                                             constant const int64_t* a_strides,
                                             constant const int64_t* b_strides, int ndim) {
  return {elem_to_loc<Location>(index, shape, a_strides, ndim),
          elem_to_loc<Location>(index, shape, b_strides, ndim)};
}
template <typename Location = int64_t>
METAL_FUNC vec<Location, 3> elem_to_loc_3_nd(uint3 index, constant const int* shape,
                                             constant const int64_t* a_strides,
                                             constant const int64_t* b_strides,
                                             constant const int64_t* c_strides, int ndim) {
  return {elem_to_loc<Location>(index, shape, a_strides, ndim),
          elem_to_loc<Location>(index, shape, b_strides, ndim),
          elem_to_loc<Location>(index, shape, c_strides, ndim)};
}

// Visits the elements of an array in row-major order. The location moves by a stride a step, which
// is cheaper than calling `elem_to_loc` for each element.
template <int max_ndim, typename Location = size_t, bool general = true>
struct LoopedElemToLoc {
  int ndim;
  Location index = 0;
  Location offset = 0;

  LoopedElemToLoc(int ndim) : ndim(ndim) {}

  void next(constant const int* shape, constant const int64_t* strides) thread {
    index += 1;
    Location row = index;
    for (int axis = ndim - 1; axis >= 0; --axis) {
      offset += Location(strides[axis]);
      if (row % shape[axis] != 0) return;
      offset -= Location(shape[axis]) * Location(strides[axis]);
      row /= shape[axis];
    }
  }

  void next(int count, constant const int* shape, constant const int64_t* strides) thread {
    index += count;
    offset = elem_to_loc<Location>(index, shape, strides, ndim);
  }

  Location location() const thread { return offset; }
};

// ---- functions the Metal standard library lacks -------------------------------------------------

// log(1 + x) also for small x: what 1 + x loses in the logarithm is lost in the divisor, too.
// D. Goldberg, "What every computer scientist should know about floating-point arithmetic" (1991),
// theorem 4.
METAL_FUNC float log1p(float x) {
  const float sum = 1.0f + x;
  if (sum == 1.0f || sum == INFINITY) return x;
  return x * (metal::log(sum) / (sum - 1.0f));
}
METAL_FUNC float16_t log1p(float16_t x) { return float16_t(log1p(float(x))); }
METAL_FUNC bfloat16_t log1p(bfloat16_t x) { return bfloat16_t(log1p(float(x))); }
METAL_FUNC complex64_t log1p(complex64_t z) {
  return {0.5f * log1p(z.real * (2.0f + z.real) + z.imag * z.imag),
          metal::precise::atan2(z.imag, 1.0f + z.real)};
}

// Simdgroup functions for types of 64 bits and for bool, through those for 32 bits.
#define SIMD_SHUFFLE_VIA(T, name, to_words, from_words) \
  METAL_FUNC T name(T data, uint16_t lane) { return from_words(metal::name(to_words(data), lane)); }
#define SIMD_FILL_VIA(T, name, to_words, from_words) \
  METAL_FUNC T name(T data, T filling, uint16_t delta) { \
    return from_words(metal::name(to_words(data), to_words(filling), delta)); \
  }
#define SIMD_SHUFFLES_VIA(T, to_words, from_words) \
  SIMD_SHUFFLE_VIA(T, simd_shuffle, to_words, from_words) \
  SIMD_SHUFFLE_VIA(T, simd_shuffle_up, to_words, from_words) \
  SIMD_SHUFFLE_VIA(T, simd_shuffle_down, to_words, from_words) \
  SIMD_SHUFFLE_VIA(T, simd_shuffle_xor, to_words, from_words) \
  SIMD_FILL_VIA(T, simd_shuffle_and_fill_up, to_words, from_words) \
  SIMD_FILL_VIA(T, simd_shuffle_and_fill_down, to_words, from_words)
#define COMPLEX_TO_WORDS(z) float2((z).real, (z).imag)
METAL_FUNC complex64_t complex_from_words(float2 parts) { return {parts.x, parts.y}; }
SIMD_SHUFFLES_VIA(int64_t, as_type<uint2>, as_type<int64_t>)
SIMD_SHUFFLES_VIA(uint64_t, as_type<uint2>, as_type<uint64_t>)
SIMD_SHUFFLES_VIA(bool, uint, bool)
SIMD_SHUFFLES_VIA(complex64_t, COMPLEX_TO_WORDS, complex_from_words)
#undef SIMD_SHUFFLE_VIA
#undef SIMD_FILL_VIA
#undef SIMD_SHUFFLES_VIA
#undef COMPLEX_TO_WORDS

#if __METAL_VERSION__ >= 320
#include <metal_logging>
namespace mlx {
using os_log = metal::os_log;
}
#endif
