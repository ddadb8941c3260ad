"""Softmax and the norms: a threadgroup for each row (or group of channels)."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import FLOAT, assert_within, ceildiv, roundoff

from ggml_tree.source import extents, run

_SOFTMAX = re.compile(r"kernel_soft_max_(f16|f32)(_4)?$")
_NORM = re.compile(r"kernel_(rms_)?norm(_mul)?(_add)?_f32(_4)?$")
_L2_NORM = re.compile(r"kernel_l2_norm_f32_f32(_4)?$")
_GROUP_NORM = re.compile(r"kernel_group_norm_f32$")

_U = roundoff(FLOAT)
_SCRATCH = 32 * 4  # bytes: a float for each simdgroup
_EPSILON = float(np.float32(1e-5))


def _columns(is_wide) -> tuple[int, ...]:
    return (4, 132, 640) if is_wide else (1, 33, 131)


def _threads(count: int, limit: int = 1024) -> int:
    """A power of two of threads, from a simdgroup up."""
    threads = 32
    while threads < min(count, limit):
        threads *= 2
    return threads


def check_softmax(source, library, name, rng):
    """``softmax(scale x + slope mask)`` along rows, with sinks: logits that have no column."""
    mask_type, wide = _SOFTMAX.match(name).groups()
    kernel = library.function(name)
    scale, heads = float(np.float32(0.3)), 3
    for columns, bias, with_mask, with_sinks in zip(
        (*_columns(wide), 132), (0.0, 0.0, 8.0, 8.0), (0, 1, 1, 1), (0, 1, 0, 1), strict=True
    ):
        x = rng.normal(size=(2, heads, 5, columns)).astype(np.float32) * 4
        mask = rng.integers(-8, 8, (2, 1, 5, columns)).astype(
            {"f16": np.float16}.get(mask_type, FLOAT)
        )
        mask[..., 1::7] = -np.inf
        sinks = rng.normal(size=heads).astype(np.float32)
        out = np.full_like(x, np.nan)
        # ALiBi: the steepness of head h, in two geometric series
        powers = 2 ** int(np.log2(heads))
        m0, m1 = (float(np.float32(2.0 ** (-b / powers))) for b in (bias, bias / 2))
        steep = [
            m0 ** (h + 1) if h < powers else m1 ** (2 * (h - powers) + 1) for h in range(heads)
        ]
        slope = np.array(steep).reshape(1, heads, 1, 1) if bias else 1.0
        arguments = source.arguments(
            "soft_max",
            **extents(x, "0"), **extents(mask, "1"), **extents(out),
            scale=scale, max_bias=bias, m0=m0, m1=m1, n_head_log2=powers,
        )  # fmt: skip
        width = columns // 4 if wide else columns
        run(
            kernel,
            (arguments, x, mask if with_mask else x, sinks if with_sinks else x, out),
            (5, heads, 2),
            (_threads(width, 256),),
            _SCRATCH,
        )
        shift = slope * mask.astype(np.float64) if with_mask else np.zeros(1)
        z = x.astype(np.float64) * scale + shift
        extra = np.full((1, heads, 1, 1), -np.inf)
        if with_sinks:
            extra = sinks.astype(np.float64).reshape(1, heads, 1, 1)
        top = np.maximum(z.max(-1, keepdims=True), extra)
        total = np.exp(z - top).sum(-1, keepdims=True) + np.exp(extra - top)
        exact = np.exp(z - top) / total
        finite = np.where(
            np.isfinite(z), np.abs(x * scale) + 16 * np.abs(np.nan_to_num(shift, neginf=0)), 0
        )
        in_logits = 4 * _U * (finite + finite.max(-1, keepdims=True) + np.abs(top))
        error = exact * (in_logits + in_logits.max(-1, keepdims=True) + (columns + 16) * _U)
        assert_within(out, exact, error + 1e-44)


def _normalised(x, is_rms, count, additions):
    """The norm of the last axis in float64, and a bound of the error of computing it in float."""
    x = x.astype(np.float64)
    each = (additions + 8) * _U
    mean = 0.0 if is_rms else x.sum(-1, keepdims=True) / count
    y = x - mean
    y_error = 0.0 if is_rms else each * np.abs(x).sum(-1, keepdims=True) / count + _U * np.abs(y)
    squares = (y * y).sum(-1, keepdims=True)
    scale = 1 / np.sqrt(squares / count + _EPSILON)
    in_squares = each * squares + 2 * (np.abs(y) * y_error).sum(-1, keepdims=True)
    in_scale = 0.5 * in_squares / (squares + count * _EPSILON) + 4 * _U
    return y * scale, scale * y_error + 1.01 * np.abs(y * scale) * (in_scale + 2 * _U)


def check_norm(source, library, name, rng):
    """``norm(x) f + g`` and the same with the root mean square only."""
    rms, factor, addend, wide = _NORM.match(name).groups()
    kernel = library.function(name)
    # A last simdgroup of a few threads would see only some of the partial sums, on any device.
    for columns in (4, 80, 256, 640) if wide else (1, 20, 64, 1025):
        x = rng.normal(size=(2, 3, 4, columns)).astype(np.float32) + 1
        f = rng.normal(size=(1, 3, 1, columns)).astype(np.float32)
        g = rng.normal(size=(2, 1, 4, columns)).astype(np.float32)
        out = np.full_like(x, np.nan)
        sizes = [extents(array) for array in (x, f, g)]
        fused = {
            f"{kind}f{axis}": [size[f"{kind}{axis}"] for size in sizes]
            for kind in ("ne", "nb")
            for axis in (1, 2, 3)
        }
        width = columns // 4 if wide else columns
        arguments = source.arguments(
            "norm", **extents(x, "0"), **extents(out), **fused, ne00_t=width, eps=_EPSILON
        )
        run(kernel, (arguments, x, f, g, out), (4, 3, 2), (min(_threads(width), width),), _SCRATCH)
        exact, error = _normalised(x, bool(rms), columns, columns)
        if factor:
            exact, error = exact * f, (error + _U * np.abs(exact)) * np.abs(f)
        if addend:
            exact, error = exact + g, error + _U * (np.abs(exact) + np.abs(exact + g))
        assert_within(out, exact, 1.01 * error)


def check_l2_norm(source, library, name, rng):
    """``x / max(|x|, eps)``."""
    wide = _L2_NORM.match(name)[1]
    kernel = library.function(name)
    for columns in _columns(wide):
        x = rng.normal(size=(2, 3, 4, columns)).astype(np.float32)
        x[0, 0, 0] *= 1e-9
        out = np.full_like(x, np.nan)
        sizes = extents(x, "0") | extents(out)
        if wide:
            sizes |= {"ne00": columns // 4, "ne0": columns // 4}
        arguments = source.arguments("l2_norm", **sizes, eps=_EPSILON)
        run(kernel, (arguments, x, out), (4, 3, 2), (_threads(columns),), _SCRATCH)
        length = np.sqrt((x.astype(np.float64) ** 2).sum(-1, keepdims=True))
        exact = x / np.maximum(length, _EPSILON)
        assert_within(out, exact, np.abs(exact) * (columns + 8) * _U)


def check_group_norm(source, library, name, rng):
    """Channels in groups, the last of which may be smaller; its mean is over a whole group."""
    kernel = library.function(name)
    for channels, groups in ((6, 3), (1, 1), (7, 2)):
        x = rng.normal(size=(channels, 5, 11)).astype(np.float32) + 1
        out = np.full_like(x, np.nan)
        arguments = source.arguments("group_norm", **extents(x, "0"), ngrp=groups, eps=_EPSILON)
        run(kernel, (arguments, x, out), (groups,), (32,), _SCRATCH)
        size = ceildiv(channels, groups)
        for start in range(0, channels, size):
            rows = x[start : start + size].reshape(1, -1)
            exact, error = _normalised(rows, False, size * 55, rows.size)
            assert_within(out[start : start + size].reshape(1, -1), exact, error)


FAMILIES = (
    ("softmax", check_softmax, _SOFTMAX),
    ("norm", check_norm, _NORM),
    ("l2 norm", check_l2_norm, _L2_NORM),
    ("group norm", check_group_norm, _GROUP_NORM),
)
