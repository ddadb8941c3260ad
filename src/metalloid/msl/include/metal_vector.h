// vec<T, N> (MSL specification, "Vector Data Types").
//
// A vector is a union of clang's own vector, on which the operators work and which is loaded and
// stored whole, and of named members, through which one component is read or written alone. clang's
// vector by itself would not do: it has no `float4(v.xy, 0, 1)`.
//
// The default constructor does nothing: threadgroup arrays of vectors are static variables here and
// must not need initialisation. The copy constructor is spelled out: copied as a union, a vector
// would travel through calls as a pair of doubles and leave them in the code after inlining.
#pragma once

#include "metal_limits.h"
#include "metal_swizzle.h"
#include "metal_type_traits.h"
#include "metal_vector_operators.h"

namespace metal {

template <class T, int N>
struct vec;
template <class T, int N>
struct packed_vec;

}  // namespace metal

namespace metalloid {

// How a component lies in clang's vector. A bool there would be one bit.
template <class T>
struct lane {
  using type = T;
};
template <>
struct lane<bool> {
  using type = uchar;
};
template <class T>
using lane_t = typename lane<T>::type;

template <class To, int N, class From>
METALLOID_INLINE constexpr typename metal::vec<To, N>::storage convert_lanes(
    const metal::vec<From, N>& from) {
  using storage = typename metal::vec<To, N>::storage;
  if constexpr (metal::is_same_v<To, bool>) {
    return __builtin_convertvector(-(from.data != 0), storage);
  } else if constexpr (are_half_and_bfloat<To, From>) {
    using floats = typename metal::vec<float, N>::storage;
    return __builtin_convertvector(__builtin_convertvector(from.data, floats), storage);
  } else {
    return __builtin_convertvector(from.data, storage);
  }
}

// Members that do not depend on the names of the components. The conversion of the splat goes
// through T, so that a bool vector gets 0 or 1 from any scalar.
#define METALLOID_VECTOR_MEMBERS(N) \
  using element_type = T; \
  using lane = metalloid::lane_t<T>; \
  typedef lane storage __attribute__((ext_vector_type(N))); \
  static constexpr int size = N; \
\
  vec() = default; \
  METALLOID_INLINE constexpr vec(const vec& other) : data(other.data) {} \
  METALLOID_INLINE vec(const volatile vec& other) : data(other.data) {} \
  METALLOID_INLINE constexpr vec& operator=(const vec& other) { \
    data = other.data; \
    return *this; \
  } \
  METALLOID_INLINE vec& operator=(const volatile vec& other) { return *this = vec(other); } \
  METALLOID_INLINE void operator=(const vec& other) volatile { data = other.data; } \
\
  METALLOID_INLINE constexpr vec(T scalar) : data((storage)lane(scalar)) {} \
  METALLOID_INLINE constexpr vec(metalloid::from_storage, storage lanes) : data(lanes) {} \
  template <class U> \
  METALLOID_INLINE constexpr explicit vec(const vec<U, N>& other) \
      : data(metalloid::convert_lanes<T, N>(other)) {} \
\
  METALLOID_INLINE constexpr T operator[](int i) const { return T(data[i]); } \
  METALLOID_INLINE T& operator[](int i) { return (&x)[i]; }

}  // namespace metalloid

namespace metal {

// Constructors from parts are templates over the exact type of the part: a plain `vec<T, 2>`
// parameter would also take a scalar, and `{1, 2, 3}` would have two meanings.

template <class T>
struct vec<T, 2> : metalloid::operators::vector_operators<T, 2> {
  METALLOID_VECTOR_MEMBERS(2)

  METALLOID_INLINE constexpr vec(T x, T y) : data{lane(x), lane(y)} {}

  union {
    storage data;
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
  };
  METALLOID_SWIZZLES_2
};

template <class T>
struct vec<T, 3> : metalloid::operators::vector_operators<T, 3> {
  METALLOID_VECTOR_MEMBERS(3)

  METALLOID_INLINE constexpr vec(T x, T y, T z) : data{lane(x), lane(y), lane(z)} {}
  // `float3 v = {1, 2};` is legal and fills up with zeros.
  METALLOID_INLINE constexpr vec(T x, T y) : data{lane(x), lane(y), lane(0)} {}

  template <class V, metalloid::if_vector_of_size<V, 2> = 0>
  METALLOID_INLINE constexpr vec(V a, T z) : vec(T(a.data[0]), T(a.data[1]), z) {}
  template <class V, metalloid::if_vector_of_size<V, 2> = 0>
  METALLOID_INLINE constexpr vec(T x, V b) : vec(x, T(b.data[0]), T(b.data[1])) {}

  union {
    storage data;
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
  };
  METALLOID_SWIZZLES_3
};

template <class T>
struct vec<T, 4> : metalloid::operators::vector_operators<T, 4> {
  METALLOID_VECTOR_MEMBERS(4)

  METALLOID_INLINE constexpr vec(T x, T y, T z, T w) : data{lane(x), lane(y), lane(z), lane(w)} {}
  METALLOID_INLINE constexpr vec(T x, T y, T z) : vec(x, y, z, T(0)) {}
  METALLOID_INLINE constexpr vec(T x, T y) : vec(x, y, T(0), T(0)) {}

  template <class V, metalloid::if_vector_of_size<V, 2> = 0>
  METALLOID_INLINE constexpr vec(V a, T z, T w) : vec(T(a.data[0]), T(a.data[1]), z, w) {}
  template <class V, metalloid::if_vector_of_size<V, 2> = 0>
  METALLOID_INLINE constexpr vec(T x, V b, T w) : vec(x, T(b.data[0]), T(b.data[1]), w) {}
  template <class V, metalloid::if_vector_of_size<V, 2> = 0>
  METALLOID_INLINE constexpr vec(T x, T y, V c) : vec(x, y, T(c.data[0]), T(c.data[1])) {}
  template <class V, class W, metalloid::if_vector_of_size<V, 2> = 0,
            metalloid::if_vector_of_size<W, 2> = 0>
  METALLOID_INLINE constexpr vec(V a, W b)
      : vec(T(a.data[0]), T(a.data[1]), T(b.data[0]), T(b.data[1])) {}
  template <class V, metalloid::if_vector_of_size<V, 3> = 0>
  METALLOID_INLINE constexpr vec(V a, T w)
      : vec(T(a.data[0]), T(a.data[1]), T(a.data[2]), w) {}
  template <class V, metalloid::if_vector_of_size<V, 3> = 0>
  METALLOID_INLINE constexpr vec(T x, V b)
      : vec(x, T(b.data[0]), T(b.data[1]), T(b.data[2])) {}

  union {
    storage data;
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
  };
  METALLOID_SWIZZLES_4
};

// Long vectors have numbered components only.
#define METALLOID_LONG_VECTOR(N) \
  template <class T> \
  struct vec<T, N> : metalloid::operators::vector_operators<T, N> { \
    METALLOID_VECTOR_MEMBERS(N) \
\
    template <class... U, enable_if_t<sizeof...(U) == N, int> = 0> \
    METALLOID_INLINE constexpr vec(U... components) : data{lane(T(components))...} {} \
\
    union { \
      storage data; \
      T x; /* the first of them */ \
    }; \
  };
METALLOID_LONG_VECTOR(8)
METALLOID_LONG_VECTOR(16)
#undef METALLOID_LONG_VECTOR
#undef METALLOID_VECTOR_MEMBERS

// ---- traits -------------------------------------------------------------------------------------
template <class T>
struct is_vector : bool_constant<(metalloid::vector_size<metalloid::bare<T>> > 0)> {};
template <class T>
inline constexpr bool is_vector_v = is_vector<T>::value;

template <class T>
struct vec_elements : integral_constant<int, 1> {};
template <class T, int N>
struct vec_elements<vec<T, N>> : integral_constant<int, N> {};
template <class T>
inline constexpr int vec_elements_v = vec_elements<T>::value;

// The type of a component; a scalar is its own.
template <class T>
struct make_scalar {
  using type = T;
};
template <class T, int N>
struct make_scalar<vec<T, N>> {
  using type = T;
};
template <class T, int N>
struct make_scalar<packed_vec<T, N>> {
  using type = T;
};
template <class T>
using make_scalar_t = typename make_scalar<T>::type;

template <class T, int N>
struct numeric_limits<vec<T, N>> : numeric_limits<T> {
  using element = numeric_limits<T>;
  METALLOID_INLINE static constexpr vec<T, N> min() { return element::min(); }
  METALLOID_INLINE static constexpr vec<T, N> max() { return element::max(); }
  METALLOID_INLINE static constexpr vec<T, N> lowest() { return element::lowest(); }
  METALLOID_INLINE static constexpr vec<T, N> epsilon() { return element::epsilon(); }
  METALLOID_INLINE static constexpr vec<T, N> infinity() { return element::infinity(); }
  METALLOID_INLINE static constexpr vec<T, N> quiet_NaN() { return element::quiet_NaN(); }
  METALLOID_INLINE static constexpr vec<T, N> denorm_min() { return element::denorm_min(); }
};

}  // namespace metal

// ---- names: float2, float3, float4 and so on, everywhere and in namespace metal -----------------
#define METALLOID_VECTOR_NAMES(type) \
  typedef metal::vec<type, 2> type##2; \
  typedef metal::vec<type, 3> type##3; \
  typedef metal::vec<type, 4> type##4; \
  namespace metal { \
  using ::type##2; \
  using ::type##3; \
  using ::type##4; \
  }
METALLOID_FOR_EACH_VECTOR_ELEMENT(METALLOID_VECTOR_NAMES)
#undef METALLOID_VECTOR_NAMES
