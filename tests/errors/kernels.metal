// The kernels that tests/errors/test_messages.py uses wrongly.
#include <metal_stdlib>
using namespace metal;

struct Particle { float3 position; float mass; };

kernel void saxpy(device float* y, device const float* x, constant float& a,
                  uint i [[thread_position_in_grid]]) { y[i] = a * x[i] + y[i]; }

kernel void points(device float3* p, uint i [[thread_position_in_grid]]) { p[i] *= 2; }

kernel void particles(device Particle* p, uint i [[thread_position_in_grid]]) { p[i].mass *= 2; }

kernel void scratch(device float* p, threadgroup float* t [[threadgroup(0)]],
                    uint i [[thread_position_in_grid]]) { p[i] *= 2; }

kernel void bytes(device int* p, constant uchar& u, uint i [[thread_position_in_grid]]) { p[i] = u; }

kernel void flag(device int* p, constant bool& u, uint i [[thread_position_in_grid]]) { p[i] = u; }

[[required_threads_per_threadgroup(32, 1, 1)]]
kernel void rows_of_32(device int* x) { x[0] = 1; }
[[max_total_threads_per_threadgroup(64)]]
kernel void few(device int* p, uint i [[thread_position_in_grid]]) { p[i] *= 2; }

kernel void shuffle(device int* p, uint i [[thread_position_in_grid]]) { p[i] = simd_shuffle(p[i], 40); }

kernel void early_return(device int* p, uint i [[thread_position_in_grid]]) {
    if (i == 3) return;
    threadgroup_barrier(mem_flags::mem_none);
    p[i] = 1;
}

kernel void two_barriers(device int* p, uint i [[thread_position_in_grid]]) {
    if (i < 3) {
        p[i] = simd_sum(p[i]);
        threadgroup_barrier(mem_flags::mem_none);
        p[i] = simd_sum(p[i]);
    } else {
        p[i] = simd_max(p[i]);
        threadgroup_barrier(mem_flags::mem_device);
        p[i] = simd_max(p[i]);
    }
}

int descend(device int* p, int n) {
    volatile int frame[64];
    frame[n & 63] = p[0];
    return n == p[0] - 1 ? 1 : descend(p, n + 1) + frame[n & 63];
}
kernel void endless_recursion(device int* p, uint i [[thread_position_in_grid]]) { p[i] = descend(p, 1); }

kernel void divide(device int* p, uint i [[thread_position_in_grid]]) { p[i] = 5 / p[i]; }

kernel void wild(device int* p, constant ulong& offset, uint i [[thread_position_in_grid]]) { p[offset] = 5; }

kernel void filter(texture2d<float> in [[texture(0)]], texture2d<float, access::write> out [[texture(1)]],
                   sampler s [[sampler(0)]]) { out.write(in.sample(s, float2(0.5)), uint2(0)); }

kernel void count(texture2d<uint, access::read_write> t) { t.atomic_fetch_add(uint2(0), uint4(1)); }

kernel void sky(texturecube<float> t) {}

kernel void shadow(depth2d<float> t) {}

kernel void layers(array<texture2d<float>, 2> t) {}

struct Light { packed_float3 position; float power; };
struct Scene {
    device float* out;
    texture2d<float> image;
    sampler how;
    device float* parts[2];
    Light light;
    float weights[4];
};

kernel void render(constant Scene& scene) { scene.out[0] = scene.light.power; }

kernel void particle(constant Particle& p) {}

kernel void endless(device atomic_int* x) {
    while (atomic_load_explicit(x, memory_order_relaxed) == 0) {}
}
