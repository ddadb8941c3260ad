"""Which private arrays are interleaved, and what becomes of the distances in them."""

import pytest

from metalloid.compiler.analysis.shapes import lane_step
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.transforms.lower_memcpy import lower_memcpy
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors
from metalloid.compiler.transforms.soa_private import soa_private

WIDTH = 16


def interleaved(array, body):
    """The function with `body`, whose array is `%a`, after the pass."""
    text = f"define void @f(i64 %i, i32 %n, ptr %p) {{\nentry:\n  %a = alloca {array}\n{body}\n  ret void\n}}\n"
    function = parse_function(text, "f")
    lower_memcpy(function)
    scalarize_vectors(function)
    soa_private(function, WIDTH)
    return {i.result: i for i in function.instructions() if i.result}


def test_elements_of_lanes_are_contiguous():
    instructions = interleaved(
        "[8 x float]",
        "  %q = getelementptr [8 x float], ptr %a, i64 0, i32 %n\n"
        "  %r = getelementptr i8, ptr %q, i64 12\n"
        "  %v = load float, ptr %r",
    )
    assert lane_step(instructions["%a"]) == 4
    assert instructions["%q~0~index"].op == "sext"
    assert instructions["%q~0~distance"].operands[1].integer == 4 * WIDTH
    assert instructions["%r"].operands[1].integer == 12 * WIDTH
    assert instructions["%v"].align == 4


@pytest.mark.parametrize(
    ("array", "size", "body"),
    [
        ("[4 x <4 x float>]", 4, "%q = getelementptr <4 x float>, ptr %a, i64 %i\n"
         "%v = load <4 x float>, ptr %q, align 16"),
        ("[8 x half]", 2, "call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 16, i1 false)\n"
         "%q = getelementptr half, ptr %a, i64 %i\n%v = load half, ptr %q"),
        ("[2 x { i32, float }]", 4, "%q = getelementptr { i32, float }, ptr %a, i64 %i, i32 1\n"
         "%v = load float, ptr %q"),
        ("[8 x float]", 4, "%j = shl i64 %i, 2\n%q = getelementptr i8, ptr %a, i64 %j\n"
         "%v = load float, ptr %q"),
    ],
)  # fmt: skip
def test_arrays_of_one_size_of_element(array, size, body):
    assert lane_step(interleaved(array, body)["%a"]) == size


@pytest.mark.parametrize(
    ("array", "body"),
    [
        ("[2 x { i32, i8 }]", "%v = load i32, ptr %a\n%q = getelementptr i8, ptr %a, i64 4\n"
         "%w = load i8, ptr %q"),
        ("[8 x float]", "store ptr %a, ptr %p\n%v = load float, ptr %a"),
        ("[8 x float]", "%q = getelementptr i8, ptr %a, i64 %i\n%v = load float, ptr %q"),
        ("[8 x float]", "%c = icmp eq i32 %n, 0\n%q = select i1 %c, ptr %a, ptr %p\n"
         "%v = load float, ptr %q\n%w = load float, ptr %a"),
        ("[8 x i32]", "%v = load volatile i32, ptr %a"),
        ("[8 x i32]", "%v = atomicrmw add ptr %a, i32 1 monotonic\n%w = load i32, ptr %a"),
        ("[9 x i8]", "%v = load i32, ptr %a"),
    ],
)  # fmt: skip
def test_others_stay_in_one_piece(array, body):
    instructions = interleaved(array, body)
    assert not instructions["%a"].lane_step
    assert lane_step(instructions["%a"]) == instructions["%a"].source.size
