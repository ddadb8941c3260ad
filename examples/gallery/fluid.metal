#include "gallery.h"

// Stable fluids (Stam, 1999) on a torus: textures hold the fields, and samplers interpolate them.
// Follow the flow back by a step, and take the value there.
kernel void fluid_advect(texture2d<float, access::sample> velocity [[texture(0)]],
                         texture2d<float, access::sample> field [[texture(1)]],
                         texture2d<float, access::write> result [[texture(2)]],
                         constant float &step [[buffer(0)]],
                         constant float &decay [[buffer(1)]],
                         uint2 p [[thread_position_in_grid]])
{
    const float2 size = float2(float(field.get_width()), float(field.get_height()));
    float2 from = float2(p) + 0.5f - step * velocity.read(p).xy;
    from -= size * floor(from / size);
    constexpr sampler repeated(coord::normalized, filter::linear, address::repeat);
    result.write(decay * field.sample(repeated, from / size), p);
}

// Swirls are lost to interpolation: push them where the curl is large (Fedkiw, 2001).
kernel void fluid_confine(texture2d<float, access::read> velocity [[texture(0)]],
                          texture2d<float, access::write> result [[texture(1)]],
                          constant float &strength [[buffer(0)]],
                          uint2 p [[thread_position_in_grid]],
                          uint2 size [[threads_per_grid]])
{
    float curl[5];
    for (int k = 0; k < 5; ++k) {
        const uint x = (p.x + size.x + uint((k == 1) - (k == 2))) % size.x;
        const uint y = (p.y + size.y + uint((k == 3) - (k == 4))) % size.y;
        const uint2 right = uint2((x + 1) % size.x, y), left = uint2((x + size.x - 1) % size.x, y);
        const uint2 above = uint2(x, (y + 1) % size.y), below = uint2(x, (y + size.y - 1) % size.y);
        curl[k] = 0.5f * (velocity.read(right).y - velocity.read(left).y
                          - velocity.read(above).x + velocity.read(below).x);
    }
    const float2 slope = float2(abs(curl[1]) - abs(curl[2]), abs(curl[3]) - abs(curl[4]));
    const float2 n = slope / (length(slope) + 1e-5f);
    const float2 force = strength * curl[0] * float2(n.y, -n.x);
    result.write(float4(velocity.read(p).xy + force, 0.0f, 0.0f), p);
}

kernel void fluid_divergence(texture2d<float, access::read> velocity [[texture(0)]],
                             device float *divergence [[buffer(0)]],
                             uint2 p [[thread_position_in_grid]],
                             uint2 size [[threads_per_grid]])
{
    const float right = velocity.read(uint2((p.x + 1) % size.x, p.y)).x;
    const float left = velocity.read(uint2((p.x + size.x - 1) % size.x, p.y)).x;
    const float above = velocity.read(uint2(p.x, (p.y + 1) % size.y)).y;
    const float below = velocity.read(uint2(p.x, (p.y + size.y - 1) % size.y)).y;
    divergence[p.y * size.x + p.x] = 0.5f * (right - left + above - below);
}

// A Jacobi iteration of Poisson's equation for the pressure.
kernel void fluid_relax(device const float *divergence [[buffer(0)]],
                        device const float *pressure [[buffer(1)]],
                        device float *result [[buffer(2)]],
                        uint2 p [[thread_position_in_grid]],
                        uint2 size [[threads_per_grid]])
{
    const uint row = p.y * size.x;
    const float sum = pressure[row + (p.x + 1) % size.x] + pressure[row + (p.x + size.x - 1) % size.x]
                    + pressure[(p.y + 1) % size.y * size.x + p.x]
                    + pressure[(p.y + size.y - 1) % size.y * size.x + p.x];
    result[row + p.x] = 0.25f * (sum - divergence[row + p.x]);
}

// Without the gradient of the pressure the flow has no divergence.
kernel void fluid_project(texture2d<float, access::read> velocity [[texture(0)]],
                          texture2d<float, access::write> result [[texture(1)]],
                          device const float *pressure [[buffer(0)]],
                          uint2 p [[thread_position_in_grid]],
                          uint2 size [[threads_per_grid]])
{
    const uint row = p.y * size.x;
    const float2 gradient = 0.5f * float2(
        pressure[row + (p.x + 1) % size.x] - pressure[row + (p.x + size.x - 1) % size.x],
        pressure[(p.y + 1) % size.y * size.x + p.x] - pressure[(p.y + size.y - 1) % size.y * size.x + p.x]);
    result.write(float4(velocity.read(p).xy - gradient, 0.0f, 0.0f), p);
}

// Jets at the corners of a triangle push and colour the fluid.
kernel void fluid_stir(texture2d<float, access::read_write> velocity [[texture(0)]],
                       texture2d<float, access::read_write> dye [[texture(1)]],
                       constant float &time [[buffer(0)]],
                       uint2 p [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]])
{
    float2 v = velocity.read(p).xy;
    float4 d = dye.read(p);
    for (int k = 0; k < 3; ++k) {
        const float angle = 2.0944f * float(k) + 0.35f;
        const float2 jet = 0.5f * float2(size) + 0.33f * float(size.y) * float2(cos(angle), sin(angle));
        const float2 offset = float2(p) + 0.5f - jet;
        const float near = exp(-dot(offset, offset) / (0.00035f * float(size.x * size.x)));
        const float swing = angle + 2.4f + 0.5f * sin(0.08f * time + float(k));
        v = mix(v, 2.2f * float2(cos(swing), sin(swing)), near);
        const float3 colour = palette(float(k) / 3.0f, float3(0.05f, 0.4f, 0.62f));
        d = mix(d, float4(colour, 1.0f), 0.5f * near);
    }
    velocity.write(float4(v, 0.0f, 0.0f), p);
    dye.write(d, p);
}

kernel void fluid_show(texture2d<float, access::write> image [[texture(0)]],
                       texture2d<float, access::read> dye [[texture(1)]],
                       uint2 p [[thread_position_in_grid]])
{
    const float3 d = dye.read(p).xyz;
    image.write(float4(1.0f - exp(-1.6f * d), 1.0f), p);
}
