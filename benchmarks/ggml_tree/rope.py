"""Rotary embeddings in ggml's four layouts, with YaRN's scaling."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import FLOAT, assert_within, roundoff

from ggml_tree.operands import FLOATS
from ggml_tree.source import extents, run

_ROPE = re.compile(r"kernel_rope_(norm|neox|multi|vision)_(f32|f16)$")
_U = roundoff(FLOAT)
_TRAINED_CONTEXT = 4096
_SECTIONS = (5, 4, 3, 2)


def _correction(width: int, base: float, fast: float, slow: float) -> tuple[float, float]:
    """Between which dimensions YaRN passes from extrapolation to interpolation."""
    turns = np.array([fast, slow])
    dimensions = width * np.log(_TRAINED_CONTEXT / (turns * 2 * np.pi)) / (2 * np.log(base))
    return max(0.0, float(np.floor(dimensions[0]))), min(width - 1.0, float(np.ceil(dimensions[1])))


def _which_position(layout: str, interleaved: bool, pair: np.ndarray) -> np.ndarray:
    """Which of a token's four positions turns a pair."""
    if layout in ("norm", "neox"):
        return np.zeros_like(pair)
    if layout == "vision":
        return (pair % sum(_SECTIONS[:2]) >= _SECTIONS[1]).astype(int)
    sector = pair % sum(_SECTIONS)
    if not interleaved:
        return np.searchsorted(np.cumsum(_SECTIONS[:3]), sector, side="right")
    limits = 3 * np.array([_SECTIONS[0], _SECTIONS[1], _SECTIONS[2]])[sector % 3]
    return np.where(sector < limits, sector % 3, 3)


def _exponent(layout: str, pair: np.ndarray, width: int) -> np.ndarray:
    """The power of the base that divides a pair's angle."""
    if layout != "vision":
        return 2 * pair / width
    sector = pair % sum(_SECTIONS[:2])
    return 2 * np.where(sector < _SECTIONS[1], sector, sector - _SECTIONS[0]) / width


def check(source, library, name, rng):
    layout, type_ = _ROPE.match(name).groups()
    for yarn, factors, interleaved in ((0, 0, 0), (1, 1, 0), (1, 0, 1)):
        _compare(source, library, name, rng, layout, FLOATS[type_], yarn, factors, interleaved)


def _compare(source, library, name, rng, layout, dtype, yarn, with_factors, interleaved):
    columns, width, heads, tokens = 40, 32, 3, 4
    if layout == "vision":
        columns, width = 40, 18  # `width` counts pairs here
    pairs = width if layout == "vision" else width // 2
    base, scale, gain = 10000.0, 0.25 if yarn else 1.0, float(np.float32(1.1))
    fast, slow = 32.0, 1.0
    x = rng.normal(size=(2, tokens, heads, columns)).astype(dtype)
    positions = rng.integers(0, 64, (4, tokens)).astype(np.int32)
    factors = rng.uniform(0.5, 2, pairs).astype(np.float32)
    out = np.full_like(x, np.nan)
    arguments = source.arguments(
        "rope", **extents(x, "0"), **extents(out), n_past=0, n_dims=width, n_offs=0, inplace=0,
        n_ctx_orig=_TRAINED_CONTEXT, freq_base=base, freq_scale=scale, ext_factor=float(yarn),
        attn_factor=gain, beta_fast=fast, beta_slow=slow, src2=with_factors,
        **{f"sect_{i}": count for i, count in enumerate(_SECTIONS)},
    )  # fmt: skip
    kernel = library.function(name, {"FC_rope_is_imrope": bool(interleaved)})
    run(kernel, (arguments, x, positions, factors, out), (heads, tokens, 2), (8,))

    pair = np.arange(pairs)
    which = _which_position(layout, bool(interleaved), pair)
    angle = positions[which].T * base ** -_exponent(layout, pair, width)  # (tokens, pairs)
    if with_factors:
        angle = angle / factors
    magnitude, rotated = gain, scale * angle
    if yarn:
        low, high = _correction(width, base, fast, slow)
        mix = 1 - np.clip((pair - low) / max(0.001, high - low), 0, 1)
        rotated = scale * angle * (1 - mix) + angle * mix
        magnitude *= 1 + 0.1 * np.log(1 / scale)
    first = 2 * pair if layout == "norm" else pair
    second = first + (1 if layout == "norm" else pairs)
    a, b = (x[..., indices].astype(np.float64) for indices in (first, second))
    cos, sin = (magnitude * f(rotated)[:, None, :] for f in (np.cos, np.sin))
    exact = x.astype(np.float64)
    exact[..., first], exact[..., second] = a * cos - b * sin, a * sin + b * cos
    error = np.zeros_like(exact)
    # The angle has a relative error of a few roundings; pow's base and exponent add to it.
    in_angle = (24 * np.abs(np.maximum(angle, rotated))[:, None, :] + 16) * _U
    error[..., first] = error[..., second] = in_angle * magnitude * (np.abs(a) + np.abs(b))
    rounding = roundoff(dtype) * np.abs(exact) if dtype != np.float32 else 0
    assert_within(out, exact, error + rounding * (1 + 1e-6) + (6e-8 if dtype == np.float16 else 0))


FAMILIES = (("rotary embedding", check, _ROPE),)
