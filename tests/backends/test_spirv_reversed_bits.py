"""Reversal of bits in SPIR-V, which has no instruction for it outside of graphics."""

import ctypes

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.opencl.compile.reversed_bits import reverse_bits_by_shifts
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.link import shared_object

TYPES = {"uchar": "u1", "short": "i2", "uint": "u4", "long": "i8", "ushort2": "u2", "char4": "i1"}
KERNEL = """
#include <metal_stdlib>
using namespace metal;
kernel void reverse(device {0}* y, device const {0}* x, uint i [[thread_position_in_grid]])
{{
    y[i] = reverse_bits(x[i]);
}}
"""


def reverse(number, bits):
    return int(f"{number:0{bits}b}"[::-1], 2)


@pytest.mark.parametrize("lanes", [0, 2, 3])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_functions_reverse_as_the_intrinsic_does(bits, lanes, tmp_path):
    type, suffix = (f"<{lanes} x i{bits}>", f"v{lanes}i{bits}") if lanes else (f"i{bits}",) * 2
    ir = reverse_bits_by_shifts(
        f"define void @reverse(ptr %x, ptr %y) {{\nentry:\n  %a = load {type}, ptr %x, align 1\n"
        f"  %r = tail call {type} @llvm.bitreverse.{suffix}({type} %a)\n"
        f"  store {type} %r, ptr %y, align 1\n  ret void\n}}\n\n"
        f"declare {type} @llvm.bitreverse.{suffix}({type}) #1\n"
        "attributes #1 = { nounwind }\n"
    )
    assert "llvm.bitreverse" not in ir
    path = tmp_path / "reverse.o"
    command = ["clang", "-x", "ir", "-O1", "-fPIC", "-w", "-c", "-o", str(path), "-"]
    outcome = clang.run(command, ir)
    assert not outcome.status, outcome.messages
    library = path.with_suffix(".so")
    library.write_bytes(shared_object({path.name: path.read_bytes()}, path.stem))
    x = np.random.default_rng(1).integers(0, 256, 4 * bits // 8, np.uint8).view(f"u{bits // 8}")
    y = np.zeros_like(x)
    call = ctypes.CDLL(str(library)).reverse
    call(*(ctypes.c_void_p(array.ctypes.data) for array in (x, y)))
    count = lanes or 1
    assert y[:count].tolist() == [reverse(int(n), bits) for n in x[:count]]


@pytest.mark.parametrize("type", TYPES)
def test_kernels_compile_and_agree(type):
    text = KERNEL.format(type)
    assert mtl.library(text, target="spirv").reverse.modules["spv"]
    try:
        kernel = mtl.library(text, device="opencl").reverse
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"opencl: {error}")
    dtype = np.dtype(TYPES[type])
    x = np.random.default_rng(2).integers(0, 256, 64 * dtype.itemsize, np.uint8).view(dtype)
    y = np.zeros_like(x)
    kernel(y, x, threads=x.size // int(type[-1] if type[-1].isdigit() else 1))
    bits = 8 * dtype.itemsize
    unsigned = f"u{dtype.itemsize}"
    assert y.view(unsigned).tolist() == [reverse(int(n), bits) for n in x.view(unsigned)]
