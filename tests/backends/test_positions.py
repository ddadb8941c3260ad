"""Threads that wait for each other know where they are, in threadgroups of every shape."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile.variants import Kind, Variant, parse_variant, variant_for

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void f(device uint* out, constant uint3& size, uint3 p [[thread_position_in_grid]],
              uint3 t [[thread_position_in_threadgroup]],
              uint index [[thread_index_in_threadgroup]]) {{
  threadgroup uint seen[1024];
  uint where = {where};
  for (uint round = 0; round < 3; ++round) {{
    seen[index] = where + round;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    where = seen[index ^ 1] * 3 + where;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }}
  out[(p.z * size.y + p.y) * size.x + p.x] = where;
}}
"""
WHERE = {
    "t.x": lambda p, t: t[0], "t.y * 1000 + t.x": lambda p, t: t[1] * 1000 + t[0],
    "(t.z * 50 + t.y) * 50 + t.x * 7 + p.x * p.y + p.z":
        lambda p, t: (t[2] * 50 + t[1]) * 50 + t[0] * 7 + p[0] * p[1] + p[2],
}  # fmt: skip
GROUPS = [
    (64, 1, 1), (32, 4, 1), (16, 16, 1), (8, 8, 1), (8, 4, 4), (32, 2, 2), (64, 2, 1), (16, 4, 4),
    (1, 64, 1), (4, 4, 4), (12, 4, 1), (32, 1, 4),
]  # fmt: skip


def expected(where, grid, group):
    p = np.indices(grid[::-1])[::-1]
    t = [axis % size for axis, size in zip(p, group, strict=True)]
    values = WHERE[where](p, t).astype(np.uint32) + np.zeros(grid[::-1], np.uint32)
    index = (t[2] * group[1] + t[1]) * group[0] + t[0]
    other = index ^ 1
    at = [
        axis - own + new
        for axis, own, new in zip(
            p, t,
            (other % group[0], other // group[0] % group[1], other // (group[0] * group[1])),
            strict=True,
        )
    ]  # fmt: skip
    for count in range(3):
        values = (values[at[2], at[1], at[0]] + np.uint32(count)) * np.uint32(3) + values
    return values


@pytest.fixture(scope="module", params=["", "simdgroups"])
def kernels(request):
    """With simdgroups of 32, or as wide as suits."""
    compiled = {}
    for where in WHERE:
        counted = where
        if request.param:
            counted = f"simd_shuffle_xor(simd_shuffle_xor({where}, ushort(1)), ushort(1))"
        compiled[where] = mtl.library(TEXT.format(where=counted))["f"]
    return compiled


@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.sample(6)
def test_positions(kernels, where, group):
    grid = tuple(size * count for size, count in zip(group, (2, 3, 1), strict=True))
    out = np.zeros(grid[::-1], np.uint32)
    kernels[where](out, np.array([*grid, 0], np.uint32), threads=grid, group_size=group)
    assert np.array_equal(out, expected(where, grid, group))


@pytest.mark.parametrize(
    ("group", "variant"),
    [((256, 1, 1), "single_row-32"), ((16, 16, 1), "single_column-16"), ((32, 4, 1), "single_column-32"),
     ((16, 4, 4), "full-16"), ((64, 4, 1), "full-32"), ((4, 4, 1), "multi_row-8"),
     ((100, 1, 1), "tail-16"), ((48, 1, 1), "single_row-16")],
)  # fmt: skip
@pytest.mark.sample(2)
def test_variants_by_the_shape_of_threadgroups(group, variant):
    grid, variant = tuple(2 * size for size in group), parse_variant(variant)
    assert variant_for(grid, group, (32, 16, 8), waits=True, by_shape=True) == variant
    if variant.kind in (Kind.SINGLE_ROW, Kind.SINGLE_COLUMN):
        plain = variant_for(grid, group, (32, 16, 8), waits=True, by_shape=False)
        assert plain == Variant(Kind.FULL, variant.width)
