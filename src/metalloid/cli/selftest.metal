#include <metal_stdlib>
using namespace metal;

constant uint factor [[function_constant(0)]];

struct Pair {
    device const float *x;
    device float *y;
    float scale;
};

kernel void saxpy(device float *y, device const float *x, constant float &a,
                  uint i [[thread_position_in_grid]])
{
    y[i] = fma(a, x[i], y[i]);
}

kernel void positions(device uint *out, uint2 at [[thread_position_in_grid]],
                   uint2 size [[threads_per_grid]])
{
    out[at.y * size.x + at.x] = at.y * 1000 + at.x;
}

// A threadgroup's sum, by a tree in threadgroup memory whose size the launch gives.
kernel void group_sums(device float *sums, device const float *x,
                       threadgroup float *storage [[threadgroup(0)]],
                       uint i [[thread_position_in_grid]],
                       uint t [[thread_index_in_threadgroup]],
                       uint group [[threadgroup_position_in_grid]],
                       uint threads [[threads_per_threadgroup]])
{
    storage[t] = x[i];
    for (uint half_ = threads / 2; half_ > 0; half_ /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < half_) storage[t] += storage[t + half_];
    }
    if (t == 0) sums[group] = storage[0];
}

kernel void simd_sums(device uint *out, uint i [[thread_position_in_grid]])
{
    out[i] = simd_sum(i) + simd_shuffle_xor(i, 1);
}

kernel void count(device atomic_uint *counter, uint i [[thread_position_in_grid]])
{
    atomic_fetch_add_explicit(counter, i % 3 == 0, memory_order_relaxed);
}

kernel void scaled(device uint *x, uint i [[thread_position_in_grid]]) { x[i] = i * factor; }

kernel void halves(device half *x, uint i [[thread_position_in_grid]]) { x[i] = sqrt(half(i)); }

kernel void pointed(constant Pair &pair, uint i [[thread_position_in_grid]])
{
    pair.y[i] = pair.x[i] * pair.scale;
}

kernel void curves(device float *out, device const float *x, uint i [[thread_position_in_grid]])
{
    out[i] = exp(sin(x[i])) + log2(1 + x[i]);
}
