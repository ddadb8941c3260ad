"""min, max, clamp and their relatives on floating-point numbers; exact.

Of two operands the number wins against NaN; which zero wins among +0 and -0 is left open. (Their
integer forms are in test_integer_functions.)
"""

import numpy as np
import pytest
from builtin_functions import Builtin, sheets_of, sheets_of_all_widths
from float_operands import any_floats, wide
from judges import SAME_VALUE
from msl_types import FLOATS


def fold(function):
    return wide(lambda a, b, c: function(a, function(b, c)))


def median(a, b, c):
    return np.median([a, b, c], axis=0)


def ordered_limits(count, type_, rng):
    """The result of clamp is defined for numbers, with the lower limit below the upper one."""
    a, b, c = any_floats(count, type_, rng)
    low, high = np.where(b < c, b, c), np.where(b < c, c, b)
    known = ~np.isnan(low) & ~np.isnan(high)
    return a[known], low[known], high[known]


def without_nan(count, type_, rng):
    a, b, c = any_floats(count, type_, rng)
    known = ~np.isnan(a) & ~np.isnan(b) & ~np.isnan(c)
    return a[known], b[known], c[known]


def clamped(a, b, c):
    return np.fmin(np.fmax(a, b), c)


TABLE = [
    Builtin("min(a, b)", wide(np.fmin), FLOATS, SAME_VALUE),
    Builtin("max(a, b)", wide(np.fmax), FLOATS, SAME_VALUE),
    Builtin("fmin(a, b)", wide(np.fmin), FLOATS, SAME_VALUE),
    Builtin("fmax(a, b)", wide(np.fmax), FLOATS, SAME_VALUE),
    Builtin("min3(a, b, c)", fold(np.fmin), FLOATS, SAME_VALUE),
    Builtin("max3(a, b, c)", fold(np.fmax), FLOATS, SAME_VALUE),
    Builtin("fmin3(a, b, c)", fold(np.fmin), FLOATS, SAME_VALUE),
    Builtin("fmax3(a, b, c)", fold(np.fmax), FLOATS, SAME_VALUE),
    Builtin("median3(a, b, c)", wide(median), FLOATS, SAME_VALUE, data=without_nan),
    Builtin("fmedian3(a, b, c)", wide(median), FLOATS, SAME_VALUE, data=without_nan),
    Builtin("clamp(a, b, c)", wide(clamped), FLOATS, SAME_VALUE, data=ordered_limits),
    Builtin("fast::min(a, b) + precise::max(a, b)", wide(lambda a, b: np.fmin(a, b) + np.fmax(a, b)), ["float"], SAME_VALUE, name="qualified"),
]  # fmt: skip


@pytest.mark.parametrize("sheet", sheets_of(TABLE, any_floats), ids=str)
@pytest.mark.sample(4)
def test_min_max_functions(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.slow
@pytest.mark.parametrize("sheet", sheets_of_all_widths(TABLE, any_floats), ids=str)
def test_min_max_functions_in_every_width(sheet, kernel):
    sheet.check(kernel)
