#include "gallery.h"

// One step of gravity among all bodies. A threadgroup loads the bodies tile by tile.
kernel void n_body_step(device const float4 *bodies [[buffer(0)]],  // x, y, z, mass
                        device float4 *moved [[buffer(1)]],
                        device float4 *velocities [[buffer(2)]],
                        constant uint &count [[buffer(3)]],
                        constant float &step [[buffer(4)]],
                        uint i [[thread_position_in_grid]],
                        uint t [[thread_position_in_threadgroup]])
{
    threadgroup float4 tile[256];
    const float4 body = bodies[i];
    float3 pull = 0.0f;
    for (uint start = 0; start < count; start += 256) {
        tile[t] = bodies[start + t];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < 256; ++k) {
            const float3 d = tile[k].xyz - body.xyz;
            const float near = rsqrt(dot(d, d) + 2.5e-3f);
            pull += tile[k].w * near * near * near * d;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    const float3 v = velocities[i].xyz + step * pull;
    velocities[i] = float4(v, velocities[i].w);
    moved[i] = float4(body.xyz + step * v, body.w);
}

// Adds each body to its pixel, in one of two planes: one for each galaxy.
kernel void n_body_expose(device const float4 *bodies [[buffer(0)]],
                          device atomic_uint *planes [[buffer(1)]],
                          constant uint2 &size [[buffer(2)]],
                          constant uint &count [[buffer(3)]],
                          uint i [[thread_position_in_grid]])
{
    const float2 p = 0.5f * float2(size) + 0.38f * float(size.y) * bodies[i].xy;
    if (p.x < 0.0f || p.y < 0.0f || p.x >= float(size.x) || p.y >= float(size.y))
        return;
    const uint plane = i < count / 2 ? 0u : size.x * size.y;
    atomic_fetch_add_explicit(&planes[plane + uint(p.y) * size.x + uint(p.x)], 1u, memory_order_relaxed);
}

// The exposed planes as light, with a glow around each pixel.
kernel void n_body_develop(texture2d<float, access::write> image [[texture(0)]],
                           device const uint *planes [[buffer(0)]],
                           constant float &exposure [[buffer(1)]],
                           uint2 p [[thread_position_in_grid]],
                           uint2 size [[threads_per_grid]])
{
    float2 sum = 0.0f;
    for (int y = -4; y <= 4; ++y)
        for (int x = -4; x <= 4; ++x) {
            const int2 q = int2(p) + int2(x, y);
            if (q.x < 0 || q.y < 0 || q.x >= int(size.x) || q.y >= int(size.y))
                continue;
            const float weight = exp(-0.9f * float(x * x + y * y)) + 0.03f * exp(-0.15f * float(x * x + y * y));
            const uint at = uint(q.y) * size.x + uint(q.x);
            sum += weight * float2(float(planes[at]), float(planes[size.x * size.y + at]));
        }
    const float3 light = sum.x * float3(0.5f, 0.75f, 1.3f) + sum.y * float3(1.3f, 0.8f, 0.45f);
    image.write(float4(1.0f - exp(-exposure * light), 1.0f), p);
}
