"""Running maxima and minima of loops need no tape; equal values share the adjoint."""

import numpy as np
import pytest
from differences import HEADER

import metalloid as mtl

SOURCE = f"""{HEADER}
kernel void k(device const float *x, device const float *z, device float *y, constant int &n,
              uint i [[thread_position_in_grid]]) {{
  float high = z[i], low = INFINITY;
  for (int j = 0; j < n; j += 2)
    for (int k = j; k < j + 2; k++) high = max(high, x[i * n + k]);
  for (int j = 0; j < n; j++)
    if (j % 2 == 0) low = fmin(float(x[i * n + j]), low);
  y[i] = high * high + 3 * low;
}}
kernel void outside(device const float *x, device float *y, constant int &n,
                    uint i [[thread_position_in_grid]]) {{
  float value = x[i / 2];
  y[i] = i < 2 * uint(n) ? value * value : 0.0f;
}}"""


def test_equal_values_share():
    x = np.array([[1, 5, 3, 5], [4, 2, 9, 2], [1, 2, 1, 0], [np.nan, 1, 2, 6]], np.float32)
    z = np.array([0, 9, 3, 7], np.float32)
    adjoint = mtl.library(SOURCE, device="cpu").k.vjp()
    assert not adjoint.has_tape
    d_x, d_z = np.zeros_like(x), np.zeros_like(z)
    weights = np.array([1, 10, 100, 1000], np.float32)
    adjoint(x, z, np.zeros_like(z), 4, weights, d_x, d_z, threads=4)
    by_high = 2 * np.array([5, 9, 3, 7]) * weights
    shares = [[0, 0.5, 0, 0.5], [0, 0, 0.5, 0], [0] * 4, [0] * 4]
    lows = [[1, 0, 0, 0], [1, 0, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 1, 0]]
    expected = np.array(shares) * by_high[:, None] + 3 * np.array(lows) * weights[:, None]
    assert np.array_equal(d_x, expected)
    assert np.array_equal(d_z, by_high * [0, 0.5, 1, 1])


@pytest.mark.slow
def test_reads_outside_of_memory_write_nothing():
    """Adding 0 would turn -0 into 0."""
    adjoint = mtl.library(SOURCE, device="cpu").outside.vjp()
    x = np.arange(1, 7, dtype=np.float32)
    shadow = np.full(6, -0.0, np.float32)
    for size in (6, 3):  # all that is read is there, and then not
        d_x = shadow[:size]
        adjoint(x[:size], np.zeros(12, np.float32), size, np.ones(12, np.float32), d_x, threads=12)
        assert np.array_equal(d_x, 4 * x[:size])
        assert size == 6 or np.signbit(shadow[3:]).all()
        shadow[:] = -0.0
