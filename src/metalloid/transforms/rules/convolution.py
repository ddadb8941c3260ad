"""Rules of convolution and pooling.

The adjoint of a convolution is a convolution of the cotangents, with zeros between them, with
flipped weights (V. Dumoulin and F. Visin, "A guide to convolution arithmetic for deep learning",
2016, chapter 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions.convolution import convolution, correlation, pooling
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.node import Node, broadcast, cast, permute, reduce, reshape
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.arrays.ir.views import flipped, full_slices, joined, moved_axes, sliced
from metalloid.arrays.lowering.matmul import stacked_product
from metalloid.arrays.lowering.windows import Overlaps, Windows, stacked_windows, window_elements
from metalloid.settings import settings
from metalloid.transforms.rules.registry import Rule, define_rule, stacks
from metalloid.transforms.tangents import added, conjugate, zeros_like

Nodes = Sequence["Node | None"]


def _tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (x, weights), (dx, dw) = args, tangents
    left = None if dx is None else convolution(dx, weights, *params)
    right = None if dw is None else convolution(x, dw, *params)
    return [added([left, right])]


def _transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (ct,), (x, weights) = cotangents, args
    assert ct is not None
    left = None if weights is None else _of_input(ct, conjugate(Array(weights))._node, *params)
    right = None if x is None else _of_weights(ct, conjugate(Array(x))._node, *params)
    return [left, right]


def _of_input(ct: Node, weights: Node, windows: Windows, groups: int, how: Any) -> Node:
    outputs, *size, channels = weights.shape
    grouped = reshape(weights, (groups, outputs // groups, *size, channels))
    swapped = moved_axes(grouped, 1, -1)  # (groups, ..., channels, outputs)
    swapped = moved_axes(swapped, -2, 1)
    filters = reshape(swapped, (groups * channels, *size, outputs // groups))
    filters = flipped(filters, tuple(range(1, len(size) + 1)))
    stuffed, around = _stuffed(ct, windows)
    return convolution(stuffed, filters, around, groups, how)


def _stuffed(ct: Node, windows: Windows) -> tuple[Node, Windows]:
    """Values of windows in an array of zeros, and windows in which they meet their elements.

    There is one such window for each element of the original array. It has the original size and
    dilation, and in reverse order the values of all windows with this element.
    """
    per_axis = zip(windows.shape[1:-1], windows.size, windows.dilation, strict=True)
    extents = tuple(n + gap * (k - 1) for n, k, gap in per_axis)
    shape = (ct.shape[0], *extents, ct.shape[-1])
    region = full_slices(shape)
    steps = zip(windows.size, windows.stride, windows.dilation, windows.counts, strict=True)
    for axis, (k, step, gap, count) in enumerate(steps, 1):
        region[axis] = (gap * (k - 1), step, count)
    stuffed = joined([zeros_like(ct, shape), ct], [full_slices(shape), region], shape, ct.dtype)
    return stuffed, Windows(shape, windows.size, (1,) * len(extents), windows.dilation)


def _of_weights(ct: Node, x: Node, windows: Windows, groups: int, how: Any) -> Node:
    """Multiply the cotangents with the matrix of windows (im2col), for each group."""
    patches = stacked_windows(x, windows)
    *outer, elements, channels = patches.shape
    count, own, outputs = math.prod(outer), channels // groups, ct.shape[-1]
    columns = permute(reshape(patches, (count, elements, groups, own)), (2, 0, 1, 3))
    rows = permute(reshape(ct, (count, groups, outputs // groups)), (1, 2, 0))
    product = stacked_product(rows, reshape(columns, (groups, count, elements * own)), how)
    return reshape(product, (outputs, *windows.size, own))


def _batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
    (x, weights), (windows, groups, how) = args, params
    if not is_batched[1]:  # more elements of the batch that the convolution has itself
        flat = _folded(x)
        result = convolution(flat, weights, windows._replace(shape=flat.shape), groups, how)
        return [reshape(result, (*x.shape[:2], *result.shape[1:]))]
    size, outputs, *rest = weights.shape
    if is_batched[0]:  # more groups
        x = moved_axes(x, 0, -2)
        x = reshape(x, (*x.shape[:-2], size * x.shape[-1]))
        filters = reshape(weights, (size * outputs, *rest))
        new_groups, axes = size * groups, [size, outputs]
    else:  # more outputs of each group
        grouped = reshape(weights, (size, groups, outputs // groups, *rest))
        filters = reshape(moved_axes(grouped, 0, 1), (size * outputs, *rest))
        new_groups, axes = groups, [groups, size, outputs // groups]
    result = convolution(x, filters, windows._replace(shape=x.shape), new_groups, how)
    outer = result.shape[:-1]
    stacked = moved_axes(reshape(result, (*outer, *axes)), -2, 0)
    return [reshape(stacked, (size, *outer, outputs))]


def _folded(x: Node) -> Node:
    """Merge the first two axes."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


define_rule("convolution", Rule(_tangents, _batch, _transpose))


def _correlation_tangents(args: Sequence[Node], params: Any, results: Any,
                          tangents: Nodes) -> Nodes:  # fmt: skip
    (x, y), (dx, dy) = args, tangents
    left = None if dx is None else correlation(dx, y, *params)
    right = None if dy is None else correlation(x, dy, *params)
    return [added([left, right])]


def _correlation_transpose(cotangents: Nodes, args: Nodes, params: tuple[Overlaps]) -> Nodes:
    (ct,), (x, y), ((size, width, left, count, flips),) = cotangents, args, params
    assert ct is not None
    of_x = of_y = None
    if y is not None:
        around = Overlaps(count, width, width - 1 - left, size, not flips)
        of_x = correlation(ct, conjugate(Array(y))._node, around)
    if x is not None:
        around = Overlaps(size, count, left, width, flips=False)
        of_y = correlation(conjugate(Array(x))._node, ct, around)
        of_y = flipped(of_y, (0,)) if flips else of_y
    return [of_x, of_y]


def _correlation_batch(args: Sequence[Node], is_batched: Sequence[bool],
                       params: tuple[Overlaps]) -> list[Node]:  # fmt: skip
    """A convolution of one channel, for which the vector gets its zeros."""
    (x, y), ((size, width, left, count, flips),) = args, params
    shape = (*x.shape[:-1], count + width - 1)
    region = full_slices(shape)
    region[-1] = (left, 1, size)
    padded = joined([zeros_like(x, shape), x], [full_slices(shape), region], shape, x.dtype)
    filters = flipped(y, (len(y.shape) - 1,)) if flips else y
    columns = [reshape(z, (*z.shape[:-1], 1, z.shape[-1], 1)) for z in (padded, filters)]
    windows = Windows((1, shape[-1], 1), (width,), (1,), (1,))
    how = settings.products, settings.tf32
    (result,) = _batch(columns, is_batched, (windows, 1, how))
    return [reshape(result, (result.shape[0], count))]


define_rule("correlation", Rule(_correlation_tangents, _correlation_batch, _correlation_transpose))


def _pool_batch(largest: bool) -> Any:
    def batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
        (x,), (windows,) = args, params
        flat = _folded(x)
        result = pooling(flat, windows._replace(shape=flat.shape), largest)
        return [reshape(result, (*x.shape[:2], *result.shape[1:]))]

    return batch


def _sum_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    (tangent,), (result,), (windows,) = tangents, results, params
    # The sums of half floats are float32, and so are their cotangents.
    return [None if tangent is None else pooling(cast(tangent, result.dtype), windows, False)]


def _sum_transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (ct,), (windows,) = cotangents, params
    assert ct is not None
    stuffed, around = _stuffed(ct, windows)
    return [pooling(stuffed, around, False)]


def _max_tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
    """Equal maxima of a window share the tangent, as in MLX and in the reduction `max`."""
    (x,), (tangent,), (result,), (windows,) = args, tangents, results, params
    if tangent is None:
        return [None]
    rows = zip(windows.size, windows.stride, windows.counts, strict=True)
    if all(k == step or count == 1 for k, step, count in rows):
        return [_of_tiles(x, tangent, result, windows)]
    ones = (Array(zeros_like(x)) + 1)._node
    total, count = (_at_maxima(x, result, values, windows) for values in (tangent, ones))
    return [_quotient(total, count)]


def _at_maxima(x: Node, largest: Node, values: Node, windows: Windows) -> Node:
    """For each window, the sum of the values at its maxima; linear in the values."""
    args, result = [x, largest, values], (values.dtype, largest.shape)
    return bind("sum_at_maxima", args, (windows,), result)[0]


def _to_maxima(x: Node, largest: Node, values: Node, windows: Windows) -> Node:
    """The adjoint: for each element, the sum of the values of windows whose maximum it is."""
    args, result = [x, largest, values], (values.dtype, x.shape)
    return bind("sum_to_maxima", args, (windows,), result)[0]


def _lower_at_maxima(x: Node, largest: Node, values: Node, windows: Windows) -> Node:
    pairs = zip(window_elements(x, windows), window_elements(values, windows), strict=True)
    return _sum_where_equal((element, largest, value) for element, value in pairs)


def _lower_to_maxima(x: Node, largest: Node, values: Node, windows: Windows) -> Node:
    maxima, around = _stuffed(largest, windows)
    sources, _ = _stuffed(values, windows)
    pairs = zip(window_elements(maxima, around), window_elements(sources, around), strict=True)
    return _sum_where_equal((x, maximum, value) for maximum, value in pairs)


def _sum_where_equal(terms: Iterable[tuple[Node, Node, Node]]) -> Node:
    total = added([where(Array(a) == Array(b), Array(value), 0)._node for a, b, value in terms])
    assert total is not None
    return total


def _maxima_rule(function: Callable[..., Node], adjoint: Callable[..., Node]) -> Rule:
    def tangents(args: Sequence[Node], params: Any, results: Any, tangents: Nodes) -> Nodes:
        (x, largest, _), along = args, tangents[2]  # the choice of maxima has no derivative
        return [None if along is None else function(x, largest, along, *params)]

    def batch(args: Sequence[Node], is_batched: Sequence[bool], params: Any) -> list[Node]:
        ((windows,), stacked) = params, stacks(args, is_batched)
        flat = [_folded(arg) for arg in stacked]
        result = function(*flat, windows._replace(shape=flat[0].shape))
        return [reshape(result, (*stacked[0].shape[:2], *result.shape[1:]))]

    def transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
        (ct,), (x, largest, _) = cotangents, args
        return [None, None, adjoint(x, largest, ct, *params)]

    return Rule(tangents, batch, transpose)


def _of_tiles(x: Node, tangent: Node, result: Node, windows: Windows) -> Node:
    """The same for windows that do not overlap, which are a view."""
    axes = tuple(range(2, 2 + 2 * len(windows.size), 2))
    single = tuple(n for count in windows.counts for n in (count, 1))
    largest = reshape(result, (result.shape[0], *single, result.shape[-1]))
    tiles = _tiles(x, windows)
    is_largest = (Array(tiles) == Array(broadcast(largest, tiles.shape))).astype(x.dtype)
    directions = is_largest * Array(_tiles(tangent, windows))
    quotient = _quotient(
        reduce(directions._node, "sum", axes), reduce(is_largest._node, "sum", axes)
    )
    return reshape(quotient, result.shape)


def _tiles(x: Node, windows: Windows) -> Node:
    """The axes of the array, each as one of the windows and one of their elements."""
    numbers, shape = full_slices(x.shape), [x.shape[0]]
    for axis, (count, k) in enumerate(zip(windows.counts, windows.size, strict=True), 1):
        numbers[axis] = (0, 1, count * k)
        shape += [count, k]
    return reshape(sliced(x, numbers), (*shape, x.shape[-1]))


def _quotient(total: Node, count: Node) -> Node:
    return (Array(total) / Array(count))._node


define_rule("max_pool", Rule(_max_tangents, _pool_batch(largest=True)))
define_rule("sum_pool", Rule(_sum_tangents, _pool_batch(largest=False), _sum_transpose))

implement("sum_at_maxima", _lower_at_maxima)
implement("sum_to_maxima", _lower_to_maxima)
define_rule("sum_at_maxima", _maxima_rule(_at_maxima, _to_maxima))
define_rule("sum_to_maxima", _maxima_rule(_to_maxima, _at_maxima))
