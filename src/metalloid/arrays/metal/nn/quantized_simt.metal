// Products of rows with quantized matrices on SIMT devices. A simdgroup multiplies several rows of
// the matrix at a time: their loads do not wait for each other, and an element of the left factor
// is loaded once for all of them. Plain MSL.
namespace nn {

// The products of rows of `x` with `count` rows of a matrix, from `first` on.
template <typename Format, ushort lanes_of_group, ushort count, bool has_biases, typename S,
          typename T>
METAL_FUNC void multiply_combined_rows(device const uint *words, device const S *scales,
                                       device const S *biases, device const float *x,
                                       device T *out, uint first, uint rows_of_x, Sizes size,
                                       uint lane) {
  constexpr uint own_words = Format::words, each = Format::each, lanes = 32;
  constexpr uint groups = lanes / lanes_of_group;
  device const uint *row[count];
  long first_group[count];
  for (uint r = 0; r < count; ++r) {  // rows beyond the last one are the last
    const long n = min(first + r, size.rows - 1);
    row[r] = words + n * size.words;
    first_group[r] = n * size.groups;
  }
  for (uint m = 0; m < rows_of_x; ++m) {
    device const float *from = x + long(m) * (size.blocks * lanes * each) + lane;
    float total[count] = {}, added[count] = {};
    #pragma clang loop unroll_count(2)
    for (uint block = 0; block < size.blocks; ++block) {
      const uint at = (block * lanes + lane) * own_words;
      const uint group = min(block * groups + lane / lanes_of_group, size.groups - 1);
      uint own[count][own_words];
      float scale[count], bias[count], sum[count] = {}, sum_of_x = 0;
      #pragma clang loop unroll(full)
      for (uint r = 0; r < count; ++r) {
        for (uint j = 0; j < own_words; ++j) {
          own[r][j] = at + j < size.words ? row[r][at + j] : 0;
        }
        scale[r] = Format::scale(scales[first_group[r] + group]);
        if constexpr (has_biases) {  // less what `Affine` adds to each element
          bias[r] = fma(-Format::factor, scale[r], float(biases[first_group[r] + group]));
        }
      }
      #pragma clang loop unroll(full)
      for (uint e = 0; e < each; ++e) {
        const float value = from[(block * each + e) * lanes];
        sum_of_x += value;
        #pragma clang loop unroll(full)
        for (uint r = 0; r < count; ++r) {
          sum[r] = fma(value, Format::element(own[r], e), sum[r]);
        }
      }
      for (uint r = 0; r < count; ++r) {
        total[r] = fma(scale[r], sum[r], total[r]);
        if constexpr (has_biases) {
          added[r] = fma(bias[r], sum_of_x, added[r]);
        }
      }
    }
    float own_total = 0;
    for (uint r = 0; r < count; ++r) {
      const float all = simd_sum(Format::factor * total[r] + added[r]);
      own_total = lane == r ? all : own_total;
    }
    if (lane < count && first + lane < size.rows) {
      out[long(m) * size.rows + first + lane] = T(own_total);
    }
  }
}

}  // namespace nn
