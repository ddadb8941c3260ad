#include "gallery.h"

// Heights of a landscape: ridges of fractal noise.
kernel void contours_terrain(device float *heights [[buffer(0)]],
                             constant float &scale [[buffer(1)]],
                             constant uint &seed [[buffer(2)]],
                             uint2 p [[thread_position_in_grid]],
                             uint2 size [[threads_per_grid]])
{
    const float2 q = scale * float2(p) / float(size.x);
    const float2 bend = float2(fractal_noise(q + 7.3f, seed + 11u, 4), fractal_noise(q + 2.9f, seed + 31u, 4));
    heights[p.y * size.x + p.x] = fractal_noise(q + 1.4f * bend, seed, 7);
}

// Marching squares: each square appends the lines of all levels that cross it.
kernel void contours_march(device const float *heights [[buffer(0)]],
                           device float4 *lines [[buffer(1)]],
                           device atomic_uint *count [[buffer(2)]],
                           constant uint &capacity [[buffer(3)]],
                           constant uint &levels [[buffer(4)]],
                           uint2 p [[thread_position_in_grid]],
                           uint2 squares [[threads_per_grid]])
{
    const uint width = squares.x + 1, at = p.y * width + p.x;
    const float4 h = float4(heights[at], heights[at + 1], heights[at + width + 1], heights[at + width]);
    const float low = min(min(h.x, h.y), min(h.z, h.w)), high = max(max(h.x, h.y), max(h.z, h.w));
    for (uint k = uint(ceil(low * float(levels))); float(k) < high * float(levels); ++k) {
        const float level = float(k) / float(levels);
        float2 ends[4];
        uint n = 0;
        for (uint edge = 0; edge < 4; ++edge) {
            const float a = h[edge], b = h[(edge + 1) % 4];
            if ((a < level) == (b < level))
                continue;
            const float2 from = float2(float(edge == 1 || edge == 2), float(edge >= 2));
            const uint next = (edge + 1) % 4;
            const float2 to = float2(float(next == 1 || next == 2), float(next >= 2));
            ends[n++] = float2(p) + mix(from, to, (level - a) / (b - a));
        }
        for (uint line = 0; line + 1 < n; line += 2) {
            const uint index = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
            if (index < capacity)
                lines[index] = float4(ends[line], ends[line + 1]);
        }
    }
}

// Draws each line into a picture of its own, as dots at distances of less than half a pixel.
kernel void contours_draw(device const float4 *lines [[buffer(0)]],
                          device atomic_uint *ink [[buffer(1)]],
                          constant uint2 &size [[buffer(2)]],
                          constant uint &zoom [[buffer(3)]],
                          uint i [[thread_position_in_grid]])
{
    const float2 from = float(zoom) * lines[i].xy, to = float(zoom) * lines[i].zw;
    const int steps = int(ceil(3.0f * length(to - from))) + 1;
    for (int k = 0; k < steps; ++k) {
        const uint2 p = uint2(mix(from, to, (float(k) + 0.5f) / float(steps)));
        if (p.x < size.x && p.y < size.y)
            atomic_fetch_or_explicit(&ink[p.y * size.x + p.x], 1u, memory_order_relaxed);
    }
}

// Tints by height, shaded from the upper left, with the lines on top.
kernel void contours_show(texture2d<float, access::write> image [[texture(0)]],
                          texture2d<float, access::sample> heights [[texture(1)]],
                          device const uint *ink [[buffer(0)]],
                          constant uint &zoom [[buffer(1)]],
                          uint2 p [[thread_position_in_grid]],
                          uint2 size [[threads_per_grid]])
{
    constexpr sampler smooth(coord::pixel, filter::linear, address::clamp_to_edge);
    const float2 q = float2(p) / float(zoom) + 0.5f;
    const float h = heights.sample(smooth, q).x;
    const float dx = heights.sample(smooth, q + float2(1, 0)).x - heights.sample(smooth, q - float2(1, 0)).x;
    const float dy = heights.sample(smooth, q + float2(0, 1)).x - heights.sample(smooth, q - float2(0, 1)).x;
    const float light = saturate(0.75f - 16.0f * (0.7f * dx + 0.7f * dy));
    float3 tint = mix(float3(0.16f, 0.36f, 0.55f), float3(0.55f, 0.75f, 0.8f), smoothstep(0.2f, 0.4f, h));
    tint = mix(tint, float3(0.45f, 0.62f, 0.34f), smoothstep(0.40f, 0.42f, h));
    tint = mix(tint, float3(0.82f, 0.74f, 0.5f), smoothstep(0.48f, 0.6f, h));
    tint = mix(tint, float3(0.97f, 0.95f, 0.93f), smoothstep(0.62f, 0.75f, h));
    const float line = ink[p.y * size.x + p.x] > 0 ? 0.55f : 1.0f;
    image.write(float4(saturate(tint * (0.45f + 0.75f * light)) * line, 1.0f), p);
}
