"""Tiles of the generated matrix products for CPUs: what a thread adds up in registers.

More sums than the registers hold are spilled in the innermost loop, which halves its speed.
"""

from __future__ import annotations

import math

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints
from metalloid.runtime.devices.traits import DeviceTraits

#: Rows and columns of a threadgroup's tile, and its step along the depth.
TILE, STEP = 64, 32
#: Rows of a tile of sums of six rows: a multiple of six, and of the width of a packed panel.
TALL_TILE = 96
#: Rows of a tile of large right factors, which are read once for each tile from memory or the
#: third-level cache; and the fewest of these tiles for each core.
TALLEST_TILE, _TILES_OF_CORE = 256, 8
#: Registers of sums, of 16 and of 32 registers. The others hold elements of the factors.
_SUMS = {16: 12, 32: 16}
#: Lanes of code that depends on no width, by the bytes of a register.
_LANES = {64: 32, 32: 16, 16: 8}
#: Panels of one register of AVX-512 instead of two read an element of the left factor for half as
#: many multiplications, which takes longer. They are chosen only if more lanes than that are idle.
_ONE_REGISTER = 1.25
#: Four rows of sums instead of six read the right factor more often, which takes longer.
_FOUR_ROWS = 1.06


def has_few_registers(traits: DeviceTraits) -> bool:
    """Whether the tiles are those for 16 vector registers."""
    return traits.vector_registers == 16


def panel_tile(
    traits: DeviceTraits, dtype: DType, shape: Ints, left_is_packed: bool
) -> tuple[int, int]:
    """Rows and columns that a kernel of panels computes at a time.

    There are 32 columns, 16 of float64, or half as many if far fewer lanes are idle then, and as
    many rows as the registers hold, at most 8. Elements that are converted serve more lanes.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the product.
    left_is_packed : bool
        Whether the left factor lies in panels of 32 rows, of which six are no divisor.
    """
    rows, columns = shape
    narrow = 8 if dtype.itemsize > 4 or columns <= 8 else 16
    wide = 16 if dtype.itemsize > 4 else 32  # two registers of AVX-512
    waste = 1.0 if has_few_registers(traits) else _ONE_REGISTER
    is_narrow = -(-columns // narrow) * narrow * waste < -(-columns // wide) * wide
    is_narrow &= dtype.itemsize >= 4 or columns <= 16
    is_narrow |= has_few_registers(traits) and dtype.itemsize > 4
    across = narrow if is_narrow else wide
    lanes = min(across, _LANES[traits.vector_bytes])
    each = -(-lanes * max(dtype.itemsize, 4) // traits.vector_bytes)
    limit = max(_SUMS[traits.vector_registers] // each, 1)
    choices = [n for n in (1, 2, 4, 8) if n <= limit]
    down = next((n for n in choices if n >= rows), choices[-1])
    if down == 4 and limit >= 6 and not left_is_packed:
        sixes, fours = -(-rows // 6) * 6, -(-rows // 4) * 4
        down = 6 if sixes < fours * _FOUR_ROWS else 4
    return down, across


def panel_height(traits: DeviceTraits, shape: Ints, down: int, across: int,
                 right_is_packed: bool) -> int:  # fmt: skip
    """Rows of a threadgroup's tile of panels.

    Parameters
    ----------
    shape : tuple of int
        Stacks, rows and columns of the product.
    down, across : int
        Rows and columns that are computed at a time.
    right_is_packed : bool
        Whether the right factor is packed, as large ones are.
    """
    if down == 6:
        return TALL_TILE
    *batch, rows, columns = shape
    tallest = math.prod(batch) * (rows // TALLEST_TILE) * -(-columns // across)
    is_tall = right_is_packed and tallest >= _TILES_OF_CORE * traits.cores
    return TALLEST_TILE if is_tall else TILE


def strip_lanes(traits: DeviceTraits) -> int:
    """Threads of a row times a matrix, which read adjacent cache lines of a row."""
    return _LANES[traits.vector_bytes]


def dot_tile(traits: DeviceTraits, dtype: DType, shape: Ints) -> tuple[int, int]:
    """Rows and columns of the dot products that a simdgroup computes at a time.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the product.
    """
    rows, columns = shape
    is_few, is_long = has_few_registers(traits), dtype.itemsize > 4
    if rows == 1:
        return 1, 4 if is_few and is_long else 8
    if columns == 1:
        if is_few:
            return (2 if is_long else 4), 1
        return (4 if is_long else 8), 1
    if is_few:
        return (2 if is_long else 4), 2
    return (4, 2) if columns == 2 else (4, 4)


def dot_lanes(traits: DeviceTraits, dtype: DType, columns: int) -> int:
    """Threads that share the depth of dot products: one register, of AVX-512 or of AVX2.

    With a single column memory is the limit. It is read in order there, several registers of a row
    at a time: with one of each of several rows, 64-bit elements took 1.6 to 2.6 times as long.
    """
    if has_few_registers(traits):
        return 16 if columns == 1 else 8
    if dtype.itemsize <= 4:
        return 16
    return 32 if columns == 1 else 8
