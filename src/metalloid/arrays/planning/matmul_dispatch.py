"""Who multiplies matrices: the host's BLAS, a kernel of ours, or a sum of products.

On the CPU this is a matter of time, which a few numbers foretell well enough. They were measured
with ``benchmarks/products.py``, on one core of a Xeon (Sapphire Rapids) beside OpenBLAS. Without
AVX-512 our kernels are slower beside it than they say.
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
from metalloid.runtime.device import Device

#: Ways to multiply: what this module says; NumPy; the best kernel of ours; tiles with sums in
#: registers, in matrices of simdgroups, or of NVIDIA's tensor cores; a reduction; Metal Performance
#: Shaders; cuBLAS.
AUTO, HOST, KERNELS = "auto", "host", "kernels"
REGISTERS, SIMDGROUPS, TENSOR_CORES, SUMS = "registers", "simdgroups", "tensor cores", "sums"
MPS, CUBLAS = "mps", "cublas"
#: Libraries of the makers of devices.
LIBRARIES = (MPS, CUBLAS)
#: Those that are no kernels of ours, in which nothing else is computed.
FOREIGN = (HOST, *LIBRARIES)

#: Rows and columns of a tile of a kernel of ours, and by how much of the depth it goes at a time.
TILE, STEP = 64, 32
#: Types that are added up in float32, as simdgroup matrices can.
FLOATS = (float16, bfloat16, float32)
#: So few rows are sums of products at the speed of memory, if there is enough to do.
_FEW_ROWS, _MUCH = 8, 2**16
#: So many multiplications take a kernel of ours longer than a library and the kernels beside it.
_MUCH_TO_FUSE = 2**24


class _Times(NamedTuple):
    """Nanoseconds that products of a type take.

    Attributes
    ----------
    tile : float
        Of our kernel, for a tile and one place of its depth.
    multiplication, element : float
        Of the host: for each multiplication, and for what it reads, converts and writes.
    """

    tile: float
    multiplication: float
    element: float


_TIMES = {
    float32: _Times(64, 0.0132, 0.2),
    float16: _Times(64, 0.0132, 2.2),
    bfloat16: _Times(64, 0.0132, 1.1),
    float64: _Times(245, 0.030, 0.3),
    complex64: _Times(400, 0.048, 0.3),
    complex128: _Times(800, 0.1, 0.5),
}
_SHORT, _LONG = _Times(138, 0.85, 0.2), _Times(400, 0.85, 0.3)  # integers
#: Nanoseconds to begin a tile, to turn a part of it around, and for an element that it reads or
#: writes; to begin a matrix of the host's; to begin a kernel more, and for an element in it.
_TILE, _TURNED, _ELEMENT, _MATRIX, _KERNEL, _AGAIN = 300, 30, 0.2, 50, 45_000, 1.2


def shape_of_work(shape: Ints, right: Node) -> Ints:
    """The shape of a product; a stack of matrices that are all multiplied by one is one matrix."""
    *batch, rows, columns = shape
    is_one = right.kind is BUFFER and not any(right.data[0][:-2])
    if right.kind is VIEW and right.data.kind == "broadcast":
        is_one = math.prod(right.args[0].shape[:-2]) == 1
    return (math.prod(batch) * rows, columns) if is_one else shape


def is_transposed(node: Node) -> bool:
    """Whether memory lies along the columns of what a matrix is made of, as far as can be seen."""
    turned = False
    while node.kind is VIEW or node.kind is ELEMENTWISE:
        if node.kind is VIEW and node.data.kind == "permute":
            rank = len(node.shape)
            turned ^= node.data.numbers[-2:] == (rank - 1, rank - 2)
        node = max(node.args, key=lambda arg: arg.size)
    if node.kind is BUFFER and len(node.shape) > 1:
        down, right = node.data[0][-2:]
        turned ^= down == 1 != right
    return turned


def way_of(device: Device, dtype: DType, shape: Ints, depth: int, fused: Sequence[int] = (),
           is_transposed: bool = False) -> str:  # fmt: skip
    """The way that takes least time for a product of some shape.

    Parameters
    ----------
    fused : sequence of int
        Elements of what a kernel of ours would compute on its way, and what are kernels else.
    is_transposed : bool
        Whether memory lies along the columns of the right factor.
    """
    if device.name != "cpu":
        much = math.prod(shape) * depth >= _MUCH_TO_FUSE or not fused
        return CUBLAS if much and is_for_library(device, dtype) else kernel_for(device, dtype)
    times = _TIMES.get(dtype) or (_LONG if dtype.itemsize > 4 else _SHORT)
    *batch, rows, columns = shape
    matrices = math.prod(batch)
    tiles = -(-rows // TILE) * -(-columns // TILE)
    indices = -(-depth // STEP) * STEP
    elements = rows * depth + depth * columns + rows * columns
    index = times.tile + (_TURNED if is_transposed else 0)
    ours = matrices * (tiles * (_TILE + indices * index) + elements * _ELEMENT)
    multiplied = rows * columns * depth * times.multiplication
    host = matrices * (_MATRIX + multiplied + elements * times.element)
    host += sum(_KERNEL + _AGAIN * size for size in fused)
    return REGISTERS if ours < host else HOST


def kernel_for(device: Device, dtype: DType) -> str:
    """The best kernel of ours."""
    if dtype.name not in device.traits.matrices:
        return REGISTERS
    return TENSOR_CORES if device.traits.has_tensor_cores else SIMDGROUPS


def is_for_library(device: Device, dtype: DType) -> bool:
    """Whether a library of the device's maker multiplies where nobody asks for another."""
    products = device.libraries.products
    return products is not None and products.is_first and dtype.name in products.dtypes


def is_sum(device: Device, dtype: DType, shape: Ints, depth: int, is_computed: bool) -> bool:
    """Whether a product is best written as a sum of products: it fuses, and reads a matrix once.

    Parameters
    ----------
    is_computed : bool
        Whether the matrix would have to be computed first.
    """
    rows, columns = shape[-2:]
    is_vector = rows == 1 or columns == 1
    if device.name != "cpu":
        return is_vector
    if math.prod(shape) * depth < _MUCH:
        return False
    has_blas = dtype in _TIMES and dtype.itemsize > 2
    return is_vector and is_computed if has_blas else is_vector or rows <= _FEW_ROWS
