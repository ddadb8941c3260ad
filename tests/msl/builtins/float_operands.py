"""Operands for floating-point functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from judges import rounded
from msl_types import DTYPES


def special_values(type_):
    """Zeros, infinities, NaN, the ends of the range, ties of rounding."""
    info = ml_dtypes.finfo(DTYPES[type_])
    positive = [
        0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, np.inf, float(info.smallest_subnormal),
        float(info.tiny), float(info.tiny) * 0.75, float(info.max), 1.0 - float(info.epsneg),
        1.0 + float(info.eps), 2.0 ** (info.nmant - 1) + 0.5, 2.0 ** (info.nmant + 1) + 2.0,
    ]  # fmt: skip
    return np.array([*positive, *(-x for x in positive), np.nan]).astype(DTYPES[type_])


def random_bits(type_, size, rng):
    """Numbers of every magnitude alike, a few infinities and NaNs among them."""
    dtype = DTYPES[type_]
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, size, dtype=np.uint64)
    return bits.astype(f"u{dtype.itemsize}").view(dtype)


def any_floats(count, type_, rng, size=1000):
    """Every pair of special values, numbers around one and numbers of every magnitude."""
    special = special_values(type_)
    grids = np.meshgrid(*[special if count < 3 else special[::3]] * count)
    return [
        np.concatenate([
            grid.ravel(),
            rounded(rng.normal(scale=3.0, size=size), DTYPES[type_]),
            random_bits(type_, size, rng),
        ])
        for grid in grids
    ]  # fmt: skip


def numbers(count, type_, rng):
    """Finite numbers around one, whose products and sums do not overflow."""
    return [rounded(rng.normal(scale=3.0, size=2000), DTYPES[type_]) for _ in range(count)]


def between(low, high, and_special=True):
    """A source of operands that lie between `low` and `high`, evenly and near zero."""

    def operands(count, type_, rng):
        dtype = DTYPES[type_]
        even = rng.uniform(low, high, (count, 1500))
        fine = even * 10.0 ** rng.uniform(-8, 0, (count, 1500))
        inside = np.concatenate([even, np.clip(fine, low, high)], axis=1)
        result = [rounded(values, dtype) for values in inside]
        if and_special:
            special = np.meshgrid(*[special_values(type_)] * count)
            result = [np.concatenate([s.ravel(), r]) for s, r in zip(special, result, strict=True)]
        return result

    return operands


def wide(oracle):
    """`oracle` on float64: floats narrower than that become exact doubles first."""
    count = oracle.nin if hasattr(oracle, "nin") else oracle.__code__.co_argcount

    def on_doubles(*operands):
        return oracle(*(np.asarray(operand).astype(np.float64) for operand in operands))

    on_doubles.operands = count
    return on_doubles
