// Searches in sorted rows, and counts.

// Where values would go in a sorted array: before elements equal to them, or after (`is_right`).
// The steps are the same for all threads.
template <typename Bits>
[[kernel]] void search(device const Bits *sorted, device const Bits *values, device uint *indices,
                       constant ulong &sorted_start, constant ulong &start, constant uint &count,
                       constant bool &is_right, constant Order<Bits> &given,
                       uint i [[thread_position_in_grid]]) {
  const Order<Bits> order = given;
  const Bits key = order.key(values[start + i]);
  sorted += sorted_start;
  uint index = 0;
  for (uint step = count > 0 ? 1u << (31 - clz(count)) : 0; step > 0; step /= 2) {
    const uint further = index + step;
    const Bits probe = order.key(sorted[min(further, count) - 1]);
    const bool is_before = probe < key || (is_right && probe == key);
    index = further <= count && is_before ? further : index;
  }
  indices[i] = index;
}

constant constexpr uint max_bins = 4096;

// How often each number below `bins` occurs in a part of the numbers: a row of counts for each
// threadgroup. Larger numbers are counted together, and forgotten.
[[kernel]] void count_bins(device const uint *indices, device uint *counts,
                             constant ulong &start, constant ulong &size, constant uint &bins,
                             uint group [[threadgroup_position_in_grid]],
                             uint groups [[threadgroups_per_grid]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             uint threads [[threads_per_threadgroup]]) {
  threadgroup atomic_uint own[max_bins + 1];
  for (uint bin = thread_index; bin < bins; bin += threads) {
    atomic_store_explicit(&own[bin], 0, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const ulong part = (size + groups - 1) / groups;
  const ulong first = group * part;
  const uint count = uint(min(part, size - min(first, size)));
  indices += start + first;
  for (uint at = 0; at < count; at += threads) {
    const uint k = at + thread_index;
    if (k < count) {
      atomic_fetch_add_explicit(&own[min(indices[k], bins)], 1, memory_order_relaxed);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint bin = thread_index; bin < bins; bin += threads) {
    counts[ulong(group) * bins + bin] = atomic_load_explicit(&own[bin], memory_order_relaxed);
  }
}

#define SEARCHING(name, Bits)                               \
  template [[host_name("search_" #name)]] [[kernel]]        \
  decltype(search<Bits>) search<Bits>;
SEARCHING(8, uchar)
SEARCHING(16, ushort)
SEARCHING(32, uint)
SEARCHING(64, ulong)
