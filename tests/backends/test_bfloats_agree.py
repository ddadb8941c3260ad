"""bfloats in vector code: bits in memory and choices, floats in arithmetic."""

import re

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu import host
from metalloid.backends.cpu.compile import vector

pytestmark = pytest.mark.needs("the CPU")

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
ROUND = "kernel void f(device bfloat* y, device const float* x, uint i [[thread_position_in_grid]])"
WIDEN = "kernel void f(device float* y, device const bfloat* x, uint i [[thread_position_in_grid]])"

#: Operations on bfloats a, b and an int n.
OPERATIONS = (
    "a + b", "a - b", "a * b", "a / b", "-a", "a < b ? a : b", "a == b ? bfloat(1.5) : a",
    "abs(a)", "min(a, b)", "max(a, b)", "floor(a)", "rint(a)", "copysign(a, b)", "fma(a, b, a)",
    "bfloat(n)", "bfloat(uint(n))", "bfloat(int(clamp(a, bfloat(-9), bfloat(9))))", "bfloat(half(a))",
    "as_type<bfloat>(ushort(as_type<ushort>(a) ^ 1))", "bfloat4(a, b, a + b, b)[n & 3]", "table[n & 3]",
    "simd_shuffle_xor(a, 5)", "simd_sum(a)", "n & 1 ? a : b", "shared[i ^ 3]", "exp(a)",
)  # fmt: skip
ARITHMETIC = """
kernel void f(device bfloat* y, device const bfloat* x, uint t [[thread_position_in_grid]],
              uint i [[thread_index_in_threadgroup]]) {
  bfloat a = x[2 * t], b = x[2 * t + 1];
  int n = int(t * 2654435761u) >> 8;
  bfloat table[4] = {a, b, bfloat(-2.5), b};
  table[n >> 2 & 3] = bfloat(0.1f);
  threadgroup bfloat shared[64];
  shared[i] = b;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bfloat r = a;
  if (t % 7 != 3) r = EXPRESSION;
  y[t] = r;
}
"""


def numbers():
    """Every upper half of a float, with lower halves about a tie."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (upper[:, None] | lower).reshape(-1).view(np.float32)


def test_rounding_is_to_the_nearest_even():
    x = numbers()
    y = np.zeros(x.size, ml_dtypes.bfloat16)
    with mtl.config.scope(cpu_engine="simd"):
        mtl.library(f"{HEADER}{ROUND} {{ y[i] = bfloat(x[i]); }}").f(y, x, threads=x.size)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(ml_dtypes.bfloat16)
    is_nan = np.isnan(x)
    np.testing.assert_array_equal(y.view(np.uint16)[~is_nan], expected.view(np.uint16)[~is_nan])
    assert np.isnan(y[is_nan].astype(np.float32)).all()


def test_every_bfloat_becomes_its_float():
    x = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    y = np.zeros(x.size, np.float32)
    with mtl.config.scope(cpu_engine="simd"):
        mtl.library(f"{HEADER}{WIDEN} {{ y[i] = x[i]; }}").f(y, x, threads=x.size)
    np.testing.assert_array_equal(y.view(np.uint32), np.arange(1 << 16, dtype=np.uint32) << 16)


@pytest.mark.parametrize("expression", OPERATIONS)
@pytest.mark.sample(4)
def test_the_engines_agree(expression):
    rng = np.random.default_rng(3)
    x = rng.normal(size=2 * 640).astype(np.float32) * np.exp2(rng.integers(-8, 8, 2 * 640))
    x[::50] = np.resize([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, 1e-40, -1e-40], x[::50].size)
    x = x.astype(ml_dtypes.bfloat16)
    results = {}
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            kernel = mtl.library(HEADER + ARITHMETIC.replace("EXPRESSION", expression)).f
            results[engine] = np.zeros(640, ml_dtypes.bfloat16)
            kernel(results[engine], x, threads=640, group_size=64)
    assert kernel.engine.startswith("simd")
    a, b = (y.astype(np.float32) for y in results.values())
    same = (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))
    assert same.all(), np.flatnonzero(~same)[:8]


def test_no_vector_of_bfloats_is_more_than_a_cast():
    """LLVM takes them apart on most processors."""
    text = ARITHMETIC.replace("EXPRESSION", "a < b ? table[n & 3] - a * b : abs(-b)")
    with mtl.config.scope(cpu_engine="simd"):
        code = mtl.library(HEADER + text).f.asm["ll"]
    lines = [line for line in code.splitlines() if re.search(r"<\d+ x bfloat>", line)]
    width = max(vector.lanes(host.vector_extension())[0])
    assert any(f"<{width} x i16>" in line for line in code.splitlines())
    assert all(" = bitcast " in line for line in lines), lines
