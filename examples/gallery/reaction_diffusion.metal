#include "gallery.h"

// A step of Gray and Scott's reaction on a torus: u feeds v, and both diffuse (Pearson, 1993).
kernel void react(device const float2 *now [[buffer(0)]],
                  device float2 *next [[buffer(1)]],
                  constant float &feed [[buffer(2)]],
                  constant float &kill [[buffer(3)]],
                  uint2 p [[thread_position_in_grid]],
                  uint2 size [[threads_per_grid]])
{
    const uint left = (p.x + size.x - 1) % size.x, right = (p.x + 1) % size.x;
    const uint above = (p.y + size.y - 1) % size.y * size.x, row = p.y * size.x;
    const uint below = (p.y + 1) % size.y * size.x;
    const float2 c = now[row + p.x];
    const float2 edges = now[row + left] + now[row + right] + now[above + p.x] + now[below + p.x];
    const float2 corners = now[above + left] + now[above + right] + now[below + left] + now[below + right];
    const float2 laplacian = 0.2f * edges + 0.05f * corners - c;
    const float reaction = c.x * c.y * c.y;
    next[row + p.x] = c + float2(1.0f, 0.5f) * laplacian
                    + float2(feed * (1.0f - c.x) - reaction, reaction - (feed + kill) * c.y);
}

// The concentration as a relief with a lamp at the upper left.
kernel void react_show(texture2d<float, access::write> image [[texture(0)]],
                       device const float2 *cells [[buffer(0)]],
                       uint2 p [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]])
{
    const uint row = p.y * size.x;
    const float v = cells[row + p.x].y;
    const float dx = cells[row + (p.x + 1) % size.x].y - cells[row + (p.x + size.x - 1) % size.x].y;
    const float dy = cells[(p.y + 1) % size.y * size.x + p.x].y
                   - cells[(p.y + size.y - 1) % size.y * size.x + p.x].y;
    const float3 normal = normalize(float3(-9.0f * dx, -9.0f * dy, 1.0f));
    const float light = saturate(dot(normal, normalize(float3(-0.6f, -0.7f, 0.8f))));
    const float shine = pow(light, 40.0f);
    const float3 low = float3(0.05f, 0.11f, 0.2f), high = float3(0.98f, 0.62f, 0.4f);
    const float3 colour = mix(low, high, smoothstep(0.05f, 0.32f, v));
    image.write(float4(saturate(colour * (0.35f + 0.85f * light) + 0.3f * shine), 1.0f), p);
}
