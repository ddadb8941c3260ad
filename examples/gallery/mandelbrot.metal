#include "gallery.h"

// The Mandelbrot set as a relief: the derivative of the iteration gives the distance to the set and
// the direction of its slope, which a lamp lights.
kernel void mandelbrot(texture2d<float, access::write> image [[texture(0)]],
                       constant float2 &centre [[buffer(0)]],
                       constant float &height [[buffer(1)]],
                       constant uint &iterations [[buffer(2)]],
                       uint2 p [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]])
{
    const float2 c = centre
                   + height * float2(float(p.x) + 0.5f - 0.5f * float(size.x),
                                     0.5f * float(size.y) - float(p.y) - 0.5f) / float(size.y);
    float2 z = 0.0f, slope = 0.0f;
    float squared = 0.0f;
    uint n = 0;
    for (; n < iterations; ++n) {
        slope = 2.0f * float2(z.x * slope.x - z.y * slope.y, z.x * slope.y + z.y * slope.x)
              + float2(1.0f, 0.0f);
        z = float2(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y) + c;
        squared = dot(z, z);
        if (squared > 1e4f)
            break;
    }
    float3 colour = float3(0.02f, 0.02f, 0.05f);
    if (n < iterations) {
        const float smooth_count = float(n) - log2(0.5f * log2(squared) / log2(100.0f));
        const float2 normal = normalize(float2(z.x * slope.x + z.y * slope.y,
                                               z.y * slope.x - z.x * slope.y));
        const float light = saturate((dot(normal, float2(0.7071f, 0.7071f)) + 1.4f) / 2.4f);
        const float3 phase = float3(0.0f, 0.10f, 0.22f);
        colour = light * palette(0.045f * smooth_count + 0.55f, phase);
    }
    image.write(float4(saturate(colour), 1.0f), p);
}
