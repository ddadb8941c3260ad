"""Functions that are inlined several times, with other arguments: swizzles, moved pointers."""

import numpy as np
import pytest
from differences import HEADER, adjoints, compare, elementwise

import metalloid as mtl


def dot(v, w):
    return sum(a * b for a, b in zip(v, w, strict=True))


def reversed_dot(v):
    return dot(v[::-1], v)


def with_swapped_lanes(v):
    x, y, z = v[1] * 2, v[0] * 2, v[2]
    return x + y * y * z


def scaled(v, s):
    x, y, z = v[0] * s, v[1], v[2]
    return [z + x, y + y, x + z]


#: Functions and bodies, and the same in Python.
VECTORS = {
    "swizzles": (
        "float f(float3 v) { return dot(v.zyx, v); }",
        "r = f(float3(a, b, 1)) * f(float3(b, b, a));",
        lambda a, b: reversed_dot([a, b, 1]) * reversed_dot([b, b, a]),
    ),
    "stores of swizzles": (
        "float f(float3 v) { v.xy = v.yx * 2; return v.x + v.y * v.y * v.z; }",
        "r = f(float3(a, b, 1)) * f(float3(b * b, b, a));",
        lambda a, b: with_swapped_lanes([a, b, 1]) * with_swapped_lanes([b * b, b, a]),
    ),
    "references": (
        "void f(thread float3 &v, float s) { v.x *= s; v = v.zyx + v; }",
        "float3 m[2] = {float3(a, b, 1), float3(b)}; f(m[1], a); f(m[0], b); r = dot(m[0], m[1]);",
        lambda a, b: dot(scaled([a, b, 1], b), scaled([b, b, b], a)),
    ),
    "members": (
        "struct S { float4 v; float f() { v.xz += v.yw; return v.x * v.z; } };",
        "S s = {float4(a, b, b, a)}, t = {float4(b, a, 1, b)}; r = s.f() * t.f() * s.v.x;",
        lambda a, b: (a + b) * (b + a) * (b + a) * (1 + b) * (a + b),
    ),
    "sections of a switch": (
        "",
        "float3 v = float3(a, b, 1); switch (i % 2) { case 0: case 1: v.xz = v.zy * a; default: "
        "v.yz += v.xx; } r = dot(v, v);",
        lambda a, b: dot(v := [a, b + a, b * a + a], v),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_swizzles(name):
    declared, body, function = VECTORS[name]
    x, z = np.random.default_rng(2).uniform(0.4, 1.2, (2, 8)).astype(np.float32)
    arguments = {"x": x, "z": z, "y": np.zeros_like(x)}
    computed = adjoints(
        declared + elementwise(body), "k", arguments, ["x", "z"], ["y"], {"y": np.ones(8)},
        threads=8,
    )  # fmt: skip
    a, b = x.astype(complex), z.astype(complex)
    exact = {"x": function(a + 1e-30j, b).imag * 1e30, "z": function(a, b + 1e-30j).imag * 1e30}
    for key, expected in exact.items():
        assert np.abs(computed[key] - expected).max() <= 2e-6 * np.abs(expected).max(), key


POINTERS = {
    "a reference to a pointer": (
        "void next(thread device const float *&p, int n) { p += n; }",
        "device const float *p = x; next(p, 1); next(p, 2); r = p[0] * p[1] * b;",
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
}  # fmt: skip


@pytest.mark.parametrize("name", POINTERS)
def test_moved_pointers(name):
    declared, body = POINTERS[name]
    x, z = np.random.default_rng(3).uniform(0.3, 1, (2, 8)).astype(np.float32)
    arguments = {"x": x, "z": z, "y": np.zeros_like(x)}
    compare(declared + elementwise(body), "k", arguments, ["x", "z"], ["y"], 0, 4e-6, threads=8)


@pytest.mark.parametrize("body", ["int k = 0; m[++k] = m[k] * a;", "int k = 0; m[k++] += k * b;"])
def test_a_step_in_the_index_of_what_is_assigned(body):
    """C++ 14 gives these no meaning."""
    kernel = mtl.library(
        HEADER + elementwise(f"float m[4] = {{a, b, a, b}}; {body} r = m[0] * m[1];"), device="cpu"
    ).k
    with pytest.raises(mtl.CompileError, match="a step and a use of the same variable"):
        kernel.vjp()


def test_a_parameter_that_a_function_moves_is_refused():
    declared, _ = POINTERS["a reference to a pointer"]
    kernel = mtl.library(HEADER + declared + elementwise("next(x, 1); r = x[0];"), device="cpu").k
    with pytest.raises(mtl.CompileError, match="this pointer cannot change"):
        kernel.vjp()
