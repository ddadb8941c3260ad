// Radix sort on SIMT devices: a threadgroup takes a tile of a row, finds
// where each of its elements belongs among those of the tile (A. Adinets, D. Merrill, "Onesweep",
// 2022, without its look back), and writes runs of equal digits, neighbours by neighbours.
constant constexpr uint tile_threads = numpy::radix_threads;
constant constexpr uint tile_simdgroups = numpy::radix_simdgroups;

// Elements of a thread: a tile has room in threadgroup memory.
template <typename Bits>
constexpr uint tile_each() { return sizeof(Bits) > 4 ? 8 : 16; }
template <typename Bits>
constexpr uint tile_elements() { return tile_threads * tile_each<Bits>(); }

// How often each digit occurs in each tile of a row: counts of a digit are contiguous.
template <typename Bits>
[[kernel]] void count_tiles(device const Bits *values, device uint *counts, constant ulong &start,
                            constant uint &given_count, constant uint &given_shift,
                            constant Order<Bits> &given,
                            uint2 group [[threadgroup_position_in_grid]],
                            uint2 groups [[threadgroups_per_grid]],
                            uint own [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint digit_counts[tile_simdgroups * digits];
  const Order<Bits> order = given;  // kept: memory may have changed after each barrier
  const uint count = given_count, shift = given_shift;
  const uint first = group.x * tile_elements<Bits>();
  for (uint k = own; k < tile_simdgroups * digits; k += tile_threads) {
    atomic_store_explicit(&digit_counts[k], 0, memory_order_relaxed);
  }
  Bits mine[tile_each<Bits>()];
  numpy::read_tile<tile_each<Bits>()>(mine, values + start + ulong(group.y) * count + first, count - first, own);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < tile_each<Bits>(); ++k) {
    if (first + numpy::index_in_tile<tile_each<Bits>()>(k, own) < count) {
      const uint digit = digit_of(mine[k], shift, order);
      atomic_fetch_add_explicit(&digit_counts[own / lanes * digits + digit], 1, memory_order_relaxed);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint sum = 0;
  for (uint k = 0; k < tile_simdgroups; ++k) {
    sum += atomic_load_explicit(&digit_counts[k * digits + own], memory_order_relaxed);
  }
  counts[(ulong(group.y) * digits + own) * groups.x + group.x] = sum;
}

// A threadgroup adds up the counts of a digit: each becomes the sum of those before it, and
// `totals` has the sum of all.
[[kernel]] void scan_tile_counts(device uint *counts, device uint *totals, constant uint &tiles,
                            uint group [[threadgroup_position_in_grid]],
                            uint own [[thread_index_in_threadgroup]]) {
  threadgroup uint of_simdgroups[tile_simdgroups];
  counts += ulong(group) * tiles;
  uint sum = 0;
  for (uint first = 0; first < tiles; first += 4 * tile_threads) {
    const uint at = first + 4 * own;
    uint mine[4], added = 0;
    for (uint k = 0; k < 4; ++k) {
      mine[k] = at + k < tiles ? counts[at + k] : 0;
      added += mine[k];
    }
    uint next = sum + numpy::sum_before(added, of_simdgroups, own);
    for (uint k = 0; k < tile_simdgroups; ++k) {
      sum += of_simdgroups[k];
    }
    for (uint k = 0; k < 4; ++k) {
      if (at + k < tiles) {
        counts[at + k] = next;
      }
      next += mine[k];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (own == 0) {
    totals[group] = sum;
  }
}

// A tile in the order of a digit, in threadgroup memory, and from there to where its runs belong.
// The attribute leaves registers for three threadgroups on a multiprocessor.
template <typename Bits, bool with_indices>
[[kernel, max_total_threads_per_threadgroup(768)]] void move_tiles(device const Bits *values, device const uint *indices,
                           device const uint *counts, device const uint *totals, device Bits *to,
                           device uint *indices_to, constant ulong &start, constant uint &given_count,
                           constant uint &given_shift, constant Order<Bits> &given,
                           constant bool &has_indices,
                           uint2 group [[threadgroup_position_in_grid]],
                           uint2 groups [[threadgroups_per_grid]],
                           uint own [[thread_index_in_threadgroup]]) {
  constexpr uint each = tile_each<Bits>();
  // Elements first, indices after them.
  threadgroup ulong storage[tile_elements<Bits>() * (sizeof(Bits) > 4 ? 8 : 4) / 8];
  threadgroup Bits *sorted = reinterpret_cast<threadgroup Bits *>(storage);
  threadgroup uint *sorted_indices = reinterpret_cast<threadgroup uint *>(storage);
  threadgroup uint next[tile_simdgroups * digits];
  threadgroup uint shifts[digits];
  threadgroup uint of_simdgroups[2 * tile_simdgroups];
  const Order<Bits> order = given;  // kept: memory may have changed after each barrier
  const uint count = given_count, shift = given_shift;
  const ulong row = ulong(group.y) * count;
  const uint first = group.x * tile_elements<Bits>();
  const uint left = min(count - first, tile_elements<Bits>());
  const uint lane = own % lanes;
  threadgroup uint *mine_next = next + own / lanes * digits;
  Bits mine[each];
  numpy::read_tile<tile_each<Bits>()>(mine, values + start + row + first, left, own);
  for (uint k = own; k < tile_simdgroups * digits; k += tile_threads) {
    next[k] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Where an element stands among those of its digit that its simdgroup has; and the digit.
  uint ranks[each];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint digit = digit_of(mine[k], shift, order);
    const bool takes_part = numpy::index_in_tile<tile_each<Bits>()>(k, own) < left;
    const uint same = numpy::lanes_with_digit(digit, takes_part);
    const uint before = popcount(same & ((1u << lane) - 1));
    const uint rank = mine_next[digit] + before;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (takes_part && before == 0) {
      mine_next[digit] = rank + popcount(same);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    ranks[k] = digit << 16 | rank;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // A thread for each digit: where it begins in each simdgroup's part, in the tile, in the row.
  uint sum = 0;
  for (uint k = 0; k < tile_simdgroups; ++k) {
    const uint of_simdgroup = next[k * digits + own];
    next[k * digits + own] = sum;
    sum += of_simdgroup;
  }
  const uint in_tile = numpy::sum_before(sum, of_simdgroups, own);
  const uint in_row =
      numpy::sum_before(totals[group.y * digits + own], of_simdgroups + tile_simdgroups, own);
  const uint before = counts[(ulong(group.y) * digits + own) * groups.x + group.x];
  shifts[own] = in_row + before - in_tile;
  for (uint k = 0; k < tile_simdgroups; ++k) {
    next[k * digits + own] += in_tile;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint position = numpy::index_in_tile<tile_each<Bits>()>(k, own);
    ranks[k] = (ranks[k] & 0xFFFF) + mine_next[ranks[k] >> 16];
    if (position < left) {
      sorted[ranks[k]] = mine[k];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!with_indices) {
    #pragma clang loop unroll_count(4)
    for (uint at = own; at < left; at += tile_threads) {
      const Bits value = sorted[at];
      to[row + (shifts[digit_of(value, shift, order)] + at)] = value;
    }
    return;
  }
  uint destination[each];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint at = k * tile_threads + own;
    if (at < left) {
      const Bits value = sorted[at];
      destination[k] = shifts[digit_of(value, shift, order)] + at;
      to[row + destination[k]] = value;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint at = first + numpy::index_in_tile<tile_each<Bits>()>(k, own);
    if (at < count) {
      sorted_indices[ranks[k]] = shift == 0 && !has_indices ? at : indices[row + at];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint at = k * tile_threads + own;
    if (at < left) {
      indices_to[row + destination[k]] = sorted_indices[at];
    }
  }
}

#define SORTING_TILES(name, Bits)                                             \
  template [[host_name("count_tiles_" #name)]] [[kernel]]                     \
  decltype(count_tiles<Bits>) count_tiles<Bits>;                              \
  template [[host_name("move_tiles_" #name)]] [[kernel]]                      \
  decltype(move_tiles<Bits, false>) move_tiles<Bits, false>;                  \
  template [[host_name("move_tiles_with_indices_" #name)]] [[kernel]]          \
  decltype(move_tiles<Bits, true>) move_tiles<Bits, true>;
SORTING_TILES(8, uchar)
SORTING_TILES(16, ushort)
SORTING_TILES(32, uint)
SORTING_TILES(64, ulong)
