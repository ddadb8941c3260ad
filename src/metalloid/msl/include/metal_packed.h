// packed_vec<T, N>: vectors with the alignment of their elements (MSL specification, "Packed Vector
// Types").
//
// A packed vector shares the operators of vec: it derives from the same class of hidden friends and
// converts to vec, and every result is a vec. It is copied component by component, because wider
// moves would have to assume an alignment that it does not have.
#pragma once

#include "metal_vector.h"

namespace metalloid {

#define METALLOID_PACKED_ASSIGNMENT(op) \
  METALLOID_INLINE packed_vec& operator op##=(vec<T, size> b) { \
    return *this = vec<T, size>(*this) op b; \
  }

// By a vector of any integer type.
#define METALLOID_PACKED_SHIFT(op) \
  template <class Amounts, metalloid::if_integer_vector_of_size<Amounts, size> = 0> \
  METALLOID_INLINE packed_vec& operator op##=(Amounts b) { \
    return *this = vec<T, size>(*this) op b; \
  }

// Members that do not depend on the names of the components.
#define METALLOID_PACKED_MEMBERS(N) \
  using element_type = T; \
  static constexpr int size = N; \
\
  packed_vec() = default; \
  METALLOID_INLINE constexpr packed_vec(T scalar) : packed_vec(vec<T, N>(scalar)) {} \
  METALLOID_INLINE constexpr packed_vec(const packed_vec& other) \
      : packed_vec(vec<T, N>(other)) {} \
  template <class U> \
  METALLOID_INLINE constexpr explicit packed_vec(const vec<U, N>& other) \
      : packed_vec(vec<T, N>(other)) {} \
  template <class U> \
  METALLOID_INLINE constexpr explicit packed_vec(const packed_vec<U, N>& other) \
      : packed_vec(vec<T, N>(vec<U, N>(other))) {} \
\
  template <class U> \
  METALLOID_INLINE constexpr explicit operator vec<U, N>() const { \
    return vec<U, N>(vec<T, N>(*this)); \
  } \
\
  METALLOID_INLINE constexpr T operator[](int i) const { return data[i]; } \
  METALLOID_INLINE T& operator[](int i) { return data[i]; } \
\
  METALLOID_PACKED_ASSIGNMENT(+) \
  METALLOID_PACKED_ASSIGNMENT(-) \
  METALLOID_PACKED_ASSIGNMENT(*) \
  METALLOID_PACKED_ASSIGNMENT(/) \
  METALLOID_PACKED_ASSIGNMENT(%) \
  METALLOID_PACKED_ASSIGNMENT(&) \
  METALLOID_PACKED_ASSIGNMENT(|) \
  METALLOID_PACKED_ASSIGNMENT(^) \
  METALLOID_PACKED_ASSIGNMENT(<<) \
  METALLOID_PACKED_ASSIGNMENT(>>) \
  METALLOID_PACKED_SHIFT(<<) \
  METALLOID_PACKED_SHIFT(>>)

}  // namespace metalloid

namespace metal {

template <class T>
struct packed_vec<T, 2> : metalloid::operators::vector_operators<T, 2> {
  METALLOID_PACKED_MEMBERS(2)

  METALLOID_INLINE constexpr packed_vec(T x, T y) : data{x, y} {}
  METALLOID_INLINE constexpr packed_vec(const vec<T, 2>& v)
      : data{T(v.data[0]), T(v.data[1])} {}
  METALLOID_INLINE packed_vec& operator=(const packed_vec& v) {
    x = v.x;
    y = v.y;
    return *this;
  }
  METALLOID_INLINE constexpr operator vec<T, 2>() const { return {data[0], data[1]}; }

  union {
    T data[2];
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
struct packed_vec<T, 3> : metalloid::operators::vector_operators<T, 3> {
  METALLOID_PACKED_MEMBERS(3)

  METALLOID_INLINE constexpr packed_vec(T x, T y, T z) : data{x, y, z} {}
  METALLOID_INLINE constexpr packed_vec(const vec<T, 3>& v)
      : data{T(v.data[0]), T(v.data[1]), T(v.data[2])} {}
  template <class V, metalloid::if_vector_of_size<V, 2> = 0>
  METALLOID_INLINE constexpr packed_vec(V a, T z) : packed_vec(vec<T, 3>(a, z)) {}
  template <class V, metalloid::if_vector_of_size<V, 2> = 0>
  METALLOID_INLINE constexpr packed_vec(T x, V b) : packed_vec(vec<T, 3>(x, b)) {}
  METALLOID_INLINE packed_vec& operator=(const packed_vec& v) {
    x = v.x;
    y = v.y;
    z = v.z;
    return *this;
  }
  METALLOID_INLINE constexpr operator vec<T, 3>() const { return {data[0], data[1], data[2]}; }

  union {
    T data[3];
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
struct packed_vec<T, 4> : metalloid::operators::vector_operators<T, 4> {
  METALLOID_PACKED_MEMBERS(4)

  METALLOID_INLINE constexpr packed_vec(T x, T y, T z, T w) : data{x, y, z, w} {}
  METALLOID_INLINE constexpr packed_vec(const vec<T, 4>& v)
      : data{T(v.data[0]), T(v.data[1]), T(v.data[2]), T(v.data[3])} {}
  template <class A, class B, int = vec<T, 4>(A(), B()).size>
  METALLOID_INLINE constexpr packed_vec(A a, B b) : packed_vec(vec<T, 4>(a, b)) {}
  METALLOID_INLINE packed_vec& operator=(const packed_vec& v) {
    x = v.x;
    y = v.y;
    z = v.z;
    w = v.w;
    return *this;
  }
  METALLOID_INLINE constexpr operator vec<T, 4>() const {
    return {data[0], data[1], data[2], data[3]};
  }

  union {
    T data[4];
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
  };
  METALLOID_SWIZZLES_4
};

#undef METALLOID_PACKED_MEMBERS
#undef METALLOID_PACKED_ASSIGNMENT
#undef METALLOID_PACKED_SHIFT

template <class T>
inline constexpr bool is_packed_vector_v = false;
template <class T, int N>
inline constexpr bool is_packed_vector_v<packed_vec<T, N>> = true;

}  // namespace metal

// ---- names: packed_float3 and so on, everywhere and in namespace metal --------------------------
#define METALLOID_PACKED_NAMES(type) \
  typedef metal::packed_vec<type, 2> packed_##type##2; \
  typedef metal::packed_vec<type, 3> packed_##type##3; \
  typedef metal::packed_vec<type, 4> packed_##type##4; \
  namespace metal { \
  using ::packed_##type##2; \
  using ::packed_##type##3; \
  using ::packed_##type##4; \
  }
METALLOID_FOR_EACH_VECTOR_ELEMENT(METALLOID_PACKED_NAMES)
#undef METALLOID_PACKED_NAMES
