"""Products with few columns on CPUs: sums of products for each column, or dot products.

Rotations of points and changes of colour space have 2 to 4 columns, interleaved in memory.
Tiles would leave most lanes idle; a kernel that loads all columns of a row as interleaved vectors
runs at the speed of memory.
"""

from __future__ import annotations

from collections.abc import Callable

from metalloid.arrays.ir.dtypes import bfloat16, float32, float64, kind_of
from metalloid.arrays.ir.node import Node, apply, broadcast, permute
from metalloid.arrays.ir.ops import OPS
from metalloid.arrays.ir.views import concatenated, contiguous_copy, full_slices, sliced
from metalloid.arrays.planning.matmul_dispatch import (
    AUTO,
    DOTS,
    is_transposed,
    shape_of_work,
)
from metalloid.arrays.planning.product_factors import has_bfloat_pairs
from metalloid.arrays.planning.product_tiles import has_few_registers

#: With fewer rows a kernel of panels is quick enough, and fewer nodes are made.
_MAX_EXTENT, _MIN_ROWS = 4, 2**12
#: From this depth and this number of rows on, dot products and a copy of the right factor, whose
#: columns are contiguous, take less time than panels of 8 columns.
_MIN_DOT_DEPTH, _MIN_DOT_ROWS = 32, 32
#: The same for halves and short integers: panels convert each element of the left factor for the
#: multiplications of one row, dot products convert a register for those of four columns.
_MAX_HALF_COLUMNS, _MAX_SHORT_COLUMNS = 16, 8
#: The same for float32 of this depth: eight columns are half of a register of AVX-512 in panels.
_MAX_DEEP_COLUMNS, _MIN_DEEP = 8, 128
#: BLAS takes less time with 16 registers and left factors of float32 that do not fit the caches.
_MAX_CACHED_BYTES = 2**22


def is_narrow(a: Node, b: Node, backend: str, allow_tf32: bool) -> bool:
    """Whether a product is written as sums by column."""
    depth, columns = b.shape[-2:]
    *batch, rows, _ = shape_of_work((*a.shape[:-1], columns), b)
    return (
        backend == AUTO
        and a.device.name == "cpu"
        and a.dtype in (float32, float64)
        and 1 <= depth <= _MAX_EXTENT
        and 2 <= columns <= _MAX_EXTENT
        and rows >= _MIN_ROWS
        and not batch
    )


def has_few_columns(a: Node, b: Node, backend: str, allow_tf32: bool) -> bool:
    """Whether the right factor is transposed first, for dot products."""
    depth, columns = b.shape[-2:]
    limit = 0
    if a.dtype in (float32, float64, bfloat16):
        is_far = a.dtype == float32 and a.size * a.dtype.itemsize > _MAX_CACHED_BYTES
        is_few = has_few_registers(a.device.traits)
        is_deep = a.dtype == float32 and depth >= _MIN_DEEP and not is_few
        limit = _MAX_DEEP_COLUMNS if is_deep else 0 if is_far and is_few else _MAX_EXTENT
    elif a.dtype.itemsize <= 2 and kind_of(a.dtype) in "iuf":
        limit = _MAX_HALF_COLUMNS if kind_of(a.dtype) == "f" else _MAX_SHORT_COLUMNS
    return (
        backend == AUTO
        and a.device.name == "cpu"
        and len(b.shape) == 2
        and 2 <= columns <= limit
        and depth >= _MIN_DOT_DEPTH
        and a.shape[-2] >= _MIN_DOT_ROWS
        and not is_transposed(a)
        and not is_transposed(b)
        and not (
            depth % 2 == 0
            and has_bfloat_pairs(a.device.traits, a.dtype, (a.shape[-2], columns), depth)
        )
    )


def dots_of_few_columns(a: Node, b: Node, backend: str, allow_tf32: bool,
                        product: Callable[[Node, Node, str, bool], Node]) -> Node:  # fmt: skip
    """The product, by dot products with a copy of the right factor."""
    transposed = contiguous_copy(permute(b, (1, 0)))
    return product(a, permute(transposed, (1, 0)), DOTS, allow_tf32)


def narrow_product(a: Node, b: Node, backend: str, allow_tf32: bool) -> Node:
    """The product, whose columns are sums of products."""
    depth, columns = b.shape[-2:]
    left = [_element(a, None, k) for k in range(depth)]
    sums = []
    for column in range(columns):
        terms = [
            apply(OPS["multiply"], a.dtype, x, broadcast(_element(b, k, column), x.shape))
            for k, x in enumerate(left)
        ]
        total = terms[0]
        for term in terms[1:]:
            total = apply(OPS["add"], a.dtype, total, term)
        sums.append(total)
    return concatenated(sums, len(a.shape) - 1)


def _element(node: Node, row: int | None, column: int) -> Node:
    """A column of all rows, or an element of each matrix, with axes of extent 1."""
    slices = full_slices(node.shape)
    slices[-1] = (column, 1, 1)
    if row is not None:
        slices[-2] = (row, 1, 1)
    return sliced(node, slices)
