"""Integers that SPIR-V does not have: what replaces them computes what LLVM does for this machine."""

import ctypes
import itertools
import struct

import numpy as np
import pytest

from metalloid.backends.opencl.compile.binary_modules import has_impossible_indices
from metalloid.backends.opencl.compile.pipeline import legalize_integers
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.link import shared_object

#: Bodies of a function of two 64-bit numbers, %a and %b.
NARROW = """
  %x = trunc i64 %a to i3
  %y = trunc i64 %b to i3
  %m = mul i3 %x, %y
  %s = sub i3 %m, 5
  %w = zext i3 %s to i64
  %signed = sext i3 %s to i64
  %t = sext i3 %s to i20
  %u = zext i20 %t to i64
  %less = icmp ult i3 %x, %y
  %v = select i1 %less, i64 %u, i64 %w
  %z = shl i64 %v, 32
  %r = xor i64 %z, %signed
"""
HIGH_PRODUCT = """
  %x = zext i64 %a to i128
  %y = zext i64 %b to i128
  %p = mul i128 %x, %y
  %q = sub i128 %p, %y
  %s = add i128 %q, 340282366920938463463374607431768211455
  %h = lshr i128 %s, 64
  %high = trunc i128 %h to i64
  %low = trunc i128 %s to i64
  %is_less = icmp slt i128 %s, %q
  %is_above = icmp uge i128 %s, %x
  %is_equal = icmp eq i128 %p, %x
  %i = zext i1 %is_less to i64
  %j = zext i1 %is_above to i64
  %k = zext i1 %is_equal to i64
  %j2 = shl i64 %j, 1
  %k2 = shl i64 %k, 2
  %f = add i64 %i, %j2
  %g = add i64 %f, %k2
  %n = xor i64 %high, %low
  %r = add i64 %n, %g
"""
VECTORS = """
  %v0 = insertelement <4 x i32> zeroinitializer, i32 7, i64 3
  %low = trunc i64 %a to i32
  %v1 = insertelement <4 x i32> %v0, i32 %low, i64 0
  %w = bitcast <4 x i32> %v1 to i128
  %p = lshr i128 %w, 96
  %q0 = insertelement <2 x i128> poison, i128 %w, i64 0
  %q1 = insertelement <2 x i128> %q0, i128 %p, i64 1
  %t = trunc <2 x i128> %q1 to <2 x i32>
  %both = bitcast <2 x i32> %t to i64
  %r = xor i64 %both, %b
"""
BITS = """
  %c0 = icmp ult i64 %a, %b
  %c1 = icmp ugt i64 %b, 7
  %v0 = insertelement <2 x i1> poison, i1 %c0, i64 0
  %v1 = insertelement <2 x i1> %v0, i1 %c1, i64 1
  %n = bitcast <2 x i1> %v1 to i2
  %r = zext i2 %n to i64
"""
NUMBERS = (
    0, 1, 2, 5, 7, 8, 255, 2**31, 2**32 - 1, 2**32, 0x123456789ABCDEF0, 2**63, 2**64 - 1,
)  # fmt: skip


def module(body):
    return (
        "define i64 @mtl_kernel(i64 %a, i64 %b) {\nentry:\n"
        f"{body.strip(chr(10))}\n  ret i64 %r\n}}\n"
    )


def results(ir, folder, name):
    path = folder / f"{name}.o"
    command = ["clang", "-x", "ir", "-O1", "-fPIC", "-w", "-c", "-o", str(path), "-"]
    outcome = clang.run(command, ir)
    assert not outcome.status, outcome.messages
    library = folder / f"{name}.so"
    library.write_bytes(shared_object({path.name: path.read_bytes()}, name))
    function = ctypes.CDLL(str(library)).mtl_kernel
    function.argtypes, function.restype = (ctypes.c_uint64,) * 2, ctypes.c_uint64
    return np.array([function(a, b) for a, b in itertools.product(NUMBERS, repeat=2)], np.uint64)


BODIES = {"narrow": NARROW, "wide": HIGH_PRODUCT, "vectors": VECTORS, "bits": BITS}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_other_widths(body, tmp_path):
    ir = module(body)
    legal = legalize_integers(ir)
    assert not any(f"i{bits} " in legal for bits in (2, 3, 20, 128))
    np.testing.assert_array_equal(results(legal, tmp_path, "b"), results(ir, tmp_path, "a"))


def test_a_signed_comparison_is_refused():
    body = "  %x = trunc i64 %a to i3\n  %c = icmp slt i3 %x, 1\n  %r = zext i1 %c to i64\n"
    with pytest.raises(Unsupported, match="icmp of an integer of i3"):
        legalize_integers(module(body))


def test_nonsense_in_place_of_an_index():
    def module(index):
        words = (0x07230203, 0x10400, 0, 9, 0, 5 << 16 | 81, 1, 2, 3, index)  # OpCompositeExtract
        return struct.pack(f"<{len(words)}I", *words)

    assert not has_impossible_indices(module(15))
    assert has_impossible_indices(module(676496504))
