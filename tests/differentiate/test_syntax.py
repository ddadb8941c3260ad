"""Literals, headers of statements, pointers to a thread's variables, and other syntax."""

import numpy as np
import pytest
from differences import HEADER, compare, compare_elementwise, elementwise

import metalloid as mtl

CASES = {
    "digit separators": ("", "r = a * 1'000.5f + b * 2'0.25f;"),
    "literals": (
        "", "r = a * .5f + b * 1.f + a * 1e-1f * 2E+1f + a * 0.25 * b; r *= 'b' - 'a' + b * int('c' == 99);"
    ),
    "unsigned literals": (
        "",
        "uint k = (0u - 1u) / 7u; r = x[k % 8] * a; k = (2u - 3u) % 5u; r += x[k] * b; r *= x[-1u / 2u & 7u];"
        "r += x[~0u >> 29] + x[(1u << 31) >> 29] + x[(i * 2654435761u) >> 29] + (5u - 7u < 0 ? a : b);",
    ),
    "variables in headers": (
        "",
        "if (float v = a - 0.5f) r = v * b; if (float v = a * b; v > 0.4f) r += v * v; else r += v * a; int q = 5;"
        "while (int k = q - 1) { r = r * a + k * b; q--; if (r > 5) break; }"
        "for (int p = 4; int k = p; p--) { if (k == 2) continue; r = r * a + k * b; }"
        "switch (int k = i % 3) { case 0: r *= a; break; case 1: r *= b * k; break; default: r *= a * k; }"
        "switch (int k = i % 2; k + 1) { case 1: r += a; break; default: r *= k; }",
    ),
    "ranges of cases": (
        "", "switch (i % 8) { case 0 ... 3: r = a; break; case 4: r = b; break; default: r = a * b; }"
    ),
    "numbers of 64 bits in a switch": (
        "",
        "switch (ulong(i) << 32) { case 0: r = a; break; case 4294967296ul: r = b; break; default: r = a * b; } "
        "switch (long(i) - 3) { case -3 ... -2: r *= a; break; case -1: r += b; break; default: r *= b; }",
    ),
    "variables of sections": (
        "",
        "switch (i % 3) { case 0: { float u = a; r = u * u; break; } case 1: float u; u = b; r = u * a; "
        "break; case 2: u = a * b; r = u * u; }",
    ),
    "enumerators": (
        "enum { A = 2, C = A * 3 }; enum class M : int { X = 1, Y = 4 }; "
        "namespace N { struct Q { enum E { U = 1, V }; }; }",
        "r = x[A] * a + x[C] * b + C * a + int(M::Y) * b + x[N::Q::V] * N::Q::U; "
        "switch (i % 3) { case A: r *= a; break; case int(M::X): r *= b; }",
    ),
    "choices without values": (
        "", "r = a; i % 3 ? (void)(r *= a) : (void)(r += b); i % 2 ? (void)0 : (void)(r *= b);"
    ),
    "pointers that functions move": (
        "float f(thread float *p, int n) { thread float *q = p; float s = 0; for (int k = 0; k < n; k++) "
        "s = s * 0.5f + *q++; return s; }",
        "float m[4] = {a, b, a * b, 1}; r = f(m, 4) * f(m + 1, 3); thread float *w = m; w++; r += *w * w[1]; "
        "w = m; *w *= b; w = &m[3]; r += w[-1] * w[-3]; *m *= b; r += *(m + 2) * 2[m] * m[0];",
    ),
    "pointers to both ends": (
        "",
        "float m[6]; for (int k = 0; k < 6; k++) m[k] = x[k] * a; thread float *p = m, *q = m + 5;"
        "while (p < q) { float t = *p; *p++ = *q * b; *q-- = t; } r = m[0] * m[1] + m[2] * m[3] + m[4] * m[5];",
    ),
    "pointers to rows": (
        "float f(thread float *p) { p[0] *= 2; return p[0] * p[1]; }",
        "float m[3][2] = {{a, b}, {1, 2}, {b, b}}; r = f(m[0]) * f(m[i % 3]); thread float *q = &m[1][0];"
        "q[1] *= a; *q = b; for (int k = 0; k < 3; k++) { thread float *p = m[k]; p[1] += *p * a; r += p[1]; }",
    ),
    "comparisons of pointers": (
        "float f(thread const float *p, thread const float *e) { float s = 0; while (p != e) s = s * 0.7f + *p++; "
        "return s; }",
        "device const float *p = x, *e = x + 6; for (; p < e; p++) r = r * b + *p; r *= e - x; "
        "while (p >= x + 2) { r += *p * z[p - x]; p -= 2; } float m[3] = {a, b, 1}; r += f(m, m + 3) * f(m + 1, m + 2);"
        "device const float2 *v = (device const float2 *)x, *w = v + 3; r *= w - v; while (v != w) r += (*v++).x * b;",
    ),
    "pointers to vectors": (
        "void f(thread float4 *v, float w) { v->x *= v->y; (*v).zw += w; v[0][1] *= v[0].w; }",
        "float4 v[2] = {float4(a, b, 1, 2), float4(b)}, w = v[0]; f(v, a); f(&v[1], b); f(v + i % 2, a); f(&w, a);"
        "r = v[0].x * v[1].y + v[0].z * v[1].w + w.x * w.y;",
    ),
    "structs with matrices in arrays": (
        "struct C { float2x2 w[2]; float s; };",
        "C c; c.s = b; c.w[0] = float2x2(a); c.w[1] = c.w[0]; c.w[1][0].y = b; C d = c; d.w[i % 2][1].x += d.s;"
        "c.w[0] = d.w[1]; r = d.w[1][0].y * d.w[0][1].x + c.w[0][1].y * c.w[0][0].y;",
    ),
    "additions before stores": ("", "y[i] += a; y[i] += b; if (a > 0.6f) y[i] = b * b; y[i] += a * b;"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    compare_elementwise(*CASES[name])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("thread float *p = &a, *q = &b; r = p == q ? a : b;", "operation of pointers"),
        ("thread float *p = &a; r = *(p + 1);", "operation of pointers"),
        ("enum { L = 5 }; r = a * L;", "enumerators that a function declares"),
        ("device const float *p = x; r = p < z ? a : b;", "pointers into different memory"),
    ],
)
def test_refused(body, why):
    with pytest.raises(mtl.CompileError, match=why):
        mtl.library(HEADER + elementwise(body), device="cpu").k.vjp()


def test_components_by_number_in_threadgroup_memory():
    source = """
    kernel void k(device const float *x, device float *y, uint t [[thread_position_in_grid]]) {
      threadgroup float4 s[2][4], one;
      s[t / 4][t % 4] = float4(x[t], 2, x[t] * x[t], 1);
      if (t == 0) one = float4(x[5], 1, 2, x[6]);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float r = 0;
      for (uint k = 0; k < 4; k++) r += s[k % 2][(t + k) % 4][3 - k] * s[1][k][k] * one[k];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      s[t / 4][t % 4][t % 3] *= r;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[t] = s[1 - t / 4][t % 4][t % 2] * r;
    }"""
    x = np.random.default_rng(5).uniform(0.3, 1, 8).astype(np.float32)
    arguments = {"x": x, "y": np.zeros_like(x)}
    compare(source, "k", arguments, ["x"], ["y"], 0, 4e-6, threads=8, group_size=8)
