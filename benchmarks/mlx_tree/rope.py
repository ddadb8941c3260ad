"""Rotary positions: pairs of numbers turned by angles that grow with the position in a sequence."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import FLOAT, Family, assert_near, ceildiv, roundoff, strides_of
from mlx_tree.element_types import TYPES
from mlx_tree.elementwise import block_dims

#: Heads that one thread turns.
HEADS = 4
SCALE = np.float32(0.25)
BASE = 10_000.0


def rotated(x, angles, forward: bool, traditional: bool):
    """Pairs of the last axis turned by `angles`; traditionally neighbours, else halves apart."""
    z = x[..., 0::2] + 1j * x[..., 1::2] if traditional else _halves(x)
    z = z * np.exp((1j if forward else -1j) * angles)
    if traditional:
        return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
    return np.concatenate([z.real, z.imag], axis=-1)


def _halves(x):
    half = x.shape[-1] // 2
    return x[..., :half] + 1j * x[..., half:]


def bound(x, exact, angles, traditional: bool, dtype):
    """Angles err by some ulps, fast::cos and fast::sin by 2^-13 (Metal specification)."""
    z = _halves(x) if not traditional else x[..., 0::2] + 1j * x[..., 1::2]
    each = 1.5 * np.abs(z) * (2.0**-13 + 32 * roundoff(FLOAT) * (1 + np.abs(angles)))
    error = np.repeat(each, 2, -1) if traditional else np.concatenate([each, each], -1)
    return error + roundoff(dtype) * np.abs(exact) + 2.0**-25


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    match = re.fullmatch("rope_(single_)?(freqs_)?(large_)?(.*)", name)
    assert match, name
    single, given, dtype = match[1], match[2], TYPES[match[4]]
    orders = (False,) if single else (False, True)
    for forward, traditional, transposed in itertools.product((True, False), (True, False), orders):
        constants = {
            "forward": forward, "traditional": traditional, "hs_transpose": transposed,
        }  # fmt: skip
        kernel = library.function(name, constants)
        launch = _run_single if single else _run
        launch(kernel, dtype, bool(given), transposed, forward, traditional, rng)


def _frequencies(half: int, given: bool, rng) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Exact frequencies, and the arguments from which a kernel gets them."""
    if given:  # as wave lengths, with a stride
        lengths = rng.uniform(1, 50, 2 * half).astype(np.float32)
        return 1 / lengths[::2].astype(np.float64), (lengths, 2)
    base = np.float32(np.log2(BASE))
    return np.exp2(-np.arange(half) / half * np.float64(base)), (base,)


def _run_single(kernel, dtype, given, transposed, forward, traditional, rng):
    """One step of a sequence, as when text is generated."""
    heads, size, offset = 5, 16, 3
    x = rng.normal(size=(heads, size)).astype(dtype)
    frequencies, more = _frequencies(size // 2, given, rng)
    out, grid = np.empty_like(x), (size // 2, heads)
    kernel(x, out, offset, SCALE, size, *more, threads=grid, group_size=block_dims((*grid, 1)))
    angles = offset * np.float64(SCALE) * frequencies
    exact = rotated(x.astype(np.float64), angles, forward, traditional)
    assert_near(out, exact, bound(x.astype(np.float64), exact, angles, traditional, dtype))


def _run(kernel, dtype, given, transposed, forward, traditional, rng):
    """Whole sequences; the numbers beyond the turned ones are copied beforehand."""
    batch, heads, steps, turn, size = 2, 6, 7, 16, 20
    x = rng.normal(size=(batch, heads, steps, size)).astype(dtype)
    if transposed:  # sequence before heads in memory; MLX turns all numbers then
        turn = size
        source = np.ascontiguousarray(x.transpose(0, 2, 1, 3))
        out, strides = np.empty_like(x), strides_of(source.shape)[[2, 1, 3]]
    else:
        source = out = x.copy()
        strides = strides_of(x.shape)[1:]
    offset = rng.integers(0, 5, batch).astype(np.int32)
    frequencies, more = _frequencies(turn // 2, given, rng)
    grid = (turn // 2, steps, batch * ceildiv(heads, HEADS))
    kernel(
        source, out, offset, SCALE, strides, strides_of(x.shape)[1:], 1, heads, *more,
        threads=grid, group_size=block_dims(grid),
    )  # fmt: skip
    positions = np.arange(steps) + offset[:, None]
    angles = (positions * np.float64(SCALE))[:, None, :, None] * frequencies
    wide = x[..., :turn].astype(np.float64)
    exact = rotated(wide, angles, forward, traditional)
    assert_near(out[..., :turn], exact, bound(wide, exact, angles, traditional, dtype))
    np.testing.assert_array_equal(out[..., turn:], x[..., turn:])


FAMILIES = (Family("rope", ("rope.metal",), check),)
