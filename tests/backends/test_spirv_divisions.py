"""Divisions of integers in SPIR-V: no operands end the process."""

import ctypes

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.opencl.compile.safe_divisors import make_divisors_safe
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.link import shared_object

WIDTHS = (8, 16, 32, 64)
OPS = ("udiv", "urem", "sdiv", "srem")


def numbers(width):
    """Operands with the extremes, as unsigned numbers."""
    least = 1 << width - 1
    some = (0, 1, 2, 3, 7, 100, least - 1, least, least + 1, -1, -2, -3, -7)
    return [n % (1 << width) for n in some]


def divided(op, width, a, b):
    """The quotient or the remainder cut off, of wrapping integers; not of division by zero."""
    if op.startswith("s"):
        a, b = (n - (n >> width - 1 << width) for n in (a, b))
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return (quotient if op.endswith("div") else a - quotient * b) % (1 << width)


def function(op, width, count):
    """A function of two addresses and one for the result, of this machine."""
    type = f"<{count} x i{width}>" if count else f"i{width}"
    ir = make_divisors_safe(
        "define void @divide(ptr %x, ptr %y, ptr %z) {\nentry:\n"
        f"  %a = load {type}, ptr %x, align 1\n  %b = load {type}, ptr %y, align 1\n"
        f"  %q = {op} {type} %a, %b\n  store {type} %q, ptr %z, align 1\n  ret void\n}}\n"
    ).replace("spir_func ", "")
    dimensions = "define i32 @_Z12get_work_dimv() {\n  ret i32 3\n}\n"
    return ir.replace("declare i32 @_Z12get_work_dimv()", dimensions)


@pytest.mark.parametrize("op", OPS)
def test_all_divisions_have_a_result(op, tmp_path):
    for width in WIDTHS:
        for count in (0, 4):
            path = tmp_path / f"{op}{width}{count}.o"
            command = ["clang", "-x", "ir", "-O1", "-fPIC", "-w", "-c", "-o", str(path), "-"]
            outcome = clang.run(command, function(op, width, count))
            assert not outcome.status, outcome.messages
            library = path.with_suffix(".so")
            library.write_bytes(shared_object({path.name: path.read_bytes()}, path.stem))
            divide = ctypes.CDLL(str(library)).divide
            for a in numbers(width):
                for b in numbers(width):
                    x, y, z = (np.full(count or 1, n, f"u{width // 8}") for n in (a, b, 0))
                    divide(*(ctypes.c_void_p(array.ctypes.data) for array in (x, y, z)))
                    if b:
                        assert (z == divided(op, width, a, b)).all(), (width, count, a, b)


TYPES = {"int": "i4", "uint": "u4", "char": "i1", "ushort": "u2", "long": "i8"}


@pytest.mark.parametrize(("type", "dtype"), TYPES.items(), ids=TYPES)
def test_kernels_that_divide_by_zero_go_on(type, dtype):
    source = f"""
    kernel void divide(device {type}* q, device const {type}* x, device const {type}* y,
                       constant uint& first, uint i [[thread_position_in_grid]])
    {{
        q[i] = x[i] / y[i];
        if (x[first] / y[first] == 1 && x[first] % y[first + 1] == 1) q[i] = 1;
        if (i % 3 == 0) q[i] += x[i] % y[i];
    }}
    """
    try:
        lib = mtl.library(source, device="opencl")
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"opencl: {error}")
    q, x, y = (np.zeros(64, dtype) for _ in range(3))
    x[:32], y[1::2] = np.iinfo(dtype).min, -1 if dtype[0] == "i" else 5
    x[32:] = 30
    lib.divide(q, x, y, 0, threads=64)
    with np.errstate(over="ignore"):  # the least number by -1 wraps
        expected = x[1::2] // y[1::2]
    expected[1::3] += x[3::6] % y[3::6]
    np.testing.assert_array_equal(q[1::2], expected)


@pytest.mark.parametrize("narrow", ["uchar", "char", "ushort", "short"])
def test_results_are_operands_of_more_bits(narrow):
    # LLVM's back end computed `and i16 %x, 255` with an %x of 32 bits, which no device links
    source = f"""
    kernel void compare(device int* result, device const int* x, device const short* y,
                        device const long* z, uint i [[thread_position_in_grid]])
    {{
        int a = x[i], b = x[i + 1] | 1;
        result[i] = y[i] > short({narrow}({narrow}(a) / {narrow}(b)));
        result[i] += 2 * (y[i] & short({narrow}({narrow}(a >> 8) % {narrow}(b))));
        result[i] ^= z[i] + {narrow}({narrow}(a >> 16) / {narrow}(b));
    }}
    """
    try:
        kernel = mtl.library(source, device="opencl").compare
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"opencl: {error}")
    x = np.random.default_rng(3).integers(0, 1 << 30, 257, np.int32)
    y = np.arange(-128, 128, dtype=np.int16)
    result, expected = np.zeros(256, np.int32), np.zeros(256, np.int32)
    kernel(result, x, y, y.astype(np.int64), threads=256)
    mtl.library(source, device="cpu").compare(expected, x, y, y.astype(np.int64), threads=256)
    assert result.tolist() == expected.tolist()
