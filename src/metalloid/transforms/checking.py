"""`gradcheck`: derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import asarray
from metalloid.arrays.ir.dtypes import complex128, complex_of, float64, kind_of
from metalloid.transforms.gradients import jvp, vjp


def gradcheck(fun: Callable[..., Any], *args: Any, eps: float = 1e-6, rtol: float = 1e-5,
              atol: float = 1e-7, seed: int = 0) -> None:  # fmt: skip
    """Compare the derivatives of a function with central differences, in double precision.

    Both modes are checked along random directions `v` and with random cotangents `w`: the
    Jacobian-vector product against ``(f(x + eps v) - f(x - eps v)) / (2 eps)``, and the
    vector-Jacobian product by ``<w, J v> = <J* w, v>``.

    Parameters
    ----------
    fun : callable
        From arrays to an array, or to a list or tuple of them.
    *args : Array
        Floats or complex numbers; they are converted to double precision.
    eps : float
        Step of the differences.
    rtol, atol : float
        Largest difference, relative to the largest value and absolute.
    seed : int
        Of the directions.

    Raises
    ------
    AssertionError
        If a derivative differs, with the mode, the result, and both values.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.gradcheck(lambda x: mtl.sin(x) * x, mtl.asarray([0.5, 2.0]))
    """
    rng = np.random.default_rng(seed)
    points = [_wide(arg) for arg in args]
    along = [asarray(_random(rng, point)) for point in points]
    values, forward = jvp(fun, points, along)
    ends = []
    for sign in (1, -1):
        moved = [point + sign * eps * step for point, step in zip(points, along, strict=True)]
        results = fun(*moved)
        ends.append(results if isinstance(results, list | tuple) else [results])
    rows = zip(forward, *ends, strict=True)
    for k, (tangent, after, before) in enumerate(rows):
        expected = (np.asarray(after) - np.asarray(before)) / (2 * eps)
        _compare("jvp", f"result {k}", np.asarray(tangent), expected, rtol, atol)
    weights = [_random(rng, value) for value in values]
    _, backward = vjp(fun, points, [asarray(weight) for weight in weights])
    left = sum(np.vdot(w, np.asarray(t)).real for w, t in zip(weights, forward, strict=True))
    products = zip(backward, along, strict=True)
    right = sum(np.vdot(np.asarray(b), np.asarray(v)).real for b, v in products)
    _compare("vjp", "<J* w, v> against <w, J v>", np.asarray(right), np.asarray(left), rtol, atol)


def _wide(arg: Any) -> Array:
    array = asarray(arg)
    if kind_of(array.dtype) not in "fc":
        raise TypeError(f"[gradcheck] expected floats or complex numbers, got {array.dtype}.")
    return array.astype(complex128 if kind_of(array.dtype) == "c" else float64)


def _random(rng: np.random.Generator, like: Array) -> np.ndarray:
    values: np.ndarray = rng.standard_normal(like.shape)
    if kind_of(like.dtype) == "c":
        values = (values + 1j * rng.standard_normal(like.shape)).astype(complex_of(float64))
    return values


def _compare(mode: str, what: str, result: np.ndarray, expected: np.ndarray, rtol: float,
             atol: float) -> None:  # fmt: skip
    limit = atol + rtol * float(np.max(np.abs(expected), initial=0))
    difference = np.abs(result - expected)
    if not np.all(difference <= limit):
        at = np.unravel_index(int(np.argmax(np.nan_to_num(difference, nan=np.inf))), result.shape)
        raise AssertionError(
            f"[gradcheck] {mode} of {what} at {tuple(map(int, at))}: {result[at]} instead of "
            f"{expected[at]}, a difference of {difference[at]:.3g} (limit {limit:.3g})."
        )
