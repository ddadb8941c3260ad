"""Threadgroups of (1, N) and (1, 1, N), as torch's Inductor launches: lanes lie along y or z."""

import numpy as np
import pytest
from test_engines_agree import check

import metalloid as mtl
from metalloid.backends.cpu.compile import variants
from metalloid.backends.cpu.compile.thread_axes import contiguous_axis
from metalloid.compiler.ir.parser import parse_function

pytestmark = pytest.mark.needs("the CPU")

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void places(device uint* out, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                   uint3 t [[thread_position_in_threadgroup]], uint3 g [[threadgroup_position_in_grid]],
                   uint i [[thread_index_in_threadgroup]]) {
    device uint* own = out + 8 * (p.x + n.x * (p.y + n.y * p.z));
    own[0] = t.x + 100 * t.y + 10000 * t.z;
    own[1] = g.x + 100 * g.y + 10000 * g.z;
    own[2] = i;
    own[3] = p.x + 100 * p.y + 10000 * p.z;
}
kernel void met(device uint* out, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                uint3 t [[thread_position_in_threadgroup]], uint3 size [[threads_per_threadgroup]],
                uint i [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint all[1024];
    uint threads = size.x * size.y * size.z;
    all[i] = p.x + 100 * p.y + 10000 * p.z;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device uint* own = out + 8 * (p.x + n.x * (p.y + n.y * p.z));
    own[0] = all[(i + 1) % threads];
    own[1] = t.x + 100 * t.y + 10000 * t.z;
    own[2] = simd_sum(i);
    own[3] = lane;
}
kernel void scale_y(device float* y, device const float* x, uint2 p [[thread_position_in_grid]]) {
    y[p.y + 300 * p.x] = 2 * x[p.y + 300 * p.x];
}
kernel void checked_y(device const float* x, uint2 p [[thread_position_in_grid]]) {
    assert(x[p.y + 300 * p.x] < 9);
}
"""
LAUNCHES = [
    ((3, 70, 1), (1, 70, 1)),
    ((3, 70, 1), (1, 32, 1)),
    ((2, 40, 6), (1, 20, 4)),
    ((3, 4, 33), (1, 1, 33)),
    ((2, 1, 256), (1, 1, 64)),
]


@pytest.fixture(scope="module")
def lib():
    return mtl.library(SOURCE)


@pytest.fixture
def every_launch_has_its_variant(monkeypatch):
    monkeypatch.setattr(variants, "_MAX_THREADS_WITHOUT_MASKS", 0)


@pytest.mark.parametrize(("grid", "group"), LAUNCHES, ids=str)
def test_threads_know_where_they_are(lib, grid, group, every_launch_has_its_variant):
    z, y, x = np.meshgrid(*(np.arange(n) for n in grid[::-1]), indexing="ij")
    position = np.stack([x, y, z], axis=-1)
    own, of = position % group, position // group
    size = np.minimum(group, grid - of * group)
    index = own[..., 0] + size[..., 0] * (own[..., 1] + size[..., 1] * own[..., 2])
    weights = np.array([1, 100, 10000])
    out = np.zeros((*grid[::-1], 8), np.uint32)
    lib.places(out, threads=grid, group_size=group)
    np.testing.assert_array_equal(out[..., 0], own @ weights)
    np.testing.assert_array_equal(out[..., 1], of @ weights)
    np.testing.assert_array_equal(out[..., 2], index)
    np.testing.assert_array_equal(out[..., 3], position @ weights)


@pytest.mark.parametrize(("grid", "group"), LAUNCHES, ids=str)
def test_threads_that_meet_agree_with_the_reference_engine(lib, grid, group):
    got, expected = (np.zeros((*grid[::-1], 8), np.uint32) for _ in range(2))
    lib.met(got, threads=grid, group_size=group)
    with mtl.config.scope(cpu_engine="reference"):
        mtl.library(SOURCE).met(expected, threads=grid, group_size=group)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "waits", [pytest.param(False, marks=pytest.mark.slow), True], ids=["independent", "waiting"]
)
def test_random_kernels_agree(waits, every_launch_has_its_variant):
    launches = [((3, 70), (1, 70)), ((2, 96), (1, 32)), ((3, 50), (1, 17))]
    check(31, 2, waits, launches=launches)


def test_lanes_lie_along_the_axis_that_has_threads(lib):
    out = np.zeros((2 * 256, 8), np.uint32)
    for kernel in lib.places, lib.met:
        for grid, axis in (((2, 256), "y"), ((2, 1, 256), "z")):
            kernel(np.zeros((20 * 256, 8), np.uint32) if kernel is lib.places else out,
                   threads=(20, *grid[1:]) if kernel is lib.places else grid,
                   group_size=(1, *grid[1:]))  # fmt: skip
            assert any(v.axis == axis for v, _ in kernel._program._variants), axis


def test_threadgroups_are_joined_along_the_axis_that_memory_has(lib):
    x = np.arange(300 * 40, dtype=np.float32)
    y = np.zeros_like(x)
    lib.scale_y(y, x, threads=(40, 300), group_size=(1, 50))
    np.testing.assert_array_equal(y, 2 * x)
    assert lib.scale_y._program._fusion((40, 300, 1), (1, 50, 1)) == (1, 5, 1)
    assert any(variant.axis == "y" for variant, _ in lib.scale_y._program._variants)


def test_a_failed_assertion_names_the_thread_and_its_own_threadgroup(lib):
    x = np.zeros(300 * 40, np.float32)
    x[300 * 7 + 123] = 9
    with pytest.raises(mtl.KernelFault, match="assertion failed") as fault:
        lib.checked_y(x, threads=(40, 300), group_size=(1, 50))
    assert fault.value.threadgroup == (7, 2, 0)
    assert fault.value.thread == (0, 23, 0)


@pytest.mark.parametrize(
    ("index", "axis"),
    [
        ("  %i = add i32 %grid_x, 5", "x"),
        ("  %a = shl i32 %grid_x, 10\n  %i = add i32 %a, %y", "y"),
        ("  %a = mul i32 %grid_x, %n\n  %b = add i32 %a, %grid_y\n  %i = add i32 %b, %z", "y"),
        ("  %a = mul i32 %grid_y, 8\n  %i = or i32 %a, %z", "z"),
        ("  %i = mul i32 %grid_y, 2", "x"),  # neighbours along no axis
    ],
)
def test_the_axis_along_which_memory_is_contiguous(index, axis):
    text = f"""define void @f(ptr %p, i32 %n, i32 %x, i32 %y, i32 %z, i32 %grid_x, i32 %grid_y, i32 %grid_z) {{
entry:
{index}
  %w = zext i32 %i to i64
  %at = getelementptr float, ptr %p, i64 %w
  %v = load float, ptr %at, align 4
  store float %v, ptr %at, align 4
  ret void
}}
"""
    assert contiguous_axis(parse_function(text, "f")) == axis
