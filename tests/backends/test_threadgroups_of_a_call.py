"""Vector code runs many threadgroups in one call: each, and each fault, has its index."""

import numpy as np
import pytest

import metalloid as mtl

TEXT = """
#include <metal_stdlib>
using namespace metal;

kernel void apart(device uint* out, device const uint* numbers, constant uint3& grid,
                  uint3 p [[thread_position_in_grid]],
                  uint3 group [[threadgroup_position_in_grid]],
                  uint3 size [[threads_per_threadgroup]]) {
  uint at = (p.z * grid.y + p.y) * grid.x + p.x;
  out[at] = ((group.z * 100 + group.y) * 100 + group.x) * 1000
      + size.x * size.y * size.z / numbers[at];
}

kernel void waiting(device uint* out, device const uint* numbers, constant uint3& grid,
                    uint3 p [[thread_position_in_grid]],
                    uint3 group [[threadgroup_position_in_grid]],
                    uint3 size [[threads_per_threadgroup]],
                    uint index [[thread_index_in_threadgroup]]) {
  threadgroup uint place;
  if (index == 0) place = ((group.z * 100 + group.y) * 100 + group.x) * 1000;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint at = (p.z * grid.y + p.y) * grid.x + p.x;
  out[at] = place + size.x * size.y * size.z / numbers[at];
}
"""
GRID, GROUP = (70, 13, 5), (32, 4, 2)
_SHAPES = [(GRID, GROUP), ((1000, 1, 1), (64, 1, 1)), ((3, 40, 7), (3, 8, 1))]


def launch(name, grid, group, numbers):
    with mtl.config.scope(cpu_engine="simd"):
        kernel = mtl.library(TEXT)[name]
    out = np.zeros(grid[::-1], np.uint32)
    kernel(out, numbers, np.array([*grid, 0], np.uint32), threads=grid, group_size=group)
    assert kernel.engine.startswith("simd")
    return out


@pytest.mark.parametrize("name", ["apart", "waiting"])
@pytest.mark.parametrize(("grid", "group"), _SHAPES, ids=str)
def test_each_has_its_index_and_is_as_large_as_the_grid_leaves_it(name, grid, group):
    groups = [
        index // size for index, size in zip(np.indices(grid[::-1])[::-1], group, strict=True)
    ]
    sizes = [
        np.minimum(size, extent - index * size)
        for index, size, extent in zip(groups, group, grid, strict=True)
    ]
    expected = ((groups[2] * 100 + groups[1]) * 100 + groups[0]) * 1000 + np.prod(sizes, axis=0)
    result = launch(name, grid, group, np.ones(grid[::-1], np.uint32))
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("name", ["apart", "waiting"])
@pytest.mark.parametrize("where", [(0, 0, 0), (1, 3, 2), (2, 0, 1), (0, 2, 0)], ids=str)
def test_a_fault_is_in_the_threadgroup_that_was_running(name, where):
    numbers = np.ones(GRID[::-1], np.uint32)
    numbers[tuple(index * size for index, size in zip(where, GROUP, strict=True))[::-1]] = 0
    with pytest.raises(mtl.KernelFault) as caught:
        launch(name, GRID, GROUP, numbers)
    assert caught.value.threadgroup == where
