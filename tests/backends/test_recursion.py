"""Recursion of a known depth is vector code; any other runs on the reference engine."""

import numpy as np
import pytest

import metalloid as mtl

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
KERNEL = "kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] = f(x[i]); }"


def polynomial(x, depth):
    if depth == 0:
        return x
    a = polynomial(x, depth - 1)
    return a * a * np.float32(0.125) + polynomial(a, depth - 1)


BOUNDED = {
    "a reflection, as Bessel functions have it": (
        "float f(float x) { if (x < 0.0f) return -f(-x); return sqrt(x) + 1; }",
        lambda x: np.where(x < 0, -1, 1) * (np.sqrt(np.abs(x)) + np.float32(1)),
    ),
    "a reflection in a template": (
        "template <typename T> T g(T x) { if (x < 0) { return 1 - g(-x); } return x * x; }"
        "float f(float x) { return g(x); }",
        lambda x: np.where(x < 0, 1 - x * x, x * x),
    ),
    "a member": (
        "struct S { float g(float x) const { return x < 0 ? g(-x) * 2 : x; } };"
        "float f(float x) { S s; return s.g(x); }",
        lambda x: np.where(x < 0, -2 * x, x),
    ),
    "two functions that call each other": (
        "float g(float x); float f(float x) { return x >= 1 ? 2 * g(x) : x * x; }"
        "float g(float x) { return x < 1 ? f(x) : x + 1; }",
        lambda x: np.where(x >= 1, 2 * (x + 1), x * x),
    ),
    "a number of times": (
        "float g(float x, int n) { if (n == 0) return x; float a = g(x, n - 1);"
        " return a * a * 0.125f + g(a, n - 1); } float f(float x) { return g(x, 3); }",
        lambda x: polynomial(x, 3),
    ),
}
X = np.arange(-64, 64, dtype=np.float32) / 64


@pytest.mark.parametrize("name", BOUNDED)
def test_recursion_of_a_known_depth_is_vector_code(name):
    functions, oracle = BOUNDED[name]
    lib = mtl.library(HEADER + functions + KERNEL)
    x = X.copy()
    lib.k(x, threads=x.size)
    np.testing.assert_allclose(x, oracle(X.astype(np.float64)), rtol=1e-6, atol=1e-7)
    with mtl.config.scope(cpu_engine="reference"):
        reference = X.copy()
        mtl.library(HEADER + functions + KERNEL).k(reference, threads=x.size)
    np.testing.assert_array_equal(x, reference)
    if mtl.config.cpu_engine == "simd":
        assert lib.k.engine.startswith("simd"), lib.k.engine


def test_recursion_as_deep_as_the_values_say():
    lib = mtl.library(
        f"{HEADER} float f(float x) {{ return x > 1 ? 1 + 2 * f(x / 2) : x; }} {KERNEL}"
    )
    x = np.exp2(np.arange(20, dtype=np.float32))
    lib.k(x, threads=20)
    assert x.tolist() == [2.0 ** (n + 1) - 1 for n in range(20)]
    assert "no vector form: recursion" in lib.k.engine or mtl.config.cpu_engine == "reference"
