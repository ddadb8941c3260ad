// Correct kernels in which benchmarks/sanitizer.py plants defects. T is a type, N the size of a
// threadgroup. Comments say what may be planted:
//   barrier      the barrier is needed, by threads of several simdgroups
//   lanes        the barrier is needed, by threads of one simdgroup
//   initialise   the memory is read although no other thread writes it
//   guard        all threads but those that the condition selects would write other values
//   /**/         the index may be off by one
#include <metal_stdlib>
using namespace metal;

#define IDS uint l [[thread_index_in_threadgroup]], uint i [[thread_position_in_grid]], \
            uint g [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]], \
            uint simdgroup [[simdgroup_index_in_threadgroup]]

kernel void reverse(device const T* in, device T* out, IDS) {
    threadgroup T tile[N];
    tile[l/**/] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    out[i/**/] = tile[N - 1 - l];
}

kernel void rotate(device const T* in, device T* out, IDS) {
    threadgroup T tile[N];
    tile[l] = in[i];  // initialise
    for (int k = 0; k < 3; k++) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
        T next = tile[(l + 33) % N];
        threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
        tile[l] = next;
    }
    out[i] = tile[l];
}

kernel void tree(device const T* in, device T* out, IDS) {
    threadgroup T tile[N];
    tile[l/**/] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    for (uint step = N / 2; step > 0; step /= 2) {
        if (l < step) tile[l] += tile[l + step];
        threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    }
    out[i] = tile[0];
}

kernel void scan(device const T* in, device T* out, IDS) {
    threadgroup T a[N], b[N];
    a[l] = in[i];  // initialise
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    threadgroup T* from = a;
    threadgroup T* to = b;
    for (uint step = 1; step < N; step *= 2) {
        to[l/**/] = l >= step ? T(from[l] + from[l - step]) : from[l];
        threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
        threadgroup T* other = from;
        from = to;
        to = other;
    }
    out[i] = from[l];
}

kernel void stencil(device const T* in, device T* out, IDS) {
    threadgroup T tile[N + 2];
    tile[l + 1/**/] = in[i];
    if (l == 0) tile[0] = in[i];  // initialise
    if (l == N - 1) tile[N + 1] = in[i];  // initialise
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    out[i] = tile[l] + tile[l + 1] + tile[l + 2/**/];
}

kernel void sums(device const T* in, device T* out, IDS) {
    threadgroup float partial[32];
    if (simdgroup == 0) partial[lane] = 0;  // initialise
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    float v = in[i];
    for (int k = 0; k < 2; k++) {
        float s = simd_sum(v);
        if (lane == 0) partial[simdgroup] = s;
        threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
        s = simd_sum(partial[lane]);
        threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
        v -= s / N + lane + simdgroup;
    }
    out[i] = T(fabs(v));
}

kernel void histogram(device const T* in, device T* out, IDS) {
    threadgroup atomic_uint counts[N];
    atomic_store_explicit(&counts[l], 0, memory_order_relaxed);  // initialise
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&counts[uint(in[i]) * 7 % N], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = T(atomic_load_explicit(&counts[N - 1 - l], memory_order_relaxed));
}

kernel void share(device const T* in, device T* out, IDS) {
    threadgroup T value;
    if (l == N - 1)  // guard
        value = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    out[i] = in[i] + value;
}

kernel void transpose(device const T* in, device T* out, IDS) {
    threadgroup T tile[16][N / 16 + 1];
    tile[l % 16][l / 16] = in[i];  // initialise
    threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    out[i/**/] = tile[l / (N / 16)][l % (N / 16)];
}

kernel void product(device const T* in, device T* out, IDS) {
    threadgroup T a[N], b[N];
    float total = 0;
    for (uint k = 0; k < 3; k++) {
        a[l] = in[(i + k) % N];  // initialise
        b[N - 1 - l] = in[i];  // initialise
        threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
        for (uint j = 0; j < 4; j++) total += float(a[(l + 17 * j) % N]) * float(b[(l + j) % N]);
        threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
    }
    out[i] = T(total);
}

kernel void sort(device const T* in, device T* out, IDS) {
    threadgroup T tile[N];
    tile[l/**/] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);  // lanes
    for (uint size = 2; size <= N; size *= 2) {
        for (uint step = size / 2; step > 0; step /= 2) {
            uint other = l ^ step;
            if (other > l && (tile[l] > tile[other]) == ((l & size) == 0)) {
                T swapped = tile[l];
                tile[l] = tile[other];
                tile[other] = swapped;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);  // barrier
        }
    }
    out[i] = tile[l];
}

kernel void exchange(device const T* in, device T* out, IDS) {
    out[i/**/] = in[i];
    threadgroup_barrier(mem_flags::mem_device);  // barrier
    T v = out[g * N + N - 1 - l];
    threadgroup_barrier(mem_flags::mem_device);  // barrier
    out[i] = v;
}
