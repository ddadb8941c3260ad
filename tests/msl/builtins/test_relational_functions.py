"""Relational functions: classification, order, all, any, select; exact."""

import ml_dtypes
import numpy as np
import pytest
from builtin_functions import Builtin, sheets_of, sheets_of_all_widths
from float_operands import any_floats, wide
from msl_types import DTYPES, FLOATS, SCALARS
from sheets import Row, Sheet


def is_normal(a):
    magnitude = np.abs(a.astype(np.float64))
    return (magnitude >= float(ml_dtypes.finfo(a.dtype).tiny)) & np.isfinite(magnitude)


def unordered(a, b):
    return np.isnan(a) | np.isnan(b)


def chosen(a, b, c):
    return np.where(c, b, a)


def choices(count, type_, rng):
    """Two values of any type, and which to choose."""
    if type_ in FLOATS:
        a, b = any_floats(2, type_, rng)
    elif type_ == "bool":
        a, b = rng.random((2, 200)) < 0.5
    else:
        limits = np.iinfo(DTYPES[type_])
        a, b = rng.integers(limits.min, limits.max, (2, 200), DTYPES[type_], endpoint=True)
    return a, b, rng.random(len(a)) < 0.5


TABLE = [
    Builtin("isnan(a)", wide(np.isnan), FLOATS, result="bool"),
    Builtin("isinf(a)", wide(np.isinf), FLOATS, result="bool"),
    Builtin("isfinite(a)", wide(np.isfinite), FLOATS, result="bool"),
    Builtin("isnormal(a)", is_normal, FLOATS, result="bool"),
    Builtin("signbit(a)", wide(np.signbit), FLOATS, result="bool"),
    Builtin("isordered(a, b)", wide(lambda a, b: ~unordered(a, b)), FLOATS, result="bool"),
    Builtin("isunordered(a, b)", wide(unordered), FLOATS, result="bool"),
    Builtin("select(a, b, c)", chosen, SCALARS, operands={"c": "bool"}, data=choices),
    Builtin("select(a, b, c)", chosen, FLOATS, operands={"c": "bool*"}, data=choices, name="select_whole"),
]  # fmt: skip

ALL_AND_ANY = Sheet(
    "all-any",
    {f"v{lanes}": f"bool{lanes}" for lanes in (2, 3, 4)} | {"s": "bool"},
    lambda rng: {f"v{lanes}": rng.random((64, lanes)) < 0.6 for lanes in (2, 3, 4)}
    | {"s": rng.random(64) < 0.5},
    [
        Row("bool", "all(v2)", lambda v2: v2.all(-1)),
        Row("bool", "all(v3)", lambda v3: v3.all(-1)),
        Row("bool", "all(v4)", lambda v4: v4.all(-1)),
        Row("bool", "all(s)", lambda s: s),
        Row("bool", "any(v2)", lambda v2: v2.any(-1)),
        Row("bool", "any(v3)", lambda v3: v3.any(-1)),
        Row("bool", "any(v4)", lambda v4: v4.any(-1)),
        Row("bool", "any(s)", lambda s: s),
        Row("bool", "all(v4.xyz || v3) && any(!v4)", lambda v3, v4: (v4[:, :3] | v3).all(-1) & ~v4.all(-1)),
    ],
)  # fmt: skip


@pytest.mark.parametrize("sheet", [*sheets_of(TABLE, any_floats), ALL_AND_ANY], ids=str)
@pytest.mark.sample(3)
def test_relational_functions(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.slow
@pytest.mark.parametrize("sheet", sheets_of_all_widths(TABLE, any_floats), ids=str)
def test_relational_functions_in_every_width(sheet, kernel):
    sheet.check(kernel)
