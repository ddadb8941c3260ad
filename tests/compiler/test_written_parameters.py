"""Kernels for GPUs tell through which const parameters they write."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;

template <class T> void put(device const char* destination, T value) { *(device T*)destination = value; }

kernel void casts(device const char* stored, device const float* read, device const uint* counted,
                  device const float2* first, device const float2* second, constant float& scale,
                  device float* plain, device const int* copied,
                  uint i [[thread_position_in_grid]])
{
    put(stored + 4 * i, scale * read[i]);
    atomic_fetch_add_explicit((device atomic_uint*)counted, 1u, memory_order_relaxed);
    device const float2* chosen = i % 2 == 0 ? first : second;
    *const_cast<device float2*>(chosen + i) = float2(read[i]);
    plain[i] = read[i];
    if (i == 0) {
        for (int k = 0; k < 8; ++k) ((device int*)copied)[k] = 0;
    }
}
"""
WRITTEN = {"stored", "counted", "first", "second", "plain", "copied"}


@pytest.mark.parametrize("target", ["cuda:sm_90", "spirv"])
def test_the_signature_says_what_is_written(target):
    signature = mtl.library(SOURCE, target=target).casts.signature
    written = {p.name for p in signature.arguments if not p.layout.read_only}
    assert written == WRITTEN


@pytest.mark.parametrize("device", ["cuda", "opencl"])
def test_arrays_are_copied_back(device):
    try:
        kernel = mtl.library(SOURCE, device=device).casts
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"{device}: {error}")
    n = 64
    stored, counted = np.zeros(4 * n, np.int8), np.zeros(1, np.uint32)
    first, second = np.zeros((n, 2), np.float32), np.zeros((n, 2), np.float32)
    read, plain = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    copied = np.ones(8, np.int32)
    kernel(stored, read, counted, first, second, 2.0, plain, copied, threads=n)
    np.testing.assert_array_equal(stored.view(np.float32), 2 * read)
    assert counted[0] == n
    even = np.arange(n) % 2 == 0
    np.testing.assert_array_equal(first[:, 0], np.where(even, read, 0))
    np.testing.assert_array_equal(second[:, 1], np.where(even, 0, read))
    np.testing.assert_array_equal(plain, read)
    assert not copied.any()
    copied.flags.writeable = False
    with pytest.raises(mtl.ArgumentError, match="read-only"):
        kernel(stored, read, counted, first, second, 2.0, plain, copied, threads=n)
