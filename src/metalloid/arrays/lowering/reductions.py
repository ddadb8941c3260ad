"""Lower reductions: accumulator types, and the operations after the reduction."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from metalloid.arrays.interop.dlpack import unshared
from metalloid.arrays.ir.dtypes import (
    DType,
    bool_,
    default_float,
    float32,
    int64,
    kind_of,
    value_index_dtype,
)
from metalloid.arrays.ir.layout import Ints, Layout
from metalloid.arrays.ir.node import (
    BUFFER,
    Node,
    apply,
    broadcast,
    cast,
    in_memory,
    iota,
    reduce,
    reshape,
)
from metalloid.arrays.ir.operands import as_number, axes_of, op, wide_integer
from metalloid.arrays.ir.ops import INDEX_OF, VALUE_INDEX
from metalloid.arrays.ir.views import full_slices, sliced
from metalloid.arrays.lowering.indexing import gathered

#: Larger arrays are in memory even after a kernel has read them.
_CACHE_BYTES = 2**25
#: Elements of a row that threads hold between two passes; and of the rows that replace longer ones.
_MAX_HELD, _ROW = 2**15, 4096

Axis = int | tuple[int, ...] | None


def reduced(node: Node, name: str, axis: Axis, keepdims: bool) -> Node:
    """Reduce along axes, in the node's own type."""
    axes = tuple(sorted(axes_of(name, axis, len(node.shape))))
    result = reduce(node, name, axes) if axes else unshared(node)
    return result if keepdims else without(result, axes)


def without(node: Node, axes: Ints) -> Node:
    """Remove axes of extent 1."""
    return reshape(node, tuple(n for k, n in enumerate(node.shape) if k not in axes))


def summed(node: Node, name: str, axis: Axis, dtype: DType | None, keepdims: bool) -> Node:
    """Sum or multiply: integers in 64 bits, half floats in float32."""
    kind = kind_of(node.dtype)
    result = dtype or (wide_integer(node.dtype) if kind in "biu" else node.dtype)
    wide = float32 if kind_of(result) == "f" and result.itemsize == 2 else result
    return cast(reduced(cast(node, wide), name, axis, keepdims), result)


def extreme(node: Node, name: str, axis: Axis, keepdims: bool) -> Node:
    """Return the maximum or the minimum.

    Raises
    ------
    ValueError
        If there are no elements.
    TypeError
        If the elements are complex.
    """
    if kind_of(node.dtype) == "c":
        raise TypeError(f"[{name}] complex numbers have no order.")
    axes = axes_of(name, axis, len(node.shape))
    if any(node.shape[k] == 0 for k in axes):
        raise ValueError(f"[{name}] there are no elements along the axes of shape {node.shape}.")
    return reduced(node, name, axis, keepdims)


def truth(node: Node, name: str, axis: Axis, keepdims: bool) -> Node:
    """Reduce truth values, by "all" or "any"."""
    return reduced(cast(node, bool_), name, axis, keepdims)


def arg_reduce(node: Node, name: str, axis: int | None, keepdims: bool) -> Node:
    """Return the index of the first maximum or minimum, in the flat array if `axis` is None."""
    if kind_of(node.dtype) == "c":
        raise TypeError(f"[{name}] complex numbers have no order.")
    rank = len(node.shape)
    if axis is None:
        flat = reshape(node, (math.prod(node.shape),))
        result = arg_reduce(flat, name, 0, False)
        return reshape(result, (1,) * rank) if keepdims else result
    (along,) = axes_of(name, axis, rank)
    if node.shape[along] == 0:
        raise ValueError(f"[{name}] there are no elements along axis {axis} of {node.shape}.")
    if rank == 1 and _is_searched_by_blocks(node):
        index = _search_by_blocks(node, name)
        return reshape(index, (1,)) if keepdims else index
    indices = iota(node.shape, along, node.device)
    pairs = apply(VALUE_INDEX, value_index_dtype(node.dtype), node, indices)
    extremes = reduce(pairs, name, (along,))
    result = apply(INDEX_OF, int64, extremes)
    return result if keepdims else without(result, (along,))


def _is_searched_by_blocks(node: Node) -> bool:
    """Whether a pass that finds the block of the extreme saves most of the comparisons."""
    is_long = node.kind is BUFFER and node.shape[0] >= 8 * _ROW
    return is_long and not node.device.traits.is_simt and kind_of(node.dtype) in "iuf"


def _search_by_blocks(node: Node, name: str) -> Node:
    """The index of the first extreme, in the first block that has it.

    Blocks overlap a little, so that they are rows of equal length.
    """
    (extent,), ((stride,), offset) = node.shape, node.data
    count = extent // _ROW
    step = extent // count
    length = extent - (count - 1) * step
    assert node.memory is not None
    layout = Layout((count, length), (step * stride, stride), offset)
    rows = in_memory(node.memory, layout, node.dtype)
    extremes = reduced(rows, name.removeprefix("arg"), 1, False)
    row = arg_reduce(extremes, name, 0, False)
    column = arg_reduce(gathered(rows, [0], [row]), name, 0, False)
    start = apply(op("multiply"), int64, row, as_number(step, int64, node.device))
    return apply(op("add"), int64, start, column)


def counted(node: Node, axis: Axis) -> int:
    """Return the number of elements that each result reduces."""
    axes = axes_of("mean", axis, len(node.shape))
    return math.prod(node.shape[k] for k in axes)


def mean(node: Node, axis: Axis, keepdims: bool) -> Node:
    """Return the mean, as floats."""
    dtype = node.dtype if kind_of(node.dtype) in "fc" else default_float()
    wide = float32 if dtype.itemsize == 2 else dtype
    total = reduced(cast(node, wide), "sum", axis, keepdims)
    n = as_number(counted(node, axis), wide, node.device)
    return cast(apply(op("divide"), wide, total, n), dtype)


def variance(node: Node, axis: Axis, correction: float, keepdims: bool) -> Node:
    """Return the mean squared deviation; `correction` is subtracted from the count."""
    kind = kind_of(node.dtype)
    dtype = node.dtype if kind in "fc" else default_float()
    wide = float32 if dtype.itemsize == 2 else dtype
    node = cast(node, wide)
    if _exceeds_cache(node, axis):
        total = _squared_deviations_by_rows(node, axis, keepdims)
    else:
        middle = broadcast(mean(node, axis, True), node.shape)
        squares = _squared_deviations(node, middle)
        wide = squares.dtype
        total = reduced(squares, "sum", axis, keepdims)
    dtype = wide if kind == "c" else dtype
    divisor = max(counted(node, axis) - correction, 0)
    n = as_number(divisor, wide, node.device)
    return cast(apply(op("divide"), wide, total, n), dtype)


def _squared_deviations(node: Node, middle: Node) -> Node:
    distance = apply(op("subtract"), node.dtype, node, middle)
    if kind_of(node.dtype) == "c":
        distance = binary_abs(distance)
    return apply(op("square"), distance.dtype, distance)


def _exceeds_cache(node: Node, axis: Axis) -> bool:
    """Whether deviations from the mean would be a second pass over memory, on a SIMT device."""
    axes = axes_of("var", axis, len(node.shape))
    is_trailing = sorted(axes) == list(range(len(node.shape) - len(axes), len(node.shape)))
    return (
        node.device.traits.is_simt
        and is_trailing
        and node.size * node.dtype.itemsize >= _CACHE_BYTES
        and counted(node, axis) > _MAX_HELD
    )


def _squared_deviations_by_rows(node: Node, axis: Axis, keepdims: bool) -> Node:
    """Add up squared deviations from the mean along trailing axes, in one pass over memory.

    Those of rows from their own means, which one kernel computes, and those of these means from the
    mean of all. T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating Formulae and a Pairwise
    Algorithm for Computing Sample Variances", 1979.
    """
    axes = axes_of("var", axis, len(node.shape))
    lead, length = node.shape[: len(node.shape) - len(axes)], counted(node, axis)
    count = length // _ROW

    def sliced_from(first: int, size: int) -> Node:
        return sliced(flat, [*full_slices(lead), (first, 1, size)])

    def scaled(value: Node, factor: float) -> Node:
        return apply(op("multiply"), wide, value, as_number(factor, wide, node.device))

    def added(values: Sequence[Node]) -> Node:
        return functools.reduce(lambda a, b: apply(op("add"), wide, a, b), values)

    def deviations(value: Node, middle: Node) -> Node:
        squares = _squared_deviations(value, broadcast(middle, value.shape))
        return reduced(squares, "sum", -1, True)

    flat, wide = reshape(node, (*lead, length)), node.dtype
    rows = reshape(sliced_from(0, count * _ROW), (*lead, count, _ROW))
    rests = [sliced_from(count * _ROW, length % _ROW)] if length % _ROW else []
    middles = mean(rows, -1, True)
    within, middles = (without(x, (len(lead) + 1,)) for x in (deviations(rows, middles), middles))
    sums = [reduced(middles, "sum", -1, True), *(reduced(x, "sum", -1, True) for x in rests)]
    middle = scaled(added([scaled(sums[0], _ROW), *sums[1:]]), 1 / length)
    between = scaled(deviations(middles, middle), _ROW)
    squares = [reduced(within, "sum", -1, True), between, *(deviations(x, middle) for x in rests)]
    return reshape(added(squares), (*lead, *(1,) * len(axes)) if keepdims else lead)


def binary_abs(node: Node) -> Node:
    """Return the absolute values of complex numbers."""
    absolute = op("abs")
    return apply(absolute, absolute.result(node.dtype), node)
