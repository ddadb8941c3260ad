"""Functions that are inlined, several times or in operands; names of temporaries; members of results."""

import numpy as np
import pytest
from differences import HEADER, compare, compare_elementwise, elementwise

import metalloid as mtl

NEXT = "float2 next(thread float &s) { s = s * 1.5f + 0.1f; return float2(s, s * s); }"
GROW = "float2 grow(thread float2 &v) { v.x *= v.y; v.y += 1; return v * 0.5f; }"
MOVE = "void next(thread device const float *&p, int n) { p += n; }"
CASES = {
    "swizzles": (
        "float f(float3 v) { return dot(v.zyx, v); }",
        "r = f(float3(a, b, 1)) * f(float3(b, b, a));",
    ),
    "stores of swizzles": (
        "float f(float3 v) { v.xy = v.yx * 2; return v.x + v.y * v.y * v.z; }",
        "r = f(float3(a, b, 1)) * f(float3(b * b, b, a));",
    ),
    "references to vectors": (
        "void f(thread float3 &v, float s) { v.x *= s; v = v.zyx + v; }",
        "float3 m[2] = {float3(a, b, 1), float3(b)}; f(m[1], a); f(m[0], b); r = dot(m[0], m[1]);",
    ),
    "member functions": (
        "struct S { float4 v; float f() { v.xz += v.yw; return v.x * v.z; } };",
        "S s = {float4(a, b, b, a)}, t = {float4(b, a, 1, b)}; r = s.f() * t.f() * s.v.x;",
    ),
    "sections of a switch": (
        "",
        "float3 v = float3(a, b, 1); switch (i % 2) { case 0: case 1: v.xz = v.zy * a; default: "
        "v.yz += v.xx; } r = dot(v, v);",
    ),
    "a reference to a pointer": (
        MOVE, "device const float *p = x; next(p, 1); next(p, 2); r = p[0] * p[1] * b;"
    ),
    "a member": (
        "struct V { device const float *p; }; void next(thread device const float *&p) { p++; }",
        "V v = {x}; next(v.p); next(v.p); r = v.p[0] * v.p[1] * b;",
    ),
    "another name of a pointer": (
        "",
        "device const float *p = x; device const float *thread &q = p; q += 2; r = p[0] * q[1] * b; "
        "p++; r *= q[0];",
    ),
    "an assignment": (
        "void set(thread device const float *&p, device const float *q) { p = q + 1; }",
        "device const float *p = x; set(p, x + 1); r = p[0] * p[1] * b; set(p, p); r *= p[0];",
    ),
    "calls in arguments of the same function": (
        "float f(float v, float w) { v = v * w + w; return v * v; } "
        "struct C { float u, v; C operator*(C o) const { return C{u * o.u - v * o.v, u * o.v + v * o.u}; } };",
        "C p = {a, b}, q = {b, a * b}; r = f(f(a, b), f(b, f(a, a))); q = p * (q * (p * q)); r += q.u * q.v;",
    ),
    "functions that change other operands": (
        "float f(thread float &s) { s = s * 1.5f + 0.1f; return s; }",
        "float s = a; r = s + f(s); r *= f(s) * s; r += pow(s, f(s)) + (s < f(s) ? s * f(s) * b : b); r *= s;",
    ),
    "steps in the condition of do": (
        "", "int k = 0; do { if (k % 2) continue; r += x[k] * a; } while (++k < 5); r *= k;"
    ),
    "calls in the condition of do": (
        "bool more(thread float &v, float w) { v *= 1 + w; return v < 2; }",
        "float c = a; int n = 0; do { r += c * b; n++; } while (more(c, b) && n < 7); r *= c;",
    ),
    "remainders of counters": ("", "for (int k = 0; k < 5; k++) { int j = k % 3; r += x[j] * a * j; }"),
    "a switch of remainders": (
        "",
        "for (int k = 0; k < 5; k++) { switch (k % 3) { case 0: r += a; case 1: r *= b + 1; break; "
        "default: if (r > 2) break; r -= b * a; } }",
    ),
    "members of results": (NEXT, "float s = a; r = next(s).x * b + next(s).y * next(s).yx.x; r *= s;"),
    "members of structs that are results": (
        "struct P { float u; float2 v; }; P next(thread float &s) { s *= 1.5f; return P{s, float2(s, 1) * s}; }",
        "float s = a; r = next(s).u * b + next(s).v.x * next(s).v.y; r *= s;",
    ),
    "vectors that functions change": (
        GROW, "float2 v = float2(a, b), w = v * grow(v); r = w.x * w.y; w = v + grow(v); r *= w.x + w.y;"
    ),
    "vectors of values that functions change": (
        GROW, "float2 v = float2(a, b), w = float2(v.x, grow(v).y); v *= grow(v); r = w.x * w.y + v.x;"
    ),
    "temporaries as arguments": (
        "float f(thread const float &v, thread float &w) { w *= 2; return v * w; } "
        "float g(thread const float2 &v, thread float &w) { w += v.x; return v.y * w; }",
        "float w = b; r = f(a * w, w) + f(w + 1, w); r *= g(float2(w), w); r += f(w * w, w);",
    ),
    "names of temporaries": (
        "",
        "float w = b; const thread float &q = a * w; w *= 2; r = q * w; "
        "const thread float2 &v = float2(w); w += a; r += v.x * v.y * w;",
    ),
    "names of variables": ("", "float w = b; const thread float &q = w; w *= a; r = q * w + a;"),
    "default arguments": (
        "float f(thread float &w, thread const float &v = 2.0f) { w *= v; return w * v; }",
        "float w = a; r = f(w) * f(w, w) + f(w, b) + f(w, a + w);",
    ),
    "elements of arrays of structs": (
        "struct P { float2 v; float s; };",
        "P p[3]; for (int k = 0; k < 3; k++) { p[k].v = float2(a, b) * k; p[k].s = x[k]; } P q = p[i % 3];"
        "q.v.x += q.s; p[(i + 1) % 3] = q; p[2].s *= q.v.x; r = p[0].s * p[1].v.x + p[2].s * q.v.x;",
    ),
    "assignments to results of operators": (
        "struct P { float u, v; thread P &operator*=(float w) { u *= w; return *this; } }; "
        "thread P &operator+=(thread P &p, P q) { p.u += q.u; p.v *= q.v; return p; } "
        "int at(int k) { return (k * 2) % 3; }",
        "P m[3] = {{a, b}, {b, 1}, {a, a}}, q = {b, a}; (m[0] += q) *= a; m[at(i)] += q; m[at(1)] *= m[0].u; "
        "(m[1] += m[2]) += q; r = m[0].u * m[0].v + m[1].v * m[2].u;",
    ),
    "values that change an index": (
        "int next(thread int &k) { k++; return k; }",
        "float m[4] = {a, b, 1, 2}; int k = 0; m[k] = a * next(k); m[k] += next(k) * b; "
        "float2 w[3] = {float2(a), float2(b), float2(1)}; k = 0; w[k] = float2(next(k), a); "
        "w[k] *= float2(b, next(k)); r = m[0] + m[1] * m[2] + w[0].x * w[1].y + w[2].x;",
    ),
    "choices of choices": (
        "struct P { float u; float2 v; };",
        "P p = {a, {b, 1}}, q = {b, {a, a}}, w = a > b ? p : q; P e = i % 2 ? w : (b > 0.7f ? p : q); "
        "e.u *= w.v.x; r = e.u * e.v.y + (i % 3 ? e : (a > b ? w : q)).v.x;",
    ),
    "choices that are read": (
        "struct P { float u; float2 v; float f() const { return u * v.x; } }; "
        "float g(thread const float &v) { return v * v; } float h(float2 v) { return v.x * v.y; }",
        "P p = {a, {b, 1}}, q = {b, {a, a}}; float2 v = p.v, w = q.v;"
        "r = (a > b ? p : q).u * (i % 2 ? p : q).v.y + (a > b ? p : q).f(); "
        "r += (a > b ? v : w).yx.x * (i % 2 ? v : w)[1] + g(a > b ? p.u : q.u) + h(a > b ? v : w);",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    compare_elementwise(*CASES[name])


@pytest.mark.parametrize(
    "body",
    [
        "(i % 2 ? a : b) *= 3; r = a * b;",
        "(i % 2 ? a : b)++; r = a * b;",
        "float m[2] = {a, b}, w[2] = {b, 1}; r = (i % 2 ? m : w)[1];",
        "thread float &w = i % 2 ? a : b; w *= 3; r = a * b;",
        "float2 v = a, w = b; (i % 2 ? v : w).x = 3; r = v.x * w.x;",
        "float2 v = a, w = b; (i % 2 ? v : w).yx *= 3; r = v.x * w.x;",
        "float2 v = a, w = b; (i % 2 ? v : w)[1] += 3; r = v.x * w.y;",
        "float2 v = a, w = b; (i % 2 ? v : w) *= 3; r = v.x * w.y;",
    ],
)
def test_a_variable_that_is_chosen_is_refused(body):
    kernel = mtl.library(HEADER + elementwise(body), device="cpu").k
    with pytest.raises(mtl.CompileError, match="a variable that is chosen at run time"):
        kernel.vjp()


def test_arrays_of_structs_with_constructors_are_refused():
    source = "struct P { float2 v; float s = 1; };" + elementwise("P p[2]; r = p[1].s * a;")
    with pytest.raises(mtl.CompileError, match="arrays of structs with constructors"):
        mtl.library(HEADER + source, device="cpu").k.vjp()


def test_digits_of_digits():
    """Indices that divide what has been divided are not analysed."""
    source = """
    kernel void k(device const float *x, device float *y, uint t [[thread_position_in_threadgroup]]) {
      y[t] = x[(t / 4) % 2] * x[t % 4 + 1];
    }"""
    x = np.random.default_rng(5).uniform(0.3, 1, 8).astype(np.float32)
    arguments = {"x": x, "y": np.zeros_like(x)}
    compare(source, "k", arguments, ["x"], ["y"], threads=8, group_size=8)


@pytest.mark.parametrize(
    "body",
    [
        "m[++k] = m[k] * a;",
        "m[k++] += k * b;",
        "m[k++] = f(a, k);",
        "float2 v[2] = {float2(a), float2(b)}; v[k++] = v[k] * b; m[0] = v[0].x;",
        "float2 v[2] = {float2(a), float2(b)}; v[k++] *= v[k]; m[0] = v[0].x;",
        "float2x2 v[2] = {float2x2(a), float2x2(b)}; v[k++] *= v[k]; m[0] = v[0][0].x;",
        "P p[2] = {{a, b}, {b, a}}; p[k++] = p[k]; m[0] = p[0].u;",
        "P p[2] = {{a, b}, {b, a}}; p[k++] += p[k]; m[0] = p[0].u;",
        "P p = {a, b}; (p += p) += p * b; m[0] = p.u * p.v;",
        "float v[2][2] = {{a, b}, {b, 1}}; m[0] = v[k][k++];",
    ],
)
def test_a_step_in_the_index_of_what_is_assigned(body):
    """C++ 14 gives these no meaning."""
    declared = """
    struct P { float u, v; P operator*(float w) { return {u * w, v * w}; } };
    thread P &operator+=(thread P &p, P q) { p.u += q.u; p.v *= q.v; return p; }
    float f(float v, int k) { return v * k; }"""
    body = f"float m[4] = {{a, b, a, b}}; int k = 0; {body} r = m[0] * m[1];"
    kernel = mtl.library(HEADER + declared + elementwise(body), device="cpu").k
    with pytest.raises(mtl.CompileError, match="a step and a use of the same variable"):
        kernel.vjp()


def test_a_parameter_that_a_function_moves_is_refused():
    kernel = mtl.library(HEADER + MOVE + elementwise("next(x, 1); r = x[0];"), device="cpu").k
    with pytest.raises(mtl.CompileError, match="this pointer cannot change"):
        kernel.vjp()
