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
}  // namespace metal

namespace metalloid {

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
  METALLOID_ARITHMETIC_OPERATOR(<<)
  METALLOID_ARITHMETIC_OPERATOR(>>)

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
  template <class Comparison>
  METALLOID_INLINE static constexpr metal::vec<bool, N> truth(Comparison comparison) {
    using bytes = typename metal::vec<bool, N>::storage;
    return {from_storage(), __builtin_convertvector(-comparison, bytes)};
  }
};

}  // namespace operators

#undef METALLOID_ARITHMETIC_OPERATOR
#undef METALLOID_COMPARISON_OPERATOR

}  // namespace metalloid
