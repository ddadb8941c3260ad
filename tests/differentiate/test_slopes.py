"""Branches whose derivative the forward sweep computes."""

import numpy as np
import pytest
from differences import HEADER, compare, elementwise

import metalloid as mtl

#: Bodies from `a`, `b` and `x` to `r`, and the number of slopes in their adjoints.
BODIES = {
    "float s; if (a > 0.5f) s = sin(a) * exp(a); else s = a * a + 3; r = s * s * b;": 1,
    "float s = a > 0.5f ? tanh(a) * a : sqrt(a) + sin(a) * 2; r = s * b + a;": 1,
    # The adjoints of what the branch reads, and of its result in the iteration before, are not 0.
    "float s = b; for (int k = 0; k < 4; k++) { float t; if (k % 2) t = sin(a + k); else t = a * a;"
    " s = s * t + a; } r = s;": 1,
    "float s = b, t = 1; for (int k = 0; k < 4; k++) { s *= 1 + t; if (s > 2) t = cos(s); "
    "else t = s * s / 8; } r = s + t;": 0,
    "float s = b; for (int k = 0; k < 3; k++) { float u = s + a, t; if (u > 1) t = exp(-u);"
    " else t = log(u); s = t * t + u; } r = s;": 1,
    "float s; if (a > 0.3f) { float t = sin(a), u = t * t; s = exp(u) + t; } else { s = 1 / a; } r = s;": 1,
    "float s; if (b > 0.5f) { if (a > 0.5f) s = sin(a); else s = cos(a); r = s; } else r = a * b;": 1,
    "float s, t; if (a > 0.5f) { s = a * a; t = a; } else { s = sin(a); t = 2 * a; } r = s * t;": 0,
    "float s; if (a > 0.5f) s = a * b; else s = sin(a); r = s;": 0,
    "float s = a; if (a > 0.5f) s = sin(a); r = s;": 0,
    "float s; if (a > 0.5f) s = x[i] * a; else s = sin(a); r = s;": 0,
    "float s; if (a > 0.5f) { s = 0; for (int k = 0; k < 3; k++) s += sin(a * k); } else s = a; r = s;": 0,
    "float2 v = float2(a, b), s; if (a > 0.5f) s = v * v; else s = v + 1; r = s.x * s.y;": 0,
    "float s; if (a > 0.5f) s = 2; else s = 3; r = s * b;": 0,
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_bodies(body):
    random = np.random.default_rng(3)
    x, z = random.uniform(0.2, 0.8, (2, 32)).astype(np.float32)
    arguments = {"x": x, "z": z, "y": np.zeros_like(x)}
    compare(elementwise(body), "k", arguments, ["x", "z"], ["y"], bound=4e-6, threads=32)
    assert slopes_in(body) == BODIES[body]


def slopes_in(body):
    text = mtl.library(HEADER + elementwise(body), device="cpu").k.vjp().source
    return sum(line.startswith("  float slope_") for line in text.splitlines())


def test_values_of_other_threads_have_no_slope():
    assert slopes_in("float s; if (i % 2) s = simd_sum(a) * a; else s = sin(a); r = s;") == 0


def test_branches_of_short_floats():
    source = f"""{HEADER}
    kernel void k(device const half *x, device half *y, uint i [[thread_position_in_grid]]) {{
      half a = x[i], s;
      if (a > 0.5h) s = a * a * a; else s = 2 * a;
      y[i] = s * s;
    }}"""
    kernel = mtl.library(source, device="cpu").k
    x = np.array([0.25, 0.75, 1, 0.5], np.float16)
    d_x = np.zeros(4, np.float32)
    kernel.vjp()(x, np.zeros_like(x), np.ones(4, np.float32), d_x, threads=4)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(d_x, np.where(wide > 0.5, 6 * wide**5, 8 * wide), rtol=4e-3)
