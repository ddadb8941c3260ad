"""Adjoints of structs that hold pointers and references, and of references to arrays."""

import numpy as np
import pytest
from differences import HEADER, compare, elementwise

import metalloid as mtl

VIEW = """struct View {
  device const float *p; int stride;
  View(device const float *q, int s = 1) : p(q), stride(s) {}
  float at(int k) const { return p[k * stride]; }
  void next() { p += stride; }
};
"""
#: Declarations, and bodies from `a`, `b`, `x`, `z` and `i` to `r`.
CASES = {
    "assigned members": (
        "struct V { device const float *p; int n; };",
        "V v; v.p = x + 1; v.n = 2; for (int k = 0; k < v.n; k++) r += v.p[k] * v.p[k] * b;",
    ),
    "an initialiser list": (
        "struct V { device const float *p; int n; };", "V v = {x + i, 2}; r = v.p[0] * v.p[0] * b;"
    ),
    "a constructor": (VIEW, "View v(x, 2); for (int k = 0; k < 3; k++) r += v.at(k) * v.at(k) * b;"),
    "moved in a loop": (
        VIEW, "View v(x, 2); for (int k = 0; k < 3; k++) { r = r * b + v.at(0) * v.at(0); v.next(); }"
    ),
    "copies move alone": (
        VIEW, "View v(x), w = v; w.next(); w.next(); v.next(); r = v.at(0) * w.at(0) * w.at(1) * b;"
    ),
    "arguments by value and by reference": (
        VIEW + """float moved(View v) { v.next(); return v.at(0); }
        float moves(thread View &v) { v.next(); return v.at(0); }""",
        "View v(x); r = moved(v) * moved(v) * v.at(0); r += moves(v) * moves(v) * b * v.at(1);",
    ),
    "results": (
        VIEW + "View shifted(View v, int n) { return View(v.p + n, v.stride); }",
        "View v = shifted(shifted(View(x), 1), 2); r = v.at(0) * v.at(1) * b;",
    ),
    "in other structs": (
        VIEW + "struct Pair { View first, second; float dot(int n) const { float s = 0; "
        "for (int k = 0; k < n; k++) s += first.at(k) * second.at(k); return s; } };",
        "Pair p = {View(x), View(z, 2)}; r = p.dot(3) * p.second.at(0); p.first.next(); r *= p.dot(2);",
    ),
    "chosen in the same memory": (
        VIEW, "View v = i % 2 ? View(x) : View(x + 2); if (i > 4) v.p = x + 3; r = v.at(0) * v.at(1) * b;"
    ),
    "templates": (
        """template <typename T, int N> struct Tile { const device T *p; thread T (&sums)[N];
        Tile(const device T *q, thread T (&s)[N]) : p(q), sums(s) {}
        void add(T f) { for (int k = 0; k < N; k++) sums[k] += p[k] * f; } };""",
        "float s[3] = {a, b, 1}; Tile<float, 3> t(x, s); t.add(b); t.add(s[0]); r = s[0] * s[1] + s[2];",
    ),
    "references": (
        "struct Sum { thread float &s; void add(float v) { s = s * v + v; } };",
        "float s = a; Sum sum = {s}; sum.add(b); s *= a; sum.add(s); r = s; sum.s = b; r *= s;",
    ),
    "references to elements": (
        "struct Sum { thread float &s; };",
        "float m[3] = {a, b, 1}; int k = 1; Sum sum = {m[k]}; k = 2; sum.s *= a; r = m[1] * m[k] + sum.s;",
    ),
    "pointers to arrays": (
        "struct M { thread float *m; void scale(float f) { for (int k = 0; k < 3; k++) m[k] *= f + k; } };",
        "float m[3] = {a, b, a * b}; M t = {m}; t.scale(b); t.m++; t.m[0] += a; r = m[0] * m[1] + m[2];",
    ),
    "a loader of tiles": (
        """struct Loader { const device float *src; threadgroup float *dst; int step;
        Loader(const device float *s, threadgroup float *d, uint t) : src(s + t), dst(d + t), step(0) {}
        void load() const { dst[0] = src[step] * src[0]; } void next() { step++; } };""",
        """threadgroup float t[8]; Loader l(x, t, i); l.load();
        threadgroup_barrier(mem_flags::mem_threadgroup); r = t[i] * t[(i + 3) % 8] * b; l.next();
        threadgroup_barrier(mem_flags::mem_threadgroup); if (i < 7) l.load();
        threadgroup_barrier(mem_flags::mem_threadgroup); r += t[(i + 1) % 8] * a;""",
    ),
    "references to arrays": (
        """void scale(thread float (&m)[3], float f) { for (int k = 0; k < 3; k++) m[k] = m[k] * f + k; }
        template <int N> float sum(const thread float (&m)[N]) { float s = 0;
        for (int k = 0; k < N; k++) s += m[k] * m[k]; return s; }""",
        "float m[2][3] = {{a, b, 1}, {b, a, a}}; thread float (&row)[3] = m[1]; scale(row, b); "
        "scale(m[0], a); row[2] *= a; r = sum(m[0]) * sum(row) + m[1][2];",
    ),
    "stores of results": (
        "struct Out { device float *p; void put(uint i, float v) { p[i] = v * v; } };",
        "Out out = {y}; out.put(i, a * b); return;",
    ),
}  # fmt: skip


def source_of(declared, body):
    return declared + elementwise(body)


@pytest.mark.parametrize("name", CASES)
def test_members(name):
    random = np.random.default_rng(5)
    arguments = {each: random.uniform(0.4, 1.1, 8).astype(np.float32) for each in "xzy"}
    launch = {"threads": 8, "group_size": 8}
    compare(source_of(*CASES[name]), "k", arguments, ["x", "z"], ["y"], bound=4e-6, **launch)


@pytest.mark.parametrize(
    ("declared", "body", "why"),
    [
        (VIEW, "View v = i % 2 ? View(x) : View(z); r = v.at(0);", "chosen at run time"),
        (VIEW, "View v(x); if (i > 3) v.p = z; r = v.at(0);", "chosen at run time"),
        ("struct V { device const float *p[2]; };", "V v; v.p[0] = x; r = v.p[0][i];", "no rule"),
        ("struct V { device const float *p; };", "V v[2]; v[0].p = x; r = v[0].p[i];", "no rule"),
        ("struct V { device const float *p; };", "V v; r = v.p[i];", "points to nothing"),
        ("struct S { thread float &s; };",
         "float c = a; S s = i % 2 ? S{a} : S{c}; s.s = b; r = a * c;", "chosen at run time"),
    ],
)  # fmt: skip
def test_what_is_refused(declared, body, why):
    kernel = mtl.library(HEADER + source_of(declared, body), device="cpu").k
    with pytest.raises(mtl.CompileError, match=why):
        kernel.vjp()
