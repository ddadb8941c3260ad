"""Derivatives of functions of three arguments, and of those that assign one, by complex steps."""

import numpy as np

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void k(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
  float a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2], t, u;
  float3 v = float3(a, b, c), w = float3(b, c * c, a);
  float s = sincos(a * b, t);
  float m = modf(3 * a * c, u);
  float values[] = {
      divide(a, b), tanpi(0.3f * a), ldexp(a, 3), nextafter(a, b), select(a, b, c > 1),
      smoothstep(a, a + b, c), max3(a, b, c), min3(a, b, c), median3(a, b, c), fmax3(a, b, c),
      s * t, m + u * a, dot(reflect(v, w), w * v), faceforward(v, w, -v).y,
      faceforward(w, w, v).y, ((float2){a, b}).y * as_type<float>(0x40000000u + i % 1)};
  for (int k = 0; k < 16; k++) y[16 * i + k] = values[k];
}"""


def values(a, b, c):
    v, w = np.array([a, b, c]), np.array([b, c * c, a])
    ordered = sorted((a, b, c), key=lambda n: n.real)
    part = min(max((c - a) / b, 0, key=lambda n: n.real), 1, key=lambda n: n.real)
    reflected = v - 2 * (v @ w) * w
    integer = np.trunc(3 * (a * c).real)
    return [
        a / b, np.tan(0.3 * np.pi * a), 8 * a, a, b if c.real > 1 else a,
        part * part * (3 - 2 * part), ordered[2], ordered[0], ordered[1], ordered[2],
        np.sin(a * b) * np.cos(a * b), 3 * a * c - integer + integer * a, reflected @ (w * v), b,
        -c * c, 2 * b,
    ]  # fmt: skip


def test_functions():
    count, step = 8, 1e-30
    x = np.random.default_rng(0).uniform(0.3, 1.4, (count, 3)).astype(np.float32)
    d_y, dot_x = (np.random.default_rng(1).normal(size=(count, n)).astype("f") for n in (16, 3))
    kernel = mtl.library(SOURCE, device="cpu").k
    y, dot_y, d_x = np.zeros((count, 16), "f"), np.zeros((count, 16), "f"), np.zeros_like(x)
    kernel.vjp()(x, y, d_y, d_x, threads=count)
    kernel.jvp()(x, y, dot_x, dot_y, threads=count)
    for row, given, seeds, dots, adjoint, tangent in zip(
        x.astype(float), y, d_y, dot_x, d_x, dot_y, strict=True
    ):
        steps = np.array([np.imag(values(*(row + 1j * step * e))) / step for e in np.eye(3)])
        np.testing.assert_allclose(given, np.real(values(*(row + 0j))), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(tangent, dots @ steps, rtol=2e-5, atol=1e-5)
        np.testing.assert_allclose(adjoint, steps @ seeds, rtol=2e-5, atol=1e-5)
