#include "gallery.h"

// Counts of the 256 values of a grey picture: in threadgroup memory first, then in device memory.
kernel void equalise_count(device const uchar *grey [[buffer(0)]],
                           device atomic_uint *counts [[buffer(1)]],
                           constant uint &size [[buffer(2)]],
                           uint i [[thread_position_in_grid]],
                           uint threads [[threads_per_grid]],
                           uint t [[thread_position_in_threadgroup]])
{
    threadgroup atomic_uint local_counts[256];
    atomic_store_explicit(&local_counts[t], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = i; k < size; k += threads)
        atomic_fetch_add_explicit(&local_counts[grey[k]], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint n = atomic_load_explicit(&local_counts[t], memory_order_relaxed);
    if (n > 0)
        atomic_fetch_add_explicit(&counts[t], n, memory_order_relaxed);
}

// Running sums of the counts by one threadgroup of 256: within simdgroups, then across them.
kernel void equalise_scan(device const uint *counts [[buffer(0)]],
                          device uint *sums [[buffer(1)]],
                          uint t [[thread_position_in_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]],
                          uint width [[threads_per_simdgroup]])
{
    threadgroup uint totals[256];
    const uint inside = simd_prefix_inclusive_sum(counts[t]);
    if (lane == width - 1)
        totals[simdgroup] = inside;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint before = 0;
    for (uint k = 0; k < simdgroup; ++k)
        before += totals[k];
    sums[t] = before + inside;
}

// Each value becomes its rank among all pixels.
kernel void equalise_map(device const uchar *grey [[buffer(0)]],
                         device uchar *result [[buffer(1)]],
                         device const uint *sums [[buffer(2)]],
                         constant uint &size [[buffer(3)]],
                         uint i [[thread_position_in_grid]])
{
    result[i] = uchar((255u * sums[grey[i]] + size / 2) / size);
}
