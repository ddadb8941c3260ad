"""Vectors and structs at any multiple of their scalars: GPUs take them, and real kernels do it."""

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl

DTYPES = {
    "char": np.int8, "ushort": np.uint16, "half": np.float16, "bfloat": ml_dtypes.bfloat16,
    "int": np.int32, "float": np.float32, "long": np.int64,
}  # fmt: skip
SOURCE = """
#include <metal_stdlib>
using namespace metal;
struct record {{ {type}4 head; {type} tail[12]; }};
kernel void vectors(device {type}* y, device const {type}* x, constant uint& at) {{
    device {type}4* to = (device {type}4*)(y + at);
    device const {type}4* from = (device const {type}4*)(x + at);
    to[0] = from[0] + from[1];
    to[1] = from[2];
}}
kernel void structs(device {type}* y, device const {type}* x, constant uint& at) {{
    *(device record*)(y + at) = *(device const record*)(x + at);
}}
"""


@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.sample(4)
def test_vectors_lie_anywhere(type_, at):
    lib = mtl.library(SOURCE.format(type=type_))
    x = np.arange(24).astype(DTYPES[type_])
    y = np.zeros_like(x)
    lib.vectors(y, x, at, threads=1)
    expected = [*(x[at : at + 4] + x[at + 4 : at + 8]), *x[at + 8 : at + 12]]
    assert y[at : at + 8].tolist() == expected
    lib.structs(y, x, at, threads=1)
    assert y[at : at + 16].tolist() == x[at : at + 16].tolist()


def test_neighbouring_members_are_stored_one_by_one_or_unaligned():
    """A long4 is aligned to 32 bytes, arrays of NumPy's to 16."""
    lib = mtl.library("""
#include <metal_stdlib>
using namespace metal;
struct S { long4 a; long b, c; };
kernel void f(device S* s, uint i [[thread_position_in_grid]]) {
    s[i].a.x = 1; s[i].a.y = 2; s[i].a.z = 3; s[i].a.w = 4; s[i].b = 5; s[i].c = 6;
}
kernel void g(device long* y, device const S* s, uint i [[thread_position_in_grid]]) {
    y[i] = s[i].a.x + s[i].a.y * 2 + s[i].a.z * 3 + s[i].a.w * 4;
}""")
    memory = np.zeros(64 * 3 + 32, np.uint8)
    start = -memory.ctypes.data % 32 + 16
    s = memory[start : start + 64 * 3].view(lib.f.dtype("s"))
    lib.f(s, threads=3)
    assert s["a"].tolist() == [[1, 2, 3, 4]] * 3
    assert (s["b"].tolist(), s["c"].tolist()) == ([5] * 3, [6] * 3)
    y = np.zeros(3, np.int64)
    lib.g(y, s, threads=3)
    assert y.tolist() == [30] * 3
