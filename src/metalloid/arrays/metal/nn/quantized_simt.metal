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

// A lane has the elements of `words` words: two where words have whole elements, for fewer loads.
template <typename Format>
struct OwnElements {
  static constexpr constant ushort words = Format::is_aligned ? 2 : Format::words;
  static constexpr constant ushort each = words / Format::words * Format::each;
};

template <bool is_aligned, ushort count>
METAL_FUNC void load_words(thread uint *to, device const uint *from) {
  if constexpr (is_aligned && count == 2) {
    const uint2 both = *reinterpret_cast<device const uint2 *>(from);
    to[0] = both.x;
    to[1] = both.y;
  } else {
    for (ushort j = 0; j < count; ++j) {
      to[j] = from[j];
    }
  }
}

// Adds the products of `values` with elements of a row from `e` on; integers are read as 1 + q / 2**bits,
// which callers undo. Two small integers share the significand of a float, and are shifted only once: the
// lower one counts 2**bits times less, and its factor in `values` that much more.
template <typename Format, bool has_pairs>
METAL_FUNC float add_four(float sum, thread const uint *own, uint e, thread const float *values) {
  if constexpr (has_pairs) {
    #pragma clang loop unroll(full)
    for (uint j = 0; j < 4; j += 2) {
      const uint2 pair = Format::pair(own, e + j);
      sum = fma(values[j], as_type<float>(pair.x), sum);
      sum = fma(values[j + 1], as_type<float>(pair.y), sum);
    }
  } else {
    #pragma clang loop unroll(full)
    for (uint j = 0; j < 4; ++j) {
      sum = fma(values[j], Format::element(own, e + j), sum);
    }
  }
  return sum;
}

// Adds the products of a block of all lanes' elements; lanes beyond the last word have none.
template <typename Format, ushort group_size, bool has_biases, bool is_full, bool is_aligned,
          ushort count, typename S, typename X>
METAL_FUNC void add_products(thread RowSums<count> &sums, device const uint *words,
                             device const S *scales, device const S *biases, device const X *x,
                             thread const long *rows, uint block, Sizes size, uint lane) {
  constexpr uint own_words = OwnElements<Format>::words, each = OwnElements<Format>::each;
  constexpr bool has_pairs = has_biases && Format::has_pairs && sizeof(X) == 2;
  constexpr float lower = has_pairs ? Format::factor : 1;
  const uint chunk = block * 32 + lane;
  const bool exists = is_full || chunk * own_words < size.words;
  const uint at = exists ? chunk : 0, group = at / (group_size / each);
  uint own[count][own_words];
  float scale[count], bias[count], sum[count] = {}, even = 0, odd = 0;
  #pragma clang loop unroll(full)
  for (uint r = 0; r < count; ++r) {
    load_words<is_aligned, own_words>(own[r], words + rows[r] * size.words + at * own_words);
    scale[r] = Format::scale(scales[rows[r] * size.groups + group]);
    if constexpr (has_biases) {
      bias[r] = float(biases[rows[r] * size.groups + group]);
    }
  }
  #pragma clang loop unroll(full)
  for (uint e = 0; e < each; e += 4) {
    const numpy::four<X> four = four_from<is_aligned>(x + at * each + e);
    float values[4];
    #pragma clang loop unroll(full)
    for (uint j = 0; j < 4; j += 2) {
      const float first = exists ? float(four[j]) : 0, second = exists ? float(four[j + 1]) : 0;
      even += first;
      odd += second;
      values[j] = lower * first;
      values[j + 1] = second;
    }
    #pragma clang loop unroll(full)
    for (uint r = 0; r < count; ++r) {
      sum[r] = add_four<Format, has_pairs>(sum[r], own[r], e, values);
    }
  }
  const float added = has_biases ? fma(lower, even, odd) : 0;  // by what elements are larger
  for (uint r = 0; r < count; ++r) {
    sums.products[r] = fma(scale[r], sum[r] - added, sums.products[r]);
    if constexpr (has_biases) {
      sums.biases[r] = fma(bias[r], even + odd, sums.biases[r]);
    }
  }
}

// The products of rows of `x` with `count` rows of a matrix, from `first` on. `shared` has a number
// for each simdgroup, row of `x` and row of the matrix. The loop is not unrolled: registers of two
// iterations would leave a GPU with half of the simdgroups, which hide each other's latency.
template <typename Format, ushort group_size, ushort count, ushort simdgroups, bool has_biases,
          bool has_tail, bool is_aligned, typename S, typename X, typename T>
METAL_FUNC void multiply_combined_rows(device const uint *words, device const S *scales,
                                       device const S *biases, device const X *x, device T *out,
                                       uint first, uint rows_of_x, Sizes size,
                                       threadgroup float *shared, uint simdgroup, uint lane) {
  constexpr uint block_words = 32 * OwnElements<Format>::words;
  const uint full = size.words / block_words;
  long rows[count];
  for (uint r = 0; r < count; ++r) {
    rows[r] = min(first + r, size.rows - 1);  // rows beyond the last one are the last
  }
  for (uint m = 0; m < rows_of_x; ++m) {
    device const X *from = x + long(m) * (size.words / Format::words * Format::each);
    RowSums<count> sums = {};
    #pragma clang loop unroll(disable)
    for (uint block = simdgroup; block < full; block += simdgroups) {
      add_products<Format, group_size, has_biases, true, is_aligned>(
          sums, words, scales, biases, from, rows, block, size, lane);
    }
    if constexpr (has_tail) {
      if (simdgroup == full % simdgroups) {
        add_products<Format, group_size, has_biases, false, is_aligned>(
            sums, words, scales, biases, from, rows, full, size, lane);
      }
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
