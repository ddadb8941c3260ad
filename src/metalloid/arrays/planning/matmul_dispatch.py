"""Chooses the backend of a matrix product: the host's BLAS, a generated kernel, or a reduction.

On the CPU a cost model decides. Its constants were measured with ``benchmarks/products.py`` on one
core against OpenBLAS: those of float32 and float64 on an EPYC (Zen 4), the others on a Xeon
(Sapphire Rapids). Without AVX-512 they favour our kernels too much.
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
from metalloid.runtime.devices.device import Device

#: Backends: chosen by this module; NumPy; the best generated kernel; tiles with accumulators in
#: registers, in simdgroup matrices, or in NVIDIA's tensor cores; a reduction; accumulators in
#: registers, and factors that are read where they are; Metal Performance Shaders; cuBLAS.
AUTO, HOST, KERNELS = "auto", "host", "kernels"
REGISTERS, SIMDGROUPS, TENSOR_CORES, SUMS = "registers", "simdgroups", "tensor cores", "sums"
PANELS = "panels"
MPS, CUBLAS = "mps", "cublas"
#: Vendor libraries.
LIBRARIES = (MPS, CUBLAS)
#: Backends that are no generated kernels, so that nothing can be fused with them.
EXTERNAL_BACKENDS = (HOST, *LIBRARIES)

#: Rows and columns of a tile of a generated kernel, and its step along the depth.
TILE, STEP = 64, 32
#: Types that simdgroup matrices accumulate in float32.
FLOATS = (float16, bfloat16, float32)
#: Up to this many rows, a reduction runs at memory speed if there is this much work.
_MAX_REDUCTION_ROWS, _MIN_REDUCTION_WORK = 8, 2**16
#: Up to this much work, a reduction takes less time than a call of BLAS between kernels.
_MAX_VECTOR_WORK = 2**18
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
        For a kernel that reads factors where they are, per multiplication; infinite if it is not
        faster than tiles.
    """

    tile: float
    multiplication: float
    element: float
    panel: float = math.inf


_TIMES = {
    float32: _Times(85, 0.0189, 0.2, 0.0185),
    float16: _Times(64, 0.0132, 2.2),
    bfloat16: _Times(64, 0.0132, 1.1),
    float64: _Times(245, 0.041, 0.3, 0.053),
    complex64: _Times(400, 0.048, 0.3),
    complex128: _Times(800, 0.1, 0.5),
}
_SHORT, _LONG = _Times(138, 0.85, 0.2), _Times(400, 0.85, 0.3)  # integers
#: Nanoseconds to start a tile, to transpose a step of it, and per element that it reads or writes;
#: to start a matrix of the host's; to start one more kernel, and per element of it.
_TILE, _TRANSPOSE, _ELEMENT, _MATRIX, _KERNEL, _KERNEL_ELEMENT = 300, 30, 0.2, 50, 45_000, 1.2
#: Nanoseconds to call a function of the host between kernels: 25,000 more than a launch if it is
#: evaluated alone, 100,000 in a compiled program, whose other launches are then bound one by one.
_CALL = 40_000
#: Rows and columns that a panel kernel computes at a time; nanoseconds per element of its operands;
#: rows for which it reads the right factor once.
_PANEL_ROWS, _PANEL_COLUMNS, _PANEL_ELEMENT, _PANEL_PASS = 8, 32, 0.05, 64
#: A right factor with more elements leaves the second-level cache between passes, which makes
#: multiplications slower by this factor.
_MAX_PANEL_ELEMENTS, _PANEL_MISSES = 2**19, 1.5


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
                   is_transposed: bool = False) -> str:  # fmt: skip
    """The fastest backend for a product.

    Parameters
    ----------
    fused : sequence of int
        Sizes of the operations that a generated kernel would fuse, each a kernel of its own
        otherwise.
    is_transposed : bool
        Whether the right factor is column-major.
    """
    if device.name != "cpu":
        much = math.prod(shape) * depth >= _MAX_FUSED_WORK or not fused
        return CUBLAS if much and is_for_library(device, dtype) else kernel_for(device, dtype)
    times = _TIMES.get(dtype) or (_LONG if dtype.itemsize > 4 else _SHORT)
    *batch, rows, columns = shape
    matrices = math.prod(batch)
    tiles = -(-rows // TILE) * -(-columns // TILE)
    padded_depth = -(-depth // STEP) * STEP
    elements = rows * depth + depth * columns + rows * columns
    step = times.tile + (_TRANSPOSE if is_transposed else 0)
    ours = matrices * (tiles * (_TILE + padded_depth * step) + elements * _ELEMENT)
    multiplied = rows * columns * depth * times.multiplication
    element = times.element / (2 if 1 in (rows, columns) else 1)  # BLAS streams a single matrix
    host = matrices * (_MATRIX + multiplied + elements * element)
    host += sum(_KERNEL + _KERNEL_ELEMENT * size for size in fused) + _CALL
    backends = {REGISTERS: ours, HOST: host}
    if not is_transposed:  # otherwise each row of the right factor would be gathered
        padded = -(-rows // _PANEL_ROWS) * _PANEL_ROWS * -(-columns // _PANEL_COLUMNS)
        misses = rows > _PANEL_PASS and depth * columns > _MAX_PANEL_ELEMENTS
        panel = times.panel * (_PANEL_MISSES if misses else 1)
        multiplied = padded * _PANEL_COLUMNS * depth * panel
        backends[PANELS] = matrices * (_TILE + multiplied + elements * _PANEL_ELEMENT)
    return min(backends, key=backends.__getitem__)


def kernel_for(device: Device, dtype: DType) -> str:
    """The fastest generated kernel."""
    if dtype.name not in device.traits.matrices:
        return REGISTERS
    return TENSOR_CORES if device.traits.has_tensor_cores else SIMDGROUPS


def is_for_library(device: Device, dtype: DType) -> bool:
    """Whether the vendor's library is the default for a type."""
    products = device.libraries.products
    return products is not None and products.is_first and dtype.name in products.dtypes


def is_sum(device: Device, dtype: DType, shape: Ints, depth: int, is_computed: bool) -> bool:
    """Whether a product is best lowered to a reduction, which fuses and reads a matrix once.

    Parameters
    ----------
    is_computed : bool
        Whether the matrix would have to be materialized first.
    """
    rows, columns = shape[-2:]
    is_vector = rows == 1 or columns == 1
    if device.name != "cpu":
        return is_vector
    work = math.prod(shape) * depth
    if is_vector and (is_computed or work <= _MAX_VECTOR_WORK):
        return True
    has_blas = dtype in _TIMES and dtype.itemsize > 2
    return not has_blas and work >= _MIN_REDUCTION_WORK and rows <= _MAX_REDUCTION_ROWS
