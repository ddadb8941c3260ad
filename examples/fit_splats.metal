// A picture as a sum of Gaussian splats, for which fit_splats.py looks by gradient descent.
#include <metal_stdlib>
using namespace metal;

// Of a splat: centre, logarithms of its extents along its axes, its angle, and its colour.
constant int NUMBERS = 8;

float2 rotated(float2 v, float angle)
{
    const float c = cos(angle), s = sin(angle);
    return float2(c * v.x + s * v.y, c * v.y - s * v.x);
}

kernel void draw_splats(device const float *splats, device packed_float3 *image,
                        constant int &count, uint2 at [[thread_position_in_grid]],
                        uint2 size [[threads_per_grid]])
{
    const float2 pixel = (float2(at) + 0.5f) / float(size.x);
    float3 colour = 0;
    for (int k = 0; k < count; k++) {
        device const float *s = splats + NUMBERS * k;
        const float2 d = rotated(pixel - float2(s[0], s[1]), s[4]) * exp(-float2(s[2], s[3]));
        const float distance = dot(d, d);
        if (distance > 20) continue;
        colour += exp(-0.5f * distance) * float3(s[5], s[6], s[7]);
    }
    image[at.y * size.x + at.x] = colour;
}
