// Moves of the elements of a row between those with given keys, the pivots, as `order.metal` orders
// them. Each simdgroup counts the elements of its chunk in each group, below, at and above the
// pivots; the sums of these counts are the indices at which it writes them.
namespace numpy {

constant constexpr uint partition_lanes = 32;
constant constexpr uint partition_bits = 6;    // of a number of lanes
constant constexpr uint partition_packed = 5;  // numbers in 32 bits

template <uint targets, typename Bits>
struct Pivots {
  Bits keys[targets];  // ascending

  METAL_FUNC Pivots(device const Bits *pivots, Order<Bits> order) {
    for (uint t = 0; t < targets; ++t) {
      keys[t] = order.key(pivots[t]);
    }
  }
  // Odd for the elements at a pivot; at the last one, if several are equal.
  METAL_FUNC uint group(Bits key) const {
    uint result = 0;
    #pragma clang loop unroll(full)
    for (uint t = 0; t < targets; ++t) {
      result = key >= keys[t] ? 2 * t + (key > keys[t] ? 2 : 1) : result;
    }
    return result;
  }
};

// Numbers of keys that are not below, and that are above, each pivot.
template <uint targets>
struct Bounds {
  uint not_below[targets], above[targets];

  template <typename Bits>
  METAL_FUNC void add(Bits key, thread const Pivots<targets, Bits> &pivots) {
    #pragma clang loop unroll(full)
    for (uint t = 0; t < targets; ++t) {
      not_below[t] += key >= pivots.keys[t] ? 1 : 0;
      above[t] += key > pivots.keys[t] ? 1 : 0;
    }
  }
};

// Counts the elements of a chunk by group, by a simdgroup; `step` lies between the counts.
template <uint targets, typename Bits>
METAL_FUNC void count_groups(device const Bits *values, uint count, Order<Bits> order,
                             Pivots<targets, Bits> pivots, device uint *counts, uint step,
                             uint lane) {
  Bounds<targets> bounds;
  for (uint t = 0; t < targets; ++t) {
    bounds.not_below[t] = bounds.above[t] = 0;
  }
  const uint full = count / partition_lanes * partition_lanes;
  for (uint k = lane; k < full; k += partition_lanes) {
    bounds.add(order.key(values[k]), pivots);
  }
  if (full + lane < count) {
    bounds.add(order.key(values[full + lane]), pivots);
  }
  uint above = 0;  // elements of the groups above
  for (uint t = targets; t-- > 0;) {
    const uint last = max(simd_sum(bounds.above[t]), above);
    const uint not_below = simd_sum(bounds.not_below[t]);
    if (lane == 0) {
      counts[(2 * t + 2) * step] = last - above;
      counts[(2 * t + 1) * step] = not_below - last;
    }
    above = not_below;
  }
  if (lane == 0) {
    counts[0] = count - above;
  }
}

// Replaces counts by the sums of those before, by a simdgroup.
METAL_FUNC void sum_counts(device uint *counts, uint size, uint lane) {
  uint sum = 0;
  for (uint first = 0; first < size; first += partition_lanes) {
    const uint k = first + lane;
    const uint own = k < size ? counts[k] : 0;
    const uint before = sum + simd_prefix_exclusive_sum(own);
    if (k < size) {
      counts[k] = before;
    }
    sum += simd_sum(own);
  }
}

// Where a simdgroup writes the elements of its chunk.
template <uint groups>
struct GroupIndices {
  uint next[groups];

  // The index of the element of each lane, and the next ones; of none if the group is `groups`.
  METAL_FUNC uint take(uint group, uint lane) {
    const uint first = simd_broadcast_first(group);
    uint index = lane;
    if (simd_all(group == first)) {
      #pragma clang loop unroll(full)
      for (uint g = 0; g < groups; ++g) {
        index += g == first ? next[g] : 0;
        next[g] += g == first ? partition_lanes : 0;
      }
      return index;
    }
    #pragma clang loop unroll(full)
    for (uint low = 0; low < groups; low += partition_packed) {
      const bool is_packed = group >= low && group < low + partition_packed;
      const uint shift = is_packed ? (group - low) * partition_bits : 0;
      const uint one = is_packed ? 1u << shift : 0;
      const uint before = simd_prefix_exclusive_sum(one);
      const uint all = simd_broadcast(before + one, ushort(partition_lanes - 1));
      index = is_packed ? before >> shift & ((1u << partition_bits) - 1) : index;
      #pragma clang loop unroll(full)
      for (uint g = low; g < groups && g < low + partition_packed; ++g) {
        index += group == g ? next[g] : 0;
        next[g] += all >> ((g - low) * partition_bits) & ((1u << partition_bits) - 1);
      }
    }
    return index;
  }
};

// Writes the elements of a chunk, or their indices from `first` on, by a simdgroup.
template <bool with_indices, uint targets, typename Bits, typename Out>
METAL_FUNC void move_groups(device const Bits *values, uint first, uint count, Order<Bits> order,
                            Pivots<targets, Bits> pivots, device const uint *counts, uint step,
                            device Out *out, uint lane) {
  constexpr uint groups = 2 * targets + 1;
  GroupIndices<groups> indices;
  for (uint g = 0; g < groups; ++g) {
    indices.next[g] = counts[g * step];
  }
  const uint full = count / partition_lanes * partition_lanes;
  for (uint k = lane; k < full; k += partition_lanes) {
    const Bits value = values[k];
    const uint at = indices.take(pivots.group(order.key(value)), lane);
    out[at] = with_indices ? Out(first + k) : Out(value);
  }
  const uint k = full + lane;
  const bool is_element = k < count;
  const Bits value = is_element ? values[k] : Bits(0);
  const uint at = indices.take(is_element ? pivots.group(order.key(value)) : groups, lane);
  if (is_element) {
    out[at] = with_indices ? Out(first + k) : Out(value);
  }
}

}  // namespace numpy
