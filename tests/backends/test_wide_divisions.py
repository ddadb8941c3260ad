"""Divisions of 64-bit integers: as doubles if all lanes have small numbers, else lane by lane."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;

template <typename T>
kernel void divide(device T *quotients, device T *remainders, device const T *a,
                   device const T *b, uint i [[thread_position_in_grid]])
{
    if (i % 5 != 0) {
        quotients[i] = a[i] / b[i];
        remainders[i] = a[i] % b[i];
    }
}
template [[host_name("signed")]] kernel void divide(
    device long *, device long *, device const long *, device const long *, uint);
template [[host_name("unsigned")]] kernel void divide(
    device ulong *, device ulong *, device const ulong *, device const ulong *, uint);
"""
EDGES = [0, 1, 2, 3, 7, 2**31, 2**50, 2**51 - 1, 2**51, 2**51 + 1, 2**52, 2**53 - 1, 2**53 + 1]


def numbers(dtype, bits, rng):
    given = rng.integers(0, 2**bits - 1, 1024, dtype=dtype, endpoint=True)
    edges = [n for n in EDGES if n < 2**bits]
    given[::3] = rng.choice(np.array(edges, dtype), len(given[::3]))
    return given


@pytest.mark.parametrize("bits", [20, 51, 52, 53, 63])
@pytest.mark.parametrize("kind", ["signed", "unsigned"])
def test_quotients_and_remainders(kind, bits):
    rng = np.random.default_rng(bits)
    dtype = np.int64 if kind == "signed" else np.uint64
    a, b = numbers(dtype, bits, rng), np.maximum(numbers(dtype, bits, rng), 1)
    a[::4] -= a[::4] % b[::4]  # multiples, and numbers adjacent to them
    a[1::8] -= np.minimum(a[1::8] % b[1::8] + 1, a[1::8])
    if kind == "signed":
        a, b = a * rng.choice([-1, 1], a.size), b * rng.choice([-1, 1], b.size)
        b[b == -1] = 2
    quotients, remainders = np.full_like(a, 42), np.full_like(a, 42)
    getattr(mtl.library(SOURCE), kind)(quotients, remainders, a, b, threads=a.size)
    expected = [
        (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if k % 5 else 42)
        for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True))
    ]
    assert quotients.tolist() == expected
    active = np.arange(a.size) % 5 != 0
    rest = a - quotients * b
    np.testing.assert_array_equal(remainders, np.where(active, rest, 42))


@pytest.mark.needs("the CPU")
def test_division_by_zero_of_one_lane_is_a_fault():
    a, b = np.arange(64), np.ones(64, np.int64)
    b[37] = 0
    out = np.zeros_like(a)
    with pytest.raises(mtl.KernelFault, match="zero"):
        mtl.library(SOURCE).signed(out, out.copy(), a, b, threads=64)
