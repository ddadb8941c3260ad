"""Convolutions, their transposes and columns, and pooling."""

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
from mlx_tree.agreement import FLOAT, assert_same, assert_within, ceildiv, roundoff

from ggml_tree.source import extents, run

_COLUMNS = re.compile(r"kernel_im2col(_ext)?_(f32|f16)$")
_PLANES = re.compile(r"kernel_conv_2d_(f32|f16)_f32$")
_DEPTHWISE = re.compile(r"kernel_conv_2d_dw(_tiled)?_(f32|f16)_f32$")
_VOLUMES = re.compile(r"kernel_conv_3d_(f32|f16)_f32$")
_TRANSPOSED_1D = re.compile(r"kernel_conv_transpose_1d_(f32|f16)_f32$")
_TRANSPOSED_2D = re.compile(r"kernel_conv_transpose_2d_(f32|f16)_f32$")
_FROM_COLUMNS = re.compile(r"kernel_col2im_1d_(f32|f16|bf16)$")
_POOL = re.compile(r"kernel_pool_([12])d_(max|avg)_f32$")

_DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
_U = roundoff(FLOAT)
#: Stride, padding and dilation by axis, innermost first, as ggml numbers them.
_CASES = (((1, 1, 1), (0, 0, 0), (1, 1, 1)), ((2, 1, 2), (3, 1, 1), (1, 2, 1)),
          ((1, 3, 1), (2, 4, 0), (3, 1, 2)))  # fmt: skip


def _out(size, kernel, stride, padding, dilation):
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _windows(x, kernel, case):
    """The elements below each tap of a kernel, zeros outside: ``(..., *out, *kernel)``."""
    stride, padding, dilation = (tuple(reversed(v[: len(kernel)])) for v in case)
    lead, axes = x.ndim - len(kernel), range(len(kernel))
    padded = np.pad(x, [(0, 0)] * lead + [(p, p) for p in padding])
    counts = [_out(x.shape[lead + i], kernel[i], stride[i], padding[i], dilation[i]) for i in axes]
    out = np.zeros((*x.shape[:lead], *counts, *kernel), x.dtype)
    for tap in itertools.product(*map(range, kernel)):
        at = [
            slice(tap[i] * dilation[i], tap[i] * dilation[i] + stride[i] * counts[i], stride[i])
            for i in axes
        ]
        out[(..., *tap)] = padded[(..., *at)]
    return out


def _named(case, axes):
    return {f"{letter}{i}": case[j][i] for j, letter in enumerate("spd") for i in range(axes)}


def _sizes(letters, prefix, shape):
    return {f"{prefix}{letter}": n for letter, n in zip(letters, shape, strict=True)}


def check_columns(source, library, name, rng):
    """The windows of a convolution as rows of a matrix."""
    one_by_one, type_ = _COLUMNS.match(name).groups()
    kernel_function = library.function(name)
    for case in _CASES:
        x = rng.normal(size=(5, 3, 13, 17)).astype(np.float32)
        expected = _windows(x, (3, 2), case)  # N, C, OH, OW, KH, KW
        height, width = expected.shape[2:4]
        expected = expected.transpose(0, 2, 3, 1, 4, 5).reshape(5, height, width, 18)
        out = np.full(expected.shape, np.nan, _DTYPES[type_])
        arguments = source.arguments(
            "im2col", ofs0=3 * 13 * 17, ofs1=13 * 17, IW=17, IH=13, CHW=18, N=5, KH=3, KW=2, KHW=6,
            **_named(case, 2),
        )  # fmt: skip
        if one_by_one:
            run(kernel_function, (arguments, x, out), (2 * 18, height, width), (4,))
        else:
            run(kernel_function, (arguments, x, out), (3, height, width), (2, 3, 2))
        assert_same(out, expected.astype(out.dtype))


def check_planes(source, library, name, rng):
    weight_type = _DTYPES[_PLANES.match(name)[1]]
    kernel = library.function(name)
    for case in _CASES:
        x = rng.normal(size=(2, 3, 13, 17)).astype(np.float32)
        w = rng.normal(size=(5, 3, 3, 2)).astype(weight_type)
        windows = _windows(x.astype(np.float64), (3, 2), case)
        weights = w.astype(np.float64)
        exact = np.einsum("nchwyx,ocyx->nohw", windows, weights)
        size = np.einsum("nchwyx,ocyx->nohw", np.abs(windows), np.abs(weights))
        out = np.full(exact.shape, np.nan, np.float32)
        arguments = source.arguments(
            "conv_2d", **extents(w, "0"), **extents(x, "1"), **extents(out), IC=3, OC=5, N=2,
            **_sizes("HW", "I", (13, 17)), **_sizes("HW", "K", (3, 2)),
            **_sizes("HW", "O", exact.shape[2:]), **_named(case, 2),
        )  # fmt: skip
        run(kernel, (arguments, w, x, out), (3,), (256,))
        assert_within(out, exact, 20 * _U * size)


def check_depthwise(source, library, name, rng):
    """A convolution of each channel by itself, of two orders of memory."""
    tiled, type_ = _DEPTHWISE.match(name).groups()
    kernel = library.function(name)
    for case in _CASES:
        x = rng.normal(size=(2, 37, 13, 17)).astype(np.float32)
        w = rng.normal(size=(37, 1, 3, 2)).astype(_DTYPES[type_])
        if tiled:  # channels are contiguous
            x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            w = np.ascontiguousarray(w.transpose(1, 2, 3, 0)).transpose(3, 0, 1, 2)
        windows, weights = _windows(x.astype(np.float64), (3, 2), case), w[:, 0].astype(np.float64)
        exact = np.einsum("nchwyx,cyx->nchw", windows, weights)
        size = np.einsum("nchwyx,cyx->nchw", np.abs(windows), np.abs(weights))
        height, width = exact.shape[2:]
        memory = np.full((2, height, width, 37) if tiled else exact.shape, np.nan, np.float32)
        out = memory.transpose(0, 3, 1, 2) if tiled else memory
        strides = {f"nb0{i}": w[:, 0].strides[2 - i] for i in range(3)}
        arguments = source.arguments(
            "conv_2d_dw", **strides, **extents(x, "1"), **extents(out), C=37, N=2,
            **_sizes("HW", "I", (13, 17)), **_sizes("HW", "K", (3, 2)),
            **_sizes("HW", "O", (height, width)), **_named(case, 2),
        )  # fmt: skip
        groups = (2, height, width * 2) if tiled else (ceildiv(width, 32), height, 37 * 2)
        raw = (w.transpose(1, 2, 3, 0), x.transpose(0, 2, 3, 1)) if tiled else (w, x)
        run(kernel, (arguments, *raw, memory), groups, (32,))
        assert_within(out, exact, 10 * _U * size)


def check_volumes(source, library, name, rng):
    weight_type = _DTYPES[_VOLUMES.match(name)[1]]
    kernel = library.function(name)
    for case in _CASES:
        x = rng.normal(size=(2, 3, 7, 9, 11)).astype(np.float32)
        w = rng.normal(size=(5, 3, 2, 3, 2)).astype(weight_type)
        windows, weights = _windows(x.astype(np.float64), (2, 3, 2), case), w.astype(np.float64)
        exact = np.einsum("ncdhwzyx,oczyx->nodhw", windows, weights)
        size = np.einsum("ncdhwzyx,oczyx->nodhw", np.abs(windows), np.abs(weights))
        out = np.full(exact.shape, np.nan, np.float32)
        flat = [a.reshape(-1, *a.shape[2:]) for a in (w, x, out)]
        arguments = source.arguments(
            "conv_3d", **extents(flat[0], "0"), **extents(flat[1], "1"), **extents(flat[2]),
            IC=3, OC=5, N=2, **_sizes("DHW", "I", (7, 9, 11)), **_sizes("DHW", "K", (2, 3, 2)),
            **_sizes("DHW", "O", exact.shape[2:]), **_named(case, 3),
        )  # fmt: skip
        groups = (ceildiv(int(np.prod(exact.shape[2:])), 32), 5, 2)
        run(kernel, (arguments, *flat), groups, (32,))
        assert_within(out, exact, 40 * _U * size)


def check_transposed_1d(source, library, name, rng):
    kernel = library.function(name)
    for width, stride in ((4, 2), (3, 3), (5, 1), (2, 4)):
        w = rng.normal(size=(3, 5, width)).astype(_DTYPES[_TRANSPOSED_1D.match(name)[1]])
        x = rng.normal(size=(3, 17)).astype(np.float32)
        exact, size = np.zeros((2, 5, 16 * stride + width))
        for i in range(17):
            term = np.einsum("cok,c->ok", w.astype(np.float64), x[:, i].astype(np.float64))
            exact[:, i * stride : i * stride + width] += term
            size[:, i * stride : i * stride + width] += np.einsum(
                "cok,c->ok", np.abs(w.astype(np.float64)), np.abs(x[:, i].astype(np.float64))
            )
        out = np.full(exact.shape, np.nan, np.float32)
        arguments = source.arguments(
            "conv_transpose_1d", IC=3, IL=17, K=width, s0=stride, nb0=4, nb1=out.strides[0]
        )
        run(kernel, (arguments, w, x, out), (exact.shape[1], 5), (1,))
        assert_within(out, exact, 20 * _U * size)


def check_transposed_2d(source, library, name, rng):
    kernel = library.function(name)
    for stride in (1, 2, 4):
        w = rng.normal(size=(3, 5, 3, 2)).astype(_DTYPES[_TRANSPOSED_2D.match(name)[1]])
        x = rng.normal(size=(3, 5, 7)).astype(np.float32)
        exact, size = np.zeros((2, 5, 4 * stride + 3, 6 * stride + 2))
        for row, column in np.ndindex(5, 7):
            at = np.s_[:, row * stride : row * stride + 3, column * stride : column * stride + 2]
            weights, values = w.astype(np.float64), x[:, row, column].astype(np.float64)
            exact[at] += np.einsum("coyx,c->oyx", weights, values)
            size[at] += np.einsum("coyx,c->oyx", np.abs(weights), np.abs(values))
        out = np.full(exact.shape, np.nan, np.float32)
        arguments = source.arguments(
            "conv_transpose_2d", IC=3, IH=5, IW=7, KH=3, KW=2, OC=5, s0=stride, **extents(out)
        )
        run(kernel, (arguments, w, x, out), (*reversed(exact.shape[1:]), 5), (2, 3), 2 * 3 * 4)
        assert_within(out, exact, 30 * _U * size)


def check_from_columns(source, library, name, rng):
    """Overlapping columns added up, as a transposed convolution ends."""
    dtype = _DTYPES[_FROM_COLUMNS.match(name)[1]]
    kernel = library.function(name)
    for width, stride, padding in ((4, 2, 0), (4, 2, 1), (3, 3, 0), (5, 2, 2)):
        columns = rng.normal(size=(17, 5, width)).astype(dtype)
        full, size = np.zeros((2, 5, 16 * stride + width))
        for i in range(17):
            at = np.s_[:, i * stride : i * stride + width]
            full[at] += columns[i].astype(np.float64)
            size[at] += np.abs(columns[i].astype(np.float64))
        ends = np.s_[:, padding : full.shape[1] - padding]
        exact, size = full[ends], size[ends]
        out = np.full(exact.shape, np.nan, dtype)
        arguments = source.arguments(
            "col2im_1d", T_in=17, T_out=exact.shape[1], OC=5, K=width, K_OC=5 * width, s0=stride,
            p0=padding,
        )  # fmt: skip
        run(kernel, (arguments, columns, out), (ceildiv(exact.size, 64),), (64,))
        error = 8 * _U * size
        if dtype != np.float32:
            error = error + 1.01 * roundoff(dtype) * np.abs(exact) + 2.0**-25
        assert_within(out, exact, error)


def check_pool(source, library, name, rng):
    axes, mode = _POOL.match(name).groups()
    kernel = library.function(name)
    for size, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 2)):
        if axes == "1":
            x = rng.normal(size=(6, 33)).astype(np.float32)
            window, case = (size,), ((stride,), (padding,), (1,))
        else:
            x = rng.normal(size=(6, 13, 17)).astype(np.float32)
            window, case = (2, size), ((stride, 1), (padding, 1), (1, 1))
        windows = _windows(np.asarray(x, np.float64), window, case)
        present = _windows(np.ones(x.shape), window, case) > 0
        taps = tuple(range(-len(window), 0))
        out = np.full(windows.shape[: -len(window)], np.nan, np.float32)
        sizes = {"np": out.size, "IW": x.shape[-1], "OW": out.shape[-1]}
        sizes |= {"k0": size, "s0": stride, "p0": padding}
        if axes == "2":
            sizes |= {"IH": 13, "OH": out.shape[1], "k1": 2, "s1": 1, "p1": 1}
        arguments = source.arguments(f"pool_{axes}d", **sizes)
        run(kernel, (arguments, x, out), (ceildiv(out.size, 64),), (64,))
        if mode == "max":
            expected = np.where(present, windows, -np.inf).max(taps)
            assert_same(out, expected.astype(np.float32))
            continue
        # Averages of planes count the padding, averages of rows do not.
        count = present.sum(taps) if axes == "1" else int(np.prod(window))
        exact = windows.sum(taps) / count
        assert_within(out, exact, 12 * _U * np.abs(windows).sum(taps) / count)


FAMILIES = (
    ("columns of a convolution", check_columns, _COLUMNS),
    ("convolution of planes", check_planes, _PLANES),
    ("convolution by channels", check_depthwise, _DEPTHWISE),
    ("convolution of volumes", check_volumes, _VOLUMES),
    ("transposed convolution of rows", check_transposed_1d, _TRANSPOSED_1D),
    ("transposed convolution of planes", check_transposed_2d, _TRANSPOSED_2D),
    ("sum of columns", check_from_columns, _FROM_COLUMNS),
    ("pooling", check_pool, _POOL),
)
