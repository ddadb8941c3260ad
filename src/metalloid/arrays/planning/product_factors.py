"""Factors of generated matrix products: read in place, packed, or in pairs of bfloats."""

from __future__ import annotations

import math

from metalloid.arrays.ir.dtypes import DType, bfloat16
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.planning.product_tiles import has_few_registers
from metalloid.runtime.devices.traits import DeviceTraits

#: Rows for which a kernel of panels reads the right factor once, and columns for the left one.
_PANEL_PASS = 64
#: Factors of at least so many bytes leave the second-level cache between passes; they are packed.
_MIN_PACKED_BYTES = 2**21
#: Column-major left factors of more bytes are packed, too, as a few rows of the whole depth fill
#: the first-level cache; and those of more bytes whose columns do not begin at cache lines.
_MAX_STRIDED_BYTES, _MAX_UNALIGNED_BYTES, _CACHE_LINE = 2**19, 2**18, 64
#: Rows of right factors begin at the same sets of the caches if so many bytes, or a multiple, lie
#: between them; and the fewest of them that do not stay in a set together.
_ALIGNED_ROWS, _MIN_ALIGNED_DEPTH = 2**13, 32
#: Fewest rows and columns of a product of bfloats in pairs, and its least work.
_MIN_PAIRED, _MIN_PAIRED_WORK = 4, 2**16
#: Up to this many columns, pairs of a row-major left factor of even depth are read where they are.
MAX_PAIRED_IN_PLACE = 256
#: A column-major right factor of so many elements is gathered, for up to so many rows.
_MAX_GATHERED, _MAX_GATHERS = 63, 32


def packed_factors(traits: DeviceTraits, dtype: DType, shape: Ints, depth: int,
                   are_transposed: tuple[bool, bool]) -> tuple[bool, bool]:  # fmt: skip
    """Whether a kernel of panels packs the left and the right factor.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the product.
    are_transposed : pair of bool
        Which factors are column-major.
    """
    rows, columns = shape
    left, right = are_transposed
    is_short = dtype.itemsize < 4
    is_slow = is_short and dtype != bfloat16  # to convert for each row of the left factor
    is_unaligned = rows * dtype.itemsize % _CACHE_LINE > 0
    limit = _MAX_UNALIGNED_BYTES if is_unaligned else _MAX_STRIDED_BYTES
    left &= rows * depth * dtype.itemsize > limit
    right &= rows > _MAX_GATHERS or depth * columns > _MAX_GATHERED
    right_is_large = depth * columns * dtype.itemsize >= _MIN_PACKED_BYTES
    is_aligned = columns * dtype.itemsize % _ALIGNED_ROWS == 0 and depth >= _MIN_ALIGNED_DEPTH
    is_aligned &= rows >= _PANEL_PASS and not has_few_registers(traits)
    return (
        columns > _PANEL_PASS and (is_slow or left),
        right or is_aligned or (rows > _PANEL_PASS and (is_short or right_is_large)),
    )


def has_bfloat_pairs(traits: DeviceTraits, dtype: DType, shape: Ints, depth: int) -> bool:
    """Whether a kernel of panels multiplies bfloats in pairs, for which both factors are packed.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the product.
    """
    is_large = min(shape) >= _MIN_PAIRED and math.prod(shape) * depth >= _MIN_PAIRED_WORK
    is_large &= depth > 1
    return traits.has_bfloat_dots and dtype == bfloat16 and is_large
