#include "gallery.h"

// Each seed writes its number into its pixel; other pixels hold -1.
kernel void voronoi_seed(device const float2 *seeds [[buffer(0)]],
                         device int *nearest [[buffer(1)]],
                         constant uint2 &size [[buffer(2)]],
                         uint i [[thread_position_in_grid]])
{
    nearest[uint(seeds[i].y) * size.x + uint(seeds[i].x)] = int(i);
}

// A pass of jump flooding (Rong and Tan, 2006): ask eight pixels at a distance for their seeds.
kernel void voronoi_jump(device const int *nearest [[buffer(0)]],
                         device int *result [[buffer(1)]],
                         device const float2 *seeds [[buffer(2)]],
                         constant int &distance [[buffer(3)]],
                         uint2 p [[thread_position_in_grid]],
                         uint2 size [[threads_per_grid]])
{
    int best = -1;
    float shortest = 1e30f;
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x) {
            const int2 q = int2(p) + distance * int2(x, y);
            if (q.x < 0 || q.y < 0 || q.x >= int(size.x) || q.y >= int(size.y))
                continue;
            const int seed = nearest[q.y * int(size.x) + q.x];
            if (seed < 0)
                continue;
            const float2 d = seeds[seed] - (float2(p) + 0.5f);
            if (dot(d, d) < shortest) {
                shortest = dot(d, d);
                best = seed;
            }
        }
    result[p.y * size.x + p.x] = best;
}

// Cells as stained glass: dark lead where the seed changes, light from the middle.
kernel void voronoi_show(texture2d<float, access::write> image [[texture(0)]],
                         device const int *nearest [[buffer(0)]],
                         device const float2 *seeds [[buffer(1)]],
                         uint2 p [[thread_position_in_grid]],
                         uint2 size [[threads_per_grid]])
{
    const int seed = nearest[p.y * size.x + p.x];
    float lead = 0.0f;
    for (int y = -2; y <= 2; ++y)
        for (int x = -2; x <= 2; ++x) {
            const int2 q = clamp(int2(p) + int2(x, y), int2(0), int2(size) - 1);
            lead += nearest[q.y * int(size.x) + q.x] != seed ? 0.09f : 0.0f;
        }
    const float far = length(seeds[seed] - float2(p) - 0.5f) / (0.07f * float(size.x));
    const float hue = float(hash(uint(seed)) >> 8) * 0x1p-24f;
    const float3 glass = palette(0.55f * hue + 0.5f, float3(0.0f, 0.12f, 0.3f));
    const float3 colour = glass * (1.15f - 0.55f * far) * (1.0f - saturate(lead));
    image.write(float4(saturate(colour), 1.0f), p);
}
