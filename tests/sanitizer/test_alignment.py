"""Addresses that are no multiples of the alignment of the accessed type."""

import numpy as np
import pytest

import metalloid as mtl

TEXT = """
#include <metal_stdlib>
using namespace metal;
struct Pair { float4 a; float b; };
kernel void vectors(device float *y, device const float *p, constant int &n,
                    uint i [[thread_position_in_grid]]) {
  float4 v = *(device const float4 *)(p + n + 4 * i);  // vectors
  y[i] = v.x + v.w;
}
kernel void stores(device float *y, device const float *p, constant int &n) {
  *reinterpret_cast<device float2 *>(y + n) = float2(p[0]);  // stores
}
kernel void scalars(device uchar *y, device const float *p, constant int &n) {
  *(device uint *)(y + n) = 7;  // scalars
}
kernel void atomics(device uchar *y, device const float *p, constant int &n) {
  atomic_fetch_add_explicit((device atomic_uint *)(y + n), 1, memory_order_relaxed);  // atomics
}
kernel void structs(device float *y, device const float *p, constant int &n) {
  float4 v = ((device const Pair *)(p + n))->a;  // structs
  y[0] = v.x + v.w;
}
kernel void shared(device float *y, device const float *p, constant int &n,
                   uint l [[thread_position_in_threadgroup]]) {
  threadgroup float t[64];
  t[l] = t[l + 32] = l;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float4 v = *(threadgroup float4 *)(t + n);  // shared
  y[l] = v.x + v.w;
}
kernel void packed(device float *y, device const float *p, constant int &n) {
  float4 v = float4(*(device const packed_float4 *)(p + n));
  packed_float3 w = *(device const packed_float3 *)(p + n);
  ((device packed_half4 *)y)[n] = packed_half4(half4(v.x + w.z));
}
"""
#: Bytes of an element of the pointer, the required alignment, and the memory of each kernel.
CASES = {
    "vectors": (4, 16, "'p' (device memory)"), "stores": (4, 8, "'y' (device memory)"),
    "scalars": (1, 4, "'y' (device memory)"), "atomics": (1, 4, "'y' (device memory)"),
    "structs": (4, 16, "'p' (device memory)"), "shared": (4, 16, "'t' (threadgroup memory)"),
}  # fmt: skip
pytestmark = pytest.mark.needs("the CPU")


@pytest.fixture(scope="module")
def lib():
    return mtl.library(TEXT, check=True)


def run(lib, name, n, start=0, threads=1):
    y = np.zeros(64, np.uint8 if name in ("scalars", "atomics") else np.float32)
    p = np.zeros(64 + start, np.float32)[start:]
    lib[name](y, p, n, threads=32 if name == "shared" else threads, group_size=32)


@pytest.mark.parametrize("name", CASES)
def test_misaligned_accesses_are_reported(lib, name):
    size, alignment, memory = CASES[name]
    for n in range(1, 2 * alignment // size):
        if n * size % alignment == 0:
            run(lib, name, n)
            continue
        with pytest.raises(mtl.SanitizerError) as raised:
            run(lib, name, n)
        [finding] = raised.value.findings
        assert (finding.kind, finding.memory) == ("misaligned", f"byte {n * size} of {memory}")
        [access] = finding.accesses
        assert access.line == next(
            k for k, line in enumerate(TEXT.splitlines(), 1) if line.endswith(f"// {name}")
        )
        assert access.thread == (0, 0, 0)
        assert f"must be a multiple of {alignment} bytes" in finding.hint
        assert "packed" in finding.hint


@pytest.mark.parametrize("start", range(4))
def test_alignment_counts_from_the_beginning_of_an_argument(lib, start):
    """The caller's array may begin anywhere."""
    run(lib, "vectors", 4, start, threads=3)
    with pytest.raises(mtl.SanitizerError, match=r"byte 12 of 'p' .*\(3 times\)"):
        run(lib, "vectors", 3, start, threads=3)


@pytest.mark.parametrize("n", range(1, 5))
def test_packed_types_are_aligned_as_their_elements(lib, n):
    run(lib, "packed", n)
