"""Adjoints that are stored into memory that holds anything, instead of added to zeros."""

import random

import numpy as np
import pytest
from differences import HEADER

import metalloid as mtl

#: Bodies, sizes of launches, numbers of elements, and whether each element is stored once.
CASES = [
    ("y[i] = x[i] * x[i];", 64, 32, 64, True),
    ("y[i] = x[i] * x[i];", 64, 32, 65, False),
    ("y[i] = x[i] * x[i];", 64, 32, 63, False),
    ("y[i] = x[i] * x[i];", (64, 2), (32, 1), 64, False),
    ("y[i] = x[i] * x[i];", (64, 1), (32, 2), 64, True),
    ("y[i] = x[g * 32 + t] * x[g * 32 + t];", 64, 32, 64, True),
    ("y[i] = x[g * 32 + t] * x[g * 32 + t];", 72, 32, 72, False),
    ("y[i] = x[g * s + t] * x[g * s + t];", 96, 48, 96, True),
    ("y[i] = x[(i / 8) * 8 + i % 8];", 64, 32, 64, True),
    ("y[i] = x[i % 8];", 64, 32, 8, False),
    ("y[i] = x[i + 1];", 64, 32, 64, False),
    ("y[i] = x[2 * i];", 64, 32, 128, False),
    ("y[i] = x[2 * i] * x[2 * i + 1];", 64, 32, 128, True),
    ("y[i] = x[3 * i] * x[3 * i + 2];", 64, 32, 192, False),
    ("y[i] = floor(x[i]);", 64, 32, 64, False),
    ("y[i] = x[i] > 0 ? 2 * x[i] : x[i] * x[i];", 64, 32, 64, True),
    ("y[i] = n > 60 ? 0 : sin(x[i]);", 64, 32, 64, False),
    ("y[i] = n > 60 ? 0 : x[i] * x[i];", 64, 32, 64, True),
    ("if (i % 2) y[i] = x[i] * x[i];", 64, 32, 64, False),
    ("if (i >= uint(n)) return; y[i] = x[i] * x[i];", 64, 32, 50, True),
    ("if (i >= uint(n)) return; y[i] = x[i] * x[i];", 64, 32, 64, False),
    ("if (i < uint(n) && n > 3) y[i] = x[i] * x[i];", 64, 32, 50, False),
    ("if (!(i <= uint(n))) return; y[i] = x[i] * x[i];", 64, 32, 51, True),
    ("if (uint(n) > i) y[i] = sin(x[i]); else y[i] = 3;", 64, 32, 50, True),
    ("if (i < uint(n)) { if (i < 8) y[i] = sin(x[i]); }", 64, 32, 8, True),
    ("uchar k = i; y[i] = x[k] * x[k];", 512, 32, 512, False),
    ("uchar k = i; y[i] = x[k] * x[k];", 256, 32, 256, False),
    ("for (int k = 0; k < n; k++) y[i] += x[n * i + k] * x[n * i + k];", 3, 3, 150, True),
    ("for (int k = 0; k < n; k++) y[i] += x[n * i + k];", 3, 3, 151, False),
    ("for (int k = 0; k < n; k += 2) y[i] += x[n * i + k];", 3, 3, 150, False),
    ("for (int k = 1; k < n; k++) y[i] += x[n * i + k];", 3, 3, 150, False),
    ("for (int k = 0; k < n; k++) if (k != 4) y[i] += x[n * i + k];", 3, 3, 150, False),
    ("for (int k = 0; k < n; k++) { if (k > 4) break; y[i] += x[n * i + k]; }", 3, 3, 150, False),
    ("for (int k = 0; k < n && k < 9; k++) y[i] += x[n * i + k];", 3, 3, 150, False),
    ("for (int j = 0; j < 2; j++) y[i] += j * x[i] * x[i];", 64, 32, 64, True),
    ("for (int j = 0; j < 2; j++) y[i] += j * sin(x[i + j]);", 64, 32, 64, False),
    ("for (int j = 0; j < 2; j++) for (int k = 0; k < 5; k++) y[i] += x[i * 10 + j * 5 + k];",
     6, 3, 60, True),
    ("int k = 0; for (int j = 0; j < 2; j++) for (; k < 5; k++) y[i] += x[i * 10 + j * 5 + k];",
     6, 3, 60, False),
    ("for (int k = t; k < n; k += 32) y[i] += x[n * g + k] * x[n * g + k];", 64, 32, 100, True),
    ("for (int k = t; k < n; k += 32) y[i] += x[n * g + k] * x[n * g + k];", 70, 32, 150, False),
    ("for (int k = t; k < n; k += 32) y[i] += x[n * g + k] * x[n * g + k];", 32, 16, 100, False),
    ("for (uint k = t; k < uint(n); k += s) y[i] += x[n * g + k];", 60, 20, 150, True),
    ("for (uint k = i; k < uint(n); k += q) y[i] += x[k] * x[k];", 16, 8, 50, True),
    ("for (uint k = i; k < uint(n); k += q) y[i] += x[k] * x[k];", 80, 8, 50, True),
    ("if (n > 9) for (int k = 0; k < n; k++) y[i] += x[n * i + k];", 3, 3, 150, False),
]  # fmt: skip


def source_of(body):
    return f"""{HEADER}
kernel void k(device const float *x, device float *y, constant int &n,
              uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
              uint g [[threadgroup_position_in_grid]], uint s [[threads_per_threadgroup]],
              uint q [[threads_per_grid]])
{{ {body} }}"""


def compare(adjoint, count, launch, n):
    """Whether a launch stores the adjoint, which is the same as one that is added to zeros."""
    generator = np.random.default_rng(0)
    x, seed = generator.uniform(-1, 1, (2, 4096)).astype(np.float32)
    y, added = np.zeros_like(x), np.zeros(count, np.float32)
    args = [x, y, n, seed.copy()]
    stored = np.full(count, np.nan, np.float32)
    names = adjoint.storable([*args, stored], **launch)
    if names:
        adjoint.launch([*args, stored], **launch, stored=names).wait()
        adjoint.launch([*args[:3], seed, added], **launch).wait()
        np.testing.assert_array_equal(stored, added)
    return bool(names)


@pytest.mark.parametrize(("body", "threads", "group", "count", "expected"), CASES)
def test_each_element_is_stored_once(body, threads, group, count, expected):
    adjoint = mtl.library(source_of(body), device="cpu").k.vjp(wrt=["x"], outputs=["y"])
    launch = {"threads": threads, "group_size": group}
    assert compare(adjoint, count, launch, 50) is expected


def test_numbers_that_are_not_known_or_do_not_fit():
    body = "if (i >= uint(n)) return; y[i] = x[i] * x[i];"
    kernel = mtl.library(source_of(body), device="cpu").k
    adjoint = kernel.vjp()
    memory = np.zeros(64, np.float32)
    args, launch = [memory, memory, 64, memory, memory], {"threads": 64, "group_size": 32}
    assert adjoint.storable(args, **launch) == {"x"}
    args[2] = mtl.Buffer(np.array([64], np.int32), kernel.device)
    assert not adjoint.storable(args, **launch)
    args[2] = -1  # uint(n) is large, and all threads run
    assert not adjoint.storable(args, **launch)
    with pytest.raises(mtl.ArgumentError, match="does not store"):
        adjoint.launch(args, **launch, stored=frozenset("x"))


def test_numbers_in_vectors_and_arrays():
    """The launches differ by these numbers only."""
    source = f"""{HEADER}
    kernel void k(device const float *x, device float *y, constant int2 &n,
                  constant const int *shape, uint2 at [[thread_position_in_grid]]) {{
      if (int(at.x) >= n.x || int(at.y) >= n.y) return;
      uint i = at.y * shape[1] + at.x;
      y[i] = x[i] * x[i];
    }}"""
    kernel = mtl.library(source, device="cpu").k
    adjoint = kernel.vjp()
    x = np.random.default_rng(1).uniform(1, 2, 60).astype(np.float32)
    y, seed, launch = np.zeros_like(x), np.ones_like(x), {"threads": (16, 8), "group_size": (8, 1)}
    for n, stride, is_stored in (
        ((10, 6), 10, True), ((6, 10), 6, False), ((6, 8), 6, False), ((15, 4), 15, True),
        ((10, 6), 9, False), ((10, 5), 10, False), ((12, 5), 12, True), ([12, 5], 12, True),
    ):  # fmt: skip
        shape = np.array([0, stride, 0], np.int32)
        given = [x, y, n if isinstance(n, list) else np.array(n, np.int32), shape, seed]
        d_x = np.full(60, np.nan, np.float32)
        names = adjoint.storable([*given, d_x], **launch)
        assert names == ({"x"} if is_stored else set()), (n, stride)
        if is_stored:
            adjoint.launch([*given, d_x], **launch, stored=names).wait()
            np.testing.assert_allclose(d_x, 2 * x, rtol=1e-6)
        else:
            d_x[:] = 0
            adjoint.launch([*given, d_x], **launch).wait()
            counts = np.zeros(60)
            for j in range(min(n[1], 8)):
                for k in range(min(n[0], 16)):
                    counts[j * stride + k] += 1
            np.testing.assert_allclose(d_x, 2 * x * counts, rtol=1e-6)
    buffer = mtl.Buffer(np.array([10, 6], np.int32), kernel.device)
    assert not adjoint.storable([x, y, buffer, shape, seed, d_x], **launch)


def test_vectors_and_grids_of_two_axes():
    source = f"""{HEADER}
    kernel void k(device const float4 *x, device const float3 *w, device const packed_float3 *p,
                  device float *y, constant int &columns, constant int &rows,
                  uint2 at [[thread_position_in_grid]]) {{
      if (at.x >= uint(columns) || at.y >= uint(rows)) return;
      uint i = at.y * columns + at.x;
      y[i] = dot(x[i], x[i]) + w[i].x + p[i].y * p[i].z;
    }}"""
    adjoint = mtl.library(source, device="cpu").k.vjp()
    columns, rows = 10, 7
    n = columns * rows
    generator = np.random.default_rng(0)
    x, w, p = (generator.normal(size=(n, k)).astype(np.float32) for k in (4, 4, 3))
    y = seed = np.ones(n, np.float32)
    shadows = [np.full_like(each, np.nan) for each in (x, w, p)]
    args, launch = [x, w, p, y, columns, rows, seed, *shadows], {"threads": (16, 8)}
    # The fourth number of a float3 in memory has no store.
    assert adjoint.storable(args, **launch) == {"x", "p"}
    shadows[1][:] = 0
    adjoint.launch(args, **launch, stored=frozenset("xp")).wait()
    np.testing.assert_allclose(shadows[0], 2 * x, rtol=1e-6)
    assert shadows[1].tolist() == [[1, 0, 0, 0]] * n
    np.testing.assert_array_equal(shadows[2], p[:, [0, 2, 1]] * [0, 1, 1])


def random_case(seed):
    """A body with random digits, guards and loops, and a launch."""
    choose = random.Random(seed)
    n, inner = choose.choice((1, 3, 8, 32, 50)), choose.choice((1, 2, 4))
    group = choose.choice((4, 8, 16, 32, 64))
    threads = choose.choice((group, 2 * group, 3 * group, 2 * group + 3))
    row = choose.choice(("i", "g", "t", "i / 4", "i % 4"))
    step = choose.choice(("1", "s", "32", "2", "q"))
    first = choose.choice(("0", "t", "i", "1"))
    stride = choose.choice(("n", "n", f"n * {inner}", "1"))
    index = choose.choice((
        f"{row} * {stride} + k", "k", f"k * {threads} + i", f"({row} * n + k) * {inner} + j",
        f"k * {inner} + j", "i", "g * s + t",
    ))  # fmt: skip
    store = f"y[i] += x[{index}] * x[{index}];"
    if "j" in index or choose.random() < 0.1:
        store = f"for (int j = 0; j < {inner}; j++) {store}"
    if "k" in index or choose.random() < 0.1:
        store = f"for (uint k = {first}; k < uint(n); k += {step}) {store}"
    guard = choose.choice(("", "", "", "if (i < uint(n))", "if (g < 2)", "if (i >= 60) return;"))
    counts = {n, n * inner, threads, threads * n, threads * n * inner, threads * inner}
    counts |= {-(-threads // group) * n * inner, -(-threads // group) * n, group * n, 60}
    return f"{guard} {store}", {"threads": threads, "group_size": group}, n, sorted(counts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120))
def test_random_indices(seed):
    body, launch, n, counts = random_case(seed)
    adjoint = mtl.library(source_of(body), device="cpu").k.vjp(wrt=["x"], outputs=["y"])
    for count in counts:
        compare(adjoint, count, launch, n)


def test_random_indices_are_stored_often_enough():
    """The cases above compare something."""
    compared = 0
    for seed in range(20):
        body, launch, n, counts = random_case(seed)
        adjoint = mtl.library(source_of(body), device="cpu").k.vjp(wrt=["x"], outputs=["y"])
        compared += any(compare(adjoint, count, launch, n) for count in counts)
    assert compared >= 3
