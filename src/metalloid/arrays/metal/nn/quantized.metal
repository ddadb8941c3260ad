// Products of rows with quantized matrices, whose weights are unpacked in registers. Plain MSL.
//
// A lane has whole words, and the elements in them: `Packed::each` of them. Rows of the left factor
// are stored in the order in which lanes need them, so that they are read in order: blocks of all
// lanes' elements, first that of index 0 of each lane, then that of index 1, and so on.
namespace nn {

// Elements of `bits` bits, from the lowest to the highest of consecutive words.
template <ushort bits>
struct Packed {
  static constexpr constant bool is_aligned = (bits & (bits - 1)) == 0;
  static constexpr constant ushort words = is_aligned ? 1 : bits, each = words * 32 / bits;
  static constexpr constant bool has_pairs = false;

  // The bits of an element, in the position of the highest ones of a float's significand.
  static METAL_FUNC uint significand(thread const uint *from, ushort element) {
    const ushort at = element * bits, word = at / 32, low = at % 32, to = 23 - bits;
    const uint mask = ((1u << bits) - 1) << to;
    if (low + bits > 32) {
      return (((from[word] >> low) | (from[word + 1] << (32 - low))) << to) & mask;
    }
    return (low < to ? from[word] << (to - low) : from[word] >> (low - to)) & mask;
  }

  static METAL_FUNC uint code(thread const uint *from, ushort element) {
    return significand(from, element) >> (23 - bits);
  }
};

// Integers, times a scale, plus a bias. An element is read as 1 + q / 2**bits, without a conversion;
// `factor`, by which sums are multiplied at last, and `multiply_biases` undo that.
template <ushort bits>
struct Affine : Packed<bits> {
  static METAL_FUNC float element(thread const uint *from, ushort e) {
    return as_type<float>(Packed<bits>::significand(from, e) | 0x3f800000u);
  }
  static constexpr constant float factor = 1 << bits;
  static constexpr constant bool has_pairs = bits == 2 || bits == 4;

  // Two elements as floats' bits, from the lower one on: 1 + q / 2**(2 * bits), and 1 + q / 2**bits.
  static METAL_FUNC uint2 pair(thread const uint *from, ushort e) {
    constexpr uint mask = ((1u << bits) - 1) << (23 - bits), one = 0x3f800000u;
    const ushort at = e * bits, low = at % 32, to = 23 - 2 * bits;
    const uint word = low < to ? from[at / 32] << (to - low) : from[at / 32] >> (low - to);
    return uint2((word & (mask >> bits)) | one, (word & mask) | one);
  }
  template <typename T>
  static METAL_FUNC float scale(T from) {
    return float(from);
  }
};

// Floats of 4 bits, with 2 bits of exponent and 1 of the significand.
struct Float4 : Packed<4> {
  static METAL_FUNC float element(thread const uint *from, ushort e) {
    const uint q = code(from, e);
    return float(as_type<half>(ushort(((q & 7) << 9) | ((q & 8) << 12))));
  }
};

// Floats of 8 bits, with 4 bits of exponent and 3 of the significand.
METAL_FUNC float float8(uint q) {
  return float(as_type<half>(ushort(((q & 127) << 7) | ((q & 128) << 8)))) * 256;
}

struct Float8 : Packed<8> {
  static METAL_FUNC float element(thread const uint *from, ushort e) {
    const uint q = code(from, e);
    return float(as_type<half>(ushort(((q & 127) << 7) | ((q & 128) << 8))));
  }
};

// A power of 2.
METAL_FUNC float power8(uint q) { return q == 0 ? 0x1p-127f : as_type<float>(q << 23); }

struct MXFloat4 : Float4 {
  static constexpr constant float factor = 16384;
  static METAL_FUNC float scale(uchar from) { return power8(from); }
};
struct NVFloat4 : Float4 {
  static constexpr constant float factor = 16384;
  static METAL_FUNC float scale(uchar from) { return float8(from); }
};
struct MXFloat8 : Float8 {
  static constexpr constant float factor = 256;
  static METAL_FUNC float scale(uchar from) { return power8(from); }
};

struct Sizes {
  uint rows;    // of the matrix
  uint words;   // of a row
  uint groups;  // of a row, each with a scale
  uint blocks;  // of all lanes' elements
};

// The sum over the lanes' own elements of a row, scaled.
template <typename Format, ushort lanes_of_group, bool selects, bool is_full, typename S>
METAL_FUNC float add_block(float total, device const uint *row, device const S *scales,
                           device const float *x, int block, Sizes size, int lane) {
  constexpr int words = Format::words, each = Format::each, lanes = 32;
  constexpr int groups = lanes / lanes_of_group;
  uint own[words];
  for (int j = 0; j < words; ++j) {
    const int at = (block * lanes + lane) * words + j;
    own[j] = is_full || at < int(size.words) ? row[at] : 0;
  }
  device const float *from = x + block * (lanes * each) + lane;
  float sum = 0;
  #pragma clang loop unroll(full)
  for (int e = 0; e < each; ++e) {
    sum = fma(from[e * lanes], Format::element(own, e), sum);
  }
  const int first = block * groups, last = int(size.groups) - 1;
  float scale;
  if (selects) {  // loads of single elements, which vector code broadcasts
    scale = Format::scale(scales[first]);
    #pragma clang loop unroll(full)
    for (int g = 1; g < groups; ++g) {
      const float next = Format::scale(scales[is_full ? first + g : min(first + g, last)]);
      scale = lane >= g * lanes_of_group ? next : scale;
    }
  } else {
    const int group = first + lane / lanes_of_group;
    scale = Format::scale(scales[is_full ? group : min(group, last)]);
  }
  return fma(scale, sum, total);
}

template <typename Format, ushort lanes_of_group, bool selects, typename S>
METAL_FUNC float multiply_row(device const uint *row, device const S *scales,
                              device const float *x, Sizes size, int lane) {
  const int full = size.words / (32 * Format::words);
  float total = 0;
  for (int block = 0; block < full; ++block) {
    total = add_block<Format, lanes_of_group, selects, true>(total, row, scales, x, block, size,
                                                             lane);
  }
  if (full < int(size.blocks)) {
    total = add_block<Format, lanes_of_group, selects, false>(total, row, scales, x, full, size,
                                                              lane);
  }
  return total;
}

// The biases of row `n` times the sums of the groups of row `m` of `x`, less what `Affine` adds to
// each element. Rows of sums end with zeros, up to a multiple of 32.
template <typename Format, typename S>
METAL_FUNC float multiply_biases(device const S *scales, device const S *biases,
                                 device const float *sums, uint m, uint n, Sizes size, int lane) {
  const int groups = size.groups;
  const long first = long(n) * groups, end = long(size.rows) * groups;
  device const float *sums_of_row = sums + long(m) * ((groups + 31) / 32 * 32);
  float total = 0;
  for (int g = 0; g < groups; g += 32) {
    const long at = first + g + lane;
    if (first + g + 32 <= end) {  // loads that need no mask, also of the next row
      const float bias = fma(-Format::factor, Format::scale(scales[at]), float(biases[at]));
      const float more = fma(bias, sums_of_row[g + lane], total);
      total = g + lane < groups ? more : total;
    } else if (g + lane < groups) {
      const float bias = fma(-Format::factor, Format::scale(scales[at]), float(biases[at]));
      total = fma(bias, sums_of_row[g + lane], total);
    }
  }
  return total;
}

// The products of rows of `x` with at most 32 rows of a matrix, `count` from `first` on.
template <typename Format, ushort lanes_of_group, bool selects, bool has_biases, typename S,
          typename T>
METAL_FUNC void multiply_rows(device const uint *words, device const S *scales,
                              device const S *biases, device const float *x,
                              device const float *sums, device T *out, uint first, uint count,
                              uint rows_of_x, Sizes size, int lane) {
  const uint end = min(first + count, size.rows), length = size.blocks * 32 * Format::each;
  for (uint m = 0; m < rows_of_x; ++m) {
    float own_total = 0;  // converted and stored for all rows at a time
    for (uint n = first; n < end; ++n) {
      const long at = long(n) * size.groups;
      float total = Format::factor * multiply_row<Format, lanes_of_group, selects>(
          words + long(n) * size.words, scales + at, x + long(m) * length, size, lane);
      if constexpr (has_biases) {
        total += multiply_biases<Format>(scales, biases, sums, m, n, size, lane);
      }
      total = simd_sum(total);
      own_total = lane == int(n - first) ? total : own_total;
    }
    if (first + lane < end) {
      out[long(m) * size.rows + first + lane] = T(own_total);
    }
  }
}

}  // namespace nn
