"""Comparisons, extremes and sorts of complex numbers, in NumPy's order."""

import warnings

import numpy as np
import pytest

import metalloid.numpy as own

pytestmark = pytest.mark.filterwarnings("ignore:invalid value")


def numbers(has_nan, shape=(3, 4)):
    rng = np.random.default_rng(0)
    pool = [0, 1, -1, 2, np.inf] + [np.nan] * has_nan
    x = np.empty(shape, np.complex128)
    x.real, x.imag = rng.choice(pool, shape), rng.choice(pool, shape)
    return x


def check(function, *operands):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(np, *operands)
    result = np.asarray(function(own, *map(own.asarray, operands)))
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("has_nan", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_sort(has_nan):
    check(lambda xp, x: xp.sort(x), numbers(has_nan))


@pytest.mark.slow
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_sorts_along_axes(axis):
    check(lambda xp, x: xp.sort(x, axis=axis), numbers(True))
    check(lambda xp, x: xp.argsort(x, axis=axis, stable=True), numbers(True))


@pytest.mark.slow
@pytest.mark.parametrize("has_nan", [False, True])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes(name, has_nan):
    for axis in (None, 0, -1):
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims}
            check(lambda xp, x, options=options: getattr(xp, name)(x, **options), numbers(has_nan))
    if not name.startswith("arg"):
        check(lambda xp, x: getattr(xp, name)(x, axis=(0, 1)), numbers(has_nan))


@pytest.mark.slow
@pytest.mark.parametrize("has_nan", [False, True])
@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "maximum",
                                  "minimum"])  # fmt: skip
def test_functions(name, has_nan):
    x = numbers(has_nan, (40,))
    check(lambda xp, x, y: getattr(xp, name)(x, y), x, np.roll(x, 3))


@pytest.mark.slow
def test_operators():
    x = numbers(True)
    check(lambda xp, x: x < x[::-1], x)
    check(lambda xp, x: x >= 1, x)


@pytest.mark.parametrize("number", [300, -1, 2**64])
def test_integers_that_the_type_does_not_have(number):
    x = np.array([0, 5, 255], np.uint8)
    check(lambda xp, x: xp.stack([x < number, x >= number, x == number, number > x]), x)
