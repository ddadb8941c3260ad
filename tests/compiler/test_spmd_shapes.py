"""Shapes: what is claimed of the lanes of a value holds for every base that the claim allows."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metalloid.compiler.analysis.shapes import (
    VARYING,
    Shape,
    alignment_of,
    consecutive,
    join,
    shape_of,
    uniform,
)
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import FLOAT, I1, I8, I32, I64, POINTER, Array, Struct

WIDTH = 8
MODULUS = 2**32

OPERATIONS = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "shl": lambda x, y: x << (y % 32), "lshr": lambda x, y: x >> (y % 32),
    "ashr": lambda x, y: (x - (x >> 31 << 32)) >> (y % 32),
    "and": lambda x, y: x & y, "udiv": lambda x, y: x // y if y else 0,
    "urem": lambda x, y: x % y if y else 0,
}  # fmt: skip


@st.composite
def indexed(draw):
    """A shape and a base that it allows."""
    align = draw(st.integers(0, 6))
    kind = draw(st.sampled_from(["uniform", "row", "tile", "any"]))
    offsets = {
        "uniform": [0] * WIDTH,
        "row": list(range(WIDTH)),
        "tile": [n % 4 for n in range(WIDTH)],
        "any": [0, *draw(st.lists(st.integers(-64, 64), min_size=WIDTH - 1, max_size=WIDTH - 1))],
    }[kind]
    base = draw(st.integers(0, 2**26 - 1)) << align
    return Shape(tuple(offsets), align), base


@given(st.sampled_from(list(OPERATIONS)), indexed(), st.integers(0, 40) | st.integers(0, 2**32 - 1))
def test_operations_with_a_constant(op, given_shape, constant):
    shape, base = given_shape
    if op in ("shl", "lshr", "ashr"):
        constant %= 32  # further is poison
    operands = [Value(I32, "%x"), Value(I32, str(constant))]
    result = shape_of(
        Instruction(op, "%r", I32, operands),
        [shape, uniform(WIDTH, alignment_of(constant))],
        WIDTH,
    )
    lanes = [OPERATIONS[op]((base + o) % MODULUS, constant) % MODULUS for o in shape.offsets]
    check(result, lanes)


COMPARISONS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge,
}  # fmt: skip


@given(
    st.sampled_from(["eq", "ne", *(s + o for s in "us" for o in ("lt", "le", "gt", "ge"))]),
    indexed(), st.integers(-64, 64), st.integers(-1, 1), st.integers(0, 2**32 - 1), st.booleans(),
)  # fmt: skip
def test_comparisons_that_all_lanes_agree_on(how, given_shape, near, off, any_number, is_near):
    shape, base = given_shape
    number = (base + (near << shape.align) + off if is_near else any_number) % MODULUS
    operands = [Value(I32, "%x"), Value(I32, str(number))]
    result = shape_of(
        Instruction("icmp", "%r", I1, operands, predicate=how),
        [shape, uniform(WIDTH, alignment_of(number))],
        WIDTH,
    )
    sign = MODULUS // 2 if how[0] == "s" else 0
    lanes = [(base + o) % MODULUS for o in shape.offsets]
    compared = [COMPARISONS[how[-2:]]((lane ^ sign), (number ^ sign)) for lane in lanes]
    assert result.is_varying or compared == [compared[0]] * WIDTH


@pytest.mark.parametrize(
    ("how", "limit", "align"),
    [("ult", "128", 7), ("ult", "%n", 3), ("uge", "8", 3), ("ugt", "63", 0), ("sgt", "-1", 0),
     ("sle", "7", 0)],
)  # fmt: skip
def test_lanes_of_an_aligned_index_are_all_below_a_limit_or_none(how, limit, align):
    operands = [Value(I32, "%x"), Value(I32, limit)]
    comparison = Instruction("icmp", "%r", I1, operands, predicate=how)
    shapes = [consecutive(WIDTH, align=3), uniform(WIDTH, align)]
    assert shape_of(comparison, shapes, WIDTH).is_uniform
    assert shape_of(comparison, [consecutive(WIDTH, align=2), shapes[1]], WIDTH).is_varying


@given(st.sampled_from(["add", "sub", "mul"]), indexed(), indexed())
def test_operations_of_two(op, first, second):
    operands = [Value(I32, "%x"), Value(I32, "%y")]
    result = shape_of(Instruction(op, "%r", I32, operands), [first[0], second[0]], WIDTH)
    lanes = [
        OPERATIONS[op](first[1] + a, second[1] + b) % MODULUS
        for a, b in zip(first[0].offsets, second[0].offsets, strict=True)
    ]
    check(result, lanes)


def check(result, lanes):
    if result.is_varying:
        return
    assert [
        (lane - lanes[0] - o) % MODULUS for lane, o in zip(lanes, result.offsets, strict=True)
    ] == [0] * WIDTH
    assert lanes[0] % (1 << min(result.align, 32)) == 0


@given(indexed(), st.booleans())
def test_widening_is_exact_only_if_no_lane_wraps(given_shape, wraps):
    shape, base = given_shape
    shape = Shape(shape.offsets, shape.align, wraps=wraps)
    operand = Value(I32, "%x")
    result = shape_of(Instruction("zext", "%r", I64, [operand]), [shape], WIDTH)
    lanes = [(base + o) % MODULUS for o in shape.offsets]
    if wraps and result.exact:
        assert [lane - lanes[0] for lane in lanes] == list(result.offsets)
    assert result.offsets == shape.offsets


@pytest.mark.parametrize("op", ["add", "sub"])
def test_what_does_not_wrap_in_active_lanes_may_in_the_first(op):
    operands = [Value(I32, "%x"), Value(I32, "%n")]
    instruction = Instruction(op, "%r", I32, operands, flags=("nuw",))
    assert shape_of(instruction, [consecutive(WIDTH), uniform(WIDTH)], WIDTH).wraps is (op == "sub")


def test_addresses():
    record = Struct((I32, Array(4, FLOAT)))
    step = Instruction(
        "getelementptr", "%r", POINTER,
        [Value(POINTER, "%p"), Value(I64, "%i"), Value(I32, "1"), Value(I64, "%j")], source=record,
    )  # fmt: skip
    row, same = consecutive(WIDTH), uniform(WIDTH)
    assert shape_of(step, [same, row, same, same], WIDTH).stride == 20
    assert shape_of(step, [same, same, same, row], WIDTH).stride == 4
    assert shape_of(step, [same, row, same, row], WIDTH).stride == 24
    assert shape_of(step, [same, VARYING, same, same], WIDTH).is_varying
    bytes_ = Instruction("getelementptr", "%r", POINTER, step.operands[:2], source=I8)
    assert shape_of(bytes_, [row, row], WIDTH).stride == 2


def test_joins_retain_common_facts():
    row = consecutive(WIDTH, align=3)
    assert join(None, row) == row
    assert join(row, consecutive(WIDTH, align=1)).align == 1
    assert join(row, uniform(WIDTH)) is VARYING
    choice = [Value(I32, name) for name in ("%c", "%x", "%y")]
    select = Instruction("select", "%r", I32, choice)
    assert shape_of(select, [uniform(WIDTH), row, row], WIDTH) == row
    assert shape_of(select, [VARYING, row, row], WIDTH).is_varying


@pytest.mark.parametrize(("number", "align"), [(1, 0), (8, 3), (24, 3), (-16, 4)])
def test_alignment(number, align):
    assert alignment_of(number) == align


def test_lanes_of_an_aligned_index():
    """The usual operations on the index in the threadgroup have known offsets."""
    index = consecutive(WIDTH, align=3)
    for op, constant, offsets in (
        ("urem", 8, tuple(range(WIDTH))),
        ("udiv", 8, (0,) * WIDTH),
        ("urem", 4, (0, 1, 2, 3, 0, 1, 2, 3)),
        ("lshr", 2, (0, 0, 0, 0, 1, 1, 1, 1)),
        ("ashr", 2, (0, 0, 0, 0, 1, 1, 1, 1)),
        ("and", MODULUS - 8, (0,) * WIDTH),
    ):
        operands = [Value(I32, "%x"), Value(I32, str(constant))]
        instruction = Instruction(op, "%r", I32, operands)
        assert shape_of(instruction, [index, uniform(WIDTH)], WIDTH).offsets == offsets
