// Products of matrices of 16-bit floats on tensor cores.
//
// A thread's two neighbours of a row, as one word, are what its lane has to hand over of the left
// factor (lanes_nvptx.h says why); the right one is read by columns. Instructions replace the
// functions, one for several products where that is possible (backends/cuda/compile/tensor_cores.py).
#pragma once

#include "metal_convert.h"

typedef float mtl_two_floats __attribute__((ext_vector_type(2)));
#define METALLOID_MATRIX_FUNCTION extern "C" __attribute__((const, convergent, nothrow))
METALLOID_MATRIX_FUNCTION uint mtl_transposed_matrix(uint elements);
METALLOID_MATRIX_FUNCTION mtl_two_floats mtl_product_f16(uint a, uint transposed_b, mtl_two_floats c);
METALLOID_MATRIX_FUNCTION mtl_two_floats mtl_product_bf16(uint a, uint transposed_b, mtl_two_floats c);
#undef METALLOID_MATRIX_FUNCTION

namespace metalloid {
template <class A, class B>
inline constexpr bool has_tensor_cores = false;
template <>
inline constexpr bool has_tensor_cores<half, half> = true;
#if METALLOID_COMPUTE_CAPABILITY >= 80
template <>
inline constexpr bool has_tensor_cores<bfloat, bfloat> = true;
#endif

template <class T, class Pair>
METALLOID_INLINE mtl_two_floats tensor_product(Pair a, Pair b, mtl_two_floats c) {
  const uint left = metal::as_type<uint>(a);
  const uint right = mtl_transposed_matrix(metal::as_type<uint>(b));
  if constexpr (metal::is_same_v<T, half>) {
    return mtl_product_f16(left, right, c);
  } else {
    return mtl_product_bf16(left, right, c);
  }
}
}  // namespace metalloid
