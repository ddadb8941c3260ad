"""Layer norm and RMS norm of rows, and their gradients."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import FLOAT, Family, assert_near, ceildiv, roundoff, smallest
from mlx_tree.element_types import TYPES
from mlx_tree.reduce_launches import MAX_THREADS, TWO_SIMD_SUMS, in_simdgroups

EPS = np.float32(1e-5)
#: Rows of a gradient of RMS norm that one threadgroup does.
ROWS_PER_GROUP = 2


class Launch(NamedTuple):
    """Threads of a row's group, and the most additions that a value of the row goes through."""

    group: int
    additions: int


def launch_of(size: int, looped: bool, reads: int) -> Launch:
    group = MAX_THREADS if looped else in_simdgroups(ceildiv(size, reads))
    return Launch(group, reads * ceildiv(size, reads * group) + TWO_SIMD_SUMS)


def _rounded(exact, dtype):
    """The error that a rounding to a type adds of numbers of this size."""
    return roundoff(dtype) * np.abs(exact) + smallest(dtype)


def _statistics(x, centred: bool):
    """Mean and 1 / deviation of rows, exact; RMS norm takes the mean to be 0."""
    mean = x.mean(axis=1, keepdims=True) if centred else np.zeros((len(x), 1))
    variance = np.mean((x - mean) ** 2, axis=1, keepdims=True)
    return mean, 1 / np.sqrt(variance + np.float64(EPS))


def normalised(x, centred: bool, additions: int):
    """Exact normalised rows, and how far float may be off.

    A mean errs relative to the magnitudes that it is taken of; a wrong mean moves every
    difference, and a relative error of the variance is halved by the root.
    """
    unit = roundoff(FLOAT)
    mean, scale = _statistics(x, centred)
    magnitude = np.mean(np.abs(x), axis=1, keepdims=True) if centred else 0
    of_mean = (additions + 1) * unit * magnitude
    of_difference = of_mean + unit * np.abs(x - mean)
    largest = of_difference.max(axis=1, keepdims=True)
    spread = np.abs(x - mean).mean(axis=1, keepdims=True)
    of_variance = (2 * spread * largest + largest**2) * scale**2 + (additions + 3) * unit
    relative = of_variance / 2 + 4 * 2.0**-23
    exact = (x - mean) * scale
    return exact, of_difference * scale * (1 + relative) + np.abs(exact) * relative


def check_forward(kernel: mtl.Kernel, x, weight, bias, launch: Launch) -> None:
    """Compare ``weight * norm(x) + bias``; without `bias` it is RMS norm."""
    rows, size = x.shape
    out = np.empty_like(x)
    stride = int(len(weight) > 1)
    centred = bias is not None
    arrays = (x, weight, bias, out) if centred else (x, weight, out)
    strides = (stride, stride) if centred else (stride,)
    kernel(*arrays, EPS, size, *strides, threads=rows * launch.group, group_size=launch.group)
    exact, error = normalised(x.astype(np.float64), centred, launch.additions)
    # The norm is rounded to the type before the product is, and the product before the sum.
    error += _rounded(exact, x.dtype)
    w = weight.astype(np.float64)
    product = exact * w
    error = error * np.abs(w) + _rounded(product, x.dtype)
    result = product + bias.astype(np.float64) if centred else product
    assert_near(out, result, (error + _rounded(result, x.dtype)) * 1.01)


def _gradient_error(exact, size, additions, dtype):
    """Sums of so many terms, of magnitudes `size` in all, and the last rounding."""
    return (2 * additions + 32) * roundoff(FLOAT) * size * 1.1 + _rounded(exact, dtype)


def check_gradient(library, name, x, weight, g, launch: Launch, centred: bool, looped: bool):
    """Compare the gradients of a norm by `x`, and by the weight, where there is one."""
    rows, size = x.shape
    has_weight = len(weight) > 1
    kernel = library.function(name, {"has_w": has_weight})
    rows_per_group = 1 if centred or looped else ROWS_PER_GROUP
    groups = ceildiv(rows, rows_per_group)
    gx, gw = np.empty_like(x), np.full((groups, size), 7, x.dtype)
    more = () if centred or looped else (rows, rows_per_group)
    kernel(
        x, weight, g, gx, gw, EPS, size, int(has_weight), *more,
        threads=groups * launch.group, group_size=launch.group,
    )  # fmt: skip
    a, w, b = (array.astype(np.float64) for array in (x, weight, g))
    mean, scale = _statistics(a, centred)
    norm, wg = (a - mean) * scale, w * b
    of_mean = wg.mean(axis=1, keepdims=True) if centred else 0
    exact = scale * (wg - of_mean - norm * np.mean(wg * norm, axis=1, keepdims=True))
    # The same with magnitudes in place of numbers: what the errors are relative to.
    norm_size, wg_size = (np.abs(a) + np.abs(mean)) * scale, np.abs(wg)
    magnitude = scale * (
        wg_size + np.mean(wg_size, axis=1, keepdims=True)
        + norm_size * np.mean(wg_size * norm_size, axis=1, keepdims=True)
    )  # fmt: skip
    assert_near(gx, exact, _gradient_error(exact, magnitude, launch.additions, x.dtype))
    if not has_weight:
        assert (gw == 7).all(), "the gradient of a weight that is not there was written"
        return
    starts = range(0, rows, rows_per_group)
    exact = np.add.reduceat(b * norm, starts, axis=0)
    magnitude = np.add.reduceat(np.abs(b) * norm_size, starts, axis=0)
    assert_near(gw, exact, _gradient_error(exact, magnitude, launch.additions, x.dtype))


_NAME = re.compile("(vjp_)?(layer_norm|rms)(_looped)?(.*)")


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    match = _NAME.fullmatch(name)
    assert match, name
    gradient, centred, looped = bool(match[1]), match[2] == "layer_norm", bool(match[3])
    dtype = TYPES[match[4]]
    reads = 8 if centred and not looped else 4
    # Where a row ends more than eight elements before its last thread's, MLX's layer_norm writes
    # before an array: it fills up from a negative index. These sizes end in the last thread.
    sizes = (8200,) if looped else (250, 256, 1020) if centred else (2, 33, 1000)
    for size in sizes:
        launch = launch_of(size, looped, reads)
        for length in (size, 1):  # a weight for each element, or a scalar instead of it
            # Of the last row the variance is smaller than EPS.
            x = ((rng.normal(size=(3, size)) + 1) * [[1], [1], [1e-3]]).astype(dtype)
            weight, bias = rng.normal(size=(2, length)).astype(dtype)
            if gradient:
                g = rng.normal(size=x.shape).astype(dtype)
                check_gradient(library, name, x, weight, g, launch, centred, looped)
            else:
                kernel = library.function(name)
                check_forward(kernel, x, weight, bias if centred else None, launch)


FAMILIES = (
    Family("layer_norm", ("layer_norm.metal",), check),
    Family("rms_norm", ("rms_norm.metal",), check),
)
