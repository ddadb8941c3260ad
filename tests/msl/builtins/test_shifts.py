"""Shifts of vectors by vectors and scalars of any integer type, of which the low bits count."""

import numpy as np
import pytest
from msl_types import DTYPES, INTEGERS, SIGNED, vector
from sheets import HEADER, Row, Sheet

import metalloid as mtl

FORMS = {
    "vector": "A {op} C",
    "assignment": "y = A; y {op}= C;",
    "volatile": "volatile V t = A; t {op}= C; y = V(t);",
    "packed amounts": "A {op} packed_U(C)",
    "packed": "packed_V p = A; p {op}= C; y = p;",
    "packed operands": "packed_V(A) {op} packed_U(C)",
    "scalar": "A {op} C.x",
    "scalar assignment": "y = A; y {op}= C.y;",
}


def shifted(op, amounts, is_scalar):
    """The oracle: on Python integers, by the low bits of the amounts, reduced to the type."""
    move = {"<<": np.left_shift, ">>": np.right_shift}[op]
    column = {"scalar": slice(0, 1), "scalar assignment": slice(1, 2)}.get(is_scalar, slice(None))

    def oracle(a, c):
        bits = 8 * a.dtype.itemsize
        exact = move(a.astype(object), (c[:, column] & (bits - 1)).astype(object))
        return (exact & ((1 << bits) - 1)).astype(np.uint64).astype(a.dtype)

    oracle.names = amounts
    return oracle


def rows(type_):
    """Each form with each type of the amounts, once in each of three widths in turn."""
    cases = [(form, op, amount) for form in FORMS for op in ("<<", ">>") for amount in INTEGERS]
    for number, (form, op, amount) in enumerate(cases):
        lanes = 2 + (number // 2 + number % 2) % 3
        text = FORMS[form].format(op=op).replace("packed_U", f"packed_{vector(amount, lanes)}")
        text = text.replace("C", f"{vector(amount, lanes)}(c{lanes})").replace("A", f"a{lanes}")
        oracle = shifted(op, (f"a{lanes}", f"c{lanes}"), form)
        yield Row(vector(type_, lanes), text.replace("V", vector(type_, lanes)), oracle)


def sheets(type_):
    inputs = {f"a{n}": vector(type_, n) for n in (2, 3, 4)} | {
        f"c{n}": vector("long", n) for n in (2, 3, 4)
    }
    info = np.iinfo(DTYPES[type_])

    def data(rng):
        values = {f"a{n}": rng.integers(info.min, info.max, (200, n), info.dtype, endpoint=True) for n in (2, 3, 4)}  # fmt: skip
        return values | {f"c{n}": rng.integers(-300, 300, (200, n)) for n in (2, 3, 4)}

    every = list(rows(type_))
    for start in range(0, len(every), 22):
        yield Sheet(f"shifts-{type_}-{start}", inputs, data, every[start : start + 22])


SOME = [sheet for type_ in ("int", "uint") for sheet in sheets(type_)][::2]


@pytest.mark.parametrize("sheet", SOME, ids=str)
@pytest.mark.sample(1)
def test_shifts_by_any_integer_type(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.slow
@pytest.mark.parametrize("sheet", [s for type_ in INTEGERS for s in sheets(type_)], ids=str)
def test_shifts_of_every_integer_type_by_any(sheet, kernel):
    sheet.check(kernel)


def scalar_sheet(type_):
    """Scalars: an `int` results from all that are smaller, and its bits count."""
    bits = 8 * max(DTYPES[type_].itemsize, 4)
    wide = {32: np.int32, 64: np.int64}[bits]
    wide = np.dtype(wide if type_ in SIGNED or DTYPES[type_].itemsize < 4 else f"u{bits // 8}")

    def oracle(op):
        move = {"<<": np.left_shift, ">>": np.right_shift}[op]

        def shifted(a, c):
            exact = move(a.astype(wide).astype(object), (c & (bits - 1)).astype(object))
            return (exact & ((1 << bits) - 1)).astype(np.uint64).astype(DTYPES[type_])

        return shifted

    info = np.iinfo(DTYPES[type_])
    amounts = [("int", "c"), ("uint", "uint(c)"), ("ushort", "ushort(c)"), ("long", "c * 1l")]
    rows = [
        Row(type_, text.replace("OP", op).replace("C", amount), oracle(op))
        for op in ("<<", ">>")
        for text in (f"{type_}(a OP (C))", "y = a; y OP= C;")
        for _, amount in amounts
    ]
    return Sheet(
        f"scalar-shifts-{type_}",
        {"a": type_, "c": "int"},
        lambda rng: {
            "a": rng.integers(info.min, info.max, 200, info.dtype, endpoint=True),
            "c": rng.integers(-300, 300, 200, np.int32),
        },
        rows,
    )


@pytest.mark.parametrize("sheet", [scalar_sheet(type_) for type_ in INTEGERS], ids=str)
@pytest.mark.sample(2)
def test_shifts_of_scalars_take_the_low_bits_of_the_amount(sheet, kernel):
    sheet.check(kernel)


def test_shifts_are_constants():
    """They shift in constant expressions, and amounts of other types meet no other operator."""
    library = f"""{HEADER}
        constexpr constant int2 shifted = int2(1) << uint2(3, 33);
        kernel void f(device int2* y) {{ y[0] = shifted; y[1].xy <<= ushort2(1); }}"""
    y = np.ones((2, 2), np.int32)
    mtl.library(library).f(y, threads=1)
    assert y.tolist() == [[8, 2], [2, 2]]
    with pytest.raises(mtl.CompileError, match="invalid operands"):
        mtl.library(f"{HEADER} kernel void f(device int2* y) {{ y[0] = y[0] + uint2(1); }}")
    with pytest.raises(mtl.CompileError, match="invalid operands"):
        mtl.library(f"{HEADER} kernel void f(device int2* y) {{ y[0] = y[0] << uint3(1); }}")
