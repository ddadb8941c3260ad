// Prefix scans of rows on SIMT devices: a threadgroup combines the elements of a tile, another one scans
// the totals of a row's tiles, and each tile is scanned from the totals before it (reduce, then scan: D.
// Merrill and A. Grimshaw, "Parallel scan for stream architectures", University of Virginia, 2009).
// A tile has four blocks, of which each thread has four elements; Op is a struct of scans.metal.
namespace numpy {

constant constexpr uint scan_threads = 256;
constant constexpr uint scan_simdgroups = scan_threads / 32;
constant constexpr uint scan_blocks = 4;
constant constexpr uint scan_block = 4 * scan_threads;
constant constexpr uint scan_tile = scan_blocks * scan_block;

// The elements of a block that a thread has; after the end of the row, the identity.
template <typename Op, bool is_aligned, typename T>
METAL_FUNC void read_block(thread T *to, device const T *from, uint first, uint count) {
  if constexpr (is_aligned) {
    if (first + 4 <= count) {
      const four<T> values = read_four(from + first);
      #pragma clang loop unroll(full)
      for (uint e = 0; e < 4; ++e) {
        to[e] = values[e];
      }
      return;
    }
  }
  #pragma clang loop unroll(full)
  for (uint e = 0; e < 4; ++e) {
    to[e] = first + e < count ? from[first + e] : Op().total;
  }
}

template <bool is_aligned, typename T>
METAL_FUNC void write_block(device T *to, thread const T *from, uint first, uint count) {
  if constexpr (is_aligned) {
    if (first + 4 <= count) {
      write_four(to + first, four<T>(from[0], from[1], from[2], from[3]));
      return;
    }
  }
  #pragma clang loop unroll(full)
  for (uint e = 0; e < 4; ++e) {
    if (first + e < count) {
      to[first + e] = from[e];
    }
  }
}

// The total of a tile, for the first thread.
template <typename Op, bool is_aligned, typename T>
METAL_FUNC T total_tile(device const T *from, uint tile, uint count, threadgroup T *shared, uint own) {
  T total = Op().total;
  #pragma clang loop unroll(full)
  for (uint k = 0; k < scan_blocks; ++k) {
    T mine[4];
    read_block<Op, is_aligned>(mine, from, tile * scan_tile + k * scan_block + 4 * own, count);
    total = Op::of(total, Op::of(Op::of(mine[0], mine[1]), Op::of(mine[2], mine[3])));
  }
  total = scan_lanes<Op>(total, own % 32);
  if (own % 32 == 31) {
    shared[own / 32] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (own == 0) {
    total = shared[0];
    for (uint k = 1; k < scan_simdgroups; ++k) {
      total = Op::of(total, shared[k]);
    }
  }
  return total;
}

// From the totals of a thread's elements to what precedes them in the tile; returns the total of the tile.
template <typename Op, typename T>
METAL_FUNC T scan_totals_of_threads(thread T *before, thread const T *totals, threadgroup T *shared,
                                    uint own) {
  static_assert(scan_blocks * scan_simdgroups == 32, "a lane for each simdgroup's elements of a block");
  const uint lane = own % 32, simdgroup = own / 32;
  T up_to[scan_blocks];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < scan_blocks; ++k) {
    up_to[k] = scan_lanes<Op>(totals[k], lane);
    if (lane == 31) {
      shared[k * scan_simdgroups + simdgroup] = up_to[k];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const T all = scan_lanes<Op>(shared[lane], lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  shared[lane] = all;  // by every simdgroup, the same
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < scan_blocks; ++k) {
    const uint index = k * scan_simdgroups + simdgroup;
    const T earlier = index > 0 ? shared[index - 1] : Op().total;
    const T within = from_before(up_to[k], 1);
    before[k] = lane > 0 ? Op::of(earlier, within) : earlier;
  }
  return shared[31];
}

// Scans the elements of a row from `first` to `end` after `carried`; exclusive scans leave out an
// element's own value.
template <typename Op, bool is_aligned, typename T>
METAL_FUNC void scan_tiles(device const T *from, device T *to, uint first, uint end, uint count,
                           T carried, bool is_exclusive, threadgroup T *shared, uint own) {
  for (uint tile = first; tile < end; tile += scan_tile) {
    T mine[scan_blocks][4], totals[scan_blocks], before[scan_blocks];
    #pragma clang loop unroll(full)
    for (uint k = 0; k < scan_blocks; ++k) {
      read_block<Op, is_aligned>(mine[k], from, tile + k * scan_block + 4 * own, count);
      totals[k] = Op::of(Op::of(mine[k][0], mine[k][1]), Op::of(mine[k][2], mine[k][3]));
    }
    const T all = scan_totals_of_threads<Op>(before, totals, shared, own);
    #pragma clang loop unroll(full)
    for (uint k = 0; k < scan_blocks; ++k) {
      T sum = Op::of(carried, before[k]), results[4];
      #pragma clang loop unroll(full)
      for (uint e = 0; e < 4; ++e) {
        const T next = Op::of(sum, mine[k][e]);
        results[e] = is_exclusive ? sum : next;
        sum = next;
      }
      write_block<is_aligned>(to, results, tile + k * scan_block + 4 * own, count);
    }
    carried = Op::of(carried, all);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

}  // namespace numpy
