"""Branches on several comparisons: where all lanes pass them, and where some do not."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;
// The inner part or the border, asked either way.
kernel void inner(device int* y, device const int* x, constant int4& box,
                  uint2 p [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  int i = p.x, j = p.y, at = j * size.x + i;
  if (i > box.x && j > box.y && i < box.z && j < box.w) y[at] = 3 * x[at] + x[at + 1];
  else y[at] = -x[at];
}
kernel void border(device int* y, device const int* x, constant int4& box,
                   uint2 p [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  int i = p.x, j = p.y, at = j * size.x + i;
  if (i <= box.x || j <= box.y || i >= box.z || j >= box.w) y[at] = -x[at];
  else y[at] = 3 * x[at] + x[at + 1];
}
// Only one side, an index that wraps, and a comparison of what lanes load.
kernel void part(device int* y, device const int* x, constant int4& box,
                 uint2 p [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
  uint i = p.x - uint(box.x) - 1, at = p.y * size.x + p.x;
  y[at] = -x[at];
  if (i < uint(box.z - box.x - 1) && int(p.y) > box.y && int(p.y) < box.w) y[at] = 3 * x[at] + x[at + 1];
}
"""
BOXES = {
    "one pixel less on each side": (0, 0, 127, 5), "nothing": (50, 2, 10, 4), "all": (-1, -1, 128, 6),
    "within a simdgroup": (37, 1, 41, 4), "from 31 on": (31, -1, 128, 6), "up to 64": (-1, 0, 64, 6),
    "one column": (63, -1, 65, 6), "one row": (-1, 2, 128, 4), "the least": (-(2**31), -1, 128, 6),
}  # fmt: skip


@pytest.fixture(scope="module")
def library():
    return mtl.library(SOURCE)


@pytest.mark.parametrize("name", ["inner", "border", "part"])
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_lanes_that_pass_all_comparisons(library, name, box, rng):
    rows, columns = 6, 128
    x = rng.integers(-1000, 1000, rows * columns + 1, np.int32)
    y = np.zeros((rows, columns), np.int32)
    left, top, right, bottom = box
    library[name](y, x, box, threads=(columns, rows))
    j, i = np.mgrid[:rows, :columns]
    inside = (i > left) & (j > top) & (i < right) & (j < bottom)
    here, after = x[:-1].reshape(rows, columns), x[1:].reshape(rows, columns)
    if name == "part":
        reach = (right - left - 1) % 2**32
        inside = ((i - left - 1) % 2**32 < reach) & (j > top) & (j < bottom)
    np.testing.assert_array_equal(y, np.where(inside, 3 * here + after, -here))
