"""Softmax and the logarithm of a sum of exponentials, of rows."""

from __future__ import annotations

import re

import numpy as np
import scipy.special

import metalloid as mtl
from mlx_tree.agreement import (
    FLOAT,
    Family,
    assert_near,
    assert_within,
    ceildiv,
    roundoff,
    smallest,
)
from mlx_tree.element_types import TYPES
from mlx_tree.reduce_launches import MAX_THREADS, READS, TWO_SIMD_SUMS, row_group

#: Rows longer than this take the looped kernels.
LOOPED_LIMIT = 4096


def group_of(size: int, looped: bool) -> int:
    return MAX_THREADS if looped else row_group(size)


def run(kernel: mtl.Kernel, x, out, looped: bool) -> None:
    """One threadgroup a row."""
    rows, size = x.shape
    group = group_of(size, looped)
    kernel(x, out, size, threads=rows * group, group_size=group)


def exp_error(x, dtype=FLOAT):
    """Relative error of fast::exp(x), the rounded argument included.

    In float it is 3 + 2|x| ulps (Metal specification); 16 bits are computed in float.
    """
    x = np.abs(np.where(np.isfinite(x), x, 0))
    if dtype == FLOAT:
        return (3 + np.floor(2 * x) + x) * 2.0**-23
    return (x + 1.1) * roundoff(dtype)


def softmax_error(x, dtype, compute, looped: bool):
    """The error bound of a softmax of rows whose arithmetic is in the type `compute`."""
    size = x.shape[1]
    group = group_of(size, looped)
    exact = scipy.special.softmax(x, axis=1)
    below_max = x - x.max(axis=1, keepdims=True)
    each = exp_error(below_max, compute)
    # The sum errs by the errors of its terms, by their additions, and in the looped kernel by
    # three factors exp(old max - new max); reciprocal and product are rounded.
    additions = ceildiv(size, group) + TWO_SIMD_SUMS + (ceildiv(size, READS * group) + 2)
    finite = below_max[np.isfinite(below_max)]
    factors = 3 * exp_error(np.min(finite, initial=0), compute) if looped else 0
    total = np.sum(exact * each, axis=1, keepdims=True) + size * smallest(compute)
    relative = each + total + (additions + 2) * roundoff(compute) + factors
    # The second order.
    relative = relative * (1 + relative.max())
    return exact * (relative + roundoff(dtype)) + smallest(dtype) + smallest(compute)


def logsumexp_error(x, group, looped=True):
    """Absolute error of log(sum) + max before the result is rounded."""
    below_max = x - x.max(axis=1, keepdims=True)
    weights = scipy.special.softmax(x, axis=1)
    additions = ceildiv(x.shape[1], group) + TWO_SIMD_SUMS + 3
    relative = np.sum(weights * exp_error(below_max), axis=1) + additions * roundoff(FLOAT)
    if looped:
        relative += 3 * exp_error(below_max.min())
    logarithm = scipy.special.logsumexp(below_max, axis=1)
    # The logarithm turns the relative error into an absolute one and adds 4 ulps; the sum rounds.
    return (
        relative + 4 * 2.0**-23 * np.abs(logarithm) + 2.0**-24 * np.abs(logarithm + x.max(axis=1))
    )


def check_softmax_kernel(kernel: mtl.Kernel, looped: bool, dtype, compute, rng) -> None:
    """Compare rows with minus infinity and with NaN among others; arithmetic is in `compute`."""
    for size in (5000,) if looped else (1, 33, 1000):
        x = rng.normal(size=(3, size)).astype(dtype)
        x[1, ::3] = -np.inf if size > 1 else 0
        x[2, size // 2] = np.nan
        out = np.empty_like(x)
        run(kernel, x, out, looped)
        wide = x[:2].astype(np.float64)
        assert_near(
            out[:2], scipy.special.softmax(wide, axis=1),
            softmax_error(wide, dtype, compute, looped),
        )  # fmt: skip
        assert np.isnan(out[2].astype(np.float32)).all()


def check_logsumexp_kernel(kernel: mtl.Kernel, looped: bool, dtype, rng) -> None:
    """Compare rows with infinities and with NaN among others."""
    for size in (5000,) if looped else (1, 33, 1000):
        x = rng.normal(scale=4, size=(5, size)).astype(dtype)
        x[1, size // 2], x[2], x[3, 0] = np.inf, -np.inf, np.nan
        out = np.empty(5, dtype)
        run(kernel, x, out, looped)
        with np.errstate(all="ignore"):
            wide = x[[0, 4]].astype(np.float64)
            exact = scipy.special.logsumexp(wide, axis=1)
            error = logsumexp_error(wide, group_of(size, looped), looped)
        rounding = roundoff(dtype) * np.abs(exact) if dtype != FLOAT else 0
        assert_within(out[[0, 4]], exact, error + rounding)
        special = out[1:4].astype(np.float32)
        np.testing.assert_array_equal(special, [np.inf, -np.inf, np.nan])


def check_softmax(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    match = re.fullmatch("(block|looped)_softmax_(precise_)?(.*)", name)
    assert match, name
    dtype = TYPES[match[3]]
    compute = FLOAT if match[2] else dtype
    check_softmax_kernel(library.function(name), match[1] == "looped", dtype, compute, rng)


def check_logsumexp(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    match = re.fullmatch("(block|looped)_logsumexp_(.*)", name)
    assert match, name
    check_logsumexp_kernel(library.function(name), match[1] == "looped", TYPES[match[2]], rng)


FAMILIES = (
    Family("softmax", ("softmax.metal",), check_softmax),
    Family("logsumexp", ("logsumexp.metal",), check_logsumexp),
)
