// Products of rows of 16-bit integers with matrices of 2, 4 or 8 bits: pairs of products are summed
// as integers, for which processors have an instruction. Plain MSL.
//
// A lane has whole words. Its elements come in pairs, one of the lower and one of the upper half of
// a word; rows of the left factor are stored in this order: blocks of all lanes' pairs, first that
// of index 0 of each lane, and so on.
namespace nn {

// Elements that are read as they are.
struct Integers {
  static constexpr constant float factor = 0;
  template <typename T>
  static METAL_FUNC float scale(T) {
    return 0;
  }
};

// The sum over the lanes' own elements of a row, scaled.
template <ushort bits, ushort lanes_of_group, bool selects, bool is_full, typename S>
METAL_FUNC float add_integers(float total, device const ushort2 *row, device const S *scales,
                              device const short2 *x, device const float *steps, int block,
                              Sizes size, int lane) {
  constexpr int pairs = 16 / bits, lanes = 32, groups = lanes / lanes_of_group;
  const int at = block * lanes + lane;
  const ushort2 own = is_full || at < int(size.words) ? row[at] : ushort2(0);
  device const short2 *from = x + block * (lanes * pairs) + lane;
  int sum = 0;
  #pragma clang loop unroll(full)
  for (int e = 0; e < pairs; ++e) {
    const ushort2 q = (own >> ushort(e * bits)) & ushort((1 << bits) - 1);
    const int2 products = int2(from[e * lanes]) * int2(q);
    sum += products.x + products.y;
  }
  const int first = block * groups, last = int(size.groups) - 1;
  float scale;
  if (selects) {  // loads of single elements, which vector code broadcasts
    scale = float(scales[first]) * steps[first];
    #pragma clang loop unroll(full)
    for (int g = 1; g < groups; ++g) {
      const int group = is_full ? first + g : min(first + g, last);
      const float next = float(scales[group]) * steps[group];
      scale = lane >= g * lanes_of_group ? next : scale;
    }
  } else {
    const int own_group = first + lane / lanes_of_group;
    const int group = is_full ? own_group : min(own_group, last);
    scale = float(scales[group]) * steps[group];
  }
  return fma(scale, float(sum), total);
}

// The products of rows of `x` with at most 32 rows of a matrix, `count` from `first` on.
template <ushort bits, ushort lanes_of_group, bool selects, bool has_tail, typename S, typename T>
METAL_FUNC void multiply_integer_rows(device const ushort2 *words, device const S *scales,
                                      device const S *biases, device const short2 *x,
                                      device const float *steps, device const float *sums,
                                      device T *out, uint first, uint count, uint rows_of_x,
                                      Sizes size, int lane) {
  const uint end = min(first + count, size.rows), length = size.blocks * 32 * (16 / bits);
  constexpr int lanes = 32, page = 4096;  // processors guess what is read next within pages only
  const int full = size.words / lanes;
  for (uint m = 0; m < rows_of_x; ++m) {
    device const short2 *own = x + long(m) * length;
    device const float *steps_of_row = steps + long(m) * size.groups;
    float own_total = 0;  // converted and stored for all rows at a time
    for (uint n = first; n < end; ++n) {
      device const ushort2 *row = words + long(n) * size.words;
      device const S *scales_of_row = scales + long(n) * size.groups;
      float total = 0;
      for (int block = 0; block < full; ++block) {
#if METALLOID_PREFETCHES
        device const char *ahead = (device const char *)(row + block * lanes) + page;
        metalloid::prefetch(ahead);
        metalloid::prefetch(ahead + lanes * sizeof(ushort2) / 2);
#endif
        total = add_integers<bits, lanes_of_group, selects, true>(
            total, row, scales_of_row, own, steps_of_row, block, size, lane);
      }
      if (has_tail) {
        total = add_integers<bits, lanes_of_group, selects, false>(
            total, row, scales_of_row, own, steps_of_row, full, size, lane);
      }
      total += multiply_biases<Integers>(scales, biases, sums, m, n, size, lane);
      total = simd_sum(total);
      own_total = lane == int(n - first) ? total : own_total;
    }
    if (first + lane < end) {
      out[long(m) * size.rows + first + lane] = T(own_total);
    }
  }
}

}  // namespace nn
