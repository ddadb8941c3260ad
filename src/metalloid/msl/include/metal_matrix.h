// matrix<T, C, R>: C columns of R rows (MSL specification, "Matrix Data Types", "Matrix Operators"
// and "Matrix Functions").
#pragma once

#include "metal_geometric.h"

namespace metalloid {

template <class T, int N>
struct element_list {
  T values[N];
};

// indices<int, 0, 1, ..., N - 1>
template <class T, T... I>
struct indices {};
template <int N>
using index_list = __make_integer_seq<indices, int, N>;

}  // namespace metalloid

namespace metal {

template <class T, int C, int R>
struct matrix {
  static_assert(C >= 2 && C <= 4 && R >= 2 && R <= 4, "a matrix has 2 to 4 columns and rows");
  using element_type = T;
  using column = vec<T, R>;
  using row = vec<T, C>;

  column columns[C];

  matrix() = default;

  // The scalar on the diagonal, zero elsewhere.
  METALLOID_INLINE constexpr explicit matrix(T diagonal) : matrix(diagonal, each_column()) {}

  template <int N = C, enable_if_t<N == 2, int> = 0>
  METALLOID_INLINE constexpr matrix(column a, column b) : columns{a, b} {}
  template <int N = C, enable_if_t<N == 3, int> = 0>
  METALLOID_INLINE constexpr matrix(column a, column b, column c) : columns{a, b, c} {}
  template <int N = C, enable_if_t<N == 4, int> = 0>
  METALLOID_INLINE constexpr matrix(column a, column b, column c, column d)
      : columns{a, b, c, d} {}

  // All elements, column after column.
  template <class... Scalars, enable_if_t<sizeof...(Scalars) == C * R, int> = 0,
            metalloid::if_scalars<Scalars...> = 0>
  METALLOID_INLINE constexpr matrix(Scalars... elements)
      : matrix(metalloid::element_list<T, C * R>{{T(elements)...}}, each_column()) {}

  template <class U>
  METALLOID_INLINE constexpr explicit matrix(const matrix<U, C, R>& other)
      : matrix(other, each_column()) {}

  METALLOID_INLINE column& operator[](int i) { return columns[i]; }
  METALLOID_INLINE constexpr const column& operator[](int i) const { return columns[i]; }

  METALLOID_INLINE matrix& operator+=(const matrix& b) { return *this = *this + b; }
  METALLOID_INLINE matrix& operator-=(const matrix& b) { return *this = *this - b; }
  METALLOID_INLINE matrix& operator*=(T b) { return *this = *this * b; }
  METALLOID_INLINE matrix& operator/=(T b) { return *this = *this / b; }
  METALLOID_INLINE matrix& operator*=(const matrix<T, C, C>& b) { return *this = *this * b; }

  friend METALLOID_INLINE matrix operator+(const matrix& a, const matrix& b) {
    matrix sum;
#pragma unroll
    for (int i = 0; i < C; ++i) sum.columns[i] = a.columns[i] + b.columns[i];
    return sum;
  }
  friend METALLOID_INLINE matrix operator-(const matrix& a, const matrix& b) {
    matrix difference;
#pragma unroll
    for (int i = 0; i < C; ++i) difference.columns[i] = a.columns[i] - b.columns[i];
    return difference;
  }
  friend METALLOID_INLINE matrix operator-(const matrix& a) { return a * T(-1); }
  friend METALLOID_INLINE matrix operator+(const matrix& a) { return a; }

  friend METALLOID_INLINE matrix operator*(const matrix& a, T b) {
    matrix product;
#pragma unroll
    for (int i = 0; i < C; ++i) product.columns[i] = a.columns[i] * b;
    return product;
  }
  friend METALLOID_INLINE matrix operator*(T a, const matrix& b) { return b * a; }
  friend METALLOID_INLINE matrix operator/(const matrix& a, T b) {
    matrix quotient;
#pragma unroll
    for (int i = 0; i < C; ++i) quotient.columns[i] = a.columns[i] / b;
    return quotient;
  }

  // A vector on the right is a column, on the left a row.
  friend METALLOID_INLINE column operator*(const matrix& a, row b) {
    column product = a.columns[0] * b.x + a.columns[1] * b.y;
    if constexpr (C > 2) product += a.columns[2] * b.z;
    if constexpr (C > 3) product += a.columns[3] * b.w;
    return product;
  }
  friend METALLOID_INLINE row operator*(column a, const matrix& b) {
    if constexpr (C == 2) {
      return row(dot(a, b.columns[0]), dot(a, b.columns[1]));
    } else if constexpr (C == 3) {
      return row(dot(a, b.columns[0]), dot(a, b.columns[1]), dot(a, b.columns[2]));
    } else {
      return row(dot(a, b.columns[0]), dot(a, b.columns[1]), dot(a, b.columns[2]),
                 dot(a, b.columns[3]));
    }
  }

  friend METALLOID_INLINE bool operator==(const matrix& a, const matrix& b) {
    bool equal = true;
#pragma unroll
    for (int i = 0; i < C; ++i) equal &= all(a.columns[i] == b.columns[i]);
    return equal;
  }
  friend METALLOID_INLINE bool operator!=(const matrix& a, const matrix& b) { return !(a == b); }

 private:
  using each_column = metalloid::index_list<C>;

  template <int... I>
  METALLOID_INLINE constexpr matrix(T diagonal, metalloid::indices<int, I...>)
      : columns{diagonal_column(diagonal, I)...} {}
  template <int... I>
  METALLOID_INLINE constexpr matrix(const metalloid::element_list<T, C * R>& elements,
                                    metalloid::indices<int, I...>)
      : columns{column_at(elements.values + I * R)...} {}
  template <class U, int... I>
  METALLOID_INLINE constexpr matrix(const matrix<U, C, R>& other, metalloid::indices<int, I...>)
      : columns{column(other.columns[I])...} {}

  METALLOID_INLINE static constexpr column diagonal_column(T value, int i) {
    T elements[4] = {};
    elements[i] = value;
    return column_at(elements);
  }

  METALLOID_INLINE static constexpr column column_at(const T* elements) {
    if constexpr (R == 2) {
      return column(elements[0], elements[1]);
    } else if constexpr (R == 3) {
      return column(elements[0], elements[1], elements[2]);
    } else {
      return column(elements[0], elements[1], elements[2], elements[3]);
    }
  }
};

template <class T, int K, int R, int C>
METALLOID_INLINE matrix<T, C, R> operator*(const matrix<T, K, R>& a, const matrix<T, C, K>& b) {
  matrix<T, C, R> product;
#pragma unroll
  for (int i = 0; i < C; ++i) product.columns[i] = a * b.columns[i];
  return product;
}

// ---- functions ----------------------------------------------------------------------------------
template <class T, int C, int R>
METALLOID_INLINE matrix<T, R, C> transpose(const matrix<T, C, R>& a) {
  matrix<T, R, C> transposed;
#pragma unroll
  for (int row = 0; row < R; ++row) {
#pragma unroll
    for (int column = 0; column < C; ++column) {
      transposed.columns[row][column] = a.columns[column][row];
    }
  }
  return transposed;
}

}  // namespace metal

namespace metalloid {

template <class T>
METALLOID_INLINE float determinant(const metal::matrix<T, 2, 2>& a) {
  return a[0].x * a[1].y - a[1].x * a[0].y;
}
template <class T>
METALLOID_INLINE float determinant(const metal::matrix<T, 3, 3>& a) {
  return dot(a[0], metal::cross(a[1], a[2]));
}
// By the 2x2 minors of the upper two rows and of the lower two.
template <class T>
METALLOID_INLINE float determinant(const metal::matrix<T, 4, 4>& a) {
  metal::vec<float, 4> p = a[0], q = a[1], r = a[2], s = a[3];
  float upper_01 = p.x * q.y - q.x * p.y, lower_23 = r.z * s.w - s.z * r.w;
  float upper_02 = p.x * r.y - r.x * p.y, lower_13 = q.z * s.w - s.z * q.w;
  float upper_03 = p.x * s.y - s.x * p.y, lower_12 = q.z * r.w - r.z * q.w;
  float upper_12 = q.x * r.y - r.x * q.y, lower_03 = p.z * s.w - s.z * p.w;
  float upper_13 = q.x * s.y - s.x * q.y, lower_02 = p.z * r.w - r.z * p.w;
  float upper_23 = r.x * s.y - s.x * r.y, lower_01 = p.z * q.w - q.z * p.w;
  return upper_01 * lower_23 - upper_02 * lower_13 + upper_03 * lower_12 + upper_12 * lower_03 -
         upper_13 * lower_02 + upper_23 * lower_01;
}

}  // namespace metalloid

namespace metal {

template <class T, int N>
METALLOID_INLINE T determinant(const matrix<T, N, N>& a) {
  return T(metalloid::determinant(matrix<float, N, N>(a)));
}

}  // namespace metal

// ---- names: float2x2 to float4x4 and so on, everywhere and in namespace metal -------------------
#define METALLOID_MATRIX_NAME(type, C, R) \
  typedef metal::matrix<type, C, R> type##C##x##R; \
  namespace metal { \
  using ::type##C##x##R; \
  }
#define METALLOID_MATRIX_NAMES(type) \
  METALLOID_MATRIX_NAME(type, 2, 2) \
  METALLOID_MATRIX_NAME(type, 2, 3) \
  METALLOID_MATRIX_NAME(type, 2, 4) \
  METALLOID_MATRIX_NAME(type, 3, 2) \
  METALLOID_MATRIX_NAME(type, 3, 3) \
  METALLOID_MATRIX_NAME(type, 3, 4) \
  METALLOID_MATRIX_NAME(type, 4, 2) \
  METALLOID_MATRIX_NAME(type, 4, 3) \
  METALLOID_MATRIX_NAME(type, 4, 4)
METALLOID_MATRIX_NAMES(float)
METALLOID_MATRIX_NAMES(half)
METALLOID_MATRIX_NAMES(bfloat)
#undef METALLOID_MATRIX_NAMES
#undef METALLOID_MATRIX_NAME
