"""Results of MLX's binary operations of complex numbers: its definitions, in float64 or exact.

Numbers are ordered by their real parts first. Division is not guarded against overflow, the
remainder is taken part by part, and powers are those of textbooks.
"""

from __future__ import annotations

import numpy as np

from mlx_tree.agreement import assert_near, roundoff, spacing
from mlx_tree.complex_functions import ring
from mlx_tree.element_types import special_values

UNIT = roundoff(np.float32)


def greater(x, y):
    return (x.real > y.real) | ((x.real == y.real) & (x.imag > y.imag))


def greater_equal(x, y):
    return (x.real > y.real) | ((x.real == y.real) & (x.imag >= y.imag))


def equal(x, y):
    return (x.real == y.real) & (x.imag == y.imag)


def _same(x, y):
    return (x == y) | (np.isnan(x) & np.isnan(y))


def has_nan(x):
    return np.isnan(x.real) | np.isnan(x.imag)


_EXACT = {
    "Greater": greater, "GreaterEqual": greater_equal, "Equal": equal,
    "Less": lambda x, y: greater(y, x), "LessEqual": lambda x, y: greater_equal(y, x),
    "NotEqual": lambda x, y: ~equal(x, y),
    "NaNEqual": lambda x, y: _same(x.real, y.real) & _same(x.imag, y.imag),
    "Maximum": lambda x, y: np.where(has_nan(x) | greater(x, y), x, y),
    "Minimum": lambda x, y: np.where(has_nan(x) | greater(y, x), x, y),
}  # fmt: skip
_SUMS = {"Add": np.add, "Subtract": np.subtract}


def special(op):
    """Special values for operations that treat them as IEEE arithmetic of the parts does."""
    values = special_values(np.complex64)
    return values[::4] if op in _EXACT or op in _SUMS else values[:0]


def arguments(op, rng):
    """Two arrays of numbers of middling size; some pairs have a part in common."""
    x, y = ring(300, rng), ring(300, rng)
    if op in _EXACT:
        y[::3].real = x[::3].real
        y[::6] = x[::6]
    return [x, y]


def remainder(x, y):
    """Part by part, x - y trunc(x / y) in float, moved to the sign of y."""

    def of_reals(a, b):
        r = a - b * np.trunc(a / b)
        return np.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)

    return of_reals(x.real, y.real) + 1j * of_reals(x.imag, y.imag)


def _parts_near(out, exact, error):
    assert_near(np.ascontiguousarray(out.real), exact.real, error)
    assert_near(np.ascontiguousarray(out.imag), exact.imag, error)


def compare(op, x, y, out):
    """Assert that `out` is the operation of the complex numbers `x` and `y`."""
    if op in _EXACT:
        np.testing.assert_array_equal(out, _EXACT[op](x, y))
    elif op in _SUMS:
        for a, b, c in ((x.real, y.real, out.real), (x.imag, y.imag, out.imag)):
            with np.errstate(all="ignore"):
                exact = _SUMS[op](a.astype(np.float64), b.astype(np.float64))
                error = np.nan_to_num(0.5001 * spacing(exact, np.float32), posinf=0)
            assert_near(np.ascontiguousarray(c), exact, error)
    elif op == "Remainder":
        np.testing.assert_array_equal(out, remainder(x, y))
    else:
        _compare_inexact(op, x.astype(np.complex128), y.astype(np.complex128), out)


def _compare_inexact(op, x, y, out):
    if op == "Multiply":  # two products and a sum for each part
        _parts_near(out, x * y, 2.01 * UNIT * np.abs(x) * np.abs(y))
    elif op in ("Divide", "FloorDivide"):  # and |y|^2, three roundings, and the quotient
        _parts_near(out, x / y, 8 * UNIT * np.abs(x / y))
    elif op == "Power":
        exact = np.power(x, y)
        # The exponent's error becomes relative: logarithm and angle err by a few ulps.
        inside = np.abs(y) * (np.abs(np.log(x)) + 1)
        _parts_near(out, exact, (16 * inside + 16) * UNIT * np.abs(exact))
    else:
        assert op == "LogAddExp", op
        high, low = np.where(greater(x, y), x, y), np.where(greater(x, y), y, x)
        # Sums, products and functions of numbers about one.
        _parts_near(out, high + np.log1p(np.exp(low - high)), 24 * UNIT)
