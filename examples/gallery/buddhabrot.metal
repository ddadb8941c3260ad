#include "gallery.h"

// Where the orbits go that leave the Mandelbrot set (Green, 1993). Three limits of their length are
// three colours: long orbits are red.
kernel void buddhabrot_orbits(device atomic_uint *planes [[buffer(0)]],
                              constant uint2 &size [[buffer(1)]],
                              constant uint3 &limits [[buffer(2)]],
                              constant uint &samples [[buffer(3)]],
                              uint i [[thread_position_in_grid]])
{
    uint state = hash(i + 77u);
    for (uint k = 0; k < samples; ++k) {
        const float2 c = float2(-2.2f, -1.5f) + 3.0f * float2(random_unit(state), random_unit(state));
        const float q = (c.x - 0.25f) * (c.x - 0.25f) + c.y * c.y;
        if (q * (q + c.x - 0.25f) < 0.25f * c.y * c.y || (c.x + 1.0f) * (c.x + 1.0f) + c.y * c.y < 0.0625f)
            continue;  // inside the cardioid or the circle: never leaves
        float2 z = 0.0f;
        uint n = 0;
        for (; n < limits.x && dot(z, z) < 4.0f; ++n)
            z = float2(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y) + c;
        if (n == limits.x || n < 5)  // short orbits would only show the square of samples
            continue;
        const uint plane = n < limits.z ? 2u : n < limits.y ? 1u : 0u;
        z = 0.0f;
        for (uint m = 0; m < n; ++m) {
            z = float2(z.x * z.x - z.y * z.y, 2.0f * z.x * z.y) + c;
            // The picture is turned by a quarter, and so is the figure.
            const float2 at = 0.5f * float2(size) + 0.36f * float(size.y) * float2(z.y, z.x + 0.45f);
            if (at.x >= 0.0f && at.y >= 0.0f && at.x < float(size.x) && at.y < float(size.y))
                atomic_fetch_add_explicit(
                    &planes[(plane * size.y + uint(at.y)) * size.x + uint(at.x)], 1u, memory_order_relaxed);
        }
    }
}

kernel void buddhabrot_develop(texture2d<float, access::write> image [[texture(0)]],
                               device const uint *planes [[buffer(0)]],
                               constant float3 &exposure [[buffer(1)]],
                               uint2 p [[thread_position_in_grid]],
                               uint2 size [[threads_per_grid]])
{
    const uint at = p.y * size.x + p.x, plane = size.x * size.y;
    const float3 v = float3(float(planes[at]), float(planes[plane + at]), float(planes[2 * plane + at]));
    image.write(float4(sqrt(1.0f - exp(-exposure * v)), 1.0f), p);
}
