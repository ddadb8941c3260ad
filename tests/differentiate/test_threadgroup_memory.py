"""Adjoints through threadgroup memory and barriers."""

import numpy as np
import pytest
from differences import HEADER, adjoints, compare

import metalloid as mtl
from metalloid.differentiate import vjp

SIZE = 16
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"

BODIES = {
    "sum": """
      threadgroup float s[16];
      s[t] = a * b; BARRIER
      for (uint k = 8; k > 0; k /= 2) { if (t < k) s[t] += s[t + k]; BARRIER }
      r = s[0] * a;""",
    "product": """
      threadgroup float s[16];
      s[t] = a; BARRIER
      for (uint k = 8; k > 0; k >>= 1) { if (t < k) { s[t] *= s[t + k] * b; } BARRIER }
      r = s[0];""",
    "stencil": """
      threadgroup float s[18];
      s[t + 1] = a; if (t < 2) s[t * 17] = b; BARRIER
      for (int k = 0; k < 5; k++) {
        float v = s[t] * s[t + 2] + sin(s[t + 1]);
        BARRIER
        s[t + 1] = v; BARRIER
      }
      r = s[t + 1];""",
    "softmax": """
      threadgroup float s[16];
      s[t] = a; BARRIER
      for (uint k = 8; k > 0; k /= 2) { if (t < k) s[t] = max(s[t], s[t + k]); BARRIER }
      float m = s[0]; BARRIER
      s[t] = exp(a - m); BARRIER
      for (uint k = 8; k > 0; k /= 2) { if (t < k) s[t] += s[t + k]; BARRIER }
      r = exp(a - m) / s[0] * b;""",
    "tiles": """
      threadgroup float s[2][4][4], w[16];
      uint p = t / 4, q = t % 4;
      for (int tile = 0; tile < 3; tile++) {
        s[0][p][q] = a + tile * b; s[1][q][p] = b; w[15 - t] = r; BARRIER
        for (uint k = 0; k < 4; k++) r += s[0][p][k] * s[1][q][k] * 0.2f;
        r = sin(r) + w[t]; BARRIER
      }""",
    "scalars": """
      threadgroup float total, scale[1];
      if (t == 3) { total = a * b; scale[0] = b; } BARRIER
      float first = total; BARRIER
      if (t == 5) total *= a;
      BARRIER
      r = first * a + total * scale[0];""",
    "pointers": """
      threadgroup float s[32];
      threadgroup float *mine = s + 2 * t;
      put(mine, a, b); BARRIER
      for (int k = 0; k < 3; k++) { r += mine[k % 2] * s[(2 * t + 5 + k) % 32]; }
      BARRIER
      *mine = r; BARRIER
      r *= s[(2 * t + 2) % 32];""",
    "simdgroups": """
      threadgroup float s[16];
      float v = a;
      for (int k = 0; k < 3; k++) {
        s[t] = v * b; simdgroup_barrier(mem_flags::mem_threadgroup);
        v = s[t ^ 1] * a; simdgroup_barrier(mem_flags::mem_threadgroup);
      }
      r = v;""",
}
FAST = ("stencil",)


def source_of(body):
    return f"""
    void put(threadgroup float *p, float a, float b) {{ p[0] = a * b; p[1] = a + b; }}
    kernel void k(device const float *x, device const float *z, device float *y,
                  uint i [[thread_position_in_grid]],
                  uint t [[thread_position_in_threadgroup]]) {{
      float a = x[i], b = z[i], r = 0;
      {body.replace("BARRIER", BARRIER)}
      y[i] = r;
    }}"""


def given(groups=2):
    random = np.random.default_rng(4)
    return {
        name: random.uniform(0.6, 1.2, SIZE * groups).astype(np.float32) for name in ("x", "z", "y")
    }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in BODIES]
)
def test_bodies(name):
    launch = {"threads": 2 * SIZE, "group_size": SIZE}
    compare(source_of(BODIES[name]), "k", given(), ["x", "z"], ["y"], bound=4e-6, **launch)


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_the_sanitizer_has_no_findings(name):
    kernel = mtl.library(HEADER + source_of(BODIES[name]), device="cpu").k
    adjoint, arguments = vjp(kernel, ["x", "z"], ["y"]), given()
    shadows = [np.zeros(2 * SIZE, np.float32) for _ in range(2)]
    with mtl.config.scope(check=True):
        adjoint(
            *arguments.values(), arguments["y"], *shadows, threads=2 * SIZE, group_size=SIZE
        )  # fmt: skip


def test_vectors():
    body = """
      threadgroup float4 s[16];
      s[t] = float4(a, b, a * b, 1); BARRIER
      s[t].yx *= 2; BARRIER
      float4 v = s[15 - t] * s[t].wzyx;
      r = dot(v, v) + s[(t + 1) % 16].z;"""
    arguments = given(1)
    weights = np.random.default_rng(5).normal(size=SIZE)
    computed = adjoints(source_of(body), "k", arguments, ["x", "z"], ["y"], {"y": weights},
                        threads=SIZE, group_size=SIZE)  # fmt: skip
    weights = weights.astype(np.float32)

    def total(a, b):
        s = np.stack([2 * a, 2 * b, a * b, np.ones(SIZE)])
        v = s[:, ::-1] * s[::-1]
        return (weights * ((v * v).sum(0) + np.roll(s[2], -1))).sum()

    for name in ("x", "z"):
        exact = np.empty(SIZE)
        for k in range(SIZE):
            wide = {n: arguments[n].astype(complex) for n in ("x", "z")}
            wide[name][k] += 1e-30j
            exact[k] = total(wide["x"], wide["z"]).imag / 1e-30
        assert np.abs(computed[name] - exact).max() <= 2e-6 * np.abs(exact).max()


def test_memory_that_is_a_parameter():
    source = """
    kernel void k(device const float *x, device float *y, threadgroup float *shared,
                  threadgroup half2 *pairs, uint i [[thread_position_in_threadgroup]],
                  uint g [[thread_position_in_grid]]) {
      shared[i] = x[g] * x[g];
      pairs[i] = half2(x[g], 2);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float a = shared[63 - i] * float(pairs[i ^ 1].x) + shared[i];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      shared[i ^ 3] = a * a;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[g] = shared[i] * shared[i];
    }"""
    kernel = mtl.library(HEADER + source, device="cpu").k
    random = np.random.default_rng(0)
    x, d_y = (random.normal(size=128).astype(np.float32) for _ in range(2))

    def function(x):
        x = x.reshape(2, 64)
        a = (x * x)[:, ::-1] * x[:, np.arange(64) ^ 1] + x * x
        return ((a * a)[:, np.arange(64) ^ 3] ** 2).reshape(-1)

    memory = mtl.threadgroup_memory(64 * 4), mtl.threadgroup_memory(64 * 4)
    launch = {"threads": 128, "group_size": 64}
    d_x, dot_y, y = (np.zeros(128, np.float32) for _ in range(3))
    kernel.vjp()(x, y, *memory, d_y, d_x, **launch)
    rows = np.array([function(x + 1e-30j * row).imag / 1e-30 for row in np.eye(128)])
    expected = rows @ d_y
    assert np.abs(d_x - expected).max() <= 2e-3 * np.abs(expected).max()
    kernel.jvp()(x, y, *memory, d_y, dot_y, **launch)
    expected = d_y @ rows
    assert np.abs(dot_y - expected).max() <= 2e-3 * np.abs(expected).max()
