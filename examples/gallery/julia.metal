#include "gallery.h"

// The Julia set of z^2 + c, coloured by smooth counts and by how near an orbit comes to the axes.
kernel void julia(texture2d<float, access::write> image [[texture(0)]],
                  constant float2 &c [[buffer(0)]],
                  constant uint &iterations [[buffer(1)]],
                  uint2 p [[thread_position_in_grid]],
                  uint2 size [[threads_per_grid]])
{
    float2 z = (2.0f * float2(p) + 1.0f - float2(size)) / float(size.y) * 1.25f;
    float trap = 1e9f, squared = 0.0f;
    uint n = 0;
    for (; n < iterations; ++n) {
        z = float2(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y) + c;
        squared = dot(z, z);
        trap = min(trap, min(abs(z.x), abs(z.y)));
        if (squared > 256.0f)
            break;
    }
    const float smooth_count = float(n) - log2(log2(max(squared, 1.1f)) * 0.125f);
    float3 colour = palette(0.16f * sqrt(max(smooth_count, 0.0f)), float3(0.55f, 0.62f, 0.72f));
    colour *= n == iterations ? 0.15f : 1.0f;
    colour += 0.6f * exp(-60.0f * trap) * float3(1.0f, 0.8f, 0.5f);
    image.write(float4(saturate(colour), 1.0f), p);
}
