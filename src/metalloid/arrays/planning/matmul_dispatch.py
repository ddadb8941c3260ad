"""Chooses the backend of a matrix product: the host's BLAS, a generated kernel, or a reduction.

On the CPU a cost model decides. Its constants were measured with ``benchmarks/products.py`` on one
core against OpenBLAS: those of complex numbers and of 64-bit integers on a Xeon (Sapphire Rapids),
the others on an EPYC (Zen 4), and the factors of 16 registers on the same with AVX2 alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from metalloid.arrays.ir.node import BUFFER, ELEMENTWISE, VIEW, Node
from metalloid.arrays.planning.product_tiles import (
    STEP,
    TILE,
    dot_tile,
    has_few_registers,
    panel_tile,
)
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.traits import DeviceTraits

#: Backends: chosen by this module; NumPy; the best generated kernel; tiles with accumulators in
#: registers, in simdgroup matrices, or in NVIDIA's tensor cores; a reduction; accumulators in
#: registers, and factors that are read where they are; dot products of contiguous vectors; Metal
#: Performance Shaders; cuBLAS.
AUTO, HOST, KERNELS = "auto", "host", "kernels"
REGISTERS, SIMDGROUPS, TENSOR_CORES, SUMS = "registers", "simdgroups", "tensor cores", "sums"
PANELS, DOTS = "panels", "dots"
MPS, CUBLAS = "mps", "cublas"
#: Vendor libraries.
LIBRARIES = (MPS, CUBLAS)
#: Backends that are no generated kernels, so that nothing can be fused with them.
EXTERNAL_BACKENDS = (HOST, *LIBRARIES)

#: Types that simdgroup matrices accumulate in float32.
FLOATS = (float16, bfloat16, float32)
#: Up to this many rows, a reduction runs at memory speed if there is this much work.
_MAX_REDUCTION_ROWS, _MIN_REDUCTION_WORK = 2, 2**16
#: Up to this much work, a reduction takes less time than a call of BLAS between kernels.
_MAX_VECTOR_WORK = 2**18
#: Fewest columns for strips of a row times a matrix, and the least work for which they take less
#: time than sums of columns: each of those reads two cache lines of a row.
_MIN_STRIP, _MIN_STRIP_WORK = 128, 2**14
#: Up to this many columns, their sums read a matrix once, on all cores; BLAS takes one.
_MAX_COLUMNS = 128
#: From this much work on, a kernel of dot products takes less time than a reduction; and from this
#: much on, a reduction is split into chunks, while one dot product has a single simdgroup.
_MIN_DOTS, _MIN_CHUNKED = 2**12, 2**16
#: From this many multiplications on, a library and separate kernels beat a fused kernel.
_MAX_FUSED_WORK = 2**24


class _Times(NamedTuple):
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


_TIMES = {
    float32: _Times(85, 0.0189, 0.2, 0.0185, 0.0188),
    float16: _Times(85, 0.0185, 2.2, 0.0195, 0.028),
    bfloat16: _Times(85, 0.0185, 0.8, 0.0195, 0.028),
    float64: _Times(245, 0.041, 0.3, 0.0395, 0.0385),
    complex64: _Times(400, 0.048, 0.3),
    complex128: _Times(800, 0.1, 0.5),
}
#: Integers of up to 16, 32 and 64 bits.
_SHORT, _INT, _LONG = (
    _Times(100, 0.85, 0.2, 0.0125, 0.025),
    _Times(100, 0.85, 0.2, 0.0225, 0.025),
    _Times(400, 0.85, 0.3),
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
#: For a panel kernel, nanoseconds per matrix of a stack and per element of its operands; rows for
#: which it reads the right factor once, and columns for which it reads the left one.
_PANEL_MATRIX, _PANEL_ELEMENT, _PANEL_PASS = 15, 0.05, 64
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
#: Factors of at least so many bytes leave the second-level cache between passes; they are packed.
_MIN_PACKED_BYTES = 2**21
#: Column-major left factors of more bytes are packed, too, as a few rows of the whole depth fill
#: the first-level cache; and those of more bytes whose columns do not begin at cache lines.
_MAX_STRIDED_BYTES, _MAX_UNALIGNED_BYTES, _CACHE_LINE = 2**19, 2**18, 64
#: Nanoseconds to pack a factor, per element, and per element of one that is contiguous along the
#: depth: usually, and with more than a page between rows or so many elements; the last two with 16
#: registers, where stacks of matrices have so many elements together.
_PACK, _PACKED_ELEMENT, _TRANSPOSED_ELEMENTS = 1_000, 0.2, (0.3, 0.4)
_TRANSPOSED_ELEMENTS_OF_FEW = 0.18, 0.4
_PAGE, _MANY_PACKED = 4096, 2**21
#: Fewest rows and columns of a product of bfloats in pairs, and its least work.
_MIN_PAIRED, _MIN_PAIRED_WORK = 4, 2**16
#: Up to this many columns, pairs of a row-major left factor of even depth are read where they are.
MAX_PAIRED_IN_PLACE = 256
#: A column-major right factor of so many elements is gathered, for up to so many rows; and of fewer
#: elements without AVX-512, whose gathers are slow.
_MAX_GATHERED, _MAX_GATHERS, _MAX_GATHERED_BY_FEW = 256, 32, 63
#: Converting elements whenever they are read makes multiplications slower by this factor; that of
#: halves without AVX-512.
_PANEL_CONVERSIONS, _HALF_CONVERSIONS_OF_FEW = 1.5, 2.7


def _times_of(dtype: DType) -> _Times:
    by_size = {1: _SHORT, 2: _SHORT, 4: _INT}
    return _TIMES.get(dtype) or by_size.get(dtype.itemsize, _LONG)


def shape_of_work(shape: Ints, right: Node) -> Ints:
    """The shape of a product. A stack of matrices times a single matrix counts as one matrix."""
    *batch, rows, columns = shape
    is_single = right.kind is BUFFER and not any(right.data[0][:-2])
    if right.kind is VIEW and right.data.kind == "broadcast":
        is_single = math.prod(right.args[0].shape[:-2]) == 1
    return (math.prod(batch) * rows, columns) if is_single else shape


def is_transposed(node: Node) -> bool:
    """Whether the largest operand of a matrix is column-major, as far as its expression tells."""
    transposed = False
    while node.kind is VIEW or node.kind is ELEMENTWISE:
        if node.kind is VIEW and node.data.kind == "permute":
            rank = len(node.shape)
            transposed ^= node.data.numbers[-2:] == (rank - 1, rank - 2)
        node = max(node.args, key=lambda arg: arg.size)
    if node.kind is BUFFER and len(node.shape) > 1:
        down, right = node.data[0][-2:]
        transposed ^= down == 1 != right
    return transposed


def choose_backend(device: Device, dtype: DType, shape: Ints, depth: int, fused: Sequence[int] = (),
                   are_transposed: tuple[bool, bool] = (False, False)) -> str:  # fmt: skip
    """The fastest backend for a product.

    Parameters
    ----------
    fused : sequence of int
        Sizes of the operations that a generated kernel would fuse, each a kernel of its own
        otherwise.
    are_transposed : pair of bool
        Which factors are column-major.
    """
    if device.name != "cpu":
        much = math.prod(shape) * depth >= _MAX_FUSED_WORK or not fused
        return CUBLAS if much and is_for_library(device, dtype) else kernel_for(device, dtype)
    times = _times_of(dtype)
    *batch, rows, columns = shape
    is_vector = 1 in (rows, columns)
    matrices = math.prod(batch)
    tiles = -(-rows // TILE) * -(-columns // TILE)
    padded_depth = -(-depth // STEP) * STEP
    elements = rows * depth + depth * columns + rows * columns
    step = times.tile + (_TRANSPOSE if are_transposed[1] else 0)
    ours = matrices * (tiles * (_TILE + padded_depth * step) + elements * _ELEMENT)
    traits = device.traits
    is_few = has_few_registers(traits)
    if is_few:
        ours *= _FEW_TILES
    host = _host_time(device, dtype, shape, depth, fused, are_transposed[1])
    has_pairs = has_bfloat_pairs(traits, dtype, (rows, columns), depth)
    packed = packed_factors(traits, dtype, (rows, columns), depth, are_transposed)
    if has_pairs:
        packed = columns > MAX_PAIRED_IN_PLACE or depth % 2 > 0 or are_transposed[0], True
    down, across = panel_tile(traits, dtype, (rows, columns), packed[0])
    padded = -(-rows // down) * down * -(-columns // across) * across
    is_wide = dtype.itemsize >= 4 or (packed[1] and (packed[0] or dtype == bfloat16))
    converted = _HALF_CONVERSIONS_OF_FEW if is_few and dtype == float16 else _PANEL_CONVERSIONS
    multiplied = padded * depth * times.panel * (1 if is_wide else converted)
    multiplied *= 0.5 if has_pairs else 1
    if is_few:
        multiplied *= _SIX_ROWS if down >= 6 else _FOUR_ROWS
        if are_transposed[0] and not packed[0]:
            multiplied *= _STRIDED_LEFT
        if not (are_transposed[1] or packed[1]) and columns * dtype.itemsize % _PAGE == 0:
            multiplied *= _ALIGNED_RIGHT
    multiplied *= _HALF_REGISTER if across == 8 and dtype.itemsize < 8 else 1
    panels = matrices * (_PANEL_MATRIX + multiplied + elements * _PANEL_ELEMENT)
    for width, is_packed, is_along_depth in (
        (rows, packed[0], not are_transposed[0]),
        (columns, packed[1], are_transposed[1]),
    ):
        if is_packed:
            stack = matrices if is_few else 1
            is_far = depth * dtype.itemsize > _PAGE or stack * width * depth >= _MANY_PACKED
            transposed = _TRANSPOSED_ELEMENTS_OF_FEW if is_few else _TRANSPOSED_ELEMENTS
            each = transposed[is_far] if is_along_depth else _PACKED_ELEMENT
            each *= 2 if dtype.itemsize > 4 else 1
            panels += _PACK + matrices * width * depth * each
    backends = {REGISTERS: ours, HOST: host, PANELS: panels}
    left_fits, right_fits = not are_transposed[0] or rows == 1, are_transposed[1] or columns == 1
    if left_fits and right_fits and (1 in (rows, columns) or depth >= STEP):
        down, across = dot_tile(traits, dtype, (rows, columns))
        padded = -(-rows // down) * down * -(-columns // across) * across
        is_paired = has_pairs and depth % 2 == 0
        each, added = _PAIRED_DOT if is_paired else (times.dot, _DOT)
        if is_few:
            each *= 1 if is_vector else _FEW_DOTS.get(dtype.itemsize, _FEW_DOTS_OF_SHORT)
            added = _FEW_DOT_BYTE * max(dtype.itemsize, 4)
        multiplied = padded * (-(-depth // 32) * 32 * each + added)
        if rows > (_FEW_DOT_ROWS if is_few else TILE) and depth * dtype.itemsize > _MAX_DOT_BYTES:
            multiplied *= _FEW_UNCACHED_DOTS if is_few else _UNCACHED_DOTS
        backends[DOTS] = matrices * (_PANEL_MATRIX + multiplied + elements * _PANEL_ELEMENT)
    return min(backends, key=backends.__getitem__)


def _host_time(device: Device, dtype: DType, shape: Ints, depth: int, fused: Sequence[int],
               is_transposed: bool) -> float:  # fmt: skip
    """Nanoseconds that the host's BLAS takes for a product; see `choose_backend`.

    Parameters
    ----------
    is_transposed : bool
        Whether the right factor is column-major.
    """
    times, is_few = _times_of(dtype), has_few_registers(device.traits)
    *batch, rows, columns = shape
    matrices, is_vector = math.prod(batch), 1 in (rows, columns)
    elements = rows * depth + depth * columns + rows * columns
    element = times.element / (2 if is_vector else 1)  # BLAS streams a single matrix
    host = _MATRIX + rows * columns * depth * times.multiplication + elements * element
    if is_transposed and not is_few:
        host += depth * columns * dtype.itemsize * _HOST_TRANSPOSED_BYTE
    blas = device.libraries.blas
    is_launched = blas is not None and dtype.name in blas.dtypes
    nbytes = max(rows, columns) * depth * dtype.itemsize
    if is_few and is_launched and is_vector and nbytes <= _MAX_VECTOR_BYTES:
        host = nbytes * _HOST_VECTOR_BYTE
    call, kernel, kernel_element = _LAUNCHED_CALL if is_launched else _CALL
    return call + matrices * host + sum(kernel + kernel_element * size for size in fused)


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
    gathered = _MAX_GATHERED_BY_FEW if has_few_registers(traits) else _MAX_GATHERED
    right &= rows > _MAX_GATHERS or depth * columns > gathered
    right_is_large = depth * columns * dtype.itemsize >= _MIN_PACKED_BYTES
    return (
        columns > _PANEL_PASS and (is_slow or left),
        right or (rows > _PANEL_PASS and (is_short or right_is_large)),
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


def kernel_for(device: Device, dtype: DType) -> str:
    """The fastest generated kernel."""
    if dtype.name not in device.traits.matrices:
        return REGISTERS
    return TENSOR_CORES if device.traits.has_tensor_cores else SIMDGROUPS


def is_for_library(device: Device, dtype: DType) -> bool:
    """Whether the vendor's library is the default for a type."""
    products = device.libraries.products
    return products is not None and products.is_first and dtype.name in products.dtypes


def is_sum(device: Device, dtype: DType, shape: Ints, depth: int, is_computed: bool,
           is_along_depth: bool = False, is_along_columns: bool = False) -> bool:  # fmt: skip
    """Whether a product is best lowered to a reduction, which fuses and reads a matrix once.

    Parameters
    ----------
    is_computed : bool
        Whether the matrix would have to be materialized first.
    is_along_depth : bool
        Whether both factors are contiguous along the depth.
    is_along_columns : bool
        Whether a matrix that is multiplied by a vector lies in memory by rows of the depth.
    """
    rows, columns = shape[-2:]
    is_vector = rows == 1 or columns == 1
    if device.name != "cpu":
        return is_vector
    work = math.prod(shape) * depth
    has_strips = columns >= _MIN_STRIP and work >= _MIN_STRIP_WORK
    has_strips &= rows == 1 and is_along_columns and _times_of(dtype).panel < math.inf
    if has_strips and not is_computed:
        return False
    if math.prod(shape) == 1 and work >= _MIN_CHUNKED:
        return True
    has_dots = is_along_depth and work >= _MIN_DOTS and _times_of(dtype).dot < math.inf
    if is_vector and (is_computed or (work <= _MAX_VECTOR_WORK and not has_dots)):
        return True
    if is_vector and is_along_columns and rows * columns <= _MAX_COLUMNS:
        return True
    is_slow_elsewhere = not has_dots and (dtype not in _TIMES or dtype.itemsize <= 2)
    return is_slow_elsewhere and work >= _MIN_REDUCTION_WORK and rows <= _MAX_REDUCTION_ROWS
