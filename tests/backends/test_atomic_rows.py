"""Atomic operations of lanes on neighbours, of several threads and at any alignment."""

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

TEXT = """
#include <metal_stdlib>
using namespace metal;
#define ROW(name, type, operation)                                                       \\
  kernel void name(device atomic_##type* y, constant uint& width,                        \\
                   uint i [[thread_position_in_grid]],                                   \\
                   uint t [[thread_position_in_threadgroup]]) {                          \\
    uint value = (t / 4 + i / width) % 3 ? i % 7 : 0; /* none for some four neighbours */ \\
    atomic_##operation##_explicit(&y[t], type(value), memory_order_relaxed);             \\
  }
ROW(add, uint, fetch_add)
ROW(subtract, int, fetch_sub)
ROW(flip, uint, fetch_xor)
ROW(add_floats, float, fetch_add)
"""
WIDTH, GROUPS = 64, 3000


@pytest.mark.parametrize("first", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("name", "dtype", "operation"),
    [
        ("add", np.uint32, np.add),
        ("subtract", np.int32, np.subtract),
        ("flip", np.uint32, np.bitwise_xor),
        ("add_floats", np.float32, np.add),
    ],
)
@pytest.mark.sample(1, per="name")
def test_every_operation_counts_once(name, dtype, operation, first):
    y = np.full(WIDTH + 8, 5, dtype)
    lib = mtl.library(TEXT)
    lib[name](y[first : first + WIDTH], WIDTH, threads=WIDTH * GROUPS, group_size=WIDTH)
    group, thread = np.indices((GROUPS, WIDTH))
    values = np.where((thread // 4 + group) % 3, (WIDTH * group + thread) % 7, 0)
    expected = np.full(WIDTH + 8, 5, np.int64)
    for row in values:
        part = expected[first : first + WIDTH]
        part[:] = operation(part, row)
    assert np.array_equal(y, expected.astype(dtype))


def test_four_are_exchanged_at_once():
    with mtl.config.scope(cpu_engine="simd"):
        assert "cmpxchg ptr" in mtl.library(TEXT).add.asm["ll"]
