"""Vectors of a thread that are loaded, changed and stored: arithmetic in the order of memory."""

import re

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

TEXT = """
#include <metal_stdlib>
using namespace metal;
struct mixed4 { float a; int b; float c, d; };
struct eight8 { float v[8]; };
eight8 turned(eight8 x) {
  for (int i = 0; i < 4; i++) { float a = x.v[i]; x.v[i] = x.v[7 - i]; x.v[7 - i] = a; }
  return x;
}
kernel void f(device RESULT* y, device RESULT* some, device const VECTOR* x, device const VECTOR* z,
              device const float* s, constant float4& u, uint i [[thread_position_in_grid]]) {
  VECTOR v = x[i];
  STORE
}
"""
ALL, SOME = "y[i] = EXPRESSION;", "if (s[i] > 0.5) some[i] = EXPRESSION;"
#: Of float4s whose members come about alike, and an operation that is for all at once then.
ALIKE = {
    "v * (1 / sqrt(dot(v, v)))": "fmul", "v * s[i] + z[i]": "fadd", "v * u.x - s[i]": "fsub",
    "-v / s[i]": "fdiv", "fma(v, s[i], u.y)": "llvm.fma", "s[i] * u": "fmul",
    "v * float4(1, 2, 4, 8) + s[i]": "fmul",
}  # fmt: skip
#: And of others.
SEPARATE = (
    "v.wzyx * s[i]", "float4(v.x, v.y * 2, v.z, v.w)", "v * s[i] * s[i + 1] + s[i + 2] - s[i + 3]",
    "float4(s[i], s[i + 1], 2, u.x)", "float4(v.xy * s[i], v.zw)", "v * s[i] + (v * s[i]).x",
    "float4(z[i].xy, v.zw) * s[i]", "v.x * u + v.y",
)  # fmt: skip
#: What is loaded, what is stored, and how it comes about.
OTHERS = (
    ("float2", "float2", "v * s[i] + u.xy"), ("uchar4", "float4", "float4(v) * s[i]"),
    ("half4", "half4", "v * half(s[i]) + z[i]"), ("float4", "half4", "half4(v * s[i])"),
    ("int4", "int4", "(v + z[i]) * int(i) & 255"), ("int4", "int4", "abs(v - int(i))"),
    ("packed_float3", "packed_float3", "float3(v) * s[i]"), ("uint4", "uint4", "v / (z[i] + 1) + i"),
    ("bfloat4", "bfloat4", "v * bfloat(s[i])"), ("ulong4", "ulong4", "v.yxwz ^ z[i]"),
    ("ushort4", "uint4", "uint4(v).zwxy + i"), ("eight8", "eight8", "turned(v)"),
    ("float4", "mixed4", "mixed4{1.5, 2, u.x, 3}"), ("float4", "mixed4", "mixed4{v.x, int(v.y), v.z, v.w}"),
)  # fmt: skip
DTYPES = {"bfloat": ml_dtypes.bfloat16, "half": np.float16, "float": np.float32, "uchar": np.uint8,
          "int": np.int32, "uint": np.uint32, "ulong": np.uint64, "ushort": np.uint16,
          "eight": np.float32, "mixed": np.float32}  # fmt: skip
STRUCTS = ("mixed4", "eight8")
COUNT = 101

CASES = [*(("float4", "float4", expression) for expression in (*ALIKE, *SEPARATE)), *OTHERS]


def kernel(vector, result, store, expression, engine):
    text = TEXT.replace("VECTOR", vector).replace("RESULT", result).replace("STORE", store)
    with mtl.config.scope(cpu_engine=engine):
        return mtl.library(text.replace("EXPRESSION", expression))["f"]


def results(kernel, vector, result):
    """The values that all threads store, and that some do."""

    def zeros(type):
        return np.zeros((COUNT, int(type[-1])), DTYPES[re.search("[a-z]+(?=\\d)", type)[0]])

    rng = np.random.default_rng(5)
    x, z, y, some = zeros(vector), zeros(vector), zeros(result), zeros(result)
    x[...], z[...] = (rng.integers(1, 200, x.shape).astype(x.dtype) for _ in range(2))
    s = rng.random(COUNT + 3).astype(np.float32) + np.float32(0.01)
    typed = ((y, result), (some, result), (x, vector), (z, vector))
    arrays = [a.view(f"V{a.strides[0]}") if type in STRUCTS else a for a, type in typed]
    kernel(*arrays, s, (1.5, -2.0, 0.25, 3.0), threads=COUNT)
    return y.tobytes(), some.tobytes()


def result_and_expected(vector, result, expression, store):
    return tuple(
        results(kernel(vector, result, store, expression, engine), vector, result)
        for engine in ("simd", "reference")
    )


@pytest.mark.parametrize(("vector", "result", "expression"), CASES)
@pytest.mark.sample(3)
def test_all_threads_store_what_one_after_the_other_would(vector, result, expression):
    stored, expected = result_and_expected(vector, result, expression, ALL)
    assert stored == expected


@pytest.mark.parametrize(("vector", "result", "expression"), CASES[::4])
@pytest.mark.sample(2)
def test_so_do_some(vector, result, expression):
    stored, expected = result_and_expected(vector, result, expression, SOME)
    assert stored == expected


@pytest.mark.parametrize("expression", ALIKE)
def test_members_that_come_about_alike_are_computed_at_once(expression):
    compiled = kernel("float4", "float4", ALL, expression, "simd")
    lanes = int(re.match(r"simd: (\d+) threads", compiled.engine)[1])
    at_once = f"<{4 * lanes} x float>"
    assert any(
        ALIKE[expression] in line and at_once in line for line in compiled.asm["ll"].splitlines()
    )
