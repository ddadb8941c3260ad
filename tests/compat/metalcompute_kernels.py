"""Kernels that tests of `metalloid.compat.metalcompute` share."""

KERNELS = """
#include <metal_stdlib>
using namespace metal;

kernel void combine(const device float *in [[buffer(0)]], const device float *in2 [[buffer(1)]],
                    device float *out [[buffer(2)]], uint id [[thread_position_in_grid]]) {
    out[id] = sin(in[id]) + in2[0];
}
kernel void where_am_i(device uint2 *out, uint id [[thread_position_in_grid]],
                       uint count [[threads_per_grid]]) {
    out[id] = uint2(id, count);
}
kernel void add_one(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                    uint id [[thread_position_in_grid]]) {
    out[id] += in[id] + 1.0;
}
struct triple { float x, y, z; };
kernel void shift(device triple *rows [[buffer(0)]], constant float3 &by [[buffer(2)]],
                  uint id [[thread_position_in_grid]]) {
    rows[id].x += by.x; rows[id].y += by.y; rows[id].z += by.z;
}
kernel void gather(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                   device const ulong *where [[buffer(2)]], uint id [[thread_position_in_grid]]) {
    out[id] = in[where[id]];
}
"""
