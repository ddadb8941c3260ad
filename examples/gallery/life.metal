#include "gallery.h"

// One generation of Conway's Game of Life on a torus. A cell is its age, 0 if it is dead.
kernel void life_step(device const uchar *cells [[buffer(0)]],
                      device uchar *next [[buffer(1)]],
                      uint2 p [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]])
{
    const uint left = (p.x + size.x - 1) % size.x, right = (p.x + 1) % size.x;
    const uint above = (p.y + size.y - 1) % size.y * size.x, row = p.y * size.x;
    const uint below = (p.y + 1) % size.y * size.x;
    const int alive = int(cells[above + left] > 0) + int(cells[above + p.x] > 0)
                    + int(cells[above + right] > 0) + int(cells[row + left] > 0)
                    + int(cells[row + right] > 0) + int(cells[below + left] > 0)
                    + int(cells[below + p.x] > 0) + int(cells[below + right] > 0);
    const uchar age = cells[row + p.x];
    const bool lives = alive == 3 || (alive == 2 && age > 0);
    next[row + p.x] = lives ? uchar(min(int(age) + 1, 255)) : uchar(0);
}

// Cells by age over the warmth of those that lived there; each cell is `zoom` pixels wide.
kernel void life_show(texture2d<float, access::write> image [[texture(0)]],
                      device const uchar *cells [[buffer(0)]],
                      device const float *warmth [[buffer(1)]],
                      constant uint &zoom [[buffer(2)]],
                      uint2 p [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]])
{
    const uint cell = p.y / zoom * (size.x / zoom) + p.x / zoom;
    const float age = float(cells[cell]);
    float3 colour = 0.75f * heat_ramp(0.55f * sqrt(warmth[cell]));
    if (age > 0.0f)
        colour = mix(float3(0.95f, 1.0f, 0.85f), float3(0.1f, 0.65f, 0.75f), saturate(age / 40.0f));
    image.write(float4(colour, 1.0f), p);
}

// The memory of past cells fades.
kernel void life_fade(device float *warmth [[buffer(0)]],
                      device const uchar *cells [[buffer(1)]],
                      uint i [[thread_position_in_grid]])
{
    warmth[i] = cells[i] > 0 ? 1.0f : 0.985f * warmth[i];
}
