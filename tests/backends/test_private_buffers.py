"""Large launches that only add floats to buffers give each worker a copy of them."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void scatter(device const float *x, device const int *to, constant int &n,
                    device atomic_float *contiguous, device atomic_float *one,
                    device atomic_float *strided, device atomic_float *any,
                    uint i [[thread_position_in_grid]]) {
  float v = x[i];
  for (int k = 0; k < n; k++) {
    atomic_fetch_add_explicit(&contiguous[i % 4096], v, memory_order_relaxed);
    if (v > 0.25f) atomic_fetch_add_explicit(&one[k], v, memory_order_relaxed);
  }
  if (i % 3 != 0) atomic_fetch_add_explicit(&strided[3 * i + 1], v, memory_order_relaxed);
  atomic_fetch_add_explicit(&any[to[i]], v, memory_order_relaxed);
  if (v > 0.5f) atomic_fetch_add_explicit(&any[to[i] / 2], v, memory_order_relaxed);
}

kernel void reads(device const float *x, device atomic_float *y,
                  uint i [[thread_position_in_grid]]) {
  float before = atomic_fetch_add_explicit(&y[0], x[i], memory_order_relaxed);
  if (before < 0) atomic_fetch_add_explicit(&y[1], 1.0f, memory_order_relaxed);
}

kernel void stores(device const float *x, device atomic_float *y,
                   uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&y[0], x[i], memory_order_relaxed);
  if (i == 0) atomic_store_explicit(&y[1], 5.0f, memory_order_relaxed);
}
"""

GROUPS = """
#include <metal_stdlib>
using namespace metal;
#define ADD(to, v) atomic_fetch_add_explicit(&(to), v, memory_order_relaxed)
kernel void groups(device const float *x, constant int &limit, constant int &times,
                   device atomic_float *members, device atomic_float *threes,
                   device atomic_float *rows, device atomic_float *totals,
                   uint i [[thread_position_in_grid]]) {
  float v = x[i], w = v + 1;
  if (int(i % 64) >= limit) return;
  for (int t = 0; t < times; t++) {  // in a loop, copies may be larger
    for (ulong k = 0; k < 4; k++) ADD(members[4ul * i + k], v + k);
    for (ulong k = 0; k < 4; k++) ADD(members[4ul * i + k], w);
    for (ulong k = 0; k < 3; k++) ADD(threes[3ul * i + k], v * k);
    ADD(threes[3ul * i + 1], w);
    ADD(rows[i], v); ADD(rows[i], w); ADD(rows[i + 1ul], v);
    for (int k = 0; k < TOTALS; k++) ADD(totals[(7 * k) % 10], v + k);
  }
}
"""


@pytest.mark.parametrize("limit", [64, 41])
@pytest.mark.parametrize("totals", [2, pytest.param(5, marks=pytest.mark.slow), 9])
def test_additions_of_a_block_are_grouped(totals, limit):
    text, threads = GROUPS.replace("TOTALS", str(totals)), 2**13 - 3
    x = np.random.default_rng(0).integers(0, 8, threads).astype(np.float32)
    index = np.arange(threads)
    active = index % 64 < limit
    v = np.where(active, x, 0)
    w = np.where(active, x + 1, 0)
    members, threes = np.ones((threads, 4), np.float32), np.ones((threads, 3), np.float32)
    rows, sums = np.ones(threads + 1, np.float32), np.ones(10, np.float32)
    with mtl.config.scope(cpu_engine="simd"):
        kernel = mtl.library(text, device="cpu").groups
        kernel(x, limit, 1, members, threes, rows, sums, threads=threads)
    assert True in variants(kernel)
    numbers = np.arange(4)
    each = active[:, None] * numbers
    assert np.array_equal(members, 1 + v[:, None] + each + w[:, None])
    expected = 1 + v[:, None] * numbers[:3]
    expected[:, 1] += w
    assert np.array_equal(threes, expected)
    expected = np.r_[1 + v + w, 1]
    expected[1:] += v
    assert np.array_equal(rows, expected)
    expected = np.ones(10)
    for k in range(totals):
        expected[7 * k % 10] += (v + k * active).sum()
    assert np.array_equal(sums, expected)


@pytest.fixture(scope="module")
def library():
    with mtl.config.scope(cpu_engine="simd"):  # the reference engine adds by atomic operations
        library = mtl.library(SOURCE, device="cpu")
        for name in library.functions:
            getattr(library, name)
        yield library


def variants(kernel):
    return {variant.is_private for variant, _ in kernel._program._variants if variant}


@pytest.mark.parametrize("threads", [100, 2**14, 2**14 - 5])
@pytest.mark.parametrize("kind", ["any", "same", "adjacent", "often the same", "ends agree"])
def test_sums_are_exact(library, threads, kind):
    random, n = np.random.default_rng(0), 3
    x = random.integers(0, 8, threads).astype(np.float32) / 8
    to = random.integers(0, 999, threads).astype(np.int32)
    if kind != "any":  # what the code finds out when it runs
        numbers = np.arange(threads, dtype=np.int32)
        to = {"same": numbers // 64 % 999, "adjacent": (numbers + 5) % 992,
              "often the same": numbers // 7 % 999,
              "ends agree": np.where(numbers % 8 % 7 == 0, numbers // 8 % 999, to)}[kind]  # fmt: skip
        x = np.maximum(x, 0.625 * (numbers % 512 < 256)).astype(np.float32)
    contiguous, one = np.ones(4096, np.float32), np.ones(n, np.float32)
    # At an address that is no multiple of 8.
    strided, any_ = np.ones(3 * threads + 1, np.float32)[1:], np.ones(1000, np.float32)
    library.scatter(x, to, n, contiguous, one, strided, any_, threads=threads)
    index = np.arange(threads)
    assert np.array_equal(contiguous, 1 + n * np.bincount(index % 4096, x, 4096))
    assert np.array_equal(one, np.full(n, 1 + x[x > 0.25].sum()))
    expected = np.ones(3 * threads, np.float32)
    expected[3 * index + 1] += np.where(index % 3, x, 0)
    assert np.array_equal(strided, expected)
    halves = np.bincount(to[x > 0.5] // 2, x[x > 0.5], 1000)
    assert np.array_equal(any_, 1 + np.bincount(to, x, 1000) + halves)
    if threads >= 2**14 - 5:
        assert True in variants(library.scatter)


@pytest.mark.parametrize("name", ["reads", "stores"])
def test_other_uses_of_a_buffer_exclude_it(library, name):
    kernel, y = library[name], np.zeros(2, np.float32)
    kernel(np.ones(2**14, np.float32), y, threads=2**14)
    assert y.tolist() == [2**14, 5 if name == "stores" else 0]
    assert True not in variants(kernel)


def test_faults_in_private_launches_are_told(library):
    threads = 2**14
    to = np.zeros(threads, np.int32)
    to[777] = 10**6
    ones, y = np.ones(threads, np.float32), np.zeros(1000, np.float32)
    with pytest.raises(mtl.KernelFault, match="any"):
        library.scatter(ones, to, 1, np.zeros(4096, np.float32), y, np.zeros(3 * threads, np.float32),
                        y.copy(), threads=threads)  # fmt: skip


def test_launches_in_a_row_and_of_the_sanitizer(library):
    threads = 2**13
    x, y = mtl.Buffer(np.ones(threads, np.float32)), mtl.Buffer(np.zeros(2, np.float32))
    text = SOURCE.replace(
        "if (i == 0) atomic_store_explicit(&y[1], 5.0f, memory_order_relaxed);", ""
    )
    kernel = mtl.library(text, device="cpu").stores
    for _ in range(4):
        kernel(x, y, threads=threads)
    assert np.asarray(y).tolist() == [4 * threads, 0]
    assert True in variants(kernel)
    kernel(x, y, threads=threads, check=True)
    assert np.asarray(y).tolist() == [5 * threads, 0]


def test_small_launches_are_fast_launches(library):
    """Jobs of grids that never use copies have no words of them, and native launches reuse these."""
    kernel = library.reads
    x, y = np.ones(100, np.float32), np.zeros(2, np.float32)
    for count in range(1, 4):
        kernel(x, y, threads=100)
        assert y.tolist() == [100 * count, 0]
    kernel = library.scatter
    jobs = kernel._program.jobs
    given = x, np.zeros(100, np.int32), 1, *(np.zeros(4096, np.float32) for _ in range(4))
    for count in range(1, 4):
        kernel(*given, threads=100)
        assert given[-1][0] == 200 * count
    assert {grid[0] for grid, _ in jobs if grid[0] < 4096} >= {100}
