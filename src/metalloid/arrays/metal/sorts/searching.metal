// Searches in sorted elements, and counts of integers.
namespace numpy {

// Where a key would be inserted in sorted elements: before those equal to it, or after
// (`is_right`). The steps are the same for all threads.
template <bool is_right, typename Bits>
METAL_FUNC uint insertion_index(device const Bits *sorted, uint count, Bits key,
                                Order<Bits> order) {
  uint index = 0;
  for (uint step = count > 0 ? 1u << (31 - clz(count)) : 0; step > 0; step /= 2) {
    const uint further = index + step;
    const Bits probe = order.key(sorted[min(further, count) - 1]);
    const bool is_before = probe < key || (is_right && probe == key);
    index = further <= count && is_before ? further : index;
  }
  return index;
}

// How often each integer below `bins` occurs among `count`, by a threadgroup, whose memory has a
// counter more than there are bins: larger integers are counted together, and forgotten.
METAL_FUNC void count_bins(device const uint *integers, uint count, uint bins, device uint *counts,
                           threadgroup atomic_uint *own, uint thread_index, uint threads) {
  for (uint bin = thread_index; bin < bins; bin += threads) {
    atomic_store_explicit(&own[bin], 0, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint at = 0; at < count; at += threads) {
    const uint k = at + thread_index;
    if (k < count) {
      atomic_fetch_add_explicit(&own[min(integers[k], bins)], 1, memory_order_relaxed);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint bin = thread_index; bin < bins; bin += threads) {
    counts[bin] = atomic_load_explicit(&own[bin], memory_order_relaxed);
  }
}

}  // namespace numpy
