"""Writes of slices into arrays that nothing else refers to, as nodes: evaluation writes in place.

The first element is an operand, so that writes at other positions, such as those of a cache that
grows, share a plan.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.execution.small_results import forget_copy
from metalloid.arrays.ir.dtypes import int64, kind_of
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import BUFFER, CONSTANT, PRIMITIVE, TRACED, Node, reshape
from metalloid.arrays.ir.operands import as_number, converted
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.arrays.lowering.assignment import fitting
from metalloid.arrays.lowering.indexing import Selection
from metalloid.kernels.operands import MAX_ELEMENTS
from metalloid.kernels.strides import collapse, row_major

#: Of a grid.
_MAX_AXES = 3
#: Writes into the same memory that one evaluation computes, which bounds the size of its graph.
_MAX_PENDING = 16


def deferred(base: Node, key: Any, value: Any) -> Node | None:
    """The node of ``x[key] = value`` for a value that has not been computed; None for other ones.

    Parameters
    ----------
    base : Node
        To which nothing but `x` refers: memory, or another such write.
    """
    new = getattr(value, "_node", None)
    if new is None or (base.kind is BUFFER and (new.kind is BUFFER or new.kind is CONSTANT)):
        return None
    flags = base.flags | new.flags
    if flags & TRACED or base.is_shared or new.is_shared or new.device is not base.device:
        return None
    if not _is_basic(key):
        return None
    selection = Selection(base, key)
    region = tuple(count for _, _, count in selection.slices)
    steps = {step for _, step, count in selection.slices if count != 1}
    if steps - {1} or not math.prod(region) or not has_kernel(base, region):
        return None
    new = fitting(converted(new, base.dtype), tuple(selection.shape))
    node, pending = base, 0
    while is_slice_update(node):
        node, pending = node.args[0], pending + 1
    if pending == _MAX_PENDING:
        evaluate([base], wait=False)
    if base.kind is BUFFER and base.memory is not None:
        forget_copy(base.memory)
    first = tuple(start for start, _, _ in selection.slices)
    return slice_update(base, first, reshape(new, region))


def _is_basic(key: Any) -> bool:
    """Whether an index has no arrays."""
    items = key if isinstance(key, tuple) else (key,)
    return all(
        item is None or item is Ellipsis or type(item) is int or isinstance(item, slice)
        for item in items
    )


def slice_update(base: Node, first: Ints, new: Node) -> Node:
    """The base, with the elements from the index `first` on replaced.

    No other node may refer to `base`: evaluation overwrites its memory.

    Parameters
    ----------
    new : Node
        Of as many axes.
    """
    steps = row_major(base.shape)
    start = sum(k * step for k, step in zip(first, steps, strict=True))
    number = as_number(start, int64, base.device)
    return bind("slice_update", [base, new, number], (), (base.dtype, base.shape))[0]


def is_slice_update(node: Node) -> bool:
    """Whether a node is a write that has not been evaluated."""
    return node.kind is PRIMITIVE and node.data.name == "slice_update"


def has_kernel(base: Node, region: Ints) -> bool:
    """Whether `slice_update` supports an array and the extents of the elements to replace."""
    extents, _ = collapse(region, row_major(base.shape))
    is_small = len(extents) <= _MAX_AXES and base.size <= MAX_ELEMENTS
    return is_small and kind_of(base.dtype) != "c"


def _by_kernel(base: Node, new: Node, start: Node) -> Node:
    call = _call(base.shape, new.shape)
    values = reshape(new, (new.size,))
    return library_call(call, [base, values, start], base.dtype, base.shape)


@functools.lru_cache(maxsize=1024)
def _call(shape: Ints, region: Ints) -> LibraryCall:
    extents, (strides,) = collapse(region, row_major(shape))
    missing = _MAX_AXES - len(extents)
    depth, height, width = (1,) * missing + extents
    slowest, slow, step = (0,) * missing + strides
    column = "at.x" if step == 1 else "at.x * params.step"
    body = (
        "const long to = x1[0] + long(at.z) * params.slowest + long(at.y) * params.slow;\n"
        f"out[to + {column}] = x0[(at.z * params.height + at.y) * params.width + at.x];"
    )
    launch = LibraryLaunch(
        name="slice_update",
        body=body,
        files=(),
        reads=(0, 1),
        writes=(2,),
        numbers=(("height", height), ("width", width), ("slow", slow), ("slowest", slowest),
                 ("step", step)),
        threads=(width, height, depth),
    )  # fmt: skip
    return LibraryCall((launch,), is_update=True, owns_base=True)


implement("slice_update", _by_kernel, is_structural=True)
