// Searches in sorted elements, and counts of integers.
namespace numpy {

// Where a key would be inserted in sorted elements: before those equal to it, or after
// (`is_right`), if it is known to be from `index` to `index + range`. The steps are the same for
// all threads.
template <bool is_right, typename Bits>
METAL_FUNC uint insertion_index(device const Bits *sorted, uint count, Bits key,
                                Order<Bits> order, uint index, uint range) {
  for (uint step = range > 0 ? 1u << (31 - clz(range)) : 0; step > 0; step /= 2) {
    const uint further = index + step;
    const Bits probe = order.key(sorted[min(further, count) - 1]);
    const bool is_before = probe < key || (is_right && probe == key);
    index = further <= count && is_before ? further : index;
  }
  return index;
}

// Intervals of equal width from the least to the largest of sorted elements. The bucket of an
// element does not decrease with it, as each rounding is monotone: elements of earlier buckets are
// before it, those of later buckets after it. NaN is in the last one.
struct Buckets {
  float low, high, scale;
  uint count;

  Buckets(float least, float largest, uint buckets) : low(0), high(0), scale(0), count(buckets) {
    const float per_unit = float(buckets) / (largest - least);
    if (per_unit > 0 && isfinite(per_unit)) {  // otherwise all numbers are in the first bucket
      low = least;
      high = largest;
      scale = per_unit;
    }
  }

  METAL_FUNC uint at(float x) const {
    const float above = x > low ? x : low;
    const float inside = above < high ? above : high;
    const uint bucket = min(uint((inside - low) * scale), count - 1);
    return isnan(x) ? count - 1 : bucket;
  }
};

// The number of sorted elements in buckets before one.
template <typename T>
METAL_FUNC uint bucket_start(device const T *sorted, uint count, Buckets buckets, uint bucket) {
  uint index = 0;
  for (uint step = 1u << (31 - clz(count)); step > 0; step /= 2) {
    const uint further = index + step;
    const bool is_before = buckets.at(float(sorted[min(further, count) - 1])) < bucket;
    index = further <= count && is_before ? further : index;
  }
  return index;
}

// The largest number of elements in a bucket.
METAL_FUNC uint longest_bucket(device const uint *starts, uint buckets, uint lane, uint lanes) {
  uint longest = 0;
  for (uint k = lane; k < buckets; k += lanes) {
    longest = max(longest, starts[k + 1] - starts[k]);
  }
  return simd_max(longest);
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
