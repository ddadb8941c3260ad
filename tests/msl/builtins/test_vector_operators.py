"""Operators of vectors, of packed vectors and of both with scalars; one rounding each, so exact."""

import numpy as np
import pytest
from judges import rounded
from msl_types import DTYPES, FLOATS, INTEGERS, SIGNED, vector
from sheets import Row, Sheet

COMPARISONS = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal,
}  # fmt: skip
LOGIC = {"&&": np.logical_and, "||": np.logical_or}
BITWISE = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
SHIFTS = {"<<": np.left_shift, ">>": np.right_shift}


def quotient(a, b):
    """Rounded towards zero."""
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def remainder(a, b):
    """With the sign of the dividend."""
    return a - b * quotient(a, b)


def in_object(function):
    """`function` on Python integers, reduced to the type afterwards."""

    def oracle(a, b):
        dtype = a.dtype
        exact = function(a.astype(object), b.astype(object))
        mask = (1 << 8 * dtype.itemsize) - 1
        bits = np.frompyfunc(lambda x: int(x) & mask, 1, 1)(exact)
        return bits.astype(np.uint64).astype(f"u{dtype.itemsize}").view(dtype)

    return oracle


def in_double(function):
    return lambda a, b: function(a.astype(np.float64), b.astype(np.float64))


INTEGER_ARITHMETIC = {
    "+": in_object(np.add), "-": in_object(np.subtract), "*": in_object(np.multiply),
    "/": in_object(quotient), "%": in_object(remainder),
}  # fmt: skip
FLOAT_ARITHMETIC = {
    "+": in_double(np.add), "-": in_double(np.subtract), "*": in_double(np.multiply),
    "/": in_double(np.divide),
}  # fmt: skip


def operand(name, function):
    """`function` of vectors a, b, c or of a scalar, which meets all components."""

    def oracle(*values):
        values = np.broadcast_arrays(*(v[:, None] if v.ndim == 1 else v for v in values))
        return function(*values)

    oracle.names = name
    return oracle


def arithmetic(type_):
    """Operators with their functions, whose right operand is `b`."""
    if type_ in FLOATS:
        return FLOAT_ARITHMETIC
    return {**INTEGER_ARITHMETIC, **BITWISE} if type_ in INTEGERS else BITWISE


class Width:
    """The rows of one type and width; inputs are `a2`, `b2` and so on, and the scalar `s`."""

    def __init__(self, type_, lanes):
        self.type, self.lanes, self.T = type_, lanes, vector(type_, lanes)
        self.a, self.b, self.c = (f"{name}{lanes}" for name in "abc")

    def binary(self, result, text, function, right="b"):
        """A row for `text` in A, B (a vector), S (a scalar) or C (how far to shift)."""
        names = {
            "b": (self.a, self.b),
            "s": (self.a, "s"),
            "c": (self.a, self.c),
            "left": ("s", self.b),
        }[right]
        return Row(result, self.filled(text), operand(names, function))

    def filled(self, text):
        for letter, name in zip("ABC", (self.a, self.b, self.c), strict=True):
            text = text.replace(letter, name)
        return text.replace("V", self.T)

    def unary(self, result, text, function):
        return Row(result, self.filled(text), operand((self.a,), function))

    def rows(self):
        T, truth, type_ = self.T, vector("bool", self.lanes), self.type
        packed = f"packed_{T}"
        for op, f in arithmetic(type_).items():
            yield self.binary(T, f"A {op} B", f)
            yield self.binary(T, f"A {op} s", f, "s")
            yield self.binary(T, f"s {op} B", f, "left")
            if type_ == "bool":
                continue
            yield self.binary(T, f"y = A; y {op}= B;", f)
            yield self.binary(T, f"y = A; y {op}= s;", f, "s")
            yield self.binary(T, f"{packed}(A) {op} {packed}(B)", f)
            yield self.binary(T, f"{packed} p = A; p {op}= B; y = p;", f)
        for op, f in {**COMPARISONS, **LOGIC}.items():
            if type_ == "bool" and op not in ("==", "!=", "&&", "||"):
                continue
            yield self.binary(truth, f"A {op} B", f)
            yield self.binary(truth, f"A {op} s", f, "s")
            yield self.binary(truth, f"s {op} B", f, "left")
        yield self.unary(truth, "!A", np.logical_not)
        if type_ == "bool":
            return
        yield self.unary(T, "+A", lambda a: a)
        yield self.unary(T, "-A", self.negative)
        one = np.ones((1, 1), DTYPES[type_])
        add, subtract = arithmetic(type_)["+"], arithmetic(type_)["-"]
        yield self.unary(T, "y = A; ++y;", lambda a: add(a, np.broadcast_to(one, a.shape)))
        yield self.unary(T, "y = A; --y;", lambda a: subtract(a, np.broadcast_to(one, a.shape)))
        yield self.unary(T, "V t = A; y = t++;", lambda a: a)
        yield self.unary(
            T, "V t = A; t--; y = t;", lambda a: subtract(a, np.broadcast_to(one, a.shape))
        )
        if type_ in INTEGERS:
            yield self.unary(T, "~A", np.invert)
            for op, f in SHIFTS.items():
                yield self.binary(T, f"A {op} C", f, "c")
                yield self.binary(T, f"y = A; y {op}= C;", f, "c")

    def negative(self, a):
        return (
            -a.astype(np.float64)
            if self.type in FLOATS
            else in_object(np.subtract)(np.zeros_like(a), a)
        )


def values(type_, size, rng):
    """Operands without overflow of signed integers, of which the language says nothing."""
    dtype = DTYPES[type_]
    if type_ in FLOATS:
        return rounded(rng.normal(scale=4, size=size), dtype)
    if type_ == "bool":
        return rng.random(size) < 0.5
    if type_ in SIGNED:
        return rng.integers(-11, 12, size, dtype)
    return rng.integers(0, np.iinfo(dtype).max, size, dtype, endpoint=True) >> rng.integers(0, 8 * dtype.itemsize, size).astype(dtype)  # fmt: skip


def data_of(type_, inputs):
    def data(rng):
        args = {}
        for name in inputs:
            size = (200, int(name[1])) if len(name) > 1 else 200
            args[name] = values(type_, size, rng)
            if name[0] == "c":
                args[name] = rng.integers(0, 8 * DTYPES[type_].itemsize, size).astype(DTYPES[type_])
            elif name[0] in "bs" and type_ in INTEGERS:
                args[name] = np.where(args[name] == 0, DTYPES[type_].type(1), args[name])
            elif name[0] == "a" and type_ in SIGNED:
                args[name][::5] = np.abs(args[name][::5])  # left shifts of these are defined
        return args

    return data


def sheets(type_, widths):
    """Sheets of at most 24 rows: a launch takes 31 arguments."""
    rows = [list(Width(type_, lanes).rows()) for lanes in widths]
    if len(widths) == 3:  # each operator in one width, in turn
        rows = [of_all[index % 3] for index, of_all in enumerate(zip(*rows, strict=True))]
    else:
        rows = rows[0]
    inputs = {f"{name}{lanes}": vector(type_, lanes) for lanes in widths for name in "abc"}
    inputs["s"] = type_
    for start in range(0, len(rows), 20):
        yield Sheet(
            f"{type_}-{'-'.join(map(str, widths))}-{start}",
            inputs,
            data_of(type_, inputs),
            rows[start : start + 20],
        )


TYPES = ("bool", *INTEGERS, *FLOATS)


SOME_TYPES = ("bool", "short", "uchar", "ulong", *FLOATS)


@pytest.mark.parametrize("sheet", [s for t in SOME_TYPES for s in sheets(t, (2, 3, 4))], ids=str)
@pytest.mark.sample(3)
def test_operators(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sheet", [s for t in TYPES for n in (2, 3, 4) for s in sheets(t, (n,))], ids=str
)
def test_operators_in_every_width(sheet, kernel):
    sheet.check(kernel)
