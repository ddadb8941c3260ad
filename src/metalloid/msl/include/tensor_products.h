// Products of matrices of tensors, in pieces of 8 x 8: what each lane contributes to them.
//
// A lane has two neighbours of each piece, as in metal_simdgroup_matrix.h. Columns of a product may
// be dealt to pieces in any order, as long as the right factor's are dealt in the same: so pieces of
// the product, and of a right factor that is not transposed, are a lane's own elements as they lie
// in a fragment. The others are fetched from other lanes.
#pragma once

#include "metal_cooperative_tensor.h"

namespace metalloid {

// The place of a lane's first element in a piece.
struct piece_place {
  int row = int(matrix_row(__msl_simd_lane()));
  int column = int(matrix_column(__msl_simd_lane()));
};

// Element (row, column) of a fragment, which each lane chooses for itself.
template <class T>
METALLOID_INLINE float fragment_element(const T* fragment, int row, int column) {
  const ushort lane = ushort((row & 4) << 2 | (row & 3) << 1 | (column & 8) | (column & 4) >> 2);
  float4 found[2];
  for (int lower = 0; lower < 2; ++lower) {
    const T* own = fragment + 4 * lower;
    const metal::ulong2 moved = {
        __msl_simd_shuffle_b64(as_type<ulong>(float2(float(own[0]), float(own[1]))), lane),
        __msl_simd_shuffle_b64(as_type<ulong>(float2(float(own[2]), float(own[3]))), lane)};
    found[lower] = float4(as_type<float2>(moved.x), as_type<float2>(moved.y));
  }
  const float4 four = row & 8 ? found[1] : found[0];
  const float2 two = column & 2 ? float2(four.z, four.w) : float2(four.x, four.y);
  return column & 1 ? two.y : two.x;
}

template <class Cooperative>
METALLOID_INLINE auto* fragment_at(const Cooperative& matrix, int row, int column) {
  return &matrix[uint(8 * (row / 16 * Cooperative::layout::across + column / 16))];
}

// ---- the left factor: the piece at (m, k) -------------------------------------------------------
template <bool transposed, class Operand>
METALLOID_INLINE float2 left_piece(const Operand& left, int m, int k) {
  const piece_place own;
  float2 piece;
  if constexpr (metal::is_tensor_v<Operand>) {
    for (int i = 0; i < 2; ++i) {
      const int row = m + own.row, column = k + own.column + i;
      piece[i] = float(transposed ? element_or_zero(left, column, row)
                                  : element_or_zero(left, row, column));
    }
  } else if constexpr (transposed) {
    const auto* fragment = fragment_at(left, k, m);
    for (int i = 0; i < 2; ++i)
      piece[i] = fragment_element(fragment, k % 16 + own.column + i, m % 16 + own.row);
  } else {
    // Its rows are the lane's own, and both elements come from one lane.
    const auto* row = fragment_at(left, m, k) + m % 16 / 2;
    const ushort lane =
        ushort((__msl_simd_lane() & ~9u) | uint(k & 8) | uint(own.column & 4) >> 2);
    const ulong first =
        __msl_simd_shuffle_b64(as_type<ulong>(float2(float(row[0]), float(row[1]))), lane);
    const ulong second =
        __msl_simd_shuffle_b64(as_type<ulong>(float2(float(row[2]), float(row[3]))), lane);
    piece = as_type<float2>(own.column & 2 ? second : first);
  }
  return piece;
}

// ---- the right factor: the piece at (k, n), of columns as a fragment deals them: `pair` 0 or 1 ----
template <bool transposed, class Operand>
METALLOID_INLINE float2 right_piece(const Operand& right, int k, int n, int pair) {
  const piece_place own;
  float2 piece;
  if constexpr (metal::is_tensor_v<Operand>) {
    for (int i = 0; i < 2; ++i) {
      const int row = k + own.row, column = n + 2 * own.column + 2 * pair + i;
      piece[i] = float(transposed ? element_or_zero(right, column, row)
                                  : element_or_zero(right, row, column));
    }
  } else if constexpr (transposed) {
    const auto* fragment = fragment_at(right, n, k);
    for (int i = 0; i < 2; ++i)
      piece[i] = fragment_element(fragment, 2 * own.column + 2 * pair + i, k % 16 + own.row);
  } else {
    const auto* row = fragment_at(right, k, n) + k % 16 / 2 + 2 * pair;
    piece = float2(float(row[0]), float(row[1]));
  }
  return piece;
}

// ---- products -------------------------------------------------------------------------------------

// Sums of float products are floats. Those of 8-bit integers are exact in float over a piece.
template <class Destination>
using accumulator_t =
    metal::conditional_t<is_integer<typename Destination::value_type>, int, float>;

// The 16 x 16 fragment of a product at (m, n), added to `sums`: eight elements of a lane.
template <class Left, class Right, bool transpose_left, bool transpose_right, class Sum>
struct fragment_product {
  const Left& left;
  const Right& right;
  int inner;

  METALLOID_INLINE void add_piece(Sum* sums, int m, int n, int k) const {
    float2 rows[2];
    for (int i = 0; i < 2; ++i) rows[i] = left_piece<transpose_left>(left, m + 8 * i, k);
    // An inner dimension may end within a piece.
    const piece_place own;
    if (inner % 8 != 0) {
      for (int i = 0; i < 2; ++i)
        rows[i] = {k + own.column < inner ? rows[i].x : 0, k + own.column + 1 < inner ? rows[i].y : 0};
    }
    for (int pair = 0; pair < 2; ++pair) {
      float2 columns = right_piece<transpose_right>(right, k, n, pair);
      if (inner % 8 != 0) columns = k + own.row < inner ? columns : float2(0);
      for (int i = 0; i < 2; ++i) {
        const float2 product = as_type<float2>(__msl_simdgroup_matrix_multiply_f32(
            as_type<ulong>(rows[i]), as_type<ulong>(columns)));
        sums[4 * i + 2 * pair] += Sum(product.x);
        sums[4 * i + 2 * pair + 1] += Sum(product.y);
      }
    }
  }

  METALLOID_INLINE void add(Sum* sums, int m, int n) const {
    if constexpr (metal::is_tensor_v<Left> && metal::is_tensor_v<Right>) {
#pragma clang loop unroll(disable)
      for (int k = 0; k < inner; k += 8) add_piece(sums, m, n, k);
    } else {
      // The elements of a thread are registers: which one must be known.
#pragma clang loop unroll(full)
      for (int k = 0; k < inner; k += 8) add_piece(sums, m, n, k);
    }
  }
};

}  // namespace metalloid
