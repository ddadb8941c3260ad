// Operators of vec<T, N>, component by component (MSL specification, "Operators").
//
// They are hidden friends of a base class of the vector: found only for operands of which one is a
// vector, and not templates, so the other operand may be anything that converts to the vector - a
// scalar of any type or a packed vector.
#pragma once

#include "metal_type_traits.h"

namespace metal {
template <class T, int N>
struct vec;
template <class T, int N>
struct packed_vec;
}  // namespace metal

namespace metalloid {

// The number of components if T is a vector or a packed vector, else 0.
template <class T>
inline constexpr int vector_size = 0;
template <class T, int N>
inline constexpr int vector_size<metal::vec<T, N>> = N;
template <class T, int N>
inline constexpr int vector_size<metal::packed_vec<T, N>> = N;

template <class V, int N>
using if_vector_of_size = metal::enable_if_t<vector_size<V> == N, int>;

template <class V>
inline constexpr bool is_integer_vector = false;
template <class T, int N>
inline constexpr bool is_integer_vector<metal::vec<T, N>> = is_integer<T>;
template <class T, int N>
inline constexpr bool is_integer_vector<metal::packed_vec<T, N>> = is_integer<T>;

template <class V, int N>
using if_integer_vector_of_size =
    metal::enable_if_t<vector_size<V> == N && is_integer_vector<V>, int>;

// Chooses the constructor that takes clang's own vector as it is.
struct from_storage {};

// An arithmetic or bitwise operator and its assignment. The overload for volatile returns nothing,
// so that nothing is read back.
#define METALLOID_ARITHMETIC_OPERATOR(op) \
  friend METALLOID_INLINE constexpr vector operator op(vector a, vector b) { \
    return vector(from_storage(), a.data op b.data); \
  } \
  friend METALLOID_INLINE constexpr vector& operator op##=(vector& a, vector b) { \
    a.data = a.data op b.data; \
    return a; \
  } \
  friend METALLOID_INLINE void operator op##=(volatile vector& a, vector b) { \
    a.data = a.data op b.data; \
  }

// A shift, by a vector of any integer type or by a scalar, of the low bits of each amount.
#define METALLOID_SHIFT_OPERATOR(op) \
  friend METALLOID_INLINE constexpr vector operator op(vector a, vector b) { \
    return vector(from_storage(), a.data op (b.data & shift_mask)); \
  } \
  friend METALLOID_INLINE constexpr vector& operator op##=(vector& a, vector b) { \
    return a = a op b; \
  } \
  friend METALLOID_INLINE void operator op##=(volatile vector& a, vector b) { \
    a = vector(a) op b; \
  } \
  template <class Amounts, if_integer_vector_of_size<Amounts, N> = 0> \
  friend METALLOID_INLINE constexpr vector operator op(vector a, Amounts b) { \
    return a op vector(b); \
  } \
  template <class Amounts, if_integer_vector_of_size<Amounts, N> = 0> \
  friend METALLOID_INLINE constexpr vector& operator op##=(vector& a, Amounts b) { \
    return a = a op vector(b); \
  } \
  template <class Amounts, if_integer_vector_of_size<Amounts, N> = 0> \
  friend METALLOID_INLINE void operator op##=(volatile vector& a, Amounts b) { \
    a = vector(a) op vector(b); \
  }

// clang compares into integers of the same width, 0 or -1; a vec<bool, N> holds bytes 0 or 1.
#define METALLOID_COMPARISON_OPERATOR(op) \
  friend METALLOID_INLINE constexpr metal::vec<bool, N> operator op(vector a, vector b) { \
    return truth(a.data op b.data); \
  }

// In a namespace of its own, because argument-dependent lookup for every function called with a
// vector searches the namespace of this class too, and must find nothing there.
namespace operators {

template <class T, int N>
struct vector_operators {
  using vector = metal::vec<T, N>;

  METALLOID_ARITHMETIC_OPERATOR(+)
  METALLOID_ARITHMETIC_OPERATOR(-)
  METALLOID_ARITHMETIC_OPERATOR(*)
  METALLOID_ARITHMETIC_OPERATOR(/)
  METALLOID_ARITHMETIC_OPERATOR(%)
  METALLOID_ARITHMETIC_OPERATOR(&)
  METALLOID_ARITHMETIC_OPERATOR(|)
  METALLOID_ARITHMETIC_OPERATOR(^)

  METALLOID_SHIFT_OPERATOR(<<)
  METALLOID_SHIFT_OPERATOR(>>)

  METALLOID_COMPARISON_OPERATOR(==)
  METALLOID_COMPARISON_OPERATOR(!=)
  METALLOID_COMPARISON_OPERATOR(<)
  METALLOID_COMPARISON_OPERATOR(<=)
  METALLOID_COMPARISON_OPERATOR(>)
  METALLOID_COMPARISON_OPERATOR(>=)

  friend METALLOID_INLINE constexpr vector operator+(vector a) { return a; }
  friend METALLOID_INLINE constexpr vector operator-(vector a) {
    return vector(from_storage(), -a.data);
  }
  friend METALLOID_INLINE constexpr vector operator~(vector a) {
    return vector(from_storage(), ~a.data);
  }

  friend METALLOID_INLINE constexpr metal::vec<bool, N> operator!(vector a) {
    return truth(a.data == 0);
  }
  friend METALLOID_INLINE constexpr metal::vec<bool, N> operator&&(vector a, vector b) {
    return truth((a.data != 0) & (b.data != 0));
  }
  friend METALLOID_INLINE constexpr metal::vec<bool, N> operator||(vector a, vector b) {
    return truth((a.data != 0) | (b.data != 0));
  }

  friend METALLOID_INLINE constexpr vector& operator++(vector& a) { return a += T(1); }
  friend METALLOID_INLINE constexpr vector& operator--(vector& a) { return a -= T(1); }
  friend METALLOID_INLINE constexpr vector operator++(vector& a, int) {
    vector before = a;
    a += T(1);
    return before;
  }
  friend METALLOID_INLINE constexpr vector operator--(vector& a, int) {
    vector before = a;
    a -= T(1);
    return before;
  }

 private:
  static constexpr auto shift_mask = 8 * sizeof(T) - 1;

  template <class Comparison>
  METALLOID_INLINE static constexpr metal::vec<bool, N> truth(Comparison comparison) {
    using bytes = typename metal::vec<bool, N>::storage;
    return {from_storage(), __builtin_convertvector(-comparison, bytes)};
  }
};

}  // namespace operators

#undef METALLOID_ARITHMETIC_OPERATOR
#undef METALLOID_SHIFT_OPERATOR
#undef METALLOID_COMPARISON_OPERATOR

}  // namespace metalloid
