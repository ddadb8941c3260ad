// Products of rows with quantized matrices on SIMT devices. A simdgroup multiplies several rows of
// the matrix at a time: their loads do not wait for each other, and an element of the left factor
// is loaded once for all of them. The simdgroups of a threadgroup share the depth. Plain MSL.
namespace nn {

// Sums of products of a lane's elements: of rows of the matrix, and of their biases.
template <ushort count>
struct RowSums {
  float products[count], biases[count];
};

template <bool is_aligned, typename X>
METAL_FUNC numpy::four<X> four_from(device const X *from) {
  if constexpr (is_aligned) {
    return numpy::read_four(from);
  } else {
    return numpy::four<X>(from[0], from[1], from[2], from[3]);
  }
}

// Adds the products of a block of all lanes' elements; lanes beyond the last word have none.
template <typename Format, ushort lanes_of_group, bool has_biases, bool is_full, bool is_aligned,
          ushort count, typename S, typename X>
METAL_FUNC void add_products(thread RowSums<count> &sums, device const uint *words,
                             device const S *scales, device const S *biases, device const X *x,
                             thread const long *rows, uint block, Sizes size, uint lane) {
  constexpr uint own_words = Format::words, each = Format::each;
  const uint chunk = block * 32 + lane;
  const bool exists = is_full || chunk * own_words < size.words;
  const uint at = exists ? chunk : 0, group = at / lanes_of_group;
  uint own[count][own_words];
  float scale[count], bias[count], sum[count] = {}, sum_of_x = 0;
  #pragma clang loop unroll(full)
  for (uint r = 0; r < count; ++r) {
    for (uint j = 0; j < own_words; ++j) {
      own[r][j] = words[rows[r] * size.words + at * own_words + j];
    }
    scale[r] = Format::scale(scales[rows[r] * size.groups + group]);
    if constexpr (has_biases) {  // less what `Affine` adds to each element
      bias[r] = fma(-Format::factor, scale[r], float(biases[rows[r] * size.groups + group]));
    }
  }
  #pragma clang loop unroll(full)
  for (uint e = 0; e < each; e += 4) {
    const numpy::four<X> four = four_from<is_aligned>(x + at * each + e);
    #pragma clang loop unroll(full)
    for (uint j = 0; j < 4; ++j) {
      const float value = exists ? float(four[j]) : 0;
      sum_of_x += value;
      #pragma clang loop unroll(full)
      for (uint r = 0; r < count; ++r) {
        sum[r] = fma(value, Format::element(own[r], e + j), sum[r]);
      }
    }
  }
  for (uint r = 0; r < count; ++r) {
    sums.products[r] = fma(scale[r], sum[r], sums.products[r]);
    if constexpr (has_biases) {
      sums.biases[r] = fma(bias[r], sum_of_x, sums.biases[r]);
    }
  }
}

// The products of rows of `x` with `count` rows of a matrix, from `first` on. `shared` has a number
// for each simdgroup, row of `x` and row of the matrix.
template <typename Format, ushort lanes_of_group, ushort count, ushort simdgroups, bool has_biases,
          bool is_aligned, typename S, typename X, typename T>
METAL_FUNC void multiply_combined_rows(device const uint *words, device const S *scales,
                                       device const S *biases, device const X *x, device T *out,
                                       uint first, uint rows_of_x, Sizes size,
                                       threadgroup float *shared, uint simdgroup, uint lane) {
  const uint full = size.words / (32 * Format::words);
  long rows[count];
  for (uint r = 0; r < count; ++r) {
    rows[r] = min(first + r, size.rows - 1);  // rows beyond the last one are the last
  }
  for (uint m = 0; m < rows_of_x; ++m) {
    device const X *from = x + long(m) * (size.words / Format::words * Format::each);
    RowSums<count> sums = {};
    #pragma clang loop unroll_count(2)
    for (uint block = simdgroup; block < full; block += simdgroups) {
      add_products<Format, lanes_of_group, has_biases, true, is_aligned>(
          sums, words, scales, biases, from, rows, block, size, lane);
    }
    if (full < size.blocks && simdgroup == full % simdgroups) {
      add_products<Format, lanes_of_group, has_biases, false, is_aligned>(
          sums, words, scales, biases, from, rows, full, size, lane);
    }
    float totals[count];
    for (uint r = 0; r < count; ++r) {
      totals[r] = Format::factor * sums.products[r] + sums.biases[r];
    }
    const float total = sum_lanes<count>(totals, lane);
    if (lane < count) {
      if constexpr (simdgroups > 1) {
        shared[(simdgroup * rows_of_x + m) * count + lane] = total;
      } else if (first + lane < size.rows) {
        out[long(m) * size.rows + first + lane] = T(total);
      }
    }
  }
  if constexpr (simdgroups > 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint sums = rows_of_x * count, own = simdgroup * 32 + lane, row = first + own % count;
    if (own < sums && row < size.rows) {
      float total = shared[own];
      for (uint s = 1; s < simdgroups; ++s) {
        total += shared[s * sums + own];
      }
      out[long(own / count) * size.rows + row] = T(total);
    }
  }
}

}  // namespace nn
