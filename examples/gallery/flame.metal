#include "gallery.h"

// A fractal flame (Draves, 1992): each thread plays the chaos game with three curved maps, and counts
// visits and colours per pixel. Colours are sums of integers, so that their order does not matter.
kernel void flame_iterate(device atomic_uint *visits [[buffer(0)]],  // count, red, green, blue
                          constant uint2 &size [[buffer(1)]],
                          constant uint &steps [[buffer(2)]],
                          uint i [[thread_position_in_grid]])
{
    uint state = hash(i + 1u);
    float2 p = 2.0f * float2(random_unit(state), random_unit(state)) - 1.0f;
    float colour = random_unit(state);
    for (uint k = 0; k < steps; ++k) {
        const float choice = random_unit(state);
        float2 q;
        if (choice < 0.4f) {
            q = float2(0.56f * p.x - 0.61f * p.y + 0.32f, 0.61f * p.x + 0.56f * p.y - 0.18f);
            const float r2 = dot(q, q);  // swirl
            q = float2(q.x * sin(r2) - q.y * cos(r2), q.x * cos(r2) + q.y * sin(r2));
            colour *= 0.5f;
        } else if (choice < 0.75f) {
            q = float2(0.72f * p.x + 0.25f * p.y - 0.55f, -0.3f * p.x + 0.65f * p.y + 0.42f);
            const float r = length(q) + 1e-6f;  // horseshoe
            q = 0.9f * float2((q.x - q.y) * (q.x + q.y), 2.0f * q.x * q.y) / r;
            colour = 0.5f * colour + 0.5f;
        } else {
            q = float2(-0.62f * p.x + 0.1f * p.y + 0.6f, 0.2f * p.x + 0.55f * p.y - 0.5f);
            q = 0.9f * float2(sin(1.6f * q.x), sin(1.6f * q.y));  // sinusoidal
            colour = 0.5f * colour + 0.22f;
        }
        p = q;
        const float2 at = 0.5f * float2(size) + 0.42f * float(size.y) * (p + float2(-0.02f, 0.12f));
        if (k < 20 || !(at.x >= 0.0f && at.y >= 0.0f && at.x < float(size.x) && at.y < float(size.y)))
            continue;
        const uint pixel = 4 * (uint(at.y) * size.x + uint(at.x));
        const uint3 light = uint3(255.0f * palette(0.6f * colour + 0.1f, float3(0.0f, 0.25f, 0.45f)));
        atomic_fetch_add_explicit(&visits[pixel], 1u, memory_order_relaxed);
        atomic_fetch_add_explicit(&visits[pixel + 1], light.x, memory_order_relaxed);
        atomic_fetch_add_explicit(&visits[pixel + 2], light.y, memory_order_relaxed);
        atomic_fetch_add_explicit(&visits[pixel + 3], light.z, memory_order_relaxed);
    }
}

// The logarithm of the visits is the brightness.
kernel void flame_develop(texture2d<float, access::write> image [[texture(0)]],
                          device const uint4 *visits [[buffer(0)]],
                          constant float &mean [[buffer(1)]],
                          uint2 p [[thread_position_in_grid]],
                          uint2 size [[threads_per_grid]])
{
    const float4 v = float4(visits[p.y * size.x + p.x]);
    const float light = log(1.0f + 3.0f * v.x / mean) / 4.2f;
    const float3 colour = v.x > 0.0f ? v.yzw / (255.0f * v.x) : float3(0.0f);
    image.write(float4(pow(saturate(light * colour * 1.25f), 0.75f), 1.0f), p);
}
