#include "gallery.h"

// Half a sweep of Metropolis' algorithm on a torus: cells of one colour of a chessboard do not touch.
kernel void ising_flip(device char *spins [[buffer(0)]],
                       constant float &coupling [[buffer(1)]],  // J / kT
                       constant uint &colour [[buffer(2)]],
                       constant uint &step [[buffer(3)]],
                       uint2 p [[thread_position_in_grid]],
                       uint2 half_size [[threads_per_grid]])
{
    const uint2 size = uint2(2 * half_size.x, half_size.y);
    const uint x = 2 * p.x + ((p.y + colour) & 1u), row = p.y * size.x;
    const int sum = int(spins[row + (x + 1) % size.x]) + int(spins[row + (x + size.x - 1) % size.x])
                  + int(spins[(p.y + 1) % size.y * size.x + x])
                  + int(spins[(p.y + size.y - 1) % size.y * size.x + x]);
    uint state = hash((row + x) ^ hash(step));
    if (random_unit(state) < exp(-2.0f * coupling * float(int(spins[row + x]) * sum)))
        spins[row + x] = char(-int(spins[row + x]));
}

kernel void ising_show(texture2d<float, access::write> image [[texture(0)]],
                       device const char *spins [[buffer(0)]],
                       uint2 p [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]])
{
    const bool up = spins[p.y * size.x + p.x] > 0;
    image.write(float4(up ? float3(0.98f, 0.8f, 0.35f) : float3(0.13f, 0.16f, 0.36f), 1.0f), p);
}
