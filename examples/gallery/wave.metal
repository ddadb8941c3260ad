#include "gallery.h"

// A step of the wave equation, by leapfrog; walls and the fading border come from `speed` and `decay`.
kernel void wave_step(device const float *now [[buffer(0)]],
                      device float *before [[buffer(1)]],  // becomes the next
                      device const float *speed [[buffer(2)]],
                      constant float &source [[buffer(3)]],
                      uint2 p [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]])
{
    const uint at = p.y * size.x + p.x;
    const uint left = p.x > 0 ? at - 1 : at, right = p.x + 1 < size.x ? at + 1 : at;
    const uint above = p.y > 0 ? at - size.x : at, below = p.y + 1 < size.y ? at + size.x : at;
    const float laplacian = now[left] + now[right] + now[above] + now[below] - 4.0f * now[at];
    const uint border = min(min(p.x, size.x - 1 - p.x), min(p.y, size.y - 1 - p.y));
    const float decay = border < 24 ? 1.0f - 0.00012f * float((24 - border) * (24 - border)) : 1.0f;
    float next = decay * (2.0f * now[at] - decay * before[at] + speed[at] * laplacian);
    if (p.x == 30)
        next = source;  // a plane wave comes from the left
    before[at] = speed[at] > 0.0f ? next : 0.0f;
}

// Blue and orange for troughs and crests; grey walls.
kernel void wave_show(texture2d<float, access::write> image [[texture(0)]],
                      device const float *height [[buffer(0)]],
                      device const float *speed [[buffer(1)]],
                      uint2 p [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]])
{
    const uint at = p.y * size.x + p.x;
    const float h = height[at];
    float3 colour = float3(0.03f, 0.03f, 0.06f);
    colour += saturate(1.5f * h) * float3(1.0f, 0.55f, 0.2f) + saturate(-1.5f * h) * float3(0.15f, 0.5f, 1.0f);
    if (speed[at] == 0.0f)
        colour = float3(0.55f, 0.55f, 0.58f);
    else if (speed[at] < 0.2f)
        colour += float3(0.08f, 0.1f, 0.1f);
    image.write(float4(saturate(colour), 1.0f), p);
}
