"""Integer functions: every function, every integer type, exact against Python's integers."""

import numpy as np
import pytest
from builtin_functions import Builtin, sheets_of, sheets_of_all_widths
from msl_types import DTYPES, INTEGERS

UNSIGNED_OF = {name: name if name.startswith("u") else f"u{name}" for name in INTEGERS}
WORDS = ("int", "uint")


class Integer:
    """The integer type of some arrays: its width, its limits, and what becomes of other values."""

    def __init__(self, dtype):
        info = np.iinfo(dtype)
        self.lowest, self.highest, self.width = int(info.min), int(info.max), info.bits

    def bits(self, value):
        return value & ((1 << self.width) - 1)

    def wrap(self, value):
        return self.signed(value, self.width) if self.lowest < 0 else self.bits(value)

    def saturate(self, value):
        return min(max(value, self.lowest), self.highest)

    @staticmethod
    def signed(value, width):
        """The low `width` bits as a two's complement number."""
        value &= (1 << width) - 1
        return value - (1 << width) if width and value >> (width - 1) else value

    def field(self, value, width):
        """The low `width` bits, as a number of this type."""
        return self.signed(value, width) if self.lowest < 0 else value & ((1 << width) - 1)


def exactly(function):
    """`function` of an `Integer` and Python integers as a function of arrays."""
    count = function.__code__.co_argcount - 1

    def oracle(*arrays):
        type_ = Integer(arrays[0].dtype)
        objects = [array.astype(object) for array in arrays]
        return np.frompyfunc(lambda *values: function(type_, *values), count, 1)(*objects)

    oracle.operands = count
    return oracle


def reverse(t, a):
    return t.wrap(int(format(t.bits(a), f"0{t.width}b")[::-1], 2))


def rotate(t, a, b):
    left = t.bits(b) % t.width
    return t.wrap(t.bits(a) << left | t.bits(a) >> (t.width - left))


def trailing_zeros(t, a):
    return t.width if a == 0 else (t.bits(a) & -t.bits(a)).bit_length() - 1


def integers(count, type_, rng):
    """Every combination of the edge values, then random ones of all magnitudes."""
    info = np.iinfo(DTYPES[type_])
    edges = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 7]
    if info.min < 0:
        edges += [-1, -2, info.min // 2]
    edges = np.array(edges, DTYPES[type_])
    grids = np.meshgrid(*[edges if count < 3 else edges[::2]] * count)

    def random():
        bits = rng.integers(info.min, info.max, 300, DTYPES[type_], endpoint=True)
        return bits >> rng.integers(0, info.bits, 300).astype(DTYPES[type_])

    return [np.concatenate([grid.ravel(), random()]) for grid in grids]


TABLE = [
    Builtin("abs(a)", exactly(lambda t, a: t.wrap(abs(a))), INTEGERS),
    Builtin("absdiff(a, b)", exactly(lambda t, a, b: abs(a - b)), INTEGERS, result=UNSIGNED_OF),
    Builtin("addsat(a, b)", exactly(lambda t, a, b: t.saturate(a + b)), INTEGERS),
    Builtin("subsat(a, b)", exactly(lambda t, a, b: t.saturate(a - b)), INTEGERS),
    Builtin("hadd(a, b)", exactly(lambda t, a, b: a + b >> 1), INTEGERS),
    Builtin("rhadd(a, b)", exactly(lambda t, a, b: a + b + 1 >> 1), INTEGERS),
    Builtin("mulhi(a, b)", exactly(lambda t, a, b: a * b >> t.width), INTEGERS),
    Builtin("madhi(a, b, c)", exactly(lambda t, a, b, c: t.wrap((a * b >> t.width) + c)), INTEGERS),
    Builtin("madsat(a, b, c)", exactly(lambda t, a, b, c: t.saturate(a * b + c)), INTEGERS),
    Builtin("mul24(a, b)", exactly(lambda t, a, b: t.wrap(t.field(a, 24) * t.field(b, 24))), WORDS),
    Builtin("mad24(a, b, c)", exactly(lambda t, a, b, c: t.wrap(t.field(a, 24) * t.field(b, 24) + c)), WORDS),
    Builtin("clz(a)", exactly(lambda t, a: t.width - t.bits(a).bit_length()), INTEGERS),
    Builtin("ctz(a)", exactly(trailing_zeros), INTEGERS),
    Builtin("popcount(a)", exactly(lambda t, a: t.bits(a).bit_count()), INTEGERS),
    Builtin("reverse_bits(a)", exactly(reverse), INTEGERS),
    Builtin("rotate(a, b)", exactly(rotate), INTEGERS),
    Builtin("min(a, b)", exactly(lambda t, a, b: min(a, b)), INTEGERS),
    Builtin("max(a, b)", exactly(lambda t, a, b: max(a, b)), INTEGERS),
    Builtin("min3(a, b, c)", exactly(lambda t, a, b, c: min(a, b, c)), INTEGERS),
    Builtin("max3(a, b, c)", exactly(lambda t, a, b, c: max(a, b, c)), INTEGERS),
    Builtin("median3(a, b, c)", exactly(lambda t, a, b, c: sorted((a, b, c))[1]), INTEGERS),
    Builtin("select(a, b, c != 0)", exactly(lambda t, a, b, c: b if c else a), INTEGERS),
]  # fmt: skip


def clamping(count, type_, rng):
    """The result is defined where the lower limit is not above the upper one."""
    a, b, c = integers(count, type_, rng)
    return a, np.minimum(b, c), np.maximum(b, c)


def bit_fields(count, type_, rng):
    """Values, and fields that lie within them: every size at both ends, and random ones."""
    width = np.iinfo(DTYPES[type_]).bits
    sizes = np.arange(width + 1)
    offsets = np.concatenate([0 * sizes, width - sizes, rng.integers(0, width, 200)])
    sizes = np.concatenate([sizes, sizes, rng.integers(0, width + 1, 200)])
    sizes = np.minimum(sizes, width - offsets)
    values = [rng.permutation(v)[: len(sizes)] for v in integers(2, type_, rng)[: count - 2]]
    at_random = rng.integers(0, len(sizes), len(values[0]))
    return *values, offsets[at_random].astype(np.uint32), sizes[at_random].astype(np.uint32)


def extract(t, a, b, c):
    return t.field(t.bits(a) >> b, c)


def insert(t, a, b, c, d):
    mask = (1 << d) - 1 << c
    return t.wrap(t.bits(a) & ~mask | t.bits(b) << c & mask)


TABLE += [
    Builtin("clamp(a, b, c)", exactly(lambda t, a, b, c: min(max(a, b), c)), INTEGERS, data=clamping),
    Builtin("extract_bits(a, b, c)", exactly(extract), INTEGERS, operands={"b": "uint*", "c": "uint*"}, data=bit_fields),
    Builtin("insert_bits(a, b, c, d)", exactly(insert), INTEGERS, operands={"c": "uint*", "d": "uint*"}, data=bit_fields),
]  # fmt: skip


@pytest.mark.parametrize("sheet", sheets_of(TABLE, integers, turns=2), ids=str)
@pytest.mark.sample(4)
def test_integer_functions(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.slow
@pytest.mark.parametrize("sheet", sheets_of_all_widths(TABLE, integers), ids=str)
def test_integer_functions_in_every_width(sheet, kernel):
    sheet.check(kernel)
