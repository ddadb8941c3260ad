#include <metal_stdlib>
using namespace metal;

kernel void ripples(device float *picture, constant float &wavelength,
                    uint2 p [[thread_position_in_grid]], uint2 size [[threads_per_grid]])
{
    const float2 offset = float2(p) + 0.5f - 0.5f * float2(size);
    picture[p.y * size.x + p.x] = 0.5f + 0.5f * cos(2.0f * M_PI_F * length(offset) / wavelength);
}
