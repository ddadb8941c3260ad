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


def largest(values):
    """The first of the values with the largest real part."""
    return max(values, key=np.real)


def smallest(values):
    return -largest([-v for v in values])


def until(p, bound):
    """The numbers up to the first one above a bound."""
    end = next((k for k, v in enumerate(p) if v.real > np.float32(bound)), len(p) - 1)
    return p[: end + 1]


N = 6
#: Bodies with a row `p` of n numbers and a result `r`, and the same in Python.
BODIES = {
    "float m = p[0]; for (int k = 1; k < n; k++) m = max(m, p[k]); r = m * p[1];":
        lambda p: largest(p) * p[1],
    "float m = -9; for (int k = 0; k < n; k++) { if (p[k] < 0.5f) continue; m = max(m, p[k]); } r = m * m;":
        lambda p: largest([-9, *(v for v in p if v.real >= 0.5)]) ** 2,
    "float m = -9; for (int k = 0; k < n; k++) { m = max(m, p[k]); if (p[k] > 0.8f) break; } r = 3 * m;":
        lambda p: 3 * largest(until(p, 0.8)),
    "float m = 9; for (int k = 0; k < n; k++) m = min(p[k], m); float q = m; for (int k = 0; k < n; k++) m = max(m, p[n - 1 - k]); r = q * m + q;":
        lambda p: smallest(p) * largest(p) + smallest(p),
    "float m = -9, s = 0; for (int k = 0; k < n; k++) { m = max(m, p[k]); s += p[k] * p[k]; } r = m * s;":
        lambda p: largest(p) * (p * p).sum(),
    "float m = -9, s = 0; for (int k = 0; k < n; k++) { m = max(m, p[k]); s += m * p[k]; } r = s;":
        lambda p: sum(largest(p[: k + 1]) * p[k] for k in range(N)),
    "float s = 0; for (int j = 0; j < 3; j++) { float m = p[j]; for (int k = 0; k < n; k++) m = max(m, p[k]); s += m * p[j]; } r = s;":
        lambda p: largest(p) * p[:3].sum(),
    "float m = p[0] * 2; int c = 0; while (c < n) { m = fmax(m, p[c]); c++; } r = exp(m);":
        lambda p: np.exp(largest([2 * p[0], *p])),
    "float m = -9; for (int k = 0; k < n; k++) m = max(m, p[k] * p[0]); r = m;":
        lambda p: largest(p * p[0]),
    "float a[6]; for (int k = 0; k < n; k++) a[k] = p[k] * p[k]; float m = -9; for (int k = 0; k < n; k++) m = max(m, a[k]); a[2] = 1; r = m + a[2];":
        lambda p: largest(p * p) + 1,
    "float m = -9; for (int j = 0; j < 2; j++) for (int k = 0; k < 3; k++) m = max(m, p[3 * j + k]); for (int k = 0; k < n; k++) r += exp(p[k] - m); r = log(r) + m;":
        lambda p: np.log(np.exp(p - largest(p)).sum()) + largest(p),
    "float m = -9, q = 0; for (int j = 0; j < 2; j++) { for (int k = 0; k < 3; k++) m = max(m, p[3 * j + k]); q = q * 0.5f + m; } r = q;":
        lambda p: 0.5 * largest(p[:3]) + largest(p),
}  # fmt: skip


@pytest.mark.slow
def test_bodies():
    """Adjoints and tangents agree with complex steps."""
    lines = [f"{{ float r = 0; {body} *result++ = r; }}" for body in BODIES]
    source = f"""{HEADER}
kernel void k(device const float *x, device float *y, constant int &n,
              uint i [[thread_position_in_grid]]) {{
  device const float *p = x + i * n;
  device float *result = y + i * {len(BODIES)};
  {" ".join(lines)}
}}"""
    random = np.random.default_rng(0)
    x, step = random.uniform(0, 1, (8, N)), random.normal(size=(8, N))
    x, step = x.astype(np.float32), step.astype(np.float32)
    kernel = mtl.library(source, device="cpu").k
    y, dot_y = np.zeros((8, len(BODIES)), np.float32), np.zeros((8, len(BODIES)), np.float32)
    kernel.jvp()(x, y, N, step, dot_y, threads=8)
    for number, function in enumerate(BODIES.values()):
        weights, d_x = np.zeros_like(y), np.zeros_like(x)
        weights[:, number] = 1
        kernel.vjp()(x, y, N, weights, d_x, threads=8)
        moved = x[:, None] + 1e-30j * np.eye(N)
        exact = np.array([[function(p).imag * 1e30 for p in row] for row in moved])
        values = [function(p.astype(complex)).real for p in x]
        np.testing.assert_allclose(d_x, exact, 1e-5, 1e-5)
        np.testing.assert_allclose(y[:, number], values, 1e-5)
        np.testing.assert_allclose(dot_y[:, number], (exact * step).sum(1), 1e-5, 1e-5)
