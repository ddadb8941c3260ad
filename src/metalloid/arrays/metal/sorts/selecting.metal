// The first elements of rows, without sorting the others.

// The key of the element that would be number `which`, from 1, if the elements were sorted: digit by
// digit, the highest first. `which` becomes its number among those with the same key.
template <typename Bits>
METAL_FUNC Bits key_of(thread uint &which, device const Bits *values, uint count, uint passes,
                       Order<Bits> order, threadgroup atomic_uint *counts, uint lane) {
  constexpr uint digits_of_lane = digits / lanes;
  // Digits that all have in common are left out.
  Bits prefix = passes < sizeof(Bits) ? Bits(order.turn >> (8 * passes)) : Bits(0);
  for (uint pass = passes; pass-- > 0;) {
    for (uint digit = lane; digit < digits; digit += lanes) {
      atomic_store_explicit(&counts[digit], 0, memory_order_relaxed);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint first = 0; first < count; first += lanes) {
      const uint k = first + lane;
      if (k < count) {
        const Bits begin = Bits(order.key(values[k]) >> (8 * pass));
        // Excluded elements are counted as well, in a counter of each lane.
        const uint digit = Bits(begin >> 8) == prefix ? uint(begin) & 0xFF : digits + lane;
        atomic_fetch_add_explicit(&counts[digit], 1, memory_order_relaxed);
      }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    uint own = 0;
    for (uint k = 0; k < digits_of_lane; ++k) {
      own += atomic_load_explicit(&counts[lane * digits_of_lane + k], memory_order_relaxed);
    }
    uint before = simd_prefix_exclusive_sum(own), digit = 0, skipped = 0;
    for (uint k = 0; k < digits_of_lane; ++k) {
      const uint here = lane * digits_of_lane + k;
      const uint more = atomic_load_explicit(&counts[here], memory_order_relaxed);
      const bool is_it = before < which && which <= before + more;  // for one lane
      digit = is_it ? here : digit;
      skipped = is_it ? before : skipped;
      before += more;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    which -= simd_sum(skipped);
    prefix = Bits(Bits(prefix << 8) | Bits(simd_sum(digit)));
  }
  return prefix;
}

// Selects the first `max_count` of the order, in their original order, with their indices; of equal
// elements the first. A simdgroup takes a chunk. A row of results has `max_count` for each chunk but the
// last, which may be shorter. Elements that were selected before have indices already.
template <typename Bits>
[[kernel]] void top_chunks(device const Bits *values, device const uint *indices, device Bits *top,
                           device uint *top_indices, constant ulong &start, constant uint &count,
                           constant uint &chunk, constant uint &max_count, constant uint &results_of_row,
                           constant uint &passes, constant bool &has_indices,
                           constant Order<Bits> &given,
                           uint2 group [[threadgroup_position_in_grid]],
                           uint lane [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint counts[digits + lanes];
  const Order<Bits> order = given;
  const uint first = group.x * chunk, length = min(chunk, count - first);
  const ulong to = ulong(group.y) * results_of_row + group.x * max_count;
  values += start + ulong(group.y) * count + first;
  indices += has_indices ? ulong(group.y) * count + first : 0;
  uint max_equal = min(max_count, length);
  const Bits last = key_of(max_equal, values, length, passes, order, counts, lane);
  const uint lanes_before = (1u << lane) - 1;
  uint selected = 0, equal = 0;
  for (uint at = 0; at < length; at += lanes) {
    const uint k = at + lane;
    const bool takes_part = k < length;
    const Bits value = takes_part ? values[k] : Bits(0);
    const Bits key = order.key(value);
    const uint same = votes(takes_part && key == last);
    const uint number = equal + popcount(same & lanes_before);
    const bool is_selected = takes_part && (key < last || (key == last && number < max_equal));
    const uint selected_lanes = votes(is_selected);
    if (is_selected) {
      const ulong to_index = to + selected + popcount(selected_lanes & lanes_before);
      top[to_index] = value;
      top_indices[to_index] = has_indices ? indices[k] : first + k;
    }
    selected += popcount(selected_lanes);
    equal += popcount(same);
  }
}

#define SELECTING(name, Bits)                               \
  template [[host_name("top_chunks_" #name)]] [[kernel]]    \
  decltype(top_chunks<Bits>) top_chunks<Bits>;
SELECTING(8, uchar)
SELECTING(16, ushort)
SELECTING(32, uint)
SELECTING(64, ulong)
