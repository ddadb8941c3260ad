"""Common parts of the families of matrix products: operands, launches, error bounds."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import metalloid as mtl
from mlx_tree.agreement import FLOAT, assert_within, roundoff, sum_error

SIMD = 32
COMPLEX = np.dtype(np.complex64)


def operand(rng: np.random.Generator, shape, dtype) -> np.ndarray:
    """Normally distributed numbers of a type."""
    numbers = rng.normal(size=shape)
    if dtype == COMPLEX:
        numbers = numbers + 1j * rng.normal(size=shape)
    return numbers.astype(dtype)


def exactly(array: np.ndarray) -> np.ndarray:
    """The same numbers in a type whose own errors do not count."""
    return array.astype(np.complex128 if array.dtype == COMPLEX else np.float64)


def dispatch(kernel: mtl.Kernel, groups, group_size, **arguments) -> None:
    """Run `groups` threadgroups; parameters that MLX leaves unbound read as zero."""
    for parameter in kernel.signature.buffers:
        arguments.setdefault(parameter.name, bytearray(parameter.layout.bytes))
    threads = tuple(g * s for g, s in zip(groups, group_size, strict=True))
    kernel(**arguments, threads=threads, group_size=group_size)


def product(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact ``left @ right``, and the error that sums in float may have.

    Products of 16-bit numbers are exact in float and those of floats round, which counts as one
    addition more. The components of a complex product are sums of two terms, each bounded by the
    product of the moduli.
    """
    left, right = exactly(left), exactly(right)
    return left @ right, product_error(np.abs(left) @ np.abs(right), left.shape[-1])


def product_error(magnitude: np.ndarray, terms: int) -> np.ndarray:
    """Error of sums of `terms` products whose absolute values add up to `magnitude`."""
    return sum_error(magnitude[None], terms + 2, axis=0)


def assert_rounded(actual: np.ndarray, exact: np.ndarray, error) -> None:
    """Assert that `actual` is a number within `error` of `exact`, rounded to its own type."""
    if np.iscomplexobj(actual):
        error = error + roundoff(FLOAT) * (np.abs(exact) + error)
        assert_within(actual.real, exact.real, error)
        assert_within(actual.imag, exact.imag, error)
    else:
        smallest = float(ml_dtypes.finfo(actual.dtype).smallest_subnormal)
        rounding = roundoff(actual.dtype) * (np.abs(exact) + error) + smallest / 2
        assert_within(actual, exact, error + rounding)


def assert_scaled(actual, product_, error, alpha, bias, beta, work=None) -> None:
    """Assert that `actual` is ``alpha * product + beta * bias``, computed in the type `work`.

    `alpha` and `beta` are powers of two; the product is rounded to `work`, and so is the sum.
    """
    work = actual.dtype if work is None else work
    unit = roundoff(FLOAT if work == COMPLEX else work)
    scaled, added = alpha * product_, beta * exactly(bias)
    error = abs(alpha) * error + unit * (2 * np.abs(scaled) + 2 * np.abs(added) + error)
    assert_rounded(actual, scaled + added, (1 + unit) * error)


def poisoned(shape, dtype) -> np.ndarray:
    """Memory for a result: NaN, so that an element that is not written is noticed."""
    return np.full(shape, np.nan, dtype)


def structure(layout: np.dtype, **fields) -> np.void:
    """One value of a structured type; fields that are not named are zero."""
    value = np.zeros((), layout)
    for name, number in fields.items():
        value[name] = number
    return value[()]
