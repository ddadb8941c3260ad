// Matrices that a whole simdgroup holds together (MSL specification, <metal_simdgroup_matrix>).
//
// Each lane owns two neighbours of a row of the 8 x 8 matrix. Which two is the layout of Apple's
// GPUs: undocumented, but what kernels that use thread_elements() (MLX's among them) rely on.
#pragma once

#include "metal_simdgroup.h"
#if defined(__NVPTX__)
#include "matrices_nvptx.h"
#endif

namespace metalloid {
// Row of the lane's elements, and column of the first of them.
METALLOID_INLINE uint matrix_row(uint lane) { return (lane / 4 & 4) + (lane / 2) % 4; }
METALLOID_INLINE uint matrix_column(uint lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }
}  // namespace metalloid

namespace metal {

template <class T, int Columns = 8, int Rows = 8>
struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "a simdgroup_matrix has 8 columns and 8 rows");
  using value_type = T;

  simdgroup_matrix() = default;

  // A matrix with `diagonal` on its diagonal.
  METALLOID_INLINE explicit simdgroup_matrix(T diagonal) {
    const uint lane = __msl_simd_lane();
    const uint row = metalloid::matrix_row(lane), column = metalloid::matrix_column(lane);
    elements = {row == column ? diagonal : T(0), row == column + 1 ? diagonal : T(0)};
  }

  // The lane's own two elements.
  METALLOID_INLINE vec<T, 2>& thread_elements() { return elements; }
  METALLOID_INLINE const vec<T, 2>& thread_elements() const { return elements; }

 private:
  vec<T, 2> elements;
};

typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

template <class T, int Columns, int Rows = Columns>
METALLOID_INLINE simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Columns, Rows> matrix;
  matrix.thread_elements() = vec<T, 2>(value);
  return matrix;
}

// Offset in memory of the lane's first element; `origin` is (column, row) of the matrix there.
// The other element follows it, or lies below it if transposed.
METALLOID_INLINE ulong simdgroup_matrix_offset(ulong elements_per_row, ulong2 origin,
                                               bool transposed) {
  const uint lane = __msl_simd_lane();
  const ulong row = metalloid::matrix_row(lane), column = metalloid::matrix_column(lane);
  const ulong start = origin.y * elements_per_row + origin.x;
  return start + (transposed ? column * elements_per_row + row : row * elements_per_row + column);
}

// Source and Destination are pointers into any address space, volatile or not.
template <class T, class Source>
METALLOID_INLINE void simdgroup_load(simdgroup_matrix<T, 8, 8>& matrix, Source source,
                                     ulong elements_per_row = 8, ulong2 origin = ulong2(0),
                                     bool transposed = false) {
  static_assert(is_same_v<remove_cv_t<remove_addrspace_t<remove_cv_t<remove_pointer_t<Source>>>>, T>,
                "simdgroup_load reads elements of the matrix's own type");
#if defined(__NVPTX__)
  if constexpr (sizeof(T) == 2) {
    if (transposed) {
      const Source own = source + simdgroup_matrix_offset(elements_per_row, origin, false);
      const vec<T, 2> as_it_lies(own[0], own[1]);
      matrix.thread_elements() = as_type<vec<T, 2>>(mtl_transposed_matrix(as_type<uint>(as_it_lies)));
      return;
    }
  }
#endif
  const Source own = source + simdgroup_matrix_offset(elements_per_row, origin, transposed);
  matrix.thread_elements() = {own[0], own[transposed ? elements_per_row : 1]};
}

template <class T, class Destination>
METALLOID_INLINE void simdgroup_store(simdgroup_matrix<T, 8, 8> matrix, Destination destination,
                                      ulong elements_per_row = 8, ulong2 origin = ulong2(0),
                                      bool transposed = false) {
  static_assert(
      is_same_v<remove_cv_t<remove_addrspace_t<remove_cv_t<remove_pointer_t<Destination>>>>, T>,
      "simdgroup_store writes elements of the matrix's own type");
  const Destination own =
      destination + simdgroup_matrix_offset(elements_per_row, origin, transposed);
  own[0] = matrix.thread_elements()[0];
  own[transposed ? elements_per_row : 1] = matrix.thread_elements()[1];
}

// d = a b + c, in floats: an element begins with c's, and a fused multiplication and addition for
// each column of a follows. It is rounded to its own type once. Tensor cores add in another order,
// and round towards zero.
template <class D, class A, class B, class C>
METALLOID_INLINE void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d,
                                                    simdgroup_matrix<A, 8, 8> a,
                                                    simdgroup_matrix<B, 8, 8> b,
                                                    simdgroup_matrix<C, 8, 8> c) {
  const float2 start(c.thread_elements());
#if defined(__NVPTX__)
  if constexpr (metalloid::has_tensor_cores<A, B>) {
    const auto sum = metalloid::tensor_product<A>(a.thread_elements(), b.thread_elements(),
                                                  mtl_two_floats{start.x, start.y});
    d.thread_elements() = vec<D, 2>(float2(sum.x, sum.y));
    return;
  }
#endif
  const float2 left(a.thread_elements()), right(b.thread_elements());
  const auto sum =
      __msl_simdgroup_matrix_multiply_f32(left.x, left.y, right.x, right.y, start.x, start.y);
  d.thread_elements() = vec<D, 2>(float2(sum.first, sum.second));
}

template <class D, class A, class B>
METALLOID_INLINE void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                         simdgroup_matrix<B, 8, 8> b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<float, 8, 8>(0.0f));
}

template <class T>
METALLOID_INLINE simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a,
                                                     simdgroup_matrix<T, 8, 8> b) {
  simdgroup_matrix<T, 8, 8> product;
  simdgroup_multiply(product, a, b);
  return product;
}

}  // namespace metal
