"""Threadgroups that a kernel cannot distinguish are fused; the others are not."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.backends.cpu.compile.thread_axes import reads_in_loops
from metalloid.backends.cpu.runtime.threadgroup_fusion import default_group_size, fused
from metalloid.compiler.ir.parser import parse_function

pytestmark = pytest.mark.needs("the CPU")

TEXT = """using namespace metal;
kernel void places(device uint* out, constant uint& width, uint2 g [[thread_position_in_grid]],
                   uint2 size [[threads_per_grid]]) {
    atomic_fetch_add_explicit((device atomic_uint*)&out[g.y * width + g.x], g.x * 1000 + g.y + size.x,
                              memory_order_relaxed);
}
kernel void groups(device uint* out, uint g [[thread_position_in_grid]],
                   uint group [[threadgroup_position_in_grid]]) { out[g] = group; }
kernel void quotients(device int* y, device const int* a, device const int* b, constant uint& n,
                      uint2 g [[thread_position_in_grid]]) {
    int sum = 0;
    for (uint k = 0; k < n; k++) sum += a[g.y * n + k] / b[k * n + g.x];
    y[g.y * n + g.x] = sum;
}
kernel void divide(device int* p, uint g [[thread_position_in_grid]]) { p[g] = 100 / p[g]; }
"""

WAITING = """using namespace metal;
kernel void ends(device uint* x, uint t [[thread_position_in_threadgroup]],
                 uint n [[threads_per_threadgroup]]) {
    uint next = x[(t + 1) % n];
    threadgroup_barrier(mem_flags::mem_device);
    x[t] = next;
}
"""

extents = st.integers(1, 300)


@given(st.tuples(extents, extents, extents), st.tuples(*[st.integers(1, 10)] * 3))
def test_joined_groups_are_adjacent_in_x_and_few_enough(grid, group):
    count, down = fused(grid, group, 1)
    assert down == 1
    assert count >= 1
    assert count == 1 or (count - 1) * group[0] < grid[0]
    assert count == 1 or count * int(np.prod(group)) <= 4096


@given(
    st.tuples(extents, extents, extents),
    st.tuples(st.integers(1, 300), st.integers(1, 40), st.integers(1, 10)),
    st.sampled_from([2, 4, 8]),
)
def test_joined_groups_have_as_many_rows_as_are_done_at_a_time(grid, group, rows):
    across, down = fused(grid, group, rows)
    assert (down - 1) * group[1] < grid[1]
    assert down * group[1] % rows == 0 or down * group[1] >= grid[1]
    fewest = rows // np.gcd(rows, group[1])
    assert down <= fewest or across * down * int(np.prod(group)) <= 4096


@given(
    st.tuples(*[st.integers(0, 300)] * 3),
    st.integers(1, 10),
    st.booleans(),
    st.sampled_from([1, 8]),
)
def test_a_size_nobody_chose_fits_the_grid(grid, exponent, is_compact, rows):
    max_threads = 2**exponent
    size = default_group_size(grid, max_threads, is_compact, rows)
    assert all(1 <= n <= max(1, m) for n, m in zip(size, grid, strict=True))
    assert int(np.prod(size)) <= max_threads


@pytest.mark.parametrize(
    ("address", "reads"), [("%p", False), ("%once", False), ("%again", True)], ids=str
)
def test_what_goes_through_memory(address, reads):
    text = f"""define void @f(ptr %p, i64 %n, i1 %c) {{
entry:
  %once = getelementptr float, ptr %p, i64 %n
  %first = load float, ptr %once
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %j = add i64 %i, 1
  %again = getelementptr float, ptr %p, i64 %i
  %x = load float, ptr {address}
  br i1 %c, label %loop, label %out
out:
  ret void
}}
"""
    assert reads_in_loops(parse_function(text, "f")) == reads


@pytest.mark.parametrize("group", [(1, 1), (8, 8), (3, 5), (1, 256), (300, 1)], ids=str)
@pytest.mark.parametrize("extent", [(256, 20), (301, 33), (5, 2000)], ids=str)
@pytest.mark.sample(3)
def test_every_thread_runs_once_with_its_index(extent, group):
    lib = mtl.library(TEXT)
    out = np.zeros(extent[::-1], np.uint32)
    lib.places(out, extent[0], threads=extent, group_size=group)
    y, x = np.indices(out.shape)
    assert np.array_equal(out, x * 1000 + y + extent[0])


def test_a_kernel_that_reads_its_threadgroup_is_not_fused():
    out = np.zeros(100, np.uint32)
    mtl.library(TEXT).groups(out, threads=100, group_size=4)
    assert np.array_equal(out, np.arange(100) // 4)


def test_a_fault_in_joined_groups_says_so():
    x = np.ones(1000, np.int32)
    x[777] = 0
    with mtl.config.scope(cpu_engine="simd"):
        divide = mtl.library(TEXT)["divide"]
    with pytest.raises(mtl.KernelFault) as caught:
        divide(x, threads=1000, group_size=8)
    assert "in one of the threadgroups (96, 0, 0) to (124, 0, 0)" in str(caught.value)
    assert caught.value.threadgroup is None


def test_a_fault_in_coarsened_rows_says_where():
    n = 64
    a, b = np.ones((n, n), np.int32), np.ones((n, n), np.int32)
    b[5, 40] = 0  # which all threads of a column read
    with mtl.config.scope(cpu_engine="simd"):
        quotients = mtl.library(TEXT)["quotients"]
    assert quotients.engine.endswith(" rows")
    with pytest.raises(mtl.KernelFault) as caught:
        quotients(np.zeros((n, n), np.int32), a, b, n, threads=(n, n), group_size=(32, 1))
    groups = re.search(
        r"one of the threadgroups \((\d), (\d+), 0\) to \((\d), (\d+), 0\)", str(caught.value)
    )
    first, top, last, bottom = map(int, groups.groups())
    assert first <= 40 // 32 <= last
    assert 0 <= top < bottom < n


def test_all_variants_come_from_the_engine_of_the_first():
    """The setting counts when a kernel is compiled, not when it is launched."""
    x = np.arange(64, dtype=np.uint32)
    with mtl.config.scope(cpu_engine="simd"):
        ends = mtl.library(WAITING)["ends"]
    with mtl.config.scope(cpu_engine="reference"):
        ends(x, threads=50, group_size=50)  # the second simdgroup is a tail
    assert ends.engine.startswith("simd")
    assert np.array_equal(x[:50], np.roll(np.arange(50), -1))
