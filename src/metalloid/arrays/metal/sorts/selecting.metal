// The first elements of rows in an order, without sorting the others.
namespace numpy {

constant constexpr uint select_lanes = 32;    // of a simdgroup, which is a threadgroup
constant constexpr uint select_digits = 256;  // values of a digit

METAL_FUNC uint votes(bool vote) { return uint(simd_vote::vote_t(simd_ballot(vote))); }

// The number of low bits in which keys differ from the first one.
template <typename Bits>
METAL_FUNC uint varying_bits(device const Bits *values, uint count, Order<Bits> order, uint lane) {
  const Bits first = order.key(values[0]);
  Bits differing = 0;
  for (uint k = lane; k < count; k += select_lanes) {
    differing |= Bits(order.key(values[k]) ^ first);
  }
  const uint high = simd_or(uint(ulong(differing) >> 32)), low = simd_or(uint(differing));
  return high != 0 ? 64 - clz(high) : 32 - clz(low);
}

// The key of the element that would be number `which`, from 1, if the elements were sorted: digit
// by digit, the highest first. `which` becomes its number among those with the same key. If `skips`,
// digits that all keys have in common are left out.
template <bool skips, typename Bits>
METAL_FUNC Bits key_of(thread uint &which, device const Bits *values, uint count,
                       Order<Bits> order, threadgroup atomic_uint *counts, uint lane) {
  constexpr uint digits_of_lane = select_digits / select_lanes;
  const uint passes = skips ? (varying_bits(values, count, order, lane) + 7) / 8 : sizeof(Bits);
  Bits prefix = passes < sizeof(Bits) ? Bits(order.key(values[0]) >> (8 * passes)) : Bits(0);
  for (uint pass = passes; pass-- > 0;) {
    for (uint digit = lane; digit < select_digits; digit += select_lanes) {
      atomic_store_explicit(&counts[digit], 0, memory_order_relaxed);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint first = 0; first < count; first += select_lanes) {
      const uint k = first + lane;
      if (k < count) {
        const Bits begin = Bits(order.key(values[k]) >> (8 * pass));
        // Excluded elements are counted as well, in a counter of each lane.
        const uint digit = Bits(begin >> 8) == prefix ? uint(begin) & 0xFF : select_digits + lane;
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

// The indices of the first `max_count` elements in the order, ascending; of equal elements the
// first. `counts` has a counter for each digit and lane; `start` is the index of the first element.
template <bool skips, typename Bits>
METAL_FUNC void select_first(device const Bits *values, uint start, uint count, uint max_count,
                             Order<Bits> order, device uint *selection,
                             threadgroup atomic_uint *counts, uint lane) {
  uint max_equal = min(max_count, count);
  const Bits last = key_of<skips>(max_equal, values, count, order, counts, lane);
  const uint lanes_before = (1u << lane) - 1;
  uint selected = 0, equal = 0;
  for (uint at = 0; at < count; at += select_lanes) {
    const uint k = at + lane;
    const bool takes_part = k < count;
    const Bits key = takes_part ? order.key(values[k]) : Bits(0);
    const uint same = votes(takes_part && key == last);
    const uint number = equal + popcount(same & lanes_before);
    const bool is_selected = takes_part && (key < last || (key == last && number < max_equal));
    const uint selected_lanes = votes(is_selected);
    if (is_selected) {
      selection[selected + popcount(selected_lanes & lanes_before)] = start + k;
    }
    selected += popcount(selected_lanes);
    equal += popcount(same);
  }
}

}  // namespace numpy
