"""Polynomials by their coefficients, the highest power first, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalloid import linalg
from metalloid.arrays.array import Array, as_array, as_arrays
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.creation import eye, full, zeros
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import concat
from metalloid.arrays.ir.dtypes import default_float, kind_of, promote
from metalloid.arrays.ir.node import TRACED
from metalloid.arrays.library.window import polynomial_of_roots
from metalloid.numpy.array import numpy_function
from metalloid.numpy.functions.convolution import convolve
from metalloid.numpy.functions.creation import vander
from metalloid.numpy.functions.manipulation import atleast_1d, trim_zeros
from metalloid.numpy.known_calls import structural_function


@structural_function(2)
def polyval(p: Any, x: Any) -> Array:
    """Values of a polynomial, by Horner's method.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.polyval([3, 0, 1], 5)
    np.int64(76)
    """
    coefficients, values = as_arrays("polyval", p, x)
    result = ew.multiply(values, 0)
    for k in range(coefficients.size):
        result = result * values + coefficients[k]
    return result


def _padded(p: Any, q: Any, where: str) -> tuple[Array, Array]:
    """Coefficients of two polynomials, as many of each."""
    a, b = (atleast_1d(x) for x in as_arrays(where, p, q))
    size = max(a.size, b.size)
    a, b = (concat([zeros((size - x.size,), x.dtype, device=x.device), x]) if x.size < size else x
            for x in (a, b))  # fmt: skip
    return a, b


@structural_function(2)
def polyadd(a1: Any, a2: Any) -> Array:
    """Sum of two polynomials."""
    return ew.add(*_padded(a1, a2, "polyadd"))


@structural_function(2)
def polysub(a1: Any, a2: Any) -> Array:
    """Difference of two polynomials."""
    return ew.subtract(*_padded(a1, a2, "polysub"))


@structural_function(2)
def polymul(a1: Any, a2: Any) -> Array:
    """Product of two polynomials."""
    a, b = (trim_zeros(atleast_1d(x), "f") for x in as_arrays("polymul", a1, a2))
    a, b = (x if x.size else zeros((1,), x.dtype) for x in (a, b))
    return convolve(a, b)


@numpy_function
def polydiv(u: Any, v: Any) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials."""
    a, b = (np.atleast_1d(np.asarray(x)) for x in as_arrays("polydiv", u, v))
    quotient, remainder = np.polydiv(a, b)  # a recurrence over the coefficients
    return as_array(quotient, "polydiv"), as_array(remainder, "polydiv")


@structural_function(1)
def polyder(p: Any, m: int = 1) -> Array:
    """Derivative of a polynomial."""
    if m < 0:
        raise ValueError(f"[polyder] the order must not be negative, got {m}.")
    x = as_array(p, "polyder")
    for _ in range(m):
        x = x[:-1] * arange(x.size - 1, 0, -1, device=x.device) if x.size else x
    return x


@structural_function(1)
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """Integral of a polynomial, with constants of integration `k`."""
    if m < 0:
        raise ValueError(f"[polyint] the order must not be negative, got {m}.")
    x = as_array(p, "polyint")
    constants = np.zeros(m) if k is None else np.atleast_1d(np.asarray(k, float))
    if constants.size == 1 and m > 1:
        constants = np.repeat(constants, m)
    if constants.size < m:
        raise ValueError(f"[polyint] k must be one number or {m} numbers.")
    for constant in constants[:m].tolist():
        terms = x / arange(x.size, 0, -1, device=x.device)
        x = concat([terms, full((1,), constant, terms.dtype, device=x.device)])
    return x


def _as_floats(x: Array) -> Array:
    """Numbers in a type that LAPACK has."""
    has_type = kind_of(x.dtype) in "fc" and x.dtype.itemsize >= 4
    return x if has_type else x.astype(default_float())


@numpy_function
def roots(p: Any) -> Array:
    """Roots of a polynomial: the eigenvalues of its companion matrix."""
    coefficients = atleast_1d(as_array(p, "roots"))
    if coefficients.ndim != 1:
        raise ValueError("[roots] expected one axis.")
    coefficients = _as_floats(coefficients)
    if not coefficients._node.flags & TRACED:  # the host chooses the shape, and calls LAPACK
        return as_array(np.roots(np.asarray(coefficients)), "roots", coefficients.device)
    values = trim_zeros(coefficients, "f")
    if not values.size:
        return zeros((0,))
    inner = trim_zeros(values, "b")
    zero_count = values.size - inner.size
    result: Array = zeros((0,), inner.dtype)
    if inner.size > 1:
        size = inner.size - 1
        shifted = eye(size - 1, size, dtype=inner.dtype)
        companion = concat([(-inner[1:] / inner[0])[None, :], shifted])
        result = linalg.eigvals(companion)
        if kind_of(result.dtype) == "c" and bool((result.imag == 0).all()):
            result = result.real
    return concat([result, zeros((zero_count,), result.dtype)]) if zero_count else result


@numpy_function
def poly(seq_of_zeros: Any) -> Any:
    """Coefficients of the polynomial with given roots, or of a matrix's characteristic one."""
    numbers = atleast_1d(as_array(seq_of_zeros, "poly"))
    if numbers.ndim == 2 and numbers.shape[0] == numbers.shape[1] and numbers.size:
        numbers = linalg.eigvals(numbers)
    elif numbers.ndim != 1:
        raise ValueError("[poly] expected one axis, or a square matrix.")
    if not numbers.size:
        return as_array(1.0, "poly")
    numbers = _as_floats(numbers)
    if numbers._node.flags & TRACED:
        one = result = atleast_1d(as_array(1, "poly").astype(numbers.dtype))
        for k in range(numbers.size):
            result = convolve(result, concat([one, -numbers[k : k + 1]]))
    else:
        result = Array(polynomial_of_roots(numbers._node))
    if kind_of(result.dtype) == "c":
        values = np.asarray(numbers)
        if (np.sort(values) == np.sort(values.conjugate())).all():
            return result.real
    return result


@numpy_function
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None,
            cov: Any = False) -> Any:  # fmt: skip
    """Least squares fit of a polynomial.

    Parameters
    ----------
    deg : int
        Degree of the polynomial.
    w : array, optional
        Weights of the residuals.
    full, cov : bool
        Whether to return diagnostics, or the covariance matrix of the coefficients; on the host.
    """
    from metalloid.arrays.interop.numpy_functions import call_on_host

    points, values = as_arrays("polyfit", x, y)
    if full or cov or w is not None or kind_of(points.dtype) == "c" or np.ndim(deg):
        return call_on_host(np.polyfit, (points, values, deg, rcond, full, w, cov), {})
    if deg < 0:
        raise ValueError(f"[polyfit] the degree must not be negative, got {deg}.")
    if points.ndim != 1 or not points.size or values.ndim not in (1, 2):
        raise TypeError("[polyfit] expected non-empty points along one axis, and one or two of y.")
    if points.shape[0] != values.shape[0]:
        raise TypeError(f"[polyfit] got {points.shape[0]} points and {values.shape[0]} values.")
    points = points.astype(promote(points.dtype, default_float()))
    matrix = vander(points, deg + 1)
    scale = ew.sqrt((matrix * matrix).sum(0))
    rcond = points.size * float(np.finfo(points.dtype).eps) if rcond is None else rcond
    solution = linalg.lstsq(
        matrix / scale, values.astype(promote(values.dtype, points.dtype)), rtol=float(rcond)
    )
    return (solution[0].T / scale).T
