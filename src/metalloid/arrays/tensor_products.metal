// Products of halves in blocks of 16 x 16, as the tensor cores of NVIDIA's GPUs have them. Where
// METALLOID_TENSOR_BLOCKS is defined two functions are instructions (metal_tensor_blocks.h);
// otherwise they are plain MSL, which is slow and for tests.
//
// 4 simdgroups make a tile, each a quarter of it. As in wide_products.metal, the next step of the
// depth comes from memory while this one is multiplied.
namespace numpy {

constexpr constant uint tensor_threads = 128;
constexpr constant uint tensor_tile = 128;
constexpr constant uint tensor_step = 32;
constexpr constant uint tensor_elements = tensor_tile * tensor_step;
// Eights of a factor for each thread; rows and columns of a simdgroup, in blocks of 16.
constexpr constant uint tensor_eights = tensor_elements / 8 / tensor_threads;
constexpr constant uint tensor_rows = 4;
constexpr constant uint tensor_columns = tensor_tile * tensor_tile / 32 / tensor_threads;
constexpr constant uint tensor_across = tensor_tile / (16 * tensor_columns);
constexpr constant uint tensor_room = 4 * tensor_elements;  // for both factors, twice

// The quarters of a block in threadgroup memory, two elements of a row in a register. Lane 8 q + r
// says where row r of quarter q begins; if they are transposed, those are columns.
template <bool is_transposed, typename T>
METAL_FUNC void load_blocks(thread uint (&to)[4], threadgroup const T *tile, uint offset,
                            uint lane) {
#if defined(METALLOID_TENSOR_BLOCKS)
  metalloid::load_blocks<is_transposed>(to, tile, offset);
#else
  const uint row = lane / 4, pair = lane % 4 * 2;
  for (uint quarter = 0; quarter < 4; ++quarter) {
    uint bits[2];
    for (uint k = 0; k < 2; ++k) {
      const ushort from = ushort(quarter * 8 + (is_transposed ? pair + k : row));
      const uint begin = simd_shuffle(offset, from);
      bits[k] = as_type<ushort>(tile[begin + (is_transposed ? row : pair + k)]);
    }
    to[quarter] = bits[0] | bits[1] << 16;
  }
#endif
}

// sums += left right: 16 rows of 16 elements by 16 rows of 8, which are two quarters.
template <typename T>
METAL_FUNC void multiply_blocks(thread float (&sums)[4], const thread uint (&left)[4], uint upper,
                                uint lower, uint lane) {
#if defined(METALLOID_TENSOR_BLOCKS)
  metalloid::multiply_blocks<T>(sums, left, upper, lower);
#else
  for (uint i = 0; i < 4; ++i) {
    const uint column = lane % 4 * 2 + i % 2;
    for (uint k = 0; k < 16; ++k) {
      const uint pair = k % 8 / 2, shift = k % 2 * 16;
      const uint a = simd_shuffle(left[i / 2 + k / 8 * 2], ushort(lane / 4 * 4 + pair));
      const uint b = simd_shuffle(k < 8 ? upper : lower, ushort(column * 4 + pair));
      sums[i] = fma(float(as_type<T>(ushort(a >> shift))), float(as_type<T>(ushort(b >> shift))),
                    sums[i]);
    }
  }
#endif
}

// Where an element of a factor lies in threadgroup memory: eight beside each other, as in the
// factor. These groups change places so that those of eight lines, which are read together, lie in
// different banks.
template <bool along_depth>
METAL_FUNC uint tensor_place(uint line, uint depth) {
  if (along_depth) {
    return line * tensor_step + ((depth / 8) ^ (line / 2 % 4)) * 8;
  }
  return depth * tensor_tile + ((line / 8) ^ (depth % 8)) * 8;
}

// The groups of eight elements that a thread brings.
template <bool along_depth>
METAL_FUNC uint2 tensor_group(uint k, uint own) {
  const uint group = k * tensor_threads + own;
  return along_depth ? uint2(group / (tensor_step / 8), group % (tensor_step / 8) * 8)
                     : uint2(group % (tensor_tile / 8) * 8, group / (tensor_tile / 8));
}

// One group, whole or with nothing beyond the end of the factor.
template <typename T, bool is_left, bool along_depth, bool is_whole, typename Factor>
METAL_FUNC uint4 bring_eight(Factor factor, uint2 group, uint2 end) {
  T eight[8];
  #pragma clang loop unroll(full)
  for (uint e = 0; e < 8; e += is_whole ? 4 : 1) {
    const uint line = group.x + (along_depth ? 0 : e), place = group.y + (along_depth ? e : 0);
    if (is_whole) {
      factor.four(is_left ? line : place, is_left ? place : line, eight + e);
    } else {
      eight[e] = T(0);
      if (line < end.x && place < end.y) {
        eight[e] = is_left ? T(factor(line, place)) : T(factor(place, line));
      }
    }
  }
  return uint4(as_type<uint2>(vec<T, 4>(eight[0], eight[1], eight[2], eight[3])),
               as_type<uint2>(vec<T, 4>(eight[4], eight[5], eight[6], eight[7])));
}

template <typename T, bool is_left, bool along_depth, typename Factor>
METAL_FUNC void bring_eights(thread uint4 *to, Factor factor, uint first, uint depth, uint2 end,
                             uint own) {
  if (first + tensor_tile <= end.x && depth + tensor_step <= end.y) {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < tensor_eights; ++k) {
      const uint2 group = tensor_group<along_depth>(k, own) + uint2(first, depth);
      to[k] = bring_eight<T, is_left, along_depth, true>(factor, group, end);
    }
  } else {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < tensor_eights; ++k) {
      const uint2 group = tensor_group<along_depth>(k, own) + uint2(first, depth);
      to[k] = bring_eight<T, is_left, along_depth, false>(factor, group, end);
    }
  }
}

template <typename T, bool along_depth>
METAL_FUNC void put_eights(threadgroup T *tile, const thread uint4 *eights, uint own) {
  #pragma clang loop unroll(full)
  for (uint k = 0; k < tensor_eights; ++k) {
    const uint2 group = tensor_group<along_depth>(k, own);
    const uint at = tensor_place<along_depth>(group.x, group.y);
    *reinterpret_cast<threadgroup uint4 *>(tile + at) = eights[k];
  }
}

template <typename T, bool left_down, bool right_down, typename Left, typename Right,
          typename Store>
METAL_FUNC void multiply_in_tensors(threadgroup T *tiles, Left left, Right right, Store store,
                                    uint3 size, uint3 group, uint own) {
  constexpr bool left_along = !left_down, right_along = right_down;
  const uint row = group.y * tensor_tile, column = group.x * tensor_tile;
  const uint simdgroup = simd_broadcast_first(own / 32), lane = own % 32;
  const uint y = simdgroup / tensor_across * (16 * tensor_rows);
  const uint x = simdgroup % tensor_across * (16 * tensor_columns);
  const uint in_quarter = lane % 8, is_second = lane / 8 % 2 * 8, is_late = lane / 16 * 8;
  constexpr uint wide = 2 * tensor_columns, many = 4 * tensor_rows * wide;
  float sums[tensor_rows][wide][4];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < many; ++k) {
    sums[k / (4 * wide)][k / 4 % wide][k % 4] = 0.0f;
  }
  uint4 from_left[tensor_eights], from_right[tensor_eights];
  threadgroup T *now = tiles, *next = tiles + 2 * tensor_elements;
  bring_eights<T, true, left_along>(from_left, left, row, 0, size.xz, own);
  bring_eights<T, false, right_along>(from_right, right, column, 0, size.yz, own);
  put_eights<T, left_along>(now, from_left, own);
  put_eights<T, right_along>(now + tensor_elements, from_right, own);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < size.z; k += tensor_step) {
    const bool is_last = k + tensor_step >= size.z;
    if (!is_last) {
      bring_eights<T, true, left_along>(from_left, left, row, k + tensor_step, size.xz, own);
      bring_eights<T, false, right_along>(from_right, right, column, k + tensor_step, size.yz, own);
    }
    #pragma clang loop unroll(full)
    for (uint j = 0; j < tensor_step; j += 16) {
      uint a[tensor_rows][4], b[tensor_columns][4];
      #pragma clang loop unroll(full)
      for (uint i = 0; i < tensor_rows; ++i) {
        const uint at = y + i * 16;
        const uint from = left_along
                              ? tensor_place<true>(at + in_quarter + is_second, j + is_late)
                              : tensor_place<false>(at + is_second, j + in_quarter + is_late);
        load_blocks<!left_along>(a[i], now, from, lane);
      }
      #pragma clang loop unroll(full)
      for (uint i = 0; i < tensor_columns; ++i) {
        const uint at = x + i * 16;
        const uint from = right_along
                              ? tensor_place<true>(at + in_quarter + is_late, j + is_second)
                              : tensor_place<false>(at + is_late, j + in_quarter + is_second);
        load_blocks<!right_along>(b[i], now + tensor_elements, from, lane);
      }
      #pragma clang loop unroll(full)
      for (uint i = 0; i < tensor_rows * wide; ++i) {
        const uint m = i / wide, n = i % wide;
        const uint upper = b[n / 2][n % 2 * 2], lower = b[n / 2][n % 2 * 2 + 1];
        multiply_blocks<T>(sums[m][n], a[m], upper, lower, lane);
      }
    }
    if (!is_last) {
      put_eights<T, left_along>(next, from_left, own);
      put_eights<T, right_along>(next + tensor_elements, from_right, own);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup T *other = now;
    now = next;
    next = other;
  }
  #pragma clang loop unroll(full)
  for (uint k = 0; k < many; ++k) {
    const uint m = k / (4 * wide), n = k / 4 % wide;
    const uint to_row = row + y + m * 16 + lane / 4 + k % 4 / 2 * 8;
    const uint to = column + x + n * 8 + lane % 4 * 2 + k % 2;
    if (to_row < size.x && to < size.y) {
      store(to_row, to, sums[m][n][k % 4]);
    }
  }
}

}  // namespace numpy
