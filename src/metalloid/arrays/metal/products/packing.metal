// Packing of the factors of products in panels. Plain MSL.
namespace numpy {

// Pack a matrix of `size.x` rows, or columns, and the depth `size.y`, contiguous along one of them,
// with a stride along the other. A threadgroup of 32 threads copies `packed_depth` elements of the
// depth of a panel.
constexpr constant uint packed_depth = 128;

// A tile of 32 x 32 elements is transposed in two steps, which rotate the ten bits of their indices
// by three and by two: adjacent threads read adjacent vectors of eight or four elements.
constexpr constant uint packed_tile = panel_columns * panel_columns;

template <typename T, uint count, typename To>
METAL_FUNC void rotate_index(threadgroup const T *from, To to, uint own) {
  for (uint t = 0; t < packed_tile / count; t += panel_columns) {
    T elements[count];  // all loads before the stores: each is a single wide access
    #pragma clang loop unroll(full)
    for (uint j = 0; j < count; ++j) {
      elements[j] = (from + count * t)[count * own + j];
    }
    #pragma clang loop unroll(full)
    for (uint j = 0; j < count; ++j) {
      to[j * (packed_tile / count) + t + own] = elements[j];
    }
  }
}

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

template <typename T, bool is_along_depth, bool has_pairs, typename Element>
METAL_FUNC void pack_panel(threadgroup T *tiles, device const Element *from, device T *to,
                           uint2 size, ulong stride, uint3 group, uint own) {
  const uint depth = has_pairs ? (size.y + 1) / 2 : size.y;
  const uint start = group.x * packed_depth, end = min(start + packed_depth, depth);
  const uint first = group.y * panel_columns, count = min(panel_columns, size.x - first);
  from += first * (is_along_depth ? stride : 1);
  to += ulong(first) * depth;
  if (is_along_depth) {
    threadgroup T *rows = tiles, *halfway = tiles + packed_tile;
    for (uint k = start; k < end; k += panel_columns) {
      const bool is_within = k + own < end;
      for (uint i = 0; i < count; ++i) {
        rows[i * panel_columns + own] = is_within ? packed_element<T>(from + i * stride, k + own, 1, size.y) : T(0);
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      rotate_index<T, 8>(rows, halfway, own);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (k + panel_columns <= end) {
        rotate_index<T, 4>(halfway, to + k * panel_columns, own);
      } else {
        rotate_index<T, 4>(halfway, rows, own);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = k; i < end; ++i) {
          to[i * panel_columns + own] = rows[(i - k) * panel_columns + own];
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  } else if (own < count) {
    for (uint k = start; k < end; ++k) {
      to[k * panel_columns + own] = packed_element<T>(from + own, k, stride, size.y);
    }
  }
}

}  // namespace numpy
