"""Kernels, and the steps from them to results, that tests of the software Metal device share."""

import struct

import numpy as np

from metalloid.compat import Metal

KERNELS = """
#include <metal_stdlib>
using namespace metal;

constant float factor [[function_constant(0)]];
constant bool doubled [[function_constant(3)]];
constant int3 shift [[function_constant(5)]];
constant bool has_shift = is_function_constant_defined(shift);

kernel void where_am_i(device uint4 *out [[buffer(0)]], uint3 id [[thread_position_in_grid]],
                       uint3 size [[threads_per_grid]], uint lane [[thread_index_in_threadgroup]]) {
    out[(id.z * size.y + id.y) * size.x + id.x] = uint4(id, lane);
}
kernel void saxpy(device float *y [[buffer(4)]], device const float *x [[buffer(1)]],
                  constant float &a [[buffer(30)]], uint id [[thread_position_in_grid]]) {
    y[id] = fma(a, x[id], y[id]);
}
kernel void scale(device float *x [[buffer(0)]], uint id [[thread_position_in_grid]]) {
    x[id] = x[id] * factor * (doubled ? 2 : 1) + (has_shift ? shift.z : 0);
}
kernel void reversed(device int *x [[buffer(0)]], threadgroup int *row [[threadgroup(0)]],
                     threadgroup char *other [[threadgroup(1)]],
                     uint id [[thread_position_in_grid]], uint i [[thread_position_in_threadgroup]],
                     uint n [[threads_per_threadgroup]]) {
    row[i] = x[id];
    other[i] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[id] = row[n - 1 - i] + other[i];
}
kernel void add_one(device float *x [[buffer(0)]], uint id [[thread_position_in_grid]]) {
    x[id] += 1;
}
struct rows { device float *data; uint count; };
kernel void through(constant rows &r [[buffer(0)]], uint id [[thread_position_in_grid]]) {
    if (id < r.count) r.data[id] = id;
}
kernel void astray(device float *x [[buffer(0)]], constant ulong &where [[buffer(1)]]) {
    x[where] = 1;
}
kernel void slow(device uint *out [[buffer(0)]], constant uint &rounds [[buffer(1)]]) {
    uint x = rounds;
    for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u + (x >> 7);
    *out = x | 1;
}
#ifdef __FAST_MATH__
kernel void is_fast() {}
#endif
"""
SHARED = Metal.MTLResourceStorageModeShared
ITERATIONS = 100_000_000  # of `slow`: some tenths of a second


def buffer_of(device, array):
    return device.newBufferWithBytes_length_options_(array, array.nbytes, SHARED)


def array_of(buffer, dtype=np.float32):
    return np.frombuffer(buffer.contents().as_buffer(buffer.length()), dtype)


def encode(commands, state, buffers, threads, group=(1, 1, 1)):
    """A launch, encoded: buffers by index."""
    encoder = commands.computeCommandEncoder()
    encoder.setComputePipelineState_(state)
    for index, buffer in enumerate(buffers):
        if isinstance(buffer, bytes):
            encoder.setBytes_length_atIndex_(buffer, len(buffer), index)
        else:
            encoder.setBuffer_offset_atIndex_(buffer, 0, index)
    encoder.dispatchThreads_threadsPerThreadgroup_(threads, group)
    encoder.endEncoding()
    return commands


def run(commands):
    commands.commit()
    commands.waitUntilCompleted()
    return commands


def slow_commands(device, pipeline, commands):
    out = device.newBufferWithLength_options_(4, SHARED)
    encode(commands, pipeline("slow"), [out, struct.pack("I", ITERATIONS)], (1, 1, 1))
    return out
