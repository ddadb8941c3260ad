// Running sums and products of rows on SIMT devices: a threadgroup adds up a
// tile, another one the totals of all tiles of a row, and each tile is gone through again, from
// where the one before it ends. The text is preceded by `Op`: `of(a, b)` and `none()`.
constant constexpr uint scan_threads = 256;
constant constexpr uint scan_simdgroups = scan_threads / 32;
constant constexpr uint scan_parts = 4;  // of a tile; a thread has four elements in each
constant constexpr uint scan_part = 4 * scan_threads;
constant constexpr uint scan_tile = scan_parts * scan_part;

// What the lane `distance` before has.
template <typename T>
METAL_FUNC T from_before(T x, ushort distance) {
  if constexpr (sizeof(T) == 8) {
    return as_type<T>(simd_shuffle_up(as_type<uint2>(x), distance));
  } else {
    return simd_shuffle_up(x, distance);
  }
}

// All lanes up to the calling one.
template <typename T>
METAL_FUNC T scan_lanes(T x, uint lane) {
  for (ushort distance = 1; distance < 32; distance *= 2) {
    const T before = from_before(x, distance);
    x = lane >= distance ? Op<T>::of(before, x) : x;
  }
  return x;
}

// A thread's part of a tile, with nothing beyond the end.
template <typename T, bool is_packed>
METAL_FUNC void read_part(thread T *to, device const T *from, uint first, uint count) {
  if (is_packed && first + 4 <= count) {
    const numpy::four<T> four = numpy::read_four(from + first);
    #pragma clang loop unroll(full)
    for (uint e = 0; e < 4; ++e) {
      to[e] = four[e];
    }
    return;
  }
  #pragma clang loop unroll(full)
  for (uint e = 0; e < 4; ++e) {
    to[e] = first + e < count ? from[first + e] : Op<T>::none();
  }
}

template <typename T, bool is_packed>
[[kernel]] void total_tiles(device const T *values, device T *totals, constant ulong &start,
                            constant uint &count, uint2 group [[threadgroup_position_in_grid]],
                            uint2 groups [[threadgroups_per_grid]],
                            uint own [[thread_index_in_threadgroup]]) {
  threadgroup T of_simdgroups[scan_simdgroups];
  values += start + ulong(group.y) * count;
  T mine[scan_parts][4];
  #pragma clang loop unroll(full)
 for (uint k = 0; k < scan_parts; ++k) {
    read_part<T, is_packed>(mine[k], values, group.x * scan_tile + k * scan_part + 4 * own, count);
  }
  T total = Op<T>::none();
  #pragma clang loop unroll(full)
 for (uint k = 0; k < scan_parts; ++k) {
    const T of_part = Op<T>::of(Op<T>::of(mine[k][0], mine[k][1]), Op<T>::of(mine[k][2], mine[k][3]));
    total = Op<T>::of(total, of_part);
  }
  total = scan_lanes(total, own % 32);
  if (own % 32 == 31) {
    of_simdgroups[own / 32] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (own == 0) {
    T sum = of_simdgroups[0];
    for (uint k = 1; k < scan_simdgroups; ++k) {
      sum = Op<T>::of(sum, of_simdgroups[k]);
    }
    totals[ulong(group.y) * groups.x + group.x] = sum;
  }
}

// What stands before each of the calling thread's parts of a tile, of which it has these totals.
template <typename T>
METAL_FUNC T scan_parts_of_tile(thread T *before, const thread T *totals, threadgroup T *shared,
                                uint own) {
  const uint lane = own % 32, simdgroup = own / 32;
  T up_to[scan_parts];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < scan_parts; ++k) {
    up_to[k] = scan_lanes(totals[k], lane);
    if (lane == 31) {
      shared[k * scan_simdgroups + simdgroup] = up_to[k];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  static_assert(scan_parts * scan_simdgroups == 32, "a lane for each part of a simdgroup");
  const T all = scan_lanes(shared[lane], lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  shared[lane] = all;  // by every simdgroup, the same
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < scan_parts; ++k) {
    const uint partial_index = k * scan_simdgroups + simdgroup;
    const T earlier = partial_index > 0 ? shared[partial_index - 1] : Op<T>::none();
    const T within = from_before(up_to[k], 1);
    before[k] = lane > 0 ? Op<T>::of(earlier, within) : earlier;
  }
  return shared[31];
}

// A threadgroup goes through tiles from `first` on, and begins with `carried`.
template <typename T, bool is_packed>
METAL_FUNC void scan_tiles_of_row(device const T *values, device T *scanned, uint first, uint end,
                                  uint count, T carried, bool is_exclusive, threadgroup T *shared,
                                  uint own) {
  for (uint tile = first; tile < end; tile += scan_tile) {
    T mine[scan_parts][4], totals[scan_parts], before[scan_parts];
    #pragma clang loop unroll(full)
   for (uint k = 0; k < scan_parts; ++k) {
      read_part<T, is_packed>(mine[k], values, tile + k * scan_part + 4 * own, count);
    }
    #pragma clang loop unroll(full)
   for (uint k = 0; k < scan_parts; ++k) {
      totals[k] = mine[k][0];
      #pragma clang loop unroll(full)
      for (uint e = 1; e < 4; ++e) {
        totals[k] = Op<T>::of(totals[k], mine[k][e]);
      }
    }
    const T all = scan_parts_of_tile(before, totals, shared, own);
    #pragma clang loop unroll(full)
   for (uint k = 0; k < scan_parts; ++k) {
      const uint at = tile + k * scan_part + 4 * own;
      T sum = Op<T>::of(carried, before[k]);
      numpy::four<T> results;
      #pragma clang loop unroll(full)
     for (uint e = 0; e < 4; ++e) {
        const T next = Op<T>::of(sum, mine[k][e]);
        results[e] = is_exclusive ? sum : next;
        sum = next;
      }
      if (is_packed && at + 4 <= count) {
        numpy::write_four(scanned + at, results);
      } else {
        #pragma clang loop unroll(full)
        for (uint e = 0; e < 4; ++e) {
          if (at + e < count) {
            scanned[at + e] = results[e];
          }
        }
      }
    }
    carried = Op<T>::of(carried, all);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// A threadgroup for the totals of a row: what stands before each of them.
template <typename T>
[[kernel]] void scan_totals(device T *totals, constant uint &tiles,
                            uint row [[threadgroup_position_in_grid]],
                            uint own [[thread_index_in_threadgroup]]) {
  threadgroup T shared[scan_parts * scan_simdgroups];
  totals += ulong(row) * tiles;
  scan_tiles_of_row<T, false>(totals, totals, 0, tiles, tiles, Op<T>::none(), true, shared, own);
}

template <typename T, bool is_packed>
[[kernel]] void scan_tiles(device const T *values, device T *scanned, device const T *totals,
                           constant ulong &start, constant uint &count,
                           uint2 group [[threadgroup_position_in_grid]],
                           uint2 groups [[threadgroups_per_grid]],
                           uint own [[thread_index_in_threadgroup]]) {
  threadgroup T shared[scan_parts * scan_simdgroups];
  const ulong row = ulong(group.y) * count;
  const T carried =
      groups.x > 1 ? totals[ulong(group.y) * groups.x + group.x] : Op<T>::none();
  const uint first = group.x * scan_tile;
  scan_tiles_of_row<T, is_packed>(values + start + row, scanned + row, first, first + 1, count,
                                  carried, false, shared, own);
}
