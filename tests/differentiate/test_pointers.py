"""Pointers that are set later, null pointers, casts of integers, names of types, assertions."""

import numpy as np
import pytest
from differences import HEADER

import metalloid as mtl

HEAD = """kernel void k(device const float *x, device const uint *words, device float *y,
              constant int &n, uint i [[thread_position_in_grid]])"""
HELPERS = """
void sum_into(thread float *sums, device const float *p, int n) {
  for (int k = 0; k < n; k++) { sums[0] += p[k] * p[k]; sums += 1; }
}
float plus_one(device const float *p, threadgroup float *unused) { return p[0] + 1; }
struct Sum { static constexpr constant float init = 0.5f; float operator()(float a, float b) {
  return a + b; } };
struct Pair { float a, b; };
template <int N> struct Table { static constexpr constant float rows[2] = {N, 2 * N}; };
template <int N> constant constexpr const float Table<N>::rows[2];
template <> struct Table<3> { static constexpr constant float rows[2] = {4, 8}; };
constant constexpr const float Table<3>::rows[2];
bool operator>(Pair p, Pair q) { return p.a > q.a; }
template <class T> float twice(T v) { typedef T U; U w[2] = {v, v}; return w[0] + w[1]; }
device const float *row_of(device const float *p, uint i) { return p + 3 * i; }
device const float *either(device const float *p, bool b) { if (b) return p + 1; return p; }
device float &at(device float *p, uint i) { return p[i]; }
thread float &pick(thread float *p, uint k) { return p[k]; }
struct Triple { float v[3]; thread float &operator[](int k) thread { return v[k]; } };
struct Total { float s; thread Total &add(float v) thread { s += v; return *this; } };
template <class T, int N = 3> struct Rows { using row_type = T; static constexpr constant int n = N; };
"""
#: Bodies, and the derivative of ``y[i]`` by ``x[3 * i]``; each reads three elements of its own.
BODIES = {
    "a function that returns a pointer": (
        "y[i] = row_of(x, i)[0] * row_of(x, i)[1];", lambda x: x[1],
    ),
    "one with two returns": ("y[i] = *either(x + 3 * i, n > 0) * x[3 * i];", lambda x: x[1]),
    "a function that returns a reference to memory": (
        "at(y, i) = x[3 * i] * x[3 * i + 2];", lambda x: x[2],
    ),
    "one to an element of an array": (
        "float v[2] = {x[3 * i], 2}; pick(v, 1) = v[0] * 3; y[i] = v[1] * v[0];",
        lambda x: 6 * x[0],
    ),
    "one whose index changes later": (
        """float v[3] = {x[3 * i], x[3 * i + 1], 5}; int k = 0;
        thread float &r = pick(v, k); k = 2; y[i] = r * v[1];""",
        lambda x: x[1],
    ),
    "an operator that returns a reference": (
        "Triple t; t[0] = x[3 * i]; t[1] = 3 * t[0]; y[i] = t[0] * t[1];", lambda x: 6 * x[0],
    ),
    "calls of a member that returns its object": (
        """Total t = {0}; t.add(x[3 * i]).add(x[3 * i] * x[3 * i + 1]).s += x[3 * i + 2];
        y[i] = t.s;""",
        lambda x: 1 + x[1],
    ),
    "a pointer that is set later": (
        "device const float *p; p = x + 3 * i; y[i] = p[0] * p[1]; p += 1; y[i] += p[0];",
        lambda x: x[1],
    ),
    "one that a loop sets": (
        """device const float *p; float s = 0;
        for (int k = 0; k < n; k++) { p = x + 3 * i + k; s += *p * *p; } y[i] = s + *p;""",
        lambda x: 2 * x[0],
    ),
    "one that a branch sets": (
        """device const float *p = nullptr;
        if (i % 2 == 0) p = x + 3 * i; else p = x + 3 * i + 1; y[i] = *p * x[3 * i];""",
        lambda x: None,
    ),
    "a null pointer as an argument": (
        "y[i] = plus_one(x + 3 * i, nullptr) * x[3 * i + 1];", lambda x: x[1],
    ),
    "a choice of a null pointer": (
        """threadgroup float m[32]; m[i] = x[3 * i];
        threadgroup float *p = n > 0 ? m : nullptr; y[i] = p[i] * x[3 * i + 2];""",
        lambda x: x[2],
    ),
    "a choice of offsets": (
        """device const float *p = x + 3 * i; p = i % 2 ? p + 1 : p;
        device const float *q = i % 2 ? p - 1 : p; y[i] = *p * *q;""",
        lambda x: None,
    ),
    "the address of a number": (
        "float s = 0; sum_into(&s, x + 3 * i, 1); y[i] = s;", lambda x: 2 * x[0],
    ),
    "an array as a pointer that moves": (
        "float s[3] = {}; sum_into(s, x + 3 * i, n); y[i] = s[0] * s[1];",
        lambda x: 2 * x[0] * x[1] ** 2,
    ),
    "bytes of integers": (
        "device const uchar *b = (device const uchar *)(words + i); y[i] = x[3 * i] * (b[0] + b[3]);",
        lambda x: 3 + 7,
    ),
    "integers of bytes": (
        """device const ushort *h = (device const ushort *)words;
        device const uint *w = (device const uint *)(h + 2 * i); y[i] = x[3 * i] * (*w >> 24);""",
        lambda x: 7,
    ),
    "a static member": (
        "Sum sum; y[i] = x[3 * i] * (sum(x[3 * i], sum.init));", lambda x: 2 * x[0] + 0.5,
    ),
    "a table of a struct": ("y[i] = x[3 * i] * Table<3>::rows[i * 0 + 1];", lambda x: 8),
    "an operator that compares": (
        """Pair p = {x[3 * i], 1}, q = {x[3 * i + 1], 2};
        y[i] = p > q ? p.a * p.a : 3 * p.a;""",
        lambda x: 2 * x[0] if x[0] > x[1] else 3,
    ),
    "aliases of functions": (
        "y[i] = twice(x[3 * i]) * twice(int(2)) + twice(half(1));", lambda x: 8,
    ),
    "an alias of a template with a default": (
        "threadgroup Rows<float>::row_type m[Rows<float>::n * 32]; m[i] = x[3 * i]; y[i] = m[i] * m[i];",
        lambda x: 2 * x[0],
    ),
    "an assertion": ("assert(n == 3 && x[3 * i] > 0); y[i] = x[3 * i] * n;", lambda x: 3),
    "a constant that is not a number": (
        "float v = x[3 * i]; y[i] = v > 100 ? float(NAN) : v * v;", lambda x: 2 * x[0],
    ),
}  # fmt: skip


def kernel_of(body):
    return mtl.library(f"{HEADER}{HELPERS}{HEAD} {{ {body} }}", device="cpu").k


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name):
    body, slope = BODIES[name]
    adjoint = kernel_of(body).vjp(wrt=["x"], outputs=["y"])
    x = np.random.default_rng(0).uniform(0.5, 2, 24).astype(np.float32)
    words, d_x = np.full(8, 0x07020103, np.uint32), np.zeros_like(x)
    y, ones = np.zeros(8, np.float32), np.ones(8, np.float32)
    adjoint(x, words, y, 3, ones, d_x, threads=8, group_size=8)
    expected = [slope(row) for row in x.reshape(8, 3).astype(np.float64)]
    if expected[0] is None:  # a product with the next element in every second thread
        expected = [x[3 * i + 1] if i % 2 else 2 * x[3 * i] for i in range(8)]
    np.testing.assert_allclose(d_x[::3], expected, rtol=2e-6)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("device const float *p; y[i] = *p * x[i];", "pointer 'p' points to nothing"),
        ("device const float *p; p = i % 2 ? x : (device const float *)y; y[i] = *p;", "rule"),
        ("device const float *p = x + i, *q = i % 2 ? p : y + i; y[i] = *q;", "chosen at run"),
        ("device const float *p = (device const float *)words; y[i] = p[i] * x[i];", "as one to"),
    ],
)
def test_refused(body, why):
    with pytest.raises(mtl.CompileError, match=why):
        kernel_of(body).vjp(wrt=["x"], outputs=["y"])
