"""Convolutions as products of tiles ("steel"): of images, of volumes, and with dilated images."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, ceildiv, element_strides
from mlx_tree.convolution import Convolution
from mlx_tree.element_types import TYPES
from mlx_tree.gemm import Tiling
from mlx_tree.products import (
    assert_rounded,
    dispatch,
    poisoned,
    product_error,
    structure,
)

_FOLDER = "steel/conv/kernels"
_NAME = re.compile(
    r"implicit_gemm_conv_(?P<axes>[23])d_(?P<general>general_)?(?P<dtype>[a-z]+\d+)"
    rf"{Tiling.PATTERN}(?:_channel_(?P<channel>\w))?(?:_filter_(?P<filter>[sl]))?$"
)
_BASE_INFO = np.dtype([("weight_base", np.int32), ("weight_size", np.int32)])
_JUMPS = np.dtype(
    [(name, np.int32) for name in (
        "f_wgt_jump_h", "f_wgt_jump_w", "f_out_jump_h", "f_out_jump_w", "adj_out_h", "adj_out_w",
        "adj_out_hw", "adj_implicit_m")]
)  # fmt: skip
_AXES = "whd"


def _gemm_layout(axes: int) -> np.dtype:
    """``ImplicitGemmConv2DParams`` or ``ImplicitGemmConv3DParams``."""
    jumps = [f"inp_jump_{axis}" for axis in (*_AXES[:axes], "c")]
    names = ("M", "N", "K", "gemm_k_iterations", *jumps, "tiles_n", "tiles_m", "swizzle_log")
    return np.dtype([(name, np.int32) for name in names])


def _gemm_params(work: Convolution, tiling: Tiling, image, rows: int, iterations: int) -> np.void:
    """The convolution as a product of `rows` rows; jumps lead from one position of a filter on."""
    axes, sign = len(work.size), -1 if work.flip else 1
    steps = element_strides(image)[1:-1] * work.dilation
    jumps, back = {}, 0
    for letter, axis in zip(_AXES, reversed(range(axes)), strict=False):
        jumps[f"inp_jump_{letter}"] = sign * (steps[axis] - back)
        back += (work.filter[axis] - 1) * steps[axis]
    columns = work.filters // work.groups
    return structure(
        _gemm_layout(axes), M=work.rows, N=columns, K=work.terms, gemm_k_iterations=iterations,
        tiles_n=ceildiv(columns, tiling.bn), tiles_m=ceildiv(rows, tiling.bm),
        inp_jump_c=tiling.bk - sign * back, **jumps,
    )  # fmt: skip


def _with_slack(weights: np.ndarray, rows: int) -> np.ndarray:
    """The filters, and NaN after them.

    The kernels read whole tiles of filters, past the last one, and leave those results out.
    """
    slack = np.full((rows, *weights.shape[1:]), np.nan, weights.dtype)
    return np.concatenate([weights, slack])


def _compare(work: Convolution, image, weights, out) -> None:
    exact, magnitude = work.exact(image, weights)
    assert_rounded(out, exact, product_error(magnitude, work.terms))


def check_tiled(kernel, dtype, tiling: Tiling, work: Convolution, rng) -> None:
    """One convolution, with groups along the z axis of the grid."""
    image, weights = work.operands(rng, dtype)
    out = poisoned((work.n, *work.out_size, work.filters), dtype)
    channels, taps = work.channels // work.groups, int(np.prod(work.filter))
    if channels <= 2:
        iterations = ceildiv(taps * channels, tiling.bk)
    elif channels <= 4:
        iterations = ceildiv(taps * 4, tiling.bk)
    else:
        iterations = taps * ceildiv(channels, tiling.bk)
    params = _gemm_params(work, tiling, image, work.rows, iterations)
    dispatch(
        kernel, (int(params["tiles_n"]), int(params["tiles_m"]), work.groups), tiling.group_size,
        A=image, B=_with_slack(weights, tiling.bn), C=out, gemm_params=params,
        params=work.params(image, weights, out),
    )  # fmt: skip
    _compare(work, image, weights, out)


def _first_taps(work: Convolution, axis: int, jump_out: int, jump_filter: int) -> np.ndarray:
    """For each phase of the results: the first tap that meets the image, and how many do."""
    size, step = work.filter[axis], work.dilation[axis]
    info = np.zeros(jump_out, _BASE_INFO)
    for phase in range(jump_out):
        position = phase * work.stride[axis] - work.pad[axis]
        taps = [(position + (size - 1 - t if work.flip else t) * step) % work.spread[axis]
                for t in range(size)]  # fmt: skip
        base = taps.index(0) if 0 in taps else size
        info[phase] = base, ceildiv(size - base, jump_filter)
    return info


def check_general(library, name, dtype, tiling: Tiling, work: Convolution, rng) -> None:
    """A dilated image: results of one phase use the same taps of a filter."""
    image, weights = work.operands(rng, dtype)
    out = poisoned((work.n, *work.out_size, work.filters), dtype)
    jump_filter = [int(np.lcm(s, d)) // d for s, d in zip(work.spread, work.dilation, strict=True)]
    jump_out = [int(np.lcm(s, d)) // d for s, d in zip(work.spread, work.stride, strict=True)]
    height, width = (ceildiv(o, j) for o, j in zip(work.out_size, jump_out, strict=True))
    rows = work.n * height * width
    jumps = structure(
        _JUMPS, f_wgt_jump_h=jump_filter[0], f_wgt_jump_w=jump_filter[1], f_out_jump_h=jump_out[0],
        f_out_jump_w=jump_out[1], adj_out_h=height, adj_out_w=width, adj_out_hw=height * width,
        adj_implicit_m=rows,
    )  # fmt: skip
    params = _gemm_params(work, tiling, image, rows, ceildiv(work.channels, tiling.bk))
    dispatch(
        library.function(name, {"align_C": work.channels % tiling.bk == 0}),
        (int(params["tiles_n"]), int(params["tiles_m"]), jump_out[0] * jump_out[1]),
        tiling.group_size, A=image, B=_with_slack(weights, tiling.bn), C=out, gemm_params=params,
        params=work.params(image, weights, out), jump_params=jumps,
        base_h=_first_taps(work, 0, jump_out[0], jump_filter[0]),
        base_w=_first_taps(work, 1, jump_out[1], jump_filter[1]),
    )  # fmt: skip
    _compare(work, image, weights, out)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    parts = _NAME.match(name)
    assert parts, name
    tiling = Tiling(*(int(parts[key]) for key in ("bm", "bn", "bk", "wm", "wn")))
    dtype, axes = TYPES[parts["dtype"]], int(parts["axes"])
    # Results are multiples of 16, or at most 16; in both cases the last tile has an edge.
    filters = 11 if tiling.bn == 8 else tiling.bn + 16
    if parts["general"]:
        work = Convolution.of(1, 19, 37, (4, 5), (3, 3), stride=2, pad=2, spread=3, flip=True)
        check_general(library, name, dtype, tiling, work, rng)
        work = Convolution.of(2, 32, filters, (4, 3), (3, 2), dilation=2, spread=2, pad=3)
        check_general(library, name, dtype, tiling, work, rng)
        return
    channels = int(parts["channel"]) if parts["channel"] in tuple("1234") else 2 * tiling.bk
    work = Convolution.of(2, channels, filters, (7, 6, 3)[:axes], (3, 2, 2)[:axes], stride=2)
    large = parts["filter"] == "l" and channels > 4
    if large:
        # A filter is small if it is 16 wide at most.
        size, filter_size = (16, 4, 2)[:axes], (17, 2, 1)[:axes]
        work = replace(work, channels=tiling.bk, size=size, filter=filter_size, stride=(1,) * axes)
    check_tiled(library.function(name), dtype, tiling, work, rng)
    # Large filters are not flipped: the loader for images tests other bounds then.
    grouped = replace(
        work, n=1, channels=2 * work.channels, filters=2 * (filters - 4 if filters < 16 else 16),
        groups=2, flip=not large, dilation=(1, *work.dilation[1:-1], 2),
    )  # fmt: skip
    check_tiled(library.function(name), dtype, tiling, grouped, rng)


FAMILIES = (
    Family(
        "steel conv",
        tuple(f"{_FOLDER}/steel_conv{form}.metal" for form in ("", "_general", "_3d")),
        check,
    ),
)
