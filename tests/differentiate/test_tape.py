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
