"""Tensors put together, repeated, padded, shifted and enlarged; triangles, diagonals, sequences."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
from mlx_tree.agreement import FLOAT, assert_same, assert_within, ceildiv, roundoff

from ggml_tree.source import extents, run

_DTYPES = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
_TYPE = "|".join(_DTYPES)
_CONCAT = re.compile(rf"kernel_concat_({_TYPE})$")
_REPEAT = re.compile(rf"kernel_repeat_({_TYPE})$")
_TRIANGLE = re.compile(rf"kernel_tri_({_TYPE})_([0-3])$")
_PAD = re.compile(r"kernel_pad_f32(_4)?$")
_REFLECT = re.compile(r"kernel_pad_reflect_1d_f32$")
_ROLL = re.compile(r"kernel_roll_f32$")
_DIAGONAL = re.compile(r"kernel_diag_f32$")
_UPSCALE = re.compile(r"kernel_upscale_(nearest|bilinear|bicubic)_f32$")
_ARANGE = re.compile(r"kernel_arange_f32$")
_FILL = re.compile(r"kernel_memset_i64$")
_TIMESTEP = re.compile(r"kernel_timestep_embedding_f32$")

_U = roundoff(FLOAT)


def _values(rng, type_, shape):
    """Numbers that all types hold."""
    return rng.integers(-100, 100, shape).astype(_DTYPES[type_])


def check_concat(source, library, name, rng):
    kernel = library.function(name)
    shape = (2, 3, 4, 37)
    for dimension in range(4):
        axis = 3 - dimension
        other = tuple(5 if i == axis else n for i, n in enumerate(shape))
        x, y = (_values(rng, _CONCAT.match(name)[1], s) for s in (shape, other))
        expected = np.concatenate([x, y], axis)
        rows = expected.shape[2]
        for per_group in (1, 3):
            out = np.zeros_like(expected)
            sizes = extents(x, "0") | extents(y, "1") | extents(out)
            arguments = source.arguments("concat", **sizes, dim=dimension)
            groups = (ceildiv(rows, per_group), *reversed(expected.shape[:2]))
            run(kernel, (arguments, x, y, out), groups, (32, per_group))
            assert_same(out, expected)


def check_repeat(source, library, name, rng):
    kernel = library.function(name)
    x = _values(rng, _REPEAT.match(name)[1], (1, 3, 2, 11))
    for repeats in ((2, 1, 3, 4), (1, 2, 1, 1)):
        expected = np.tile(x, repeats)
        out = np.zeros_like(expected)
        arguments = source.arguments("repeat", **extents(x, "0"), **extents(out))
        run(kernel, (arguments, x, out), tuple(reversed(expected.shape[:3])), (32,))
        assert_same(out, expected)


def check_triangle(source, library, name, rng):
    """The upper or lower triangle of matrices, with the diagonal or without it."""
    type_, kind = _TRIANGLE.match(name).groups()
    kernel = library.function(name)
    x = _values(rng, type_, (2, 3, 33, 40))
    column, row = np.arange(40), np.arange(33)[:, None]
    masks = (column >= row, column > row, column <= row, column < row)
    out = np.ones_like(x)
    arguments = source.arguments("tri", **extents(x, "0"), **extents(out))
    run(kernel, (arguments, x, out), (33, 3, 2), (32,))
    assert_same(out, np.where(masks[int(kind)], x, np.zeros_like(x)))


def check_pad(source, library, name, rng):
    kernel, width = library.function(name), 4 if _PAD.match(name)[1] else 1
    for columns, more in ((12, 8), (1024, 516)):
        x = _values(rng, "f32", (2, 3, 4, columns))
        expected = np.pad(x, ((0, 1), (0, 2), (0, 3), (0, more)))
        out = np.full_like(expected, np.nan)
        sizes = extents(x, "0", columns // width) | extents(out, "", (columns + more) // width)
        arguments = source.arguments("pad", **sizes)
        blocks = ceildiv((columns + more) // width, 1024)
        run(kernel, (arguments, x, out), (blocks * 7, 5, 3), (64,))
        assert_same(out, expected)


def check_reflect(source, library, name, rng):
    kernel = library.function(name)
    x = _values(rng, "f32", (2, 3, 4, 35))
    for before, after in ((0, 0), (5, 7), (34, 0)):
        expected = np.pad(x, ((0, 0),) * 3 + ((before, after),), "reflect")
        out = np.full_like(expected, np.nan)
        sizes = extents(x, "0") | extents(out)
        arguments = source.arguments("pad_reflect_1d", **sizes, p0=before, p1=after)
        run(kernel, (arguments, x, out), (4, 3, 2), (32,))
        assert_same(out, expected)


def check_roll(source, library, name, rng):
    kernel = library.function(name)
    x = _values(rng, "f32", (2, 3, 4, 35))
    for shifts in ((0, 0, 0, 0), (1, -2, 3, -34)):
        out = np.full_like(x, np.nan)
        named = {f"s{i}": shift for i, shift in enumerate(reversed(shifts))}
        arguments = source.arguments("roll", **extents(x, "0"), **extents(out), **named)
        run(kernel, (arguments, x, out), (4, 3, 2), (32,))
        assert_same(out, np.roll(x, shifts, (0, 1, 2, 3)))


def check_diagonal(source, library, name, rng):
    x = _values(rng, "f32", (2, 3, 1, 37))
    out = np.full((2, 3, 37, 37), np.nan, np.float32)
    arguments = source.arguments("diag", **extents(x, "0"), **extents(out))
    run(library.function(name), (arguments, x, out), (37, 3, 2), (32,))
    assert_same(out, x * np.eye(37, dtype=np.float32))


def _coordinates(count, factor, offset):
    """Where the elements of a result lie in the source, in float32 as ggml computes them."""
    at = (np.arange(count, dtype=np.float32) + np.float32(offset)) / np.float32(factor)
    return (at - np.float32(offset)).astype(np.float64)


def _triangles(at, length, factor, offset):
    """Weights of a triangle as wide as a step of the source, for smaller results."""
    support = max(1.0, 1 / factor)
    rows = np.zeros((len(at), length))
    for row, x in zip(rows, at, strict=True):
        taps = np.arange(max(0, int(np.floor(x - support + offset))), length)
        taps = taps[taps < np.ceil(x + support + offset)]
        row[taps] = np.maximum(0, 1 - np.abs(taps - x) / support)
    return rows / rows.sum(1, keepdims=True)


def _linear(at, length):
    low = np.clip(np.floor(at).astype(int), 0, length - 1)
    fraction = np.clip(at - low, 0, 1)
    rows = np.zeros((len(at), length))
    np.add.at(rows, (np.arange(len(at)), low), 1 - fraction)
    np.add.at(rows, (np.arange(len(at)), np.minimum(low + 1, length - 1)), fraction)
    return rows


def _cubic(at, length):
    """Keys' convolution with a = -0.75 (doi:10.1109/TASSP.1981.1163711)."""
    a, low = -0.75, np.floor(at).astype(int)
    rows = np.zeros((len(at), length))
    for tap in range(-1, 3):
        x = np.abs(at - low - tap)
        inner = ((a + 2) * x - (a + 3)) * x * x + 1
        weight = np.where(x <= 1, inner, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a)
        np.add.at(rows, (np.arange(len(at)), np.clip(low + tap, 0, length - 1)), weight)
    return rows


def check_upscale(source, library, name, rng):
    """Images in other sizes, whose corners or whose centres of pixels lie on each other."""
    mode = _UPSCALE.match(name)[1]
    x = rng.normal(size=(1, 2, 12, 20)).astype(np.float32)
    cases = [((24, 60), 0.5, False), ((18, 30), 0.0, False)]
    cases += [((8, 13), 0.5, True)] if mode == "bilinear" else []
    for (rows, columns), offset, smooth in cases:
        if mode == "nearest":
            rows, columns, offset = 24, 60, 0.0
        factors = (rows / 12, columns / 20)
        if offset == 0.0 and mode != "nearest":
            factors = ((rows - 1) / 11, (columns - 1) / 19)
        out = np.full((1, 4, rows, columns), np.nan, np.float32)
        arguments = source.arguments(
            "upscale", **extents(x, "0"), **extents(out), sf0=factors[1], sf1=factors[0], sf2=2,
            sf3=1, poffs=offset,
        )  # fmt: skip
        kernel = library.function(name, {"FC_upscale_aa": smooth} if mode == "bilinear" else None)
        run(kernel, (arguments, x, out), (rows, 4, 1), (32,))
        planes = x.astype(np.float64).repeat(2, 1)
        if mode == "nearest":
            assert_same(out, planes.repeat(2, 2).repeat(3, 3).astype(np.float32))
            continue
        weights = []
        for count, length, factor in zip((rows, columns), (12, 20), factors, strict=True):
            at = _coordinates(count, factor, offset)
            if smooth:
                weights.append(_triangles(at, length, factor, offset))
            else:
                weights.append((_linear if mode == "bilinear" else _cubic)(at, length))
        down, across = weights
        exact = down @ planes @ across.T
        # Errors of the weights: those of a coordinate, times their slope, which is 2 at most.
        bound = 16 * _U * max(rows, columns) * 4 * np.abs(planes).max()
        assert_within(out, exact, bound)


def check_arange(source, library, name, rng):
    out = np.full(1000, np.nan, np.float32)
    arguments = source.arguments("arange", ne0=1000, start=-3.5, step=0.25)
    run(library.function(name), (arguments, out), (1,), (256,))
    assert_same(out, np.arange(1000, dtype=np.float32) * np.float32(0.25) - np.float32(3.5))


def check_fill(source, library, name, rng):
    out = np.zeros(96, np.int64)
    value = -(2**40) - 7
    run(library.function(name), (source.arguments("memset", val=value), out), (3,), (32,))
    assert_same(out, np.full(96, value))


def check_timestep(source, library, name, rng):
    """``cos(t f)`` and ``sin(t f)`` with frequencies from 1 down to nearly 1 / 10000."""
    steps = rng.uniform(0, 50, 7).astype(np.float32)
    for width in (32, 33):
        out = np.full((7, width), np.nan, np.float32)
        arguments = source.arguments(
            "timestep_embedding", nb1=out.strides[0], dim=width, max_period=10000
        )
        run(library.function(name), (arguments, steps, out), (7,), (16,))
        angle = steps[:, None] * np.exp(-np.log(10000) * np.arange(16) / 16)
        exact = np.zeros((7, width))
        exact[:, :16], exact[:, 16:32] = np.cos(angle), np.sin(angle)
        error = np.full((7, width), 4 * _U)
        error[:, :32] += np.tile(40 * _U * angle, 2)  # the exponent is up to 9.2 and rounded
        assert_within(out, exact, error)


FAMILIES = (
    ("concatenation", check_concat, _CONCAT),
    ("repetition", check_repeat, _REPEAT),
    ("triangle", check_triangle, _TRIANGLE),
    ("padding", check_pad, _PAD),
    ("padding by reflection", check_reflect, _REFLECT),
    ("roll", check_roll, _ROLL),
    ("diagonal matrix", check_diagonal, _DIAGONAL),
    ("upscaling", check_upscale, _UPSCALE),
    ("arange", check_arange, _ARANGE),
    ("fill", check_fill, _FILL),
    ("timestep embedding", check_timestep, _TIMESTEP),
)
