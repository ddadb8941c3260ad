"""The tape of an adjoint: its budget, and checkpoints."""

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
  device const float *p = x;
  float r = 1;
  for (uint j = 0; j < 40 + i; j++) {
    for (int n = 0; n < 3; n++) r = 0.5f * sin(r * p[n]) + 1;
    p += i;
  }
  y[i] = r;
}"""
THREADS = 4


def gradient(adjoint, x):
    d_x, ones = np.zeros_like(x), np.ones(THREADS, np.float32)
    adjoint(x, np.zeros_like(ones), ones, d_x, threads=THREADS)
    return d_x


def test_checkpoints_within_the_budget():
    adjoint = mtl.library(SOURCE, device="cpu").k.vjp()
    x = np.random.default_rng(0).uniform(0.5, 1.5, 140).astype(np.float32)
    exact = gradient(adjoint, x)
    assert np.count_nonzero(np.abs(exact) > 1e-30) > 60  # below, devices round to 0
    used = 46 * THREADS * 4  # a word for each iteration, and those of the inner loop
    for budget in (used, used // 2, 18 * THREADS * 4):
        with mtl.config.scope(tape_bytes=budget):
            np.testing.assert_allclose(gradient(adjoint, x), exact, 1e-6, 1e-7)
    with (
        mtl.config.scope(tape_bytes=100),
        pytest.raises(mtl.OutOfMemory, match=r"the tape needs \d+ bytes, more than .*\(100\)"),
    ):
        gradient(adjoint, x)


def test_the_kernel_that_counts():
    adjoint = mtl.library(SOURCE, device="cpu").k.vjp()
    x = np.ones(140, np.float32)
    arguments = x, np.zeros(THREADS, np.float32)
    counts = [adjoint._words(arguments, stride, THREADS, None) for stride in (1, 2, 8, 64)]
    # of 43 iterations: 43; 22 checkpoints; 6 and 8; 1 and 43; and 3 of the inner loop, at most
    assert [43 <= counts[0] <= 46, 22 <= counts[1] <= 26, 13 <= counts[2] <= 17] == [True] * 3
    assert counts[3] <= 47


def test_the_tape_is_counted_once_for_the_same_numbers(monkeypatch):
    """Counts depend on numbers of a launch; those that read memory of a device are repeated."""
    body = """
      int i = at.x + at.y;
      float a = x[i];
      for (int k = 0; k < n + int(at.y); k++) a = sin(a) * a;
      y[i] = a;"""
    head = "kernel void k(device const float *x, device float *y, constant int &n"
    ids = "uint2 at [[thread_position_in_grid]]"
    lib = mtl.library(
        f"#include <metal_stdlib>\nusing namespace metal;\n{head}, {ids}) {{{body}}}"
        f"{head.replace(' k(', ' by_memory(')}, device const int *counts, {ids}) "
        f"{{{body.replace('k < n', 'k < counts[i]')}}}",
        device="cpu",
    )
    x = np.linspace(0.5, 1, 4, dtype=np.float32)
    for name, given, expected in (("k", [3, 3, 5, 3], 2), ("by_memory", [3, 3, 5], 3)):
        adjoint, launches = lib[name].vjp(), []
        count = adjoint._count_words
        monkeypatch.setattr(
            adjoint, "_count_words", lambda *args, c=count, m=launches: m.append(1) or c(*args)
        )
        for n in given:
            more = [mtl.Buffer(np.full(4, n, np.int32), "cpu")] if name == "by_memory" else []
            y, d_x = np.zeros_like(x), np.zeros_like(x)
            adjoint(x, y, n, *more, np.ones_like(x), d_x, threads=4)
            value, slope = x.astype(np.float64), np.ones(4)
            for _ in range(n):
                slope *= np.cos(value) * value + np.sin(value)
                value = np.sin(value) * value
            np.testing.assert_allclose(d_x, slope, rtol=1e-5)
        assert len(launches) == expected
