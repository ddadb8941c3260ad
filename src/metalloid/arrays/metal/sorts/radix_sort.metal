// Radix sort of long rows, the lowest digit of 8 bits first: one launch counts all digits, and a
// launch for each digit reads and writes every element once (A. Adinets, D. Merrill, "Onesweep: a
// faster least significant digit radix sort for GPUs", 2022). Threadgroups take tiles of the rows in
// order, and find how often each digit occurs in earlier tiles by a decoupled look-back (D. Merrill,
// M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016): they wait for
// threadgroups that began before them, which have to make progress meanwhile. Metal does not
// guarantee that (`DeviceTraits.has_forward_progress`).
namespace numpy {

constant constexpr uint radix_lanes = 32;
constant constexpr uint radix_values = 256;  // of a digit
constant constexpr uint radix_threads = 256;  // of a threadgroup: one for each value of a digit
constant constexpr uint radix_simdgroups = radix_threads / radix_lanes;
constant constexpr uint radix_window = 4;  // tiles that a look-back reads at a time

// The word of a tile and a digit is 0 at first, then how often the digit occurs in the tile, and at last
// how often it occurs in this and all earlier tiles.
constant constexpr uint radix_count = 1u << 30, radix_prefix = 2u << 30, radix_sum = radix_count - 1;

// A bit for each lane that has the same digit, in few instructions.
METAL_FUNC uint lanes_with_digit(uint digit, bool takes_part) {
  uint same = uint(simd_vote::vote_t(simd_ballot(takes_part)));
  #pragma clang loop unroll(full)
  for (uint bit = 0; bit < 8; ++bit) {
    const int first = int(digit << (31 - bit));  // the bit is the sign: quickly tested and spread
    same &= ~(uint(simd_vote::vote_t(simd_ballot(first < 0))) ^ uint(first >> 31));
  }
  return same;
}

// The sum over all threads before the calling one.
METAL_FUNC uint sum_before(uint x, threadgroup uint *totals, uint own) {
  const uint before = simd_prefix_exclusive_sum(x);
  if (own % radix_lanes == radix_lanes - 1) {
    totals[own / radix_lanes] = before + x;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint sum = before;
  for (uint k = 0; k < radix_simdgroups; ++k) {
    sum += k < own / radix_lanes ? totals[k] : 0;
  }
  return sum;
}

// The k-th of a thread's `each` elements in a tile: each simdgroup has a part of its own.
template <uint each>
METAL_FUNC uint index_in_tile(uint k, uint own) {
  return own / radix_lanes * (radix_lanes * each) + k * radix_lanes + own % radix_lanes;
}

template <uint each, typename Bits>
METAL_FUNC void read_tile(thread Bits *to, device const Bits *from, uint count, uint own) {
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint i = index_in_tile<each>(k, own);
    to[k] = i < count ? from[i] : Bits(0);
  }
}

// A sort of rows. Passes write alternately to two buffers, the last one to the even one.
template <typename Bits>
struct RadixSort {
  Order<Bits> order;
  uint count, rows, tiles, passes;  // elements of a row; tiles of a row
  device const Bits *from;
  device Bits *even, *odd;
  device uint *even_indices, *odd_indices;  // if indices are sorted
  device long *results;                     // the indices in order
  // The next tile of each pass; then, for each row and pass, how often each digit occurs: zero before
  // the first launch. Then the words of tiles and digits, for even and for odd passes.
  device uint *state;

  METAL_FUNC device uint *totals(uint row, uint pass) const {
    return state + passes + (row * passes + pass) * radix_values;
  }

  METAL_FUNC device uint *sums(uint row, uint pass) const {
    const ulong tile = (ulong(pass % 2) * rows + row) * tiles;
    return state + passes + (ulong(rows) * passes + tile) * radix_values;
  }
};

// Counts the digits of all passes in every `groups`-th tile of a row, and clears the words of tiles.
template <uint each, uint passes, typename Bits>
METAL_FUNC void count_digits(RadixSort<Bits> sort, uint row, uint group, uint groups,
                             threadgroup atomic_uint *counts, uint own) {
  constexpr uint copies = 16 / passes;  // neighbouring lanes often have the same digit
  for (uint k = own; k < passes * radix_values * copies; k += radix_threads) {
    atomic_store_explicit(&counts[k], 0, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint tile = group; tile < sort.tiles; tile += groups) {
    sort.sums(row, 0)[tile * radix_values + own] = 0;
    const uint first = tile * (radix_threads * each), left = sort.count - first;
    Bits mine[each];
    read_tile<each>(mine, sort.from + ulong(row) * sort.count + first, left, own);
    #pragma clang loop unroll(full)
    for (uint k = 0; k < each; ++k) {
      const Bits key = sort.order.key(mine[k]);
      if (index_in_tile<each>(k, own) < left) {
        #pragma clang loop unroll(full)
        for (uint pass = 0; pass < passes; ++pass) {
          const uint digit = uint(key >> (8 * pass)) & 0xFF;
          const uint at = (pass * radix_values + digit) * copies + own % copies;
          atomic_fetch_add_explicit(&counts[at], 1, memory_order_relaxed);
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint pass = 0; pass < passes; ++pass) {
    uint sum = 0;
    for (uint k = 0; k < copies; ++k) {
      const uint at = (pass * radix_values + own) * copies + k;
      sum += atomic_load_explicit(&counts[at], memory_order_relaxed);
    }
    if (sum > 0) {
      device uint *total = sort.totals(row, pass) + own;
      atomic_fetch_add_explicit((device atomic_uint *)total, sum, memory_order_relaxed);
    }
  }
}

// How often a digit occurs in the tiles before one with this word. Some words are read at a time, as
// each time takes as long as an access to memory.
METAL_FUNC uint sum_of_earlier_tiles(device uint *own, uint tile) {
  uint sum = 0;
  while (tile > 0) {
    uint words[radix_window];
    #pragma clang loop unroll(full)
    for (uint k = 0; k < radix_window; ++k) {
      device uint *word = own - (k < tile ? k + 1 : tile) * radix_values;
      words[k] = atomic_load_explicit((device atomic_uint *)word, memory_order_relaxed);
    }
    uint known = 0;
    #pragma clang loop unroll(full)
    for (uint k = 0; k < radix_window; ++k) {
      if (known == k && k < tile && words[k] != 0) {
        sum += words[k] & radix_sum;
        known = words[k] >= radix_prefix ? tile : k + 1;
      }
    }
    tile -= known;
    own -= known * radix_values;
  }
  return sum;
}

// The passes of a row whose elements do not all have the same digit, a bit for each: others do
// nothing. The last pass stands in for none.
template <typename Bits>
METAL_FUNC uint passes_of_row(RadixSort<Bits> sort, uint row, threadgroup uint *memory, uint own) {
  uint same = 0;
  for (uint pass = 0; pass < sort.passes; ++pass) {
    same |= sort.totals(row, pass)[own] == sort.count ? 1u << pass : 0;
  }
  same = simd_or(same);
  if (own % radix_lanes == 0) {
    memory[own / radix_lanes] = same;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < radix_simdgroups; ++k) {
    same |= memory[k];
  }
  const uint mask = (1u << sort.passes) - 1;
  return (same & mask) == mask ? 1u << (sort.passes - 1) : ~same & mask;
}

// Moves the elements of the next tile to where they belong by one digit.
//
// `storage` holds a tile's keys, `next` `radix_simdgroups` * `radix_values` words.
template <uint each, bool with_indices, bool skips, typename Bits>
METAL_FUNC void sort_by_digit(RadixSort<Bits> sort, uint pass, threadgroup Bits *storage,
                              threadgroup uint *next, threadgroup uint *shifts, uint own) {
  threadgroup uint *words = next;  // before the elements are counted
  if (own == 0) {
    device atomic_uint *ticket = (device atomic_uint *)sort.state + pass;
    words[0] = atomic_fetch_add_explicit(ticket, 1, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint row = words[0] / sort.tiles, tile = words[0] % sort.tiles;
  if (pass + 1 < sort.passes) {
    sort.sums(row, pass + 1)[tile * radix_values + own] = 0;
  }
  uint passes = (1u << sort.passes) - 1;
  if (skips) {
    passes = passes_of_row(sort, row, words + 1, own);
    if ((passes >> pass & 1) == 0) {
      return;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool is_first = (passes & ((1u << pass) - 1)) == 0, is_last = passes >> (pass + 1) == 0;
  const bool is_odd = popcount(passes >> (pass + 1)) % 2 != 0;
  const ulong start = ulong(row) * sort.count;
  const uint shift = 8 * pass, lane = own % radix_lanes;
  const uint first = tile * (radix_threads * each);
  const uint left = min(sort.count - first, radix_threads * each);
  Bits mine[each];
  if (is_first) {
    read_tile<each>(mine, sort.from + start + first, left, own);
    #pragma clang loop unroll(full)
    for (uint k = 0; k < each; ++k) {
      mine[k] = sort.order.key(mine[k]);
    }
  } else {
    read_tile<each>(mine, (device const Bits *)(is_odd ? sort.even : sort.odd) + start + first,
                    left, own);
  }
  const uint total = sort.totals(row, pass)[own];
  for (uint k = own; k < radix_simdgroups * radix_values; k += radix_threads) {
    next[k] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Of each element its digit, and how many before it in its simdgroup's part have the same one.
  threadgroup uint *part = next + own / radix_lanes * radix_values;
  uint ranks[each];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint digit = uint(mine[k] >> shift) & 0xFF;
    const bool takes_part = index_in_tile<each>(k, own) < left;
    const uint same = lanes_with_digit(digit, takes_part);
    const uint before = popcount(same & ((1u << lane) - 1));
    const uint rank = part[digit] + before;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (takes_part && before == 0) {
      part[digit] = rank + popcount(same);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    ranks[k] = digit << 16 | rank;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // From here on a thread has a digit: where it begins in each simdgroup's part, and in the tile.
  uint sum = 0;
  for (uint k = 0; k < radix_simdgroups; ++k) {
    const uint count = next[k * radix_values + own];
    next[k * radix_values + own] = sum;
    sum += count;
  }
  device uint *word = sort.sums(row, pass) + tile * radix_values + own;
  atomic_store_explicit((device atomic_uint *)word, (tile == 0 ? radix_prefix : radix_count) | sum,
                        memory_order_relaxed);
  const uint in_tile = sum_before(sum, shifts, own);
  const uint in_row = sum_before(total, shifts + radix_simdgroups, own);
  for (uint k = 0; k < radix_simdgroups; ++k) {
    next[k * radix_values + own] += in_tile;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    ranks[k] = (ranks[k] & 0xFFFF) + part[ranks[k] >> 16];
    if (index_in_tile<each>(k, own) < left) {
      storage[ranks[k]] = mine[k];
    }
  }
  const uint earlier = sum_of_earlier_tiles(word, tile);
  if (tile > 0) {
    atomic_store_explicit((device atomic_uint *)word, radix_prefix | (earlier + sum),
                          memory_order_relaxed);
  }
  shifts[own] = in_row + earlier - in_tile;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  device Bits *to = (is_odd ? sort.odd : sort.even) + start;
  if (!with_indices) {
    #pragma clang loop unroll_count(4)
    for (uint at = own; at < left; at += radix_threads) {
      const Bits key = storage[at];
      to[shifts[uint(key >> shift) & 0xFF] + at] = is_last ? sort.order.bits(key) : key;
    }
    return;
  }
  uint destination[each];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint at = k * radix_threads + own;
    if (at < left) {
      const Bits key = storage[at];
      destination[k] = shifts[uint(key >> shift) & 0xFF] + at;
      if (!is_last) {
        to[destination[k]] = key;
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup uint *indices = reinterpret_cast<threadgroup uint *>(storage);
  device const uint *old = (is_odd ? sort.even_indices : sort.odd_indices) + start + first;
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint at = index_in_tile<each>(k, own);
    if (at < left) {
      indices[ranks[k]] = is_first ? first + at : old[at];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  device uint *moved = (is_odd ? sort.odd_indices : sort.even_indices) + start;
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint at = k * radix_threads + own;
    if (at < left) {
      if (is_last) {
        sort.results[start + destination[k]] = indices[at];
      } else {
        moved[destination[k]] = indices[at];
      }
    }
  }
}

}  // namespace numpy
