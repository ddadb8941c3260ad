"""Convolutions by other means than tiles: unfolding, one filter a channel, and Winograd's."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, ceildiv, element_strides, roundoff
from mlx_tree.convolution import Convolution, params_layout
from mlx_tree.element_types import TYPES
from mlx_tree.products import (
    SIMD,
    assert_rounded,
    dispatch,
    exactly,
    operand,
    poisoned,
    product_error,
    structure,
)

#: Winograd's transforms for tiles of 6 x 6 and filters of 3 x 3, at 0, 1, -1, 2, -2, 1/2, -1/2 and
#: infinity (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks).
_POINTS = np.array([0, 1, -1, 2, -2, 0.5, -0.5])
_TILE, _EDGE = 6, 8


def _winograd_matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For filters (8, 3), for images (8, 8) and for results (6, 8), by Toom and Cook."""
    result = np.zeros((_TILE, _EDGE))
    result[:, :7] = _POINTS ** np.arange(_TILE)[:, None]
    result[-1, 7] = 1
    image = np.zeros((_EDGE, _EDGE))
    filters = np.zeros((_EDGE, 3))
    for row, point in enumerate(_POINTS):
        others = np.delete(_POINTS, row)
        # The sign of a row is free as long as both have it: MLX's filter at zero is positive.
        sign = -1 if point == 0 else 1
        image[row, :7] = sign * np.poly(others)[::-1]
        filters[row] = sign * point ** np.arange(3) / np.prod(point - others)
    image[7] = np.poly(_POINTS)[::-1]
    filters[7] = [0, 0, 1]
    return filters, image, result


def check_unfold(kernel, dtype, axes: int, rng, *, transposed: bool) -> None:
    """Copies, in two launches of some rows each."""
    work = Convolution.of(
        2, 5, 1, (5, 4, 3)[:axes], (3, 2, 2)[:axes], stride=2, pad=2, dilation=2, spread=2,
        flip=transposed,
    )  # fmt: skip
    image, weights = work.operands(rng, dtype)
    params = work.params(image, weights, np.empty((work.n, *work.out_size, work.filters)))
    taps = int(np.prod(work.filter))
    expected = work.unfolded(image)
    expected = expected.swapaxes(1, 2) if transposed else expected
    out = poisoned(expected.shape, dtype)
    half = work.rows // 2
    for rows, offset in ((out[:half], 0), (out[half:], half)):
        kernel(image, rows, params, offset, threads=(work.channels, taps, len(rows)),
               group_size=(work.channels, min(8, taps), 1))  # fmt: skip
    np.testing.assert_array_equal(out, expected)


def check_depthwise_2d(library, name, dtype, rng) -> None:
    for step, flip in ((1, False), (2, True)):
        work = Convolution.of(2, 16, 16, (9, 11), (3, 5), stride=step, groups=16, flip=flip)
        image, weights = work.operands(rng, dtype)
        out = poisoned((work.n, *work.out_size, work.filters), dtype)
        tile = {"tgp_h": 4, "tgp_w": 8}
        constants = {"ker_h": 3, "ker_w": 5, "str_h": step, "str_w": step, "do_flip": flip} | tile
        height, width = work.out_size
        dispatch(
            library.function(name, constants),
            (work.channels // 8, ceildiv(width, 8), ceildiv(height, 4) * work.n), (8, 8, 4),
            **{"in": image, "wt": weights, "out": out, "params": work.params(image, weights, out)},
        )  # fmt: skip
        exact, magnitude = work.exact(image, weights)
        # Products are rounded to the type of the image before they are added.
        error = product_error(magnitude, work.terms) + 2 * roundoff(dtype) * magnitude
        assert_rounded(out, exact, error)


def check_depthwise_1d(kernel, dtype, rng) -> None:
    work = Convolution.of(2, 37, 37, (20,), (4,), pad=0, groups=37)
    image, weights = work.operands(rng, dtype)
    out = poisoned((work.n, *work.out_size, work.filters), dtype)
    kernel(
        image, weights, out, element_strides(image).tolist(), 4,
        threads=(work.channels, *work.out_size, work.n), group_size=(32, 4, 1),
    )  # fmt: skip
    exact, magnitude = work.exact(image, weights)
    assert_rounded(out, exact, product_error(magnitude, work.terms))


def _assert_transformed(out, left, values) -> None:
    """``left @ values @ left.T`` over the two last axes: two sums, of rounded coefficients."""
    exact = left @ values @ left.T
    magnitude = np.abs(left) @ np.abs(values) @ np.abs(left).T
    assert_rounded(out, exact, product_error(magnitude, 2 * _EDGE + 4))


def check_winograd_filters(kernel, dtype, rng) -> None:
    filters, channels, per_group = 8, 64, 4
    weights = operand(rng, (filters, 3, 3, channels), dtype)
    out = poisoned((_EDGE, _EDGE, channels, filters), dtype)
    dispatch(kernel, (filters // per_group, 1, 1), (SIMD, per_group, 1), wt_in=weights, wt_out=out,
             C=channels, O=filters)  # fmt: skip
    matrix = _winograd_matrices()[0]
    _assert_transformed(out.transpose(3, 2, 0, 1), matrix, exactly(weights).transpose(0, 3, 1, 2))


def check_winograd_images(kernel, dtype, rng) -> None:
    n, down, across, channels = 2, 2, 1, 64
    image = operand(rng, (n, _TILE * down + 2, _TILE * across + 2, channels), dtype)
    out = poisoned((_EDGE, _EDGE, n, down, across, channels), dtype)
    params = structure(params_layout(2), C=channels, in_strides=element_strides(image))
    dispatch(kernel, (across, down, n), (SIMD, 2, 2), inp_in=image, inp_out=out, params=params)
    tiles = np.lib.stride_tricks.sliding_window_view(exactly(image), (_EDGE, _EDGE), (1, 2))
    tiles = tiles[:, ::_TILE, ::_TILE]
    _assert_transformed(out.transpose(2, 3, 4, 5, 0, 1), _winograd_matrices()[1], tiles)


def check_winograd_results(kernel, dtype, rng) -> None:
    n, height, width, filters = 2, 8, 5, 64
    down, across = ceildiv(height, _TILE), ceildiv(width, _TILE)
    values = operand(rng, (_EDGE, _EDGE, n, down, across, filters), dtype)
    image = poisoned((n, height, width, filters), dtype)
    params = structure(params_layout(2), O=filters, oS=(height, width),
                       out_strides=element_strides(image))  # fmt: skip
    dispatch(kernel, (across, down, n), (SIMD, 2, 2), out_in=values, out_out=image, params=params)
    matrix = _winograd_matrices()[2]
    for row in range(down):
        for column in range(across):
            block = image[:, row * _TILE : (row + 1) * _TILE, column * _TILE : (column + 1) * _TILE]
            block = block.transpose(0, 3, 1, 2)
            left, right = matrix[: block.shape[-2]], matrix[: block.shape[-1]]
            tile = exactly(values[:, :, :, row, column]).transpose(2, 3, 0, 1)
            magnitude = np.abs(left) @ np.abs(tile) @ np.abs(right).T
            assert_rounded(block, left @ tile @ right.T, product_error(magnitude, 2 * _EDGE + 4))


_WINOGRAD = {
    "weight": check_winograd_filters,
    "input": check_winograd_images,
    "output": check_winograd_results,
}


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    parts = re.search(r"float32|bfloat16|float16", name)
    assert parts, name
    dtype = TYPES[parts[0]]
    winograd = re.match(r"winograd_conv_2d_(weight|input|output)_transform", name)
    if winograd:
        _WINOGRAD[winograd[1]](library.function(name), dtype, rng)
    elif name.startswith("depthwise_conv_2d"):
        check_depthwise_2d(library, name, dtype, rng)
    elif name.startswith("depthwise_conv_1d"):
        check_depthwise_1d(library.function(name), dtype, rng)
    else:
        transposed = "transpose" in name
        check_unfold(library.function(name), dtype, int(name[-1]), rng, transposed=transposed)


FAMILIES = (Family("conv", ("conv.metal",), check),)
