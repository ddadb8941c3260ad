// The fixed text of ScanKernel's prefix scans. It is preceded by `reduce_type`,
// `reduce(a, b)` and `identity()`.
//
// Every chunk of a row is scanned by a threadgroup, which leaves its total; the totals are scanned
// likewise, and each chunk adds the total of the chunks before it.
constant constexpr uint scan_threads = 256;        // of a threadgroup
constant constexpr uint elements_per_thread = 8;
constant constexpr uint scan_chunk = scan_threads * elements_per_thread;

// The totals of the chunks of the level below.
struct Totals {
  device const reduce_type *memory;
  uint count;

  METAL_FUNC reduce_type element(uint outer, uint scanned) const {
    return memory[ulong(outer) * count + scanned];
  }
};

// simd_shuffle has no form for 64-bit numbers, truth values and structs.
template <typename A>
constant constexpr bool can_shuffle =
    is_arithmetic_v<A> && !is_same_v<A, bool> && sizeof(A) <= 4;

// The scan of what the threads before the calling one have, in their order.
template <typename A>
METAL_FUNC A scan_threadgroup_before(A a, threadgroup A *shared, uint thread_index) {
  if constexpr (can_shuffle<A>) {
    const uint lane = thread_index % 32;
    for (ushort distance = 1; distance < 32; distance *= 2) {
      const A before = simd_shuffle_up(a, distance);
      a = lane >= distance ? reduce(before, a) : a;
    }
    if (lane == 31) {
      shared[thread_index / 32] = a;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    A before = identity();
    for (uint simdgroup = 0; simdgroup < thread_index / 32; ++simdgroup) {
      before = reduce(before, shared[simdgroup]);
    }
    const A within = simd_shuffle_up(a, 1);
    return lane > 0 ? reduce(before, within) : before;
  } else {
    shared[thread_index] = a;
    for (uint distance = 1; distance < scan_threads; distance *= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const A before = thread_index >= distance ? shared[thread_index - distance] : identity();
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (thread_index >= distance) {
        shared[thread_index] = reduce(before, shared[thread_index]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return thread_index > 0 ? shared[thread_index - 1] : identity();
  }
}

template <typename Source>
METAL_FUNC void scan_rows(const thread Source &source, device reduce_type *scanned,
                          device reduce_type *totals, uint count, uint chunks,
                          threadgroup reduce_type *shared, uint group, uint thread_index) {
  const uint row = group / chunks;
  const ulong first = ulong(group % chunks) * scan_chunk + thread_index * elements_per_thread;
  reduce_type mine[elements_per_thread];
  reduce_type a = identity();
  for (uint k = 0; k < elements_per_thread; ++k) {
    if (first + k < count) {
      a = reduce(a, source.element(row, uint(first + k)));
    }
    mine[k] = a;
  }
  const reduce_type before = scan_threadgroup_before(a, shared, thread_index);
  for (uint k = 0; k < elements_per_thread; ++k) {
    if (first + k < count) {
      scanned[ulong(row) * count + first + k] = reduce(before, mine[k]);
    }
  }
  if (thread_index == scan_threads - 1) {
    totals[group] = reduce(before, a);
  }
}

// The scan up to element `index` of a row, where `totals` are scanned.
METAL_FUNC reduce_type scanned_up_to(device const reduce_type *scanned,
                                     device const reduce_type *totals, uint row, uint index,
                                     uint count, uint chunks) {
  const uint chunk = index / scan_chunk;
  const reduce_type a = scanned[ulong(row) * count + index];
  return chunk > 0 ? reduce(totals[ulong(row) * chunks + chunk - 1], a) : a;
}
