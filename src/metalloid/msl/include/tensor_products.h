// Products of matrices of tensors: fragments of 16 x 16, multiplied as pieces of 8 x 8.
//
// A lane's element e of a fragment is the one with the bits (from the lowest on) of its column c
// and its row r in
//
//     lane: c2 r0 r1 c3 r2     e: c0 c1 r3
//
// and a piece, as in metal_simdgroup_matrix.h, has `lane: c1 r0 r1 c2 r2, e: c0`. So what moves are
// bits between the number of a lane and that of an element.
#pragma once

#include "metal_cooperative_tensor.h"

namespace metalloid {

struct fragment {
  float elements[8];
};

METALLOID_INLINE float from_lane_xor(float value, ushort mask) {
  return as_type<float>(__msl_simd_shuffle_xor_b32(as_type<uint>(value), mask));
}

// Exchange a bit of the lane's number with one of the element's.
template <int lane_bit, int element_bit>
METALLOID_INLINE void exchange(fragment& values) {
  const bool upper = __msl_simd_lane() >> lane_bit & 1;
  for (int i = 0; i < 8; ++i) {
    if (i >> element_bit & 1) continue;
    float& low = values.elements[i];
    float& high = values.elements[i + (1 << element_bit)];
    const float moved = from_lane_xor(upper ? low : high, 1 << lane_bit);
    low = upper ? moved : low;
    high = upper ? high : moved;
  }
}

METALLOID_INLINE void transpose(fragment& values) {
  exchange<1, 0>(values);
  exchange<2, 1>(values);
  exchange<3, 2>(values);
  // It remains to swap two bits of the lane's number.
  const uint lane = __msl_simd_lane();
  const bool is_swapped = (lane ^ lane >> 4) & 1;
  for (int i = 0; i < 8; ++i) {
    const float moved = from_lane_xor(values.elements[i], 17);
    values.elements[i] = is_swapped ? moved : values.elements[i];
  }
}

// The fragment at a row and a column of a factor, or of its transpose; zeros outside of the factor,
// and where the inner dimension has ended.
template <bool transposed, class Operand>
METALLOID_INLINE fragment fragment_of(const Operand& factor, int row, int column, int rows,
                                      int columns) {
  const int lane_row = int(matrix_row(__msl_simd_lane()));
  const int lane_column = int(2 * matrix_column(__msl_simd_lane()));
  fragment values;
  for (int i = 0; i < 8; ++i) {
    if constexpr (metal::is_tensor_v<Operand>) {
      const int r = row + i / 4 * 8 + lane_row, c = column + lane_column + i % 4;
      values.elements[i] = float(transposed ? element_or_zero(factor, c, r)
                                            : element_or_zero(factor, r, c));
    } else {
      const int across = Operand::layout::across;
      const int number = transposed ? column / 16 * across + row / 16
                                    : row / 16 * across + column / 16;
      values.elements[i] = float(factor[uint(8 * number + i)]);
    }
  }
  if constexpr (transposed && !metal::is_tensor_v<Operand>) transpose(values);
  for (int i = 0; i < 8; ++i) {
    const int r = row + i / 4 * 8 + lane_row, c = column + lane_column + i % 4;
    if (r >= rows || c >= columns) values.elements[i] = 0;
  }
  return values;
}

// Sums of float products are floats. Those of 8-bit integers are exact in float over a piece.
template <class Destination>
using accumulator_t =
    metal::conditional_t<is_integer<typename Destination::value_type>, int, float>;

// sums += left right, for fragments. `left` is lost.
template <class Sum>
METALLOID_INLINE void multiply_fragments(Sum* sums, fragment& left, const fragment& right) {
  // As pieces: the columns of a left one must be the rows of a right one. Columns of the product
  // may be dealt to pieces in any order, so right ones and those of the product stay as they are.
  exchange<0, 1>(left);
  exchange<3, 1>(left);
  for (int below = 0; below < 8; below += 4) {
    for (int pair = 0; pair < 4; pair += 2) {
      for (int k = 0; k < 2; ++k) {
        const float* a = &left.elements[below + 2 * k];
        const float* b = &right.elements[4 * k + pair];
        Sum* const sum = &sums[below + pair];
        if constexpr (is_integer<Sum>) {  // of 8-bit integers: exact in float, from zero
          const auto product =
              __msl_simdgroup_matrix_multiply_f32(a[0], a[1], b[0], b[1], 0.0f, 0.0f);
          sum[0] += Sum(product.first);
          sum[1] += Sum(product.second);
        } else {
          const auto product =
              __msl_simdgroup_matrix_multiply_f32(a[0], a[1], b[0], b[1], sum[0], sum[1]);
          sum[0] = product.first;
          sum[1] = product.second;
        }
      }
    }
  }
}

// sums += the fragment of left right at (m, n), of an inner dimension of `inner`.
template <bool transpose_left, bool transpose_right, class Left, class Right, class Sum>
METALLOID_INLINE void add_products(Sum* sums, const Left& left, const Right& right, int m, int n,
                                   int inner) {
  const int any = 0x7fffffff;
  const auto add = [&](int k) __attribute__((always_inline)) {
    fragment rows = fragment_of<transpose_left>(left, m, k, any, inner);
    const fragment columns = fragment_of<transpose_right>(right, k, n, inner, any);
    multiply_fragments(sums, rows, columns);
  };
  if constexpr (metal::is_tensor_v<Left> && metal::is_tensor_v<Right>) {
#pragma clang loop unroll(disable)
    for (int k = 0; k < inner; k += 16) add(k);
  } else {
    // The elements of a thread are registers: which one must be known.
#pragma clang loop unroll(full)
    for (int k = 0; k < inner; k += 16) add(k);
  }
}

}  // namespace metalloid
