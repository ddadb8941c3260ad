#include "gallery.h"

// Distances from a shape by jump flooding: each pixel keeps the nearest pixel of the shape.
kernel void glow_seed(device const uchar *mask [[buffer(0)]],
                      device int2 *nearest [[buffer(1)]],
                      uint2 p [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]])
{
    const uint at = p.y * size.x + p.x;
    nearest[at] = mask[at] > 127 ? int2(p) : int2(-1);
}

kernel void glow_jump(device const int2 *nearest [[buffer(0)]],
                      device int2 *result [[buffer(1)]],
                      constant int &distance [[buffer(2)]],
                      uint2 p [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]])
{
    int2 best = -1;
    int shortest = 1 << 30;
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x) {
            const int2 q = int2(p) + distance * int2(x, y);
            if (q.x < 0 || q.y < 0 || q.x >= int(size.x) || q.y >= int(size.y))
                continue;
            const int2 seed = nearest[q.y * int(size.x) + q.x];
            const int2 d = seed - int2(p);
            if (seed.x >= 0 && d.x * d.x + d.y * d.y < shortest) {
                shortest = d.x * d.x + d.y * d.y;
                best = seed;
            }
        }
    result[p.y * size.x + p.x] = best;
}

// Neon: a white tube along the outline, a glow that fades, and rings of equal distance.
kernel void glow_show(texture2d<float, access::write> image [[texture(0)]],
                      device const uchar *mask [[buffer(0)]],
                      device const int2 *outside [[buffer(1)]],
                      device const int2 *inside [[buffer(2)]],
                      uint2 p [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]])
{
    const uint at = p.y * size.x + p.x;
    const float out = length(float2(outside[at] - int2(p))), in = length(float2(inside[at] - int2(p)));
    const float d = (mask[at] > 127 ? 0.5f - in : out - 0.5f);
    const float x = float(p.x) / float(size.x);
    const float3 neon = palette(0.5f * x + 0.55f, float3(0.0f, 0.2f, 0.4f)) + 0.15f;
    const float rings = 0.5f + 0.5f * cos(0.55f * d);
    float3 colour = neon * (0.9f * exp(-0.09f * abs(d)) + 0.16f * rings * exp(-0.012f * abs(d)));
    colour += exp(-0.45f * d * d) * float3(1.0f);
    image.write(float4(saturate(colour), 1.0f), p);
}
