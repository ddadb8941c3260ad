"""Tilings of matrix products, and which of them a kernel has."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from metalloid.arrays.planning.matmul_dispatch import DOTS as BY_DOTS
from metalloid.arrays.planning.matmul_dispatch import PANELS as IN_PANELS
from metalloid.arrays.planning.matmul_dispatch import SIMDGROUPS as IN_SIMDGROUPS
from metalloid.arrays.planning.matmul_dispatch import TENSOR_CORES
from metalloid.arrays.planning.product_tiles import (
    TALL_TILE,
    TALLEST_TILE,
    TILE,
    dot_lanes,
    dot_tile,
    panel_height,
    panel_tile,
    strip_lanes,
)
from metalloid.arrays.planning.schedule import Factor, ProductKernel
from metalloid.runtime.devices.traits import DeviceTraits

#: Operations that read elements of memory.
READS = ("load", "gather")


@dataclass(frozen=True)
class Form:
    """A tiling; its constants are repeated in its ``.metal`` file.

    Attributes
    ----------
    name : str
        Suffix of ``numpy::multiply_in_...``.
    rows, columns, threads : int
        Extents of a tile, and its threads.
    capacity : str
        Threadgroup memory in elements, if there is any: a constant, or a template of the type or
        the sums.
    files : tuple of str
    has_fours : bool
        Whether factors are read four elements at a time.
    each : str
        Arguments of the template: rows and columns of sums of a thread, or of simdgroups.
    """

    name: str
    rows: int
    columns: int
    threads: int
    capacity: str
    files: tuple[str, ...] = ()
    has_fours: bool = False
    each: str = ""


_WIDE = ("wide", "products/wide_products")
_BLOCKS = ("wide", "products/tensor_blocks", "products/tensor_products")
_TILES, _PANELS, _VECTORS = (("products/" + name,) for name in ("tiles", "panels", "vectors"))
REGISTERS = Form("registers", TILE, TILE, 512, "product_capacity<{T}>()", _TILES)
SIMDGROUPS = Form("simdgroups", TILE, TILE, 512, "product_capacity<{T}>()", _TILES)
#: For CPUs, by rows of sums, width and height: positions that do not fix the number of lanes.
PANELS = {
    (rows, columns, height): Form(
        "panels", height, columns, columns, f"panel_tile<{height}, {columns}>()", _PANELS,
        each=f"{columns}, {rows}, {height}",
    )
    for rows, columns in itertools.product((1, 2, 4, 6, 8), (8, 16, 32))
    for height in ((TALL_TILE,) if rows == 6 else (TILE, TALLEST_TILE))
}  # fmt: skip
#: For CPUs: a row times a matrix, by lanes.
STRIPS = {
    lanes: Form("strips", 1, each * lanes, lanes, "", _VECTORS, each=f"{each}, {lanes}")
    for lanes, each in ((8, 6), (16, 6), (32, 4))
}
#: Dot products of contiguous rows with contiguous columns, by lanes, and by rows and columns of
#: sums of a simdgroup, which also are one row or one column.
DOTS = {
    (lanes, rows, columns): Form(
        "dots", TILE, width, lanes, "", _VECTORS, each=f"{rows}, {columns}, {lanes}"
    )
    for lanes in (8, 16, 32)
    for rows, columns, width in (
        (1, 4, 32),
        (1, 8, 32),
        (2, 1, 1),
        (4, 1, 1),
        (8, 1, 1),
        (2, 2, 32),
        (4, 2, 32),
        (4, 4, 32),
    )
}
SQUARES = Form("squares", 128, 128, 256, "square_capacity<8>()", _WIDE, True, "8")
SMALL_SQUARES = Form("squares", 64, 64, 256, "square_capacity<4>()", _WIDE, True, "4")
#: Tilings whose tiles hold the factors' type, not the accumulators'.
TALL_TENSORS = Form("tensors", 256, 128, 256, "tensor_capacity<{T}, 4, 2>()", _BLOCKS, True, "4, 2")
WIDE_TENSORS = Form("tensors", 128, 256, 256, "tensor_capacity<{T}, 2, 4>()", _BLOCKS, True, "2, 4")
SMALL_TENSORS = Form(
    "tensors", 128, 128, 128, "tensor_capacity<{T}, 2, 2>()", _BLOCKS, True, "2, 2"
)
#: Minimum number of large tiles that keep a device busy.
_MANY_TILES = 128


def form_of(kernel: ProductKernel, traits: DeviceTraits) -> Form:
    """The tiling of a product on a device."""
    dtype = kernel.factors[0].dtype
    if kernel.backend == TENSOR_CORES:
        large = WIDE_TENSORS if is_column_major(kernel.factors[0]) else TALL_TENSORS
        return large if _is_large(kernel, large) else SMALL_TENSORS
    if kernel.backend == IN_SIMDGROUPS:
        return SIMDGROUPS
    if kernel.backend == IN_PANELS:
        if kernel.iteration_space[-2] == 1 and not any(each.is_packed for each in kernel.factors):
            return STRIPS[strip_lanes(traits)]
        space, (left, right) = kernel.iteration_space, kernel.factors
        down, across = panel_tile(traits, kernel.product_dtype, space[-2:], left.is_packed)
        height = panel_height(traits, space, down, across, right.is_packed)
        return PANELS[down, across, height]
    if kernel.backend == BY_DOTS:
        rows, columns = dot_tile(traits, dtype, kernel.iteration_space[-2:])
        return DOTS[dot_lanes(traits, dtype, columns), rows, columns]
    if not traits.is_simt or dtype.itemsize > 4:  # larger elements exceed threadgroup memory
        return REGISTERS
    return SQUARES if _is_large(kernel, SQUARES) else SMALL_SQUARES


def _is_large(kernel: ProductKernel, form: Form) -> bool:
    """Whether there are enough tiles of a form to keep the device busy."""
    *batch, rows, columns = kernel.iteration_space
    tiles = -(-rows // form.rows) * -(-columns // form.columns) * math.prod(batch)
    is_narrow = rows <= form.rows // 2 or columns <= form.columns // 2
    return not is_narrow and tiles >= _MANY_TILES


def is_column_major(factor: Factor) -> bool:
    """Whether a factor is column-major."""
    ends = [tuple(map(abs, e.strides[-2:])) for e in factor.ops if e.kind in READS]
    strides = [
        (down, right) for down, right in ends if down and right
    ]  # broadcast operands do not count
    return any(down == 1 for down, _ in strides) and not any(right == 1 for _, right in strides)
