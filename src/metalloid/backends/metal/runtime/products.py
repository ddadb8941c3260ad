"""Products of matrices by Metal Performance Shaders, Apple's own."""

from __future__ import annotations

import functools
from typing import Any

from metalloid.backends.metal.runtime.commands import CopyBack
from metalloid.backends.metal.runtime.context import MetalContext
from metalloid.backends.metal.runtime.memory import Allocation
from metalloid.errors import DeviceUnavailable
from metalloid.runtime.devices.libraries import Libraries, Matrices, Products
from metalloid.runtime.launch.event import Event

_TYPES = {"float32": "MPSDataTypeFloat32", "float16": "MPSDataTypeFloat16"}
#: Products of so many shapes are kept ready.
_CACHE_SIZE = 256


class ProductCommand:
    """A product in a batch, as `Command` is a launch.

    Attributes
    ----------
    name : str
    logs : bool
        Whether anything is logged.
    reads, writes : list of Allocation
    copies : list of CopyBack
    """

    name = "matmul"
    logs = False
    copies: tuple[CopyBack, ...] = ()

    def __init__(self, product: Any, matrices: list[Any], memory: list[Allocation]) -> None:
        self._product, self._matrices = product, matrices
        self.reads, self.writes = memory[:2], memory[2:]

    def encode(self, commands: Any) -> None:
        """Write it to a command buffer, with encoders of its own."""
        left, right, result = self._matrices
        self._product.encodeToCommandBuffer_leftMatrix_rightMatrix_resultMatrix_(
            commands, left, right, result
        )


class ShaderProducts(Products):
    """Metal Performance Shaders for one GPU."""

    name = "mps"

    def __init__(self, device: MetalContext) -> None:
        self._device, self._gpu, self._binding = device, device.gpu, device.binding
        self._product = functools.lru_cache(_CACHE_SIZE)(self._make_product)

    @functools.cached_property
    def _module(self) -> Any:
        module = self._binding.sibling("MetalPerformanceShaders")
        if not module.MPSSupportsMTLDevice(self._gpu):
            raise DeviceUnavailable(
                f"[matmul] {self._gpu.name()} does not support Metal Performance Shaders."
            )
        return module

    @property
    def dtypes(self) -> frozenset[str]:
        """See `Products.dtypes`."""
        return frozenset(
            name for name, data_type in _TYPES.items() if hasattr(self._module, data_type)
        )

    def multiply(
        self, left: Matrices, right: Matrices, result: Matrices, count: int, allow_tf32: bool
    ) -> Event:
        """See `Products.multiply`."""
        event = self._device.enqueue(lambda: self._command(left, right, result, count))
        for matrices in (left, right, result):
            matrices.buffer.used_by(event)
        return event

    def _command(
        self, left: Matrices, right: Matrices, result: Matrices, count: int
    ) -> ProductCommand:
        heap = self._device.heap
        memory = [heap.by_address[each.buffer.address] for each in (left, right, result)]
        with self._binding.pool():
            matrices = [
                self._matrix(each, count, held.buffer)
                for each, held in zip((left, right, result), memory, strict=True)
            ]
            transposed = left.is_transposed, right.is_transposed
            product = self._product(*transposed, result.rows, result.columns, left.columns, count)
        return ProductCommand(product, matrices, memory)

    def _matrix(self, of: Matrices, count: int, buffer: Any) -> Any:
        rows, columns = (of.columns, of.rows) if of.is_transposed else (of.rows, of.columns)
        make = self._module.MPSMatrixDescriptor.matrixDescriptorWithRows_columns_matrices_rowBytes_matrixBytes_dataType_  # noqa: E501
        kind = getattr(self._module, _TYPES[of.dtype])
        shape = make(rows, columns, count, of.row_bytes, of.matrix_bytes, kind)
        matrix = self._module.MPSMatrix.alloc()
        return matrix.initWithBuffer_offset_descriptor_(buffer, of.start, shape)

    def _make_product(
        self, left: bool, right: bool, rows: int, columns: int, depth: int, count: int
    ) -> Any:
        new = self._module.MPSMatrixMultiplication.alloc()
        product = new.initWithDevice_transposeLeft_transposeRight_resultRows_resultColumns_interiorColumns_alpha_beta_(  # noqa: E501
            self._gpu, left, right, rows, columns, depth, 1.0, 0.0
        )
        product.setBatchStart_(0)
        product.setBatchSize_(count)
        return product


class MetalLibraries(Libraries):
    """Apple's for one GPU."""

    def __init__(self, device: MetalContext) -> None:
        self.products = ShaderProducts(device)
