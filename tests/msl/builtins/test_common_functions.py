"""Common functions: mix, saturate, sign, smoothstep, step."""

import numpy as np
import pytest
from builtin_functions import Builtin, sheets_of, sheets_of_all_widths
from float_operands import any_floats, between, numbers, wide
from judges import SAME_VALUE, roundoff, smallest
from msl_types import DTYPES, FLOATS


def saturated(a):
    return np.where(np.isnan(a), 0.0, np.clip(a, 0.0, 1.0))


def sign(a):
    return np.where(np.isnan(a), 0.0, np.where(a == 0, a, np.sign(a)))


def smooth(a, b, c):
    t = np.clip((c - a) / (b - a), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def distinct_edges(count, type_, rng):
    """The lower edge below the upper one by at least a quarter, and the value near them."""
    a, b, c = between(-4.0, 4.0, and_special=False)(3, type_, rng)
    return a, (a + np.abs(b) + DTYPES[type_].type(0.25)).astype(DTYPES[type_]), c


def of_float_arithmetic(error):
    """Allowed: `error`, in roundoffs of float, of what was computed in float, and one rounding."""

    def bound(magnitude_and_result):
        def allowed(*operands):
            dtype = operands[0].dtype
            magnitude, result = magnitude_and_result(*(x.astype(np.float64) for x in operands))
            rounding = np.abs(result) * roundoff(dtype) + smallest(dtype)
            return error * roundoff(np.dtype(np.float32)) * magnitude + rounding

        return allowed

    return bound


def mixed(a, b, c):
    return a + (b - a) * c


# x + (y - x) w: the difference, the product and the sum round; each is at most the magnitude.
@of_float_arithmetic(4)
def mix_bound(a, b, c):
    return np.abs(a) + (np.abs(a) + np.abs(b)) * np.abs(c), mixed(a, b, c)


# t has 3 roundings (differences, quotient) relative to its terms; the slope of the cubic is 3/2.
@of_float_arithmetic(10)
def smooth_bound(a, b, c):
    return 1 + (np.abs(a) + np.abs(c)) / (b - a), smooth(a, b, c)


TABLE = [
    Builtin("saturate(a)", wide(saturated), FLOATS, SAME_VALUE),
    Builtin("sign(a)", wide(sign), FLOATS),
    Builtin("step(a, b)", wide(lambda a, b: np.where(b < a, 0.0, 1.0)), FLOATS),
    Builtin("mix(a, b, c)", wide(mixed), FLOATS, mix_bound, data=numbers),
    Builtin("smoothstep(a, b, c)", wide(smooth), FLOATS, smooth_bound, data=distinct_edges),
    Builtin("mix(a, b, c)", wide(mixed), FLOATS, mix_bound, operands={"c": "*"}, data=numbers, name="mix_by_one"),
    Builtin("smoothstep(a, b, c)", wide(smooth), FLOATS, smooth_bound, operands={"a": "*", "b": "*"}, data=distinct_edges, name="smoothstep_between_scalars"),
    Builtin("fast::saturate(a) + precise::sign(a)", wide(lambda a: saturated(a) + sign(a)), FLOATS, SAME_VALUE, data=between(-4.0, 0.0), name="qualified"),
]  # fmt: skip


@pytest.mark.parametrize("sheet", sheets_of(TABLE, any_floats), ids=str)
@pytest.mark.sample(3)
def test_common_functions(sheet, kernel):
    sheet.check(kernel)


@pytest.mark.slow
@pytest.mark.parametrize("sheet", sheets_of_all_widths(TABLE, any_floats), ids=str)
def test_common_functions_in_every_width(sheet, kernel):
    sheet.check(kernel)
