"""Cost model of matrix products on CPUs: nanoseconds that each backend takes.

Its constants were measured with ``benchmarks/products.py`` on one core against OpenBLAS: those of
complex numbers and of 64-bit integers on a Xeon (Sapphire Rapids), those of a BLAS without AVX-512
on an EPYC (Zen 5), and the others on an EPYC (Zen 4); the factors of 16 registers are of that one
with AVX2 alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from metalloid.arrays.ir.dtypes import (
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
)
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.planning.product_factors import (
    MAX_PAIRED_IN_PLACE,
    has_bfloat_pairs,
    packed_factors,
)
from metalloid.arrays.planning.product_tiles import (
    STEP,
    TILE,
    dot_tile,
    has_few_registers,
    panel_tile,
)
from metalloid.runtime.devices.device import Device


class Times(NamedTuple):
    """Cost model of products of a type, in nanoseconds.

    Attributes
    ----------
    tile : float
        For a generated kernel, per tile and step of the depth.
    multiplication, element : float
        For the host: per multiplication, and per element read, converted and written.
    panel : float
        For a kernel of panels, per multiplication; infinite if it is not faster than tiles.
    dot : float
        For a kernel of dot products, per multiplication.
    """

    tile: float
    multiplication: float
    element: float
    panel: float = math.inf
    dot: float = math.inf


TIMES = {
    float32: Times(85, 0.0189, 0.2, 0.0185, 0.0188),
    float16: Times(85, 0.0185, 2.2, 0.0195, 0.028),
    bfloat16: Times(85, 0.0185, 0.8, 0.0195, 0.028),
    float64: Times(245, 0.041, 0.3, 0.0395, 0.0385),
    complex64: Times(400, 0.048, 0.3),
    complex128: Times(800, 0.1, 0.5),
}
#: Integers of up to 16, 32 and 64 bits.
_SHORT, _INT, _LONG = (
    Times(100, 0.85, 0.2, 0.0125, 0.025),
    Times(100, 0.85, 0.2, 0.0225, 0.025),
    Times(400, 0.85, 0.3),
)
#: Nanoseconds to start a tile, to transpose a step of it, and per element that it reads or writes;
#: to start a matrix of the host's.
_TILE, _TRANSPOSE, _ELEMENT, _MATRIX = 300, 25, 0.1, 50
#: Nanoseconds per byte of a column-major right factor that BLAS copies.
_HOST_TRANSPOSED_BYTE = 0.1
#: Nanoseconds to call BLAS between kernels, to start one more kernel, and per element of it.
_LAUNCHED_CALL = 300, 300, 0.3
#: The same where Python calls it, and binds the launches of the other kernels one by one.
_CALL = 40_000, 45_000, 1.2
#: For a panel kernel, nanoseconds per matrix of a stack and per element of its operands.
_PANEL_MATRIX, _PANEL_ELEMENT = 15, 0.05
#: Panels of half an AVX-512 register read one element for each of its multiplications.
_HALF_REGISTER = 1.5
#: With 16 registers, panels of sums of six rows, and of fewer, and dot products take longer: by the
#: bytes of an element, those of halves and short integers most.
_SIX_ROWS, _FOUR_ROWS, _FEW_DOTS = 1.12, 1.25, {4: 1.05, 8: 1.2}
_FEW_DOTS_OF_SHORT = 1.3
#: So do tiles; and nanoseconds to add up the lanes of a dot product, per byte of an element.
_FEW_TILES, _FEW_DOT_BYTE = 1.7, 0.2
#: So do panels of a column-major left factor, and of right factors whose rows begin at the same
#: cache sets.
_STRIDED_LEFT, _ALIGNED_RIGHT = 1.25, 1.6
#: BLAS then takes so many nanoseconds for each byte of a matrix that it multiplies by a vector, up
#: to as many bytes as the caches have.
_HOST_VECTOR_BYTE, _MAX_VECTOR_BYTES = 0.0135, 2**22
#: Nanoseconds to add up the lanes of a dot product; for pairs of bfloats, also per multiplication.
_DOT, _PAIRED_DOT = 0.6, (0.0105, 1.5)
#: Tiles of dot products of more bytes along the depth leave the second-level cache between columns.
#: So do those of fewer rows with 16 registers.
_MAX_DOT_BYTES, _UNCACHED_DOTS = 4096, 1.15
_FEW_DOT_ROWS, _FEW_UNCACHED_DOTS = 8, 1.4
#: Nanoseconds to pack a factor, per element, and per element of one that is contiguous along the
#: depth: usually, and with more than a page between rows or so many elements; the last two with 16
#: registers, where stacks of matrices have so many elements together.
_PACK, _PACKED_ELEMENT, _TRANSPOSED_ELEMENTS = 1_000, 0.2, (0.3, 0.4)
_TRANSPOSED_ELEMENTS_OF_FEW = 0.18, 0.4
_PAGE, _MANY_PACKED = 4096, 2**21
#: The share of the time of BLAS's multiplications that it takes with AVX-512 on a Xeon.
_WIDE_HOST = 0.85
#: Shares of the times above on a processor with AVX-512 for which BLAS has kernels for AVX2 only,
#: which is Zen 5: of BLAS's multiplications, of its elements, and of those of a row times a matrix;
#: of panels, of dot products and of packing.
_FAST_HOST, _FAST_HOST_ELEMENT, _FAST_HOST_ROW = 0.76, 0.6, 0.33
_FAST_PANELS, _FAST_DOTS, _FAST_PACKING = 0.43, 0.45, 0.35
#: There, panels of half a register; dot products that leave the cache, by their bytes and rows; and
#: nanoseconds to add up the lanes of 64-bit elements of a matrix that is multiplied by a vector.
_FAST_HALF_REGISTER, _FAST_UNCACHED_DOTS, _MAX_FAST_DOTS, _FAST_LONG_DOT = 2.1, 1.8, (5000, 16), 2.5
#: Converting elements whenever they are read makes multiplications slower by this factor; that of
#: halves without AVX-512.
_PANEL_CONVERSIONS, _HALF_CONVERSIONS_OF_FEW = 1.5, 2.7


def times_of(dtype: DType) -> Times:
    """The speeds of products of a type."""
    by_size = {1: _SHORT, 2: _SHORT, 4: _INT}
    return TIMES.get(dtype) or by_size.get(dtype.itemsize, _LONG)


class ProductCosts:
    """Nanoseconds that a product takes, by backend.

    Parameters
    ----------
    shape : tuple of int
        That of the product: stacks, rows and columns.
    are_transposed : pair of bool
        Which factors are column-major.
    """

    def __init__(self, device: Device, dtype: DType, shape: Ints, depth: int,
                 are_transposed: tuple[bool, bool]) -> None:  # fmt: skip
        *batch, rows, columns = shape
        self._device, self._dtype, self._depth = device, dtype, depth
        self._shape, self._matrices = (rows, columns), math.prod(batch)
        self._are_transposed, self._times = are_transposed, times_of(dtype)
        self._elements = rows * depth + depth * columns + rows * columns
        self._is_vector = 1 in self._shape
        self._is_few = has_few_registers(device.traits)
        blas = device.libraries.blas
        self._has_avx2_blas = not self._is_few and blas is not None and not blas.has_avx512
        self._has_pairs = has_bfloat_pairs(device.traits, dtype, self._shape, depth)

    def host(self, fused: Sequence[int]) -> float:
        """The time of the host's BLAS, and of a kernel for each of the `fused` operations."""
        (rows, columns), depth, dtype = self._shape, self._depth, self._dtype
        element = self._times.element / (2 if self._is_vector else 1)  # BLAS streams one matrix
        multiplied = rows * columns * depth * self._times.multiplication
        if self._has_avx2_blas:
            element *= _FAST_HOST_ROW if rows == 1 else _FAST_HOST_ELEMENT
            multiplied *= _FAST_HOST
        elif not self._is_few:
            multiplied *= _WIDE_HOST
        host = _MATRIX + multiplied + self._elements * element
        if self._are_transposed[1] and not (self._is_few or self._has_avx2_blas):
            host += depth * columns * dtype.itemsize * _HOST_TRANSPOSED_BYTE
        blas = self._device.libraries.blas
        is_launched = blas is not None and dtype.name in blas.dtypes
        nbytes = max(rows, columns) * depth * dtype.itemsize
        if self._is_few and is_launched and self._is_vector and nbytes <= _MAX_VECTOR_BYTES:
            host = nbytes * _HOST_VECTOR_BYTE
        call, kernel, each = _LAUNCHED_CALL if is_launched else _CALL
        return call + self._matrices * host + sum(kernel + each * size for size in fused)

    def registers(self) -> float:
        """The time of tiles with accumulators in registers, through threadgroup memory."""
        rows, columns = self._shape
        tiles = -(-rows // TILE) * -(-columns // TILE)
        padded_depth = -(-self._depth // STEP) * STEP
        step = self._times.tile + (_TRANSPOSE if self._are_transposed[1] else 0)
        each = tiles * (_TILE + padded_depth * step) + self._elements * _ELEMENT
        return self._matrices * each * (_FEW_TILES if self._is_few else 1)

    def panels(self) -> float:
        """The time of panels, whose factors may have to be packed by launches of their own."""
        return self._by_panels(self._multiplied_panels()) + self._packing()

    def _by_panels(self, multiplied: float) -> float:
        return self._matrices * (_PANEL_MATRIX + multiplied + self._elements * _PANEL_ELEMENT)

    @cached_property
    def _packed(self) -> tuple[bool, bool]:
        """Which factors are packed."""
        if self._has_pairs:
            is_in_place = self._shape[1] <= MAX_PAIRED_IN_PLACE and self._depth % 2 == 0
            return not is_in_place or self._are_transposed[0], True
        return packed_factors(
            self._device.traits, self._dtype, self._shape, self._depth, self._are_transposed
        )

    def _multiplied_panels(self) -> float:
        (rows, columns), dtype, packed = self._shape, self._dtype, self._packed
        down, across = panel_tile(self._device.traits, dtype, self._shape, packed[0])
        padded = -(-rows // down) * down * -(-columns // across) * across
        is_wide = dtype.itemsize >= 4 or (packed[1] and (packed[0] or dtype == bfloat16))
        is_slow_half = self._is_few and dtype == float16
        converted = _HALF_CONVERSIONS_OF_FEW if is_slow_half else _PANEL_CONVERSIONS
        time = padded * self._depth * self._times.panel * (1 if is_wide else converted)
        time *= 0.5 if self._has_pairs else 1
        half_register = _HALF_REGISTER
        if self._has_avx2_blas:
            time, half_register = time * _FAST_PANELS, _FAST_HALF_REGISTER
        if self._is_few:
            time *= _SIX_ROWS if down >= 6 else _FOUR_ROWS
            if self._are_transposed[0] and not packed[0]:
                time *= _STRIDED_LEFT
            is_in_place = not (self._are_transposed[1] or packed[1])
            if is_in_place and columns * dtype.itemsize % _PAGE == 0:
                time *= _ALIGNED_RIGHT
        return time * (half_register if across == 8 and dtype.itemsize < 8 else 1)

    def _packing(self) -> float:
        (rows, columns), depth = self._shape, self._depth
        left_is_transposed, right_is_transposed = self._are_transposed
        transposed = _TRANSPOSED_ELEMENTS_OF_FEW if self._is_few else _TRANSPOSED_ELEMENTS
        stack = self._matrices if self._is_few else 1
        time = 0.0
        for width, is_packed, is_along_depth in (
            (rows, self._packed[0], not left_is_transposed),
            (columns, self._packed[1], right_is_transposed),
        ):
            if is_packed:
                is_far = depth * self._dtype.itemsize > _PAGE
                is_far |= stack * width * depth >= _MANY_PACKED
                each = transposed[is_far] if is_along_depth else _PACKED_ELEMENT
                each *= 2 if self._dtype.itemsize > 4 else 1
                time += _PACK + self._matrices * width * depth * each
        return time * (_FAST_PACKING if self._has_avx2_blas else 1)

    def dots(self) -> float:
        """The time of dot products of contiguous vectors; infinite if factors are strided."""
        (rows, columns), depth, dtype = self._shape, self._depth, self._dtype
        left_fits = not self._are_transposed[0] or rows == 1
        right_fits = self._are_transposed[1] or columns == 1
        if not (left_fits and right_fits and (self._is_vector or depth >= STEP)):
            return math.inf
        down, across = dot_tile(self._device.traits, dtype, self._shape)
        padded = -(-rows // down) * down * -(-columns // across) * across
        is_paired = self._has_pairs and depth % 2 == 0
        each, added = _PAIRED_DOT if is_paired else (self._times.dot, _DOT)
        if self._is_few:
            is_vector = self._is_vector
            each *= 1 if is_vector else _FEW_DOTS.get(dtype.itemsize, _FEW_DOTS_OF_SHORT)
            added = _FEW_DOT_BYTE * max(dtype.itemsize, 4)
        time = padded * (-(-depth // 32) * 32 * each + added)
        uncached, max_bytes, max_rows = _UNCACHED_DOTS, _MAX_DOT_BYTES, TILE
        if self._is_few:
            uncached, max_rows = _FEW_UNCACHED_DOTS, _FEW_DOT_ROWS
        elif self._has_avx2_blas:
            uncached = 1 if is_paired else _FAST_UNCACHED_DOTS
            max_bytes, max_rows = _MAX_FAST_DOTS
            time *= _FAST_DOTS
            time += padded * _FAST_LONG_DOT if columns == 1 and dtype.itemsize > 4 else 0
        if rows > max_rows and depth * dtype.itemsize > max_bytes:
            time *= uncached
        return self._by_panels(time)
