// Sorting of rows by digits of 8 bits, the lowest first (D. E. Knuth, "The Art of Computer
// Programming", volume 3, 5.2.5): each pass puts the elements in the order of one digit and leaves
// equal ones as they stand. A simdgroup goes through a row, or through a chunk of a long one, and
// lanes with equal digits find each other by votes (A. Adinets, D. Merrill, "Onesweep: a faster
// least significant digit radix sort for GPUs", 2022).
constant constexpr uint lanes = 32;    // of a simdgroup, which is a threadgroup
constant constexpr uint digits = 256;  // values of a digit

template <typename Bits>
METAL_FUNC uint digit_of(Bits bits, uint shift, Order<Bits> order) {
  return uint(order.key(bits) >> shift) & 0xFF;
}

METAL_FUNC uint votes(bool vote) { return uint(simd_vote::vote_t(simd_ballot(vote))); }

// A bit for each lane that has the same digit.
METAL_FUNC uint lanes_with(uint digit, bool takes_part) {
  uint same = votes(takes_part);
  for (uint bit = 0; bit < 8; ++bit) {
    const bool is_set = (digit >> bit & 1) != 0;
    const uint set = votes(is_set);
    same &= is_set ? set : ~set;
  }
  return same;
}

// How often each digit occurs among `count` elements.
template <typename Bits>
METAL_FUNC void count_digits(device const Bits *values, uint count, uint shift, Order<Bits> order,
                             threadgroup atomic_uint *counts, uint lane) {
  for (uint digit = lane; digit < digits; digit += lanes) {
    atomic_store_explicit(&counts[digit], 0, memory_order_relaxed);
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint first = 0; first < count; first += lanes) {
    const uint k = first + lane;
    if (k < count) {
      const uint digit = digit_of(values[k], shift, order);
      atomic_fetch_add_explicit(&counts[digit], 1, memory_order_relaxed);
    }
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

// Elements moved to where the next with their digit belongs, equal digits in the order of the
// elements. Indices are moved as well; those of the first pass are `at`, `at + 1` ...
template <typename Bits, bool with_indices>
METAL_FUNC void move_elements(device const Bits *values, device const uint *indices, uint at,
                              bool is_first, uint count, uint shift, Order<Bits> order,
                              threadgroup uint *next, device Bits *to, device uint *indices_to,
                              uint lane) {
  for (uint first = 0; first < count; first += lanes) {
    const uint k = first + lane;
    const bool takes_part = k < count;
    const Bits value = takes_part ? values[k] : Bits(0);
    const uint digit = digit_of(value, shift, order);
    const uint same = lanes_with(digit, takes_part);
    const uint before = popcount(same & ((1u << lane) - 1));
    const uint index = next[digit] + before;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (takes_part && before == 0) {
      next[digit] = index + popcount(same);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (takes_part) {
      to[index] = value;
      if (with_indices) {
        indices_to[index] = is_first ? at + k : indices[k];
      }
    }
  }
}

// A simdgroup sorts a row, pass by pass. The last pass writes to `sorted`, the one before to
// `spare`, and so on. Given indices (`has_indices`) are stored where the first
// pass does not write.
template <typename Bits, bool with_indices>
[[kernel]] void sort_rows(device const Bits *values, device Bits *sorted, device uint *indices,
                          device Bits *spare, device uint *spare_indices, constant ulong &start,
                          constant uint &count, constant uint &passes,
                          constant bool &has_indices, constant Order<Bits> &given,
                          uint row [[threadgroup_position_in_grid]],
                          uint lane [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint counts[digits];
  threadgroup uint next[digits];
  const Order<Bits> order = given;
  const ulong first = ulong(row) * count;
  sorted += first;
  spare += first;
  indices += with_indices ? first : 0;
  spare_indices += with_indices ? first : 0;
  for (uint pass = 0; pass < passes; ++pass) {
    const bool is_spare = (passes - pass) % 2 == 0;
    device const Bits *from = pass == 0 ? values + start + first : is_spare ? sorted : spare;
    count_digits(from, count, 8 * pass, order, counts, lane);
    uint mine[digits / lanes], sum = 0;
    for (uint k = 0; k < digits / lanes; ++k) {
      mine[k] = sum;
      sum += atomic_load_explicit(&counts[lane * (digits / lanes) + k], memory_order_relaxed);
    }
    sum = simd_prefix_exclusive_sum(sum);
    for (uint k = 0; k < digits / lanes; ++k) {
      next[lane * (digits / lanes) + k] = sum + mine[k];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    move_elements<Bits, with_indices>(from, is_spare ? indices : spare_indices, 0,
                                     pass == 0 && !has_indices, count, 8 * pass, order, next,
                                     is_spare ? spare : sorted, is_spare ? spare_indices : indices,
                                     lane);
    simdgroup_barrier(mem_flags::mem_device);
  }
}

// A thread finds the rank of an element in a short row by comparing it with all others. The first
// `max_results` of each row are kept.
template <typename Bits, bool with_indices>
[[kernel]] void sort_short_rows(device const Bits *values, device const uint *given_indices,
                                device Bits *sorted, device uint *indices, constant ulong &start,
                                constant uint &count, constant uint &max_results,
                                constant bool &has_indices, constant Order<Bits> &given,
                                uint2 at [[thread_position_in_grid]]) {
  const Order<Bits> order = given;
  const ulong first = ulong(at.y) * count;
  values += start + first;
  const Bits value = values[at.x], key = order.key(value);
  uint index = 0;
  for (uint k = 0; k < count; ++k) {
    const Bits other = order.key(values[k]);
    index += other < key || (other == key && k < at.x) ? 1 : 0;
  }
  if (index < max_results) {
    const ulong to = ulong(at.y) * max_results + index;
    sorted[to] = value;
    if (with_indices) {
      indices[to] = has_indices ? given_indices[first + at.x] : at.x;
    }
  }
}

// -- long rows: chunks of a row are counted, and moved to where the chunks before them end

template <typename Bits>
[[kernel]] void count_chunks(device const Bits *values, device uint *counts, constant ulong &start,
                             constant uint &count, constant uint &chunk, constant uint &shift,
                             constant Order<Bits> &order,
                             uint2 group [[threadgroup_position_in_grid]],
                             uint2 groups [[threadgroups_per_grid]],
                             uint lane [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint own[digits];
  const uint first = group.x * chunk;
  count_digits(values + start + ulong(group.y) * count + first, min(chunk, count - first), shift,
               Order<Bits>(order), own, lane);
  counts += (ulong(group.y) * groups.x + group.x) * digits;
  for (uint digit = lane; digit < digits; digit += lanes) {
    counts[digit] = atomic_load_explicit(&own[digit], memory_order_relaxed);
  }
}

// A thread adds up the counts of a digit over the chunks of a row; a threadgroup is a row.
[[kernel]] void scan_chunk_counts(device uint *counts, device uint *starts, constant uint &chunks,
                             uint row [[threadgroup_position_in_grid]],
                             uint digit [[thread_index_in_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup uint totals[digits / lanes];
  counts += ulong(row) * chunks * digits;
  uint sum = 0;
  for (uint k = 0; k < chunks; ++k) {
    const uint count = counts[k * digits + digit];
    counts[k * digits + digit] = sum;
    sum += count;
  }
  const uint before = simd_prefix_exclusive_sum(sum);
  if (lane == lanes - 1) {
    totals[simdgroup] = before + sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint start = before;
  for (uint k = 0; k < simdgroup; ++k) {
    start += totals[k];
  }
  starts[row * digits + digit] = start;
}

template <typename Bits, bool with_indices>
[[kernel]] void move_chunks(device const Bits *values, device const uint *indices,
                            device const uint *counts, device const uint *starts, device Bits *to,
                            device uint *indices_to, constant ulong &start, constant uint &count,
                            constant uint &chunk, constant uint &shift,
                            constant Order<Bits> &order, constant bool &has_indices,
                            uint2 group [[threadgroup_position_in_grid]],
                            uint2 groups [[threadgroups_per_grid]],
                            uint lane [[thread_index_in_threadgroup]]) {
  threadgroup uint next[digits];
  const ulong row = ulong(group.y) * count;
  const uint first = group.x * chunk;
  counts += (ulong(group.y) * groups.x + group.x) * digits;
  for (uint digit = lane; digit < digits; digit += lanes) {
    next[digit] = starts[group.y * digits + digit] + counts[digit];
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const ulong own = with_indices ? row : 0;
  move_elements<Bits, with_indices>(values + start + row + first, indices + own + first, first,
                                   shift == 0 && !has_indices, min(chunk, count - first), shift,
                                   Order<Bits>(order), next, to + row, indices_to + own, lane);
}

#define SORTING(name, Bits)                                                                 \
  template [[host_name("sort_rows_" #name)]] [[kernel]]                                     \
  decltype(sort_rows<Bits, false>) sort_rows<Bits, false>;                                  \
  template [[host_name("sort_rows_with_indices_" #name)]] [[kernel]]                                  \
  decltype(sort_rows<Bits, true>) sort_rows<Bits, true>;                                    \
  template [[host_name("sort_short_rows_" #name)]] [[kernel]]                               \
  decltype(sort_short_rows<Bits, false>) sort_short_rows<Bits, false>;                      \
  template [[host_name("sort_short_rows_with_indices_" #name)]] [[kernel]]                   \
  decltype(sort_short_rows<Bits, true>) sort_short_rows<Bits, true>;                        \
  template [[host_name("count_chunks_" #name)]] [[kernel]]                                  \
  decltype(count_chunks<Bits>) count_chunks<Bits>;                                          \
  template [[host_name("move_chunks_" #name)]] [[kernel]]                                   \
  decltype(move_chunks<Bits, false>) move_chunks<Bits, false>;                              \
  template [[host_name("move_chunks_with_indices_" #name)]] [[kernel]]                        \
  decltype(move_chunks<Bits, true>) move_chunks<Bits, true>;
SORTING(8, uchar)
SORTING(16, ushort)
SORTING(32, uint)
SORTING(64, ulong)
