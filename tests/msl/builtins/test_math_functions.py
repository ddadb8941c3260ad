"""Math functions: every function on float, half, bfloat and their vectors.

Bounds are those of the specification's accuracy tables, in units in the last place of float; half
and bfloat are computed in float and rounded once. (The float functions themselves are swept over
their whole range in test_math_accuracy.)
"""

import numpy as np
import pytest
from builtin_functions import Builtin, sheets_of, sheets_of_all_widths
from float_operands import any_floats, between, wide
from judges import ROUNDED, narrow_bound
from math_oracles import (
    EXACT,
    ONE_OPERAND,
    exponent_of,
    fraction,
    integer_exponent,
    next_after,
    positive_difference,
    powr,
    scaled,
)
from msl_types import FLOATS


def around(count, type_, rng):
    """Numbers of every magnitude, and many where functions have their domain and their range."""
    bulk = [
        between(low, high, and_special=False)(count, type_, rng)
        for low, high in ((-1, 1), (-90, 90))
    ]
    return [
        np.concatenate(parts) for parts in zip(any_floats(count, type_, rng), *bulk, strict=True)
    ]


def powers(count, type_, rng):
    """Bases and exponents whose powers are in range, and the special ones."""
    a, b = any_floats(count, type_, rng, size=300)
    base = between(0.0, 4.0, and_special=False)(1, type_, rng)[0]
    exponent = between(-20.0, 20.0, and_special=False)(1, type_, rng)[0]
    integer = np.rint(exponent.astype(np.float64)).astype(exponent.dtype)
    return np.concatenate([a, base, -base]), np.concatenate([b, exponent, integer])


def scalings(count, type_, rng):
    """Numbers, and exponents that carry them over both ends of the range."""
    (a,) = any_floats(1, type_, rng)
    return a, rng.integers(-320, 320, len(a)).astype(np.int32)


def with_equals(count, type_, rng):
    """Pairs, a third of them equal or neighbours."""
    a, b = any_floats(2, type_, rng)
    third = len(a) // 3
    return a, np.concatenate([b[: 2 * third], a[2 * third :]])


def rounded_once(text, oracle, **options):
    return Builtin(text, wide(oracle), FLOATS, **options)


TABLE = [
    *(Builtin(f"{name}(a)", wide(oracle), FLOATS, bound, data=around) for name, (oracle, bound) in ONE_OPERAND.items()),
    *(rounded_once(f"{name}(a)", oracle) for name, oracle in EXACT.items()),
    Builtin("fract(a)", fraction, FLOATS),
    Builtin("atan2(a, b)", wide(np.arctan2), FLOATS, 6),
    Builtin("pow(a, b)", wide(np.power), FLOATS, 16, data=powers),
    Builtin("powr(a, b)", wide(powr), FLOATS, 16, data=powers),
    rounded_once("divide(a, b)", np.divide),
    rounded_once("fmod(a, b)", np.fmod),
    rounded_once("copysign(a, b)", np.copysign),
    rounded_once("fdim(a, b)", positive_difference, data=with_equals),
    Builtin("nextafter(a, b)", next_after, FLOATS, data=with_equals),
    Builtin("fma(a, b, c)", wide(lambda a, b, c: a * b + c), FLOATS, ROUNDED),
    Builtin("ldexp(a, b)", scaled, FLOATS, data=scalings, operands={"b": "int"}),
    Builtin("ilogb(a)", wide(integer_exponent), FLOATS, result="int"),
    rounded_once("I e; y = frexp(a, e);", lambda a: np.frexp(a)[0], name="frexp_fraction"),
    Builtin("I e; frexp(a, e); y = e;", wide(exponent_of), FLOATS, result="int", name="frexp_exponent"),
    rounded_once("T whole; y = modf(a, whole);", lambda a: np.modf(a)[0], name="modf_fraction"),
    rounded_once("T whole; modf(a, whole); y = whole;", lambda a: np.modf(a)[1], name="modf_whole"),
    Builtin("T cosine; y = sincos(a, cosine);", wide(np.sin), FLOATS, 4, data=around, name="sincos_sine"),
    Builtin("T cosine; sincos(a, cosine); y = cosine;", wide(np.cos), FLOATS, 4, data=around, name="sincos_cosine"),
]  # fmt: skip


def bound_of(bound, type_):
    return None if bound is None else narrow_bound(bound, type_)


@pytest.mark.parametrize("sheet", sheets_of(TABLE, any_floats, bound_of=bound_of), ids=str)
@pytest.mark.sample(12)
def test_math_functions(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sheet", sheets_of_all_widths(TABLE, any_floats, bound_of=bound_of), ids=str
)
def test_math_functions_in_every_width(sheet, kernel):
    sheet.check(kernel)
