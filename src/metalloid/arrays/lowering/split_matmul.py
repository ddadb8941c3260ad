"""Products with few, deep results: parts of the depth are multiplied side by side.

A covariance of many observations has few tiles, which would leave most of a GPU, and all but one
core of a CPU, idle. The depth is split, as in CUTLASS's split-K, into a stack of products whose
results are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from metalloid.arrays.ir.dtypes import float32, float64
from metalloid.arrays.ir.node import Node, apply, permute, reduce, reshape
from metalloid.arrays.ir.ops import OPS
from metalloid.arrays.ir.views import full_slices, sliced
from metalloid.arrays.planning.matmul_dispatch import (
    AUTO,
    KERNELS,
    PANELS,
    is_library_call,
    is_transposed,
)
from metalloid.arrays.planning.product_tiles import STEP, TILE, has_few_registers

#: Tiles that keep a GPU busy, and the least depth of a slice there.
_ENOUGH_TILES, _MIN_DEPTH_OF_SIMT = 256, 128
#: On CPUs: the least depth of a slice; the most tiles and the least depth of a product that is
#: split, its fewest rows and columns, and slices. Larger right factors that are column-major take
#: longer to pack than BLAS.
_MIN_DEPTH, _FEW_TILES, _MIN_DEPTH_OF_FEW, _MIN_EXTENT, _SLICES = 512, 8, 2048, 4, 64
_MAX_PACKED_BYTES = 2**22
#: The same with 16 registers.
_MAX_PACKED_BYTES_OF_FEW = 2**19


def split_count(a: Node, b: Node, backend: str, allow_tf32: bool) -> int:
    """The number of slices of the depth of a product that is split (split-K); 0 if it is not."""
    *batch, rows, depth = a.shape
    columns = b.shape[-1]
    if backend != AUTO or a.dtype not in (float32, float64) or 1 in (rows, columns):
        return 0
    tiles = math.prod(batch) * -(-rows // TILE) * -(-columns // TILE)
    if not a.device.traits.is_simt:
        return _slices_of_panels(a, b, tiles) if not batch else 0
    if is_library_call(a.device, a.dtype, math.prod(batch) * rows * columns, depth):
        return 0
    splits = min(_ENOUGH_TILES // tiles, depth // _MIN_DEPTH_OF_SIMT) if tiles else 0
    return splits if splits > 1 else 0


def _slices_of_panels(a: Node, b: Node, tiles: int) -> int:
    """The number of slices on a CPU, of equal depth if possible; 0 if BLAS takes less time.

    The kernel of panels runs on all cores, while BLAS does not split the depth.
    """
    (rows, depth), columns = a.shape, b.shape[-1]
    packed = b.size * b.dtype.itemsize if is_transposed(b) else 0
    is_deep = min(rows, columns) >= _MIN_EXTENT and depth >= _MIN_DEPTH_OF_FEW
    limit = _MAX_PACKED_BYTES_OF_FEW if has_few_registers(a.device.traits) else _MAX_PACKED_BYTES
    if not is_deep or tiles > _FEW_TILES or packed > limit:
        return 0
    limit = min(_SLICES, depth // _MIN_DEPTH)
    return next((n for n in range(limit, limit // 2, -1) if depth % n == 0), limit)


def is_split(a: Node, b: Node, backend: str, allow_tf32: bool) -> bool:
    """Whether the depth of a product is split."""
    return split_count(a, b, backend, allow_tf32) > 0


def split_product(a: Node, b: Node, backend: str, allow_tf32: bool,
                  product: Callable[[Node, Node, str, bool], Node]) -> Node:  # fmt: skip
    """The sum of the products of slices of the depth, by the function `product`."""
    *batch, rows, depth = a.shape
    columns = b.shape[-1]
    each = depth // split_count(a, b, backend, allow_tf32)
    if a.device.traits.is_simt or depth % each:
        each = each // STEP * STEP
    splits = depth // each  # so that less than one slice is left
    lead = len(batch)
    left = reshape(_along(a, lead + 1, 0, splits * each), (*batch, rows, splits, each))
    left = permute(left, (*range(lead), lead + 1, lead, lead + 2))
    right = reshape(_along(b, lead, 0, splits * each), (*batch, splits, each, columns))
    by = KERNELS if a.device.traits.is_simt else PANELS
    stack = product(left, right, by, allow_tf32)
    total = reshape(reduce(stack, "sum", (lead,)), (*batch, rows, columns))
    rest = depth - splits * each
    if not rest:
        return total
    last = product(_along(a, lead + 1, splits * each, rest), _along(b, lead, splits * each, rest),
                   backend, allow_tf32)  # fmt: skip
    return apply(OPS["add"], total.dtype, total, last)


def _along(node: Node, axis: int, start: int, count: int) -> Node:
    slices = full_slices(node.shape)
    slices[axis] = (start, 1, count)
    return sliced(node, slices)
