// Packing of the factors of products in panels. Plain MSL.
namespace numpy {

// Pack a matrix of `size.x` rows, or columns, and the depth `size.y`, contiguous along one of them,
// with a stride along the other. A threadgroup copies `packed_depth` elements of the depth of a panel.
constexpr constant uint packed_depth = 128;

// An element of a factor in the type of the sums; and a pair of bfloats, with 0 beyond the end.
template <typename T, typename Element>
METAL_FUNC T packed_element(device const Element *from, uint k, ulong stride, uint depth) {
  return T(from[k * stride]);
}
template <>
METAL_FUNC uint packed_element(device const bfloat *from, uint k, ulong stride, uint depth) {
  device const ushort *bits = (device const ushort *)from;
  const uint low = bits[2 * k * stride];
  return 2 * k + 1 < depth ? low | uint(bits[(2 * k + 1) * stride]) << 16 : low;
}

// The same of a factor that is contiguous along the depth, whose pairs are words of memory.
template <typename T, typename Element>
METAL_FUNC T packed_in_order(device const Element *from, uint k, uint depth) {
  return T(from[k]);
}
#if METALLOID_BFLOAT_DOTS
template <>
METAL_FUNC uint packed_in_order(device const bfloat *from, uint k, uint depth) {
  return 2 * k + 1 < depth ? read_pair(from, k) : uint(((device const ushort *)from)[2 * k]);
}
#endif

// A block of 8 x 8 elements, contiguous along the depth, is transposed in registers: each step swaps a
// bit of the elements' indices in a thread with one of the thread's. Threads of a lane and a column.
constexpr constant uint packed_block = 8;

template <typename T>
METAL_FUNC void transpose_block(thread T *elements, uint lane) {
  #pragma clang loop unroll(full)
  for (uint bit = packed_block / 2; bit > 0; bit /= 2) {
    const bool is_upper = lane & bit;
    #pragma clang loop unroll(full)
    for (uint i = 0; i < packed_block; ++i) {
      if ((i & bit) == 0) {
        const T lower = simd_shuffle_xor(elements[i], ushort(bit));
        const T upper = simd_shuffle_xor(elements[i + bit], ushort(bit));
        elements[i] = is_upper ? upper : elements[i];
        elements[i + bit] = is_upper ? elements[i + bit] : lower;
      }
    }
  }
}

// From and to the first elements of a block; `last` is its last column, `left` what is left of the depth.
template <typename T, bool is_full, typename Element>
METAL_FUNC void pack_block(device const Element *from, device T *to, uint last, uint left,
                           ulong stride, uint k, uint depth, uint lane) {
  T elements[packed_block];
  #pragma clang loop unroll(full)
  for (uint i = 0; i < packed_block; ++i) {  // beyond the last column, it is read again
    const uint column = is_full ? i : min(i, last);
    elements[i] = is_full || lane < left
                      ? packed_in_order<T>(from + column * stride, k + lane, depth)
                      : T(0);
  }
  transpose_block(elements, lane);
  #pragma clang loop unroll(full)
  for (uint i = 0; i < packed_block; ++i) {
    if (is_full || i < left) {
      to[(k + i) * panel_columns + lane] = elements[i];
    }
  }
}

// Pack a panel of a matrix that is contiguous along the depth: a threadgroup of 8 threads copies 8
// columns at a time. See `pack_panel`.
template <typename T, bool has_pairs, typename Element>
METAL_FUNC void pack_panel_transposed(device const Element *from, device T *to, uint2 size,
                                      ulong stride, uint3 group, uint lane) {
  const uint depth = has_pairs ? (size.y + 1) / 2 : size.y;
  const uint start = group.x * packed_depth, end = min(start + packed_depth, depth);
  const uint first = group.y * panel_columns, count = min(panel_columns, size.x - first);
  to += ulong(first) * depth;
  for (uint i = 0; i < count; i += packed_block) {
    device const Element *columns = from + (first + i) * stride;
    for (uint k = start; k < end; k += packed_block) {
      if (i + packed_block <= count && k + packed_block <= end) {
        pack_block<T, true>(columns, to + i, 0, 0, stride, k, size.y, lane);
      } else {
        pack_block<T, false>(columns, to + i, count - 1 - i, end - k, stride, k, size.y, lane);
      }
    }
  }
}

// As above, of a matrix that is contiguous along its columns; a thread has one of 32.
template <typename T, bool has_pairs, typename Element>
METAL_FUNC void pack_panel(device const Element *from, device T *to, uint2 size, ulong stride,
                           uint3 group, uint own) {
  const uint depth = has_pairs ? (size.y + 1) / 2 : size.y;
  const uint start = group.x * packed_depth, end = min(start + packed_depth, depth);
  const uint first = group.y * panel_columns, count = min(panel_columns, size.x - first);
  if (own < count) {
    from += first + own;
    to += ulong(first) * depth + own;
    for (uint k = start; k < end; ++k) {
      to[k * panel_columns] = packed_element<T>(from, k, stride, size.y);
    }
  }
}

}  // namespace numpy
