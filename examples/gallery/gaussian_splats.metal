#include "gallery.h"

struct Splat {
    float2 centre;    // in pixels
    float3 conic;     // inverse covariance: xx, xy, yy
    float4 colour;    // and opacity
    float depth;
    float radius;     // in pixels: three standard deviations
};

// Projects Gaussians in space to the picture (Kerbl et al., 2023): covariance J R S S R^T J^T.
kernel void splat_project(device const float4 *centres [[buffer(0)]],  // x, y, z, opacity
                          device const float4 *axes [[buffer(1)]],     // three rows each, scaled
                          device const float4 *colours [[buffer(2)]],
                          device Splat *splats [[buffer(3)]],
                          device float *depths [[buffer(4)]],
                          constant float3 &eye [[buffer(5)]],
                          constant float2 &size [[buffer(6)]],
                          uint i [[thread_position_in_grid]])
{
    const float3 forward = normalize(-eye);
    const float3 right = normalize(cross(forward, float3(0.0f, 1.0f, 0.0f)));
    const float3 up = cross(right, forward);
    const float3 to = centres[i].xyz - eye;
    const float3 v = float3(dot(to, right), dot(to, up), dot(to, forward));
    const float focal = 1.6f * size.y;
    const float3 jx = focal / v.z * (right - v.x / v.z * forward);
    const float3 jy = -focal / v.z * (up - v.y / v.z * forward);
    float xx = 0.3f, xy = 0.0f, yy = 0.3f;  // a pixel's own blur
    for (uint k = 0; k < 3; ++k) {
        const float3 axis = axes[3 * i + k].xyz;
        const float x = dot(jx, axis), y = dot(jy, axis);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    const float inverse = 1.0f / (xx * yy - xy * xy);
    const float middle = 0.5f * (xx + yy);
    Splat s;
    s.centre = 0.5f * size + focal / v.z * float2(v.x, -v.y);
    s.conic = inverse * float3(yy, -xy, xx);
    s.colour = float4(colours[i].xyz, centres[i].w);
    s.depth = v.z;
    s.radius = 3.0f * sqrt(middle + sqrt(max(0.0f, middle * middle - xx * yy + xy * xy)));
    splats[i] = s;
    depths[i] = v.z;
}

// Blends the splats from front to back. A threadgroup of 16 x 16 pixels loads 256 splats at a time,
// and skips those that are outside of its tile.
kernel void splat_blend(texture2d<float, access::write> image [[texture(0)]],
                        device const Splat *splats [[buffer(0)]],
                        device const uint *order [[buffer(1)]],
                        constant uint &count [[buffer(2)]],
                        uint2 p [[thread_position_in_grid]],
                        uint2 tile [[threadgroup_position_in_grid]],
                        uint t [[thread_index_in_threadgroup]])
{
    threadgroup Splat batch[256];
    const float2 pixel = float2(p) + 0.5f;
    const float2 middle = 16.0f * float2(tile) + 8.0f;
    float3 colour = 0.0f;
    float transparency = 1.0f;
    for (uint start = 0; start < count; start += 256) {
        if (start + t < count)
            batch[t] = splats[order[start + t]];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint n = min(256u, count - start);
        for (uint k = 0; k < n; ++k) {
            const float2 distance = abs(batch[k].centre - middle);
            if (max(distance.x, distance.y) > batch[k].radius + 8.0f)
                continue;
            const float2 d = pixel - batch[k].centre;
            const float3 q = batch[k].conic;
            const float power = -0.5f * (q.x * d.x * d.x + q.z * d.y * d.y) - q.y * d.x * d.y;
            const float alpha = min(0.99f, batch[k].colour.w * exp(min(power, 0.0f)));
            if (alpha > 1.0f / 255.0f) {
                colour += transparency * alpha * batch[k].colour.xyz;
                transparency *= 1.0f - alpha;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    const float3 background = float3(0.05f, 0.06f, 0.09f);
    image.write(float4(sqrt(saturate(colour + transparency * background)), 1.0f), p);
}
