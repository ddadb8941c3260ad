"""Derivatives through constructors and operators of structs."""

import numpy as np
from differences import HEADER

import metalloid as mtl

SOURCE = f"""{HEADER}
struct Pair {{
  float a, b;
  Pair() thread : a(2), b(0.5f) {{ b += a; }}
  Pair(float a, float other = 3) thread : a(a), b(other) {{}}
  template <typename T> explicit Pair(T x, T y, T z) thread : a(x * y), b(z) {{}}
  Pair operator*(Pair o) const thread {{ return Pair(a * o.a - b * o.b, a * o.b + b * o.a); }}
  float weighted(float w) const thread {{ return w * a + b; }}
  float crossed(Pair o) const thread {{ return o.weighted(b * b); }}
}};
static Pair operator+(Pair x, Pair y) {{ return {{x.a + y.a, x.b + y.b}}; }}
struct Scaled {{
  Pair pair;
  float factor = 1.5f, rest[2] = {{1, 2}};
  float get() const thread {{ return factor * pair.a + rest[1] * pair.b; }}
}};
kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {{
  Pair p(x[i]), q, r(x[i], 2 * x[i], x[i]);
  Scaled scaled;
  Scaled other;
  other.pair = p * q + r;
  y[i] = other.get() + scaled.get() * x[i] + p.crossed(r) + Pair(4).b * x[i];
}}"""


def exact(x):
    p, q, r = (x, 3), (2, 2.5), (x * 2 * x, x)
    product = p[0] * q[0] - p[1] * q[1] + r[0], p[0] * q[1] + p[1] * q[0] + r[1]
    value = 1.5 * product[0] + 2 * product[1] + (1.5 * 2 + 2 * 2.5) * x
    return value + p[1] ** 2 * r[0] + r[1] + 3 * x


def test_constructors():
    x = np.array([0.3, -1, 2], np.float32)
    y, d_x, dot_y = np.zeros((3, 3), np.float32)
    kernel = mtl.library(SOURCE, device="cpu").k
    kernel.vjp()(x, y, np.ones_like(x), d_x, threads=3)
    kernel.jvp()(x, y, np.ones_like(x), dot_y, threads=3)
    np.testing.assert_allclose(y, exact(x.astype(float)), 1e-6)
    derivative = exact(x + 1e-30j).imag * 1e30
    np.testing.assert_allclose(d_x, derivative, 1e-6)
    np.testing.assert_allclose(dot_y, derivative, 1e-6)
