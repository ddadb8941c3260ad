"""Chooses the backend of a matrix product: the host's BLAS, a generated kernel, or a reduction.

On the CPU a cost model decides (`product_costs`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from metalloid.arrays.ir.dtypes import DType, bfloat16, float16, float32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import BUFFER, ELEMENTWISE, VIEW, Node
from metalloid.arrays.planning.product_costs import TIMES, ProductCosts, times_of
from metalloid.runtime.devices.device import Device

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
#: From this many multiplications and elements on, a call of a library beats a kernel of the plan,
#: which is launched with the others and fuses; the depth of smaller results is split
#: (lowering/split_matmul.py).
_ENOUGH_FOR_LIBRARY, _ENOUGH_ELEMENTS = 2**32, 2**14


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
        is_call = is_library_call(device, dtype, math.prod(shape), depth)
        return CUBLAS if is_call else kernel_for(device, dtype)
    costs = ProductCosts(device, dtype, shape, depth, are_transposed)
    times = {
        REGISTERS: costs.registers(), HOST: costs.host(fused), PANELS: costs.panels(),
        DOTS: costs.dots(),
    }  # fmt: skip
    return min(times, key=times.__getitem__)


def kernel_for(device: Device, dtype: DType) -> str:
    """The fastest generated kernel."""
    if dtype.name not in device.traits.matrices:
        return REGISTERS
    return TENSOR_CORES if device.traits.has_tensor_cores else SIMDGROUPS


def is_for_library(device: Device, dtype: DType) -> bool:
    """Whether the vendor's library is the default for a type."""
    products = device.libraries.products
    return products is not None and products.is_first and dtype.name in products.dtypes


def is_library_call(device: Device, dtype: DType, size: int, depth: int) -> bool:
    """Whether the vendor's library takes less time for `size` results than a kernel."""
    is_enough = size >= _ENOUGH_ELEMENTS and size * depth >= _ENOUGH_FOR_LIBRARY
    return is_enough and is_for_library(device, dtype)


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
    has_strips &= rows == 1 and is_along_columns and times_of(dtype).panel < math.inf
    if has_strips and not is_computed:
        return False
    if math.prod(shape) == 1 and work >= _MIN_CHUNKED:
        return True
    has_dots = is_along_depth and work >= _MIN_DOTS and times_of(dtype).dot < math.inf
    if is_vector and (is_computed or (work <= _MAX_VECTOR_WORK and not has_dots)):
        return True
    if is_vector and is_along_columns and rows * columns <= _MAX_COLUMNS:
        return True
    is_slow_elsewhere = not has_dots and (dtype not in TIMES or dtype.itemsize <= 2)
    return is_slow_elsewhere and work >= _MIN_REDUCTION_WORK and rows <= _MAX_REDUCTION_ROWS
