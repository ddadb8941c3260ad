"""Lower matrix products to nodes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.arrays.execution.calls import HostCall, read_array, to_host
from metalloid.arrays.ir.dtypes import DType, bool_, complex64, float32, int32, kind_of, promote
from metalloid.arrays.ir.extents import open_traces
from metalloid.arrays.ir.layout import Ints, Layout, ViewOp, apply_view, contiguous
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import (
    ELEMENTWISE,
    MATMUL,
    VIEW,
    Node,
    apply,
    broadcast,
    cast,
    in_memory,
    permute,
    reduce,
    reshape,
)
from metalloid.arrays.ir.operands import binary_operands
from metalloid.arrays.ir.ops import OPS
from metalloid.arrays.ir.primitives import Implementation, Primitive, bound, implement
from metalloid.arrays.lowering.narrow_matmul import (
    dots_of_few_columns,
    has_few_columns,
    is_narrow,
    narrow_product,
)
from metalloid.arrays.lowering.split_matmul import is_split, split_product
from metalloid.arrays.lowering.vendor_matmul import multiplied
from metalloid.arrays.planning.matmul_dispatch import (
    AUTO,
    FLOATS,
    HOST,
    KERNELS,
    LIBRARIES,
    REGISTERS,
    SIMDGROUPS,
    SUMS,
    TENSOR_CORES,
    is_for_library,
    is_sum,
    is_transposed,
    kernel_for,
    shape_of_work,
)
from metalloid.kernels.strides import broadcast_shape
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.libraries import Operand
from metalloid.runtime.launch.launches import Launch
from metalloid.settings import settings


@dataclass(frozen=True)
class Product(HostCall):
    """A matrix product: a host function that a generated kernel may replace.

    Attributes
    ----------
    backend : str
        A backend of `planning.matmul_dispatch`.
    allow_tf32 : bool
        Whether a vendor library may round float32 to TF32.
    """

    backend: str = AUTO
    allow_tf32: bool = False

    def run(self, args: Sequence[Node], device: Device, wait: bool) -> list[Memory]:
        """Multiply on the host, or by the vendor library."""
        ((dtype, shape),) = self.results
        left, right = args
        products = device.libraries.products
        if products is None or self.backend == HOST or 0 in (*shape, left.shape[-1]):
            if len(shape) == 2 and self.is_written_in_place(device):
                a, b = (to_host(x) if (array := read_array()(x)) is None else array for x in args)
                return [_multiply_into(a, b, contiguous(shape), dtype, device)]
            return super().run(args, device, wait)
        memory = multiplied(left, right, shape, products, self.allow_tf32)
        if wait:
            memory.bound.wait()
        return [memory]

    def as_launch(self, args: Sequence[Layout], device: Device) -> Launch | None:
        """See `HostCall.as_launch`: a launch of BLAS."""
        ((dtype, shape),) = self.results
        blas = device.libraries.blas
        if blas is None or device.libraries.products is not None:
            return None
        depth = args[0].shape[-1]
        if 0 in (*shape, depth):
            return None
        stacks = _as_stacks(shape, *args)
        if stacks is None:
            return None
        (count, rows), (left, right) = stacks
        size = dtype.itemsize

        def operand(x: Layout) -> Operand:
            between, down, across = x.strides
            return Operand(x.offset * size, down, across, between)

        of_product = count, rows, shape[-1], depth
        return blas.product(dtype.name, of_product, operand(left), operand(right))

    def is_written_in_place(self, device: Device) -> bool:
        """Whether BLAS can write the product into memory of a device."""
        ((dtype, _),) = self.results
        return device.memory == "host" and kind_of(dtype) in "fc" and dtype.itemsize >= 4


def _multiply_into(a: np.ndarray, b: np.ndarray, layout: Layout, dtype: DType,
                   device: Device) -> Memory:  # fmt: skip
    """Memory with the product of two matrices on the host, which BLAS writes into it."""
    memory = Memory(device, math.prod(layout.shape) * dtype.itemsize)
    memory.begin_overwriting()
    node = in_memory(memory, layout, dtype)
    out = read_array(is_writable=True)(node)
    with np.errstate(all="ignore"):  # as in kernels
        np.matmul(a, b, out=to_host(node) if out is None else out)
    return memory


def _as_stacks(shape: Ints, left: Layout, right: Layout
               ) -> tuple[tuple[int, int], tuple[Layout, Layout]] | None:  # fmt: skip
    """Factors as stacks of matrices with one axis before their own; None if they are not.

    Returns
    -------
    tuple
        Number of matrices and rows of each product, and the layouts of the factors.
    """
    *batch, rows, columns = shape
    depth = left.shape[-1]
    if not any(right.strides[:-2]):  # one matrix for all rows
        merged = apply_view(left, ViewOp("reshape", (1, math.prod(batch) * rows, depth)))
        single = Layout((1, depth, columns), (0, *right.strides[-2:]), right.offset)
        if merged is not None:
            return (1, math.prod(batch) * rows), (merged, single)
    stacks = [
        apply_view(x, ViewOp("reshape", (math.prod(batch), *x.shape[-2:]))) for x in (left, right)
    ]
    if stacks[0] is None or stacks[1] is None:
        return None
    return (math.prod(batch), rows), (stacks[0], stacks[1])


def matrix_product(x1: Any, x2: Any) -> Node:
    """Multiply over the last axis of `x1` and the second to last of `x2`.

    Of truth values: whether both are true for any index along these axes.

    Raises
    ------
    ValueError
        If the shapes are incompatible.
    """
    a, b = binary_operands("matmul", x1, x2)
    if a.dtype is b.dtype is not bool_ and len(a.shape) == len(b.shape) == 2:
        if a.shape[1] != b.shape[0]:
            raise _incompatible(a, b)
        return stacked_product(a, b, _parameters(a.device))
    if not a.shape or not b.shape:
        raise ValueError(f"[matmul] expected at least one axis each, got {a.shape} and {b.shape}.")
    dtype = promote(a.dtype, b.dtype)
    is_truth = kind_of(dtype) == "b"
    dtype = int32 if is_truth else dtype
    depth = a.shape[-1]
    if depth != b.shape[-2:][0]:
        raise _incompatible(a, b)
    batch = a.shape[:-2]
    if batch != b.shape[:-2]:
        batch = broadcast_shape("matmul", batch, b.shape[:-2])
    rows, columns = a.shape[-2:-1], b.shape[-1:] if len(b.shape) > 1 else ()
    left, right = cast(a, dtype), cast(b, dtype)
    if not rows:
        left = reshape(left, (1, depth))
    if not columns:
        right = reshape(right, (depth, 1))
    left = broadcast(left, (*batch, *left.shape[-2:]))
    right = broadcast(right, (*batch, *right.shape[-2:]))
    product = stacked_product(left, right, _parameters(left.device))
    product = reshape(product, (*batch, *rows, *columns))
    return cast(product, bool_) if is_truth else product


def _incompatible(a: Node, b: Node) -> ValueError:
    return ValueError(f"[matmul] incompatible shapes {a.shape} and {b.shape}.")


def _parameters(device: Device) -> tuple[str, bool]:
    """The settings at the time at which a product is written. CPUs have no TF32."""
    return settings.products, device.name != "cpu" and settings.tf32


def stacked_product(a: Node, b: Node, params: tuple[str, bool]) -> Node:
    """Bind the primitive of `matmul`, of two stacks of equally many matrices of one type.

    Raises
    ------
    DeviceUnavailable
        If the device requires a library that is not installed: here, not when it is evaluated.
    """
    backend, _ = params
    if backend in LIBRARIES and not is_for_library(a.device, a.dtype):
        _has_backend(a, backend)
    shape = (*a.shape[:-1], b.shape[-1])
    # Extents of a trace have no hash that does not fix them.
    primitive = _primitive.__wrapped__ if open_traces else _primitive
    return bound(primitive(params, a.dtype, shape), (a, b))


@functools.lru_cache(maxsize=1024)
def _primitive(params: tuple[str, bool], dtype: DType, shape: Ints) -> Primitive:
    """One object for equal products, whose structure is found faster then."""
    return Primitive("matmul", params, ((dtype, shape),))


def _has_backend(a: Node, backend: str) -> bool:
    """Whether the library of the device is the backend, and supports the type."""
    products = a.device.libraries.products
    return products is not None and products.name == backend and a.dtype.name in products.dtypes


def _product(a: Node, b: Node, backend: str, allow_tf32: bool) -> Node:
    """Multiply two stacks of equally many matrices of one type."""
    shape = (*a.shape[:-1], b.shape[-1])
    if backend == SUMS or (backend == AUTO and _is_sum(a, b, shape)):
        return _summed(a, b)
    if backend in LIBRARIES and not _has_backend(a, backend):
        backend = AUTO
    if backend == SIMDGROUPS and a.dtype not in FLOATS:
        backend = REGISTERS
    allow_tf32 = allow_tf32 and a.dtype in (float32, complex64)
    is_generated = backend == KERNELS or (backend == AUTO and not is_for_library(a.device, a.dtype))
    if is_generated and allow_tf32 and a.dtype == float32 and a.device.traits.has_tensor_cores:
        backend = TENSOR_CORES
    elif backend == KERNELS:
        backend = kernel_for(a.device, a.dtype)
    call = Product(_matmul, (), ((a.dtype, shape),), backend=backend, allow_tf32=allow_tf32)
    node = Node(MATMUL, call, (a, b), a.dtype, shape, a.device)
    call.add_result(node, 0)
    return node


def _split_product(a: Node, b: Node, backend: str, allow_tf32: bool) -> Node:
    return split_product(a, b, backend, allow_tf32, _product)


def _dots_of_few_columns(a: Node, b: Node, backend: str, allow_tf32: bool) -> Node:
    return dots_of_few_columns(a, b, backend, allow_tf32, _product)


implement(
    "matmul",
    Implementation(_split_product, is_split),
    Implementation(narrow_product, is_narrow),
    Implementation(_dots_of_few_columns, has_few_columns),
    _product,
    is_structural=True,
)


def _is_sum(a: Node, b: Node, shape: Ints) -> bool:
    shape = shape_of_work(shape, b)
    matrix = b if shape[-2] == 1 else a
    is_along_depth = (shape[-2] == 1 or not is_transposed(a)) and (
        shape[-1] == 1 or is_transposed(b)
    )
    while matrix.kind is VIEW:
        (matrix,) = matrix.args
    is_computed = matrix.kind is ELEMENTWISE
    is_along_columns = 1 in shape[-2:] and _is_along_columns(a, b)
    return is_sum(a.device, a.dtype, shape, a.shape[-1], is_computed, is_along_depth,
                  is_along_columns)  # fmt: skip


def _summed(a: Node, b: Node) -> Node:
    """Express the product as a sum of elementwise products, which fuses with other expressions."""
    *batch, rows, depth = a.shape
    columns = b.shape[-1]
    dtype = float32 if a.dtype in FLOATS else a.dtype
    if 1 in (rows, columns) and _is_along_columns(a, b):
        return _summed_columns(cast(a, dtype), cast(b, dtype), a.dtype)
    space = (*batch, rows, columns, depth)
    left = reshape(cast(a, dtype), (*batch, rows, 1, depth))
    last = len(batch)
    right = permute(cast(b, dtype), (*range(last), last + 1, last))
    right = reshape(right, (*batch, 1, columns, depth))
    products = apply(OPS["multiply"], dtype, broadcast(left, space), broadcast(right, space))
    return reshape(cast(reduce(products, "sum", (last + 2,)), a.dtype), space[:-1])


def _summed_columns(a: Node, b: Node, dtype: DType) -> Node:
    """As `_summed`, of a vector and a matrix whose rows in memory are those of the depth."""
    *batch, rows, depth = a.shape
    columns, last = b.shape[-1], len(batch)
    transposed = permute(a, (*range(last), last + 1, last))
    space = (*batch, depth, rows if columns == 1 else columns)  # either may be 0
    products = apply(OPS["multiply"], a.dtype, broadcast(transposed, space), broadcast(b, space))
    return reshape(cast(reduce(products, "sum", (last,)), dtype), (*batch, rows, columns))


def _is_along_columns(a: Node, b: Node) -> bool:
    """Whether a matrix that is multiplied by a vector lies in memory by rows of the depth."""
    is_left = b.shape[-1] == 1
    return is_transposed(a if is_left else b) == is_left


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype in FLOATS:
        a, b = a.astype(np.float32, copy=False), b.astype(np.float32, copy=False)
    shape = (*a.shape[:-1], b.shape[-1])
    if b.ndim > 2 and b.size and not any(b.strides[:-2]):  # a broadcast matrix: one product
        a, b = a.reshape(-1, a.shape[-1]), b[(0,) * (b.ndim - 2)]
    product: np.ndarray = np.matmul(a, b).reshape(shape)
    return product
