"""PyObjC's ``MetalPerformanceShaders`` without a Mac: products of matrices on `compat.Metal`.

As strict as that: it raises what ends a process on a Mac.

Examples
--------
>>> import numpy as np
>>> from metalloid.compat import Metal, MetalPerformanceShaders as MPS
>>> device = Metal.MTLCreateSystemDefaultDevice()
>>> shape = MPS.MPSMatrixDescriptor.matrixDescriptorWithRows_columns_rowBytes_dataType_(
...     2, 2, 8, MPS.MPSDataTypeFloat32
... )
>>> x, y = (
...     MPS.MPSMatrix.alloc().initWithBuffer_descriptor_(
...         device.newBufferWithBytes_length_options_(np.float32([[1, 2], [3, 4]]), 16, 0), shape
...     )
...     for _ in range(2)
... )
>>> product = MPS.MPSMatrixMultiplication.alloc().initWithDevice_resultRows_resultColumns_interiorColumns_(
...     device, 2, 2, 2
... )
>>> commands = device.newCommandQueue().commandBuffer()
>>> product.encodeToCommandBuffer_leftMatrix_rightMatrix_resultMatrix_(commands, x, x, y)
>>> commands.commit()
>>> commands.waitUntilCompleted()
>>> y.data().contents().as_buffer(16).cast("f").tolist()
[7.0, 10.0, 15.0, 22.0]
"""  # noqa: E501

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

import metalloid as mtl
from metalloid.compat.Metal.buffer import MTLBuffer
from metalloid.compat.Metal.command_buffer import MTLCommandBuffer
from metalloid.compat.Metal.commands import Launch
from metalloid.compat.Metal.conversions import instance, unsigned
from metalloid.compat.Metal.descriptors import Descriptor, setting
from metalloid.compat.Metal.device import MTLDevice
from metalloid.compat.Metal.failures import fail

MPSDataTypeFloat32 = 0x10000020
MPSDataTypeFloat16 = 0x10000010
_DTYPES: dict[int, np.dtype[Any]] = {
    MPSDataTypeFloat32: np.dtype(np.float32),
    MPSDataTypeFloat16: np.dtype(np.float16),
}
_ALL = 2**64 - 1

__all__ = [
    "MPSDataTypeFloat16",
    "MPSDataTypeFloat32",
    "MPSMatrix",
    "MPSMatrixDescriptor",
    "MPSMatrixMultiplication",
    "MPSSupportsMTLDevice",
]


def MPSSupportsMTLDevice(device: MTLDevice | None) -> bool:
    """Whether a device can run what is here."""
    return isinstance(device, MTLDevice)


class MPSMatrixDescriptor(Descriptor):
    """Contiguous matrices of one shape in a buffer."""

    __slots__ = ()

    rows, setRows_ = setting("rows", 0, unsigned)
    columns, setColumns_ = setting("columns", 0, unsigned)
    matrices, _ = setting("matrices", 1, unsigned)
    dataType, setDataType_ = setting("dataType", MPSDataTypeFloat32, unsigned)
    rowBytes, setRowBytes_ = setting("rowBytes", 0, unsigned)
    matrixBytes, _ = setting("matrixBytes", 0, unsigned)

    @classmethod
    def matrixDescriptorWithRows_columns_rowBytes_dataType_(
        cls, rows: int, columns: int, row_bytes: int, data_type: int
    ) -> MPSMatrixDescriptor:
        """Describe one matrix."""
        return cls.matrixDescriptorWithRows_columns_matrices_rowBytes_matrixBytes_dataType_(
            rows, columns, 1, row_bytes, unsigned(rows) * unsigned(row_bytes), data_type
        )

    @classmethod
    def matrixDescriptorWithRows_columns_matrices_rowBytes_matrixBytes_dataType_(
        cls, rows: int, columns: int, matrices: int, row_bytes: int, matrix_bytes: int,
        data_type: int,
    ) -> MPSMatrixDescriptor:  # fmt: skip
        """Describe a batch of matrices."""
        descriptor = cls()
        descriptor._settings = {
            "rows": unsigned(rows), "columns": unsigned(columns), "matrices": unsigned(matrices),
            "rowBytes": unsigned(row_bytes), "matrixBytes": unsigned(matrix_bytes),
            "dataType": unsigned(data_type),
        }  # fmt: skip
        selector = (
            "MPSMatrixDescriptor matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:"
            "dataType:"
        )
        if data_type not in _DTYPES:
            fail(selector, f"the software device multiplies no matrices of dataType({data_type})")
        if 0 in (rows, columns, matrices):
            fail(selector, f"{matrices} matrices of {rows} x {columns} have no elements")
        size = _DTYPES[data_type].itemsize
        if row_bytes < columns * size or row_bytes % size:
            fail(
                selector, f"rowBytes({row_bytes}) must be a multiple of {size}, >= {columns * size}"
            )
        if matrices > 1 and (matrix_bytes < rows * row_bytes or matrix_bytes % row_bytes):
            fail(selector, f"matrixBytes({matrix_bytes}) must be a multiple of rowBytes, "
                 f">= {rows * row_bytes}")  # fmt: skip
        return descriptor


class MPSMatrix:
    """Matrices in a buffer."""

    __slots__ = ("_buffer", "_descriptor", "_offset")

    @classmethod
    def alloc(cls) -> MPSMatrix:
        """A new one, before `init...`."""
        return cls()

    def initWithBuffer_descriptor_(
        self, buffer: MTLBuffer, descriptor: MPSMatrixDescriptor
    ) -> MPSMatrix:
        """Matrices at the start of a buffer."""
        return self.initWithBuffer_offset_descriptor_(buffer, 0, descriptor)

    def initWithBuffer_offset_descriptor_(
        self, buffer: MTLBuffer, offset: int, descriptor: MPSMatrixDescriptor
    ) -> MPSMatrix:
        """Matrices at an offset of a buffer."""
        self._buffer, self._offset = instance(buffer, MTLBuffer), unsigned(offset)
        self._descriptor = instance(descriptor, MPSMatrixDescriptor)
        size, selector = self.dtype.itemsize, "MPSMatrix initWithBuffer:offset:descriptor:"
        last = (self.matrices() - 1) * self.matrixBytes() + (self.rows() - 1) * self.rowBytes()
        end = offset + last + self.columns() * size
        if end > buffer.length():
            fail(selector, f"the matrices end at {end}, behind [buffer length]({buffer.length()})")
        if offset % size:
            fail(selector, f"offset({offset}) must be a multiple of {size}")
        return self

    def data(self) -> MTLBuffer:
        """The buffer."""
        return self._buffer

    def offset(self) -> int:
        """Bytes before the first matrix."""
        return self._offset

    def rows(self) -> int:
        """The rows of each matrix."""
        return int(self._descriptor.rows())

    def columns(self) -> int:
        """The columns of each matrix."""
        return int(self._descriptor.columns())

    def matrices(self) -> int:
        """The number of matrices."""
        return int(self._descriptor.matrices())

    def rowBytes(self) -> int:
        """From a row to the next."""
        return int(self._descriptor.rowBytes())

    def matrixBytes(self) -> int:
        """From a matrix to the next."""
        return int(self._descriptor.matrixBytes())

    def dataType(self) -> int:
        """The type of the elements: ``MPSDataTypeFloat32`` ..."""
        return int(self._descriptor.dataType())

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements."""
        return _DTYPES[self.dataType()]

    def array(self) -> np.ndarray:
        """The matrices as NumPy sees them."""
        shape = (self.matrices(), self.rows(), self.columns())
        strides = (self.matrixBytes(), self.rowBytes(), self.dtype.itemsize)
        return np.ndarray(shape, self.dtype, self._buffer.memory.bytes, self._offset, strides)


class MPSMatrixMultiplication:
    """``alpha * left @ right + beta * result`` of matrices, which may be read transposed."""

    __slots__ = ("_alpha", "_beta", "_device", "_first", "_many", "_shape", "_transposed")

    @classmethod
    def alloc(cls) -> MPSMatrixMultiplication:
        """A new one, before `init...`."""
        return cls()

    def initWithDevice_resultRows_resultColumns_interiorColumns_(
        self, device: MTLDevice, rows: int, columns: int, depth: int
    ) -> MPSMatrixMultiplication:
        """The product, and nothing else."""
        return self.initWithDevice_transposeLeft_transposeRight_resultRows_resultColumns_interiorColumns_alpha_beta_(  # noqa: E501
            device, False, False, rows, columns, depth, 1.0, 0.0
        )

    def initWithDevice_transposeLeft_transposeRight_resultRows_resultColumns_interiorColumns_alpha_beta_(  # noqa: E501
        self, device: MTLDevice, left: bool, right: bool, rows: int, columns: int, depth: int,
        alpha: float, beta: float,
    ) -> MPSMatrixMultiplication:  # fmt: skip
        """All there is to say."""
        self._device, self._transposed = instance(device, MTLDevice), (bool(left), bool(right))
        self._shape = unsigned(rows), unsigned(columns), unsigned(depth)
        self._alpha, self._beta = float(alpha), float(beta)
        self._first, self._many = 0, _ALL
        return self

    def batchStart(self) -> int:
        """The first of the matrices that are multiplied."""
        return self._first

    def setBatchStart_(self, first: int) -> None:
        """Choose the first."""
        self._first = unsigned(first)

    def batchSize(self) -> int:
        """The maximum number of matrices to multiply."""
        return self._many

    def setBatchSize_(self, many: int) -> None:
        """Choose how many."""
        self._many = unsigned(many)

    def encodeToCommandBuffer_leftMatrix_rightMatrix_resultMatrix_(
        self, commands: MTLCommandBuffer, left: MPSMatrix, right: MPSMatrix, result: MPSMatrix
    ) -> None:
        """Multiply when the turn of this command comes."""
        rows, columns, depth = self._shape
        shapes = [(rows, depth), (depth, columns), (rows, columns)]
        matrices = [instance(each, MPSMatrix) for each in (left, right, result)]
        flips = (*self._transposed, False)
        for matrix, required, flip in zip(matrices, shapes, flips, strict=True):
            shape = matrix.rows(), matrix.columns()
            shape = shape[::-1] if flip else shape
            if any(extent < least for extent, least in zip(shape, required, strict=True)):
                self._fail(f"a matrix of {shape} is smaller than {required}")
        if len({matrix.dataType() for matrix in matrices}) > 1:
            self._fail("the matrices are of different dataType")
        encoder = instance(commands, MTLCommandBuffer).blitCommandEncoder()
        encoder.add(_Product(self, matrices))
        encoder.endEncoding()

    def multiply(self, left: np.ndarray, right: np.ndarray, result: np.ndarray) -> None:
        """Compute the products."""
        self._device.metalloid.synchronize()
        rows, columns, depth = self._shape
        batch = slice(self._first, min(self._first + self._many, len(result)))
        x, y = (
            (array.swapaxes(1, 2) if transposed else array)[batch].astype(np.float32)
            for array, transposed in zip((left, right), self._transposed, strict=True)
        )
        z = result[batch, :rows, :columns]
        with np.errstate(all="ignore"):
            product = self._alpha * np.matmul(x[:, :rows, :depth], y[:, :depth, :columns])
            z[...] = product if self._beta == 0 else product + self._beta * z

    def _fail(self, what: str) -> NoReturn:
        selector = "encodeToCommandBuffer:leftMatrix:rightMatrix:resultMatrix:"
        fail(f"MPSMatrixMultiplication {selector}", what)


class _Product(Launch):
    """A command that the host carries out."""

    __slots__ = ("_arrays", "_product")

    def __init__(self, product: MPSMatrixMultiplication, matrices: list[MPSMatrix]) -> None:
        buffers = [matrix.data() for matrix in matrices]
        none: Any = None
        super().__init__(none, [], (0, 0, 0), None, buffers, buffers[2:])
        self._product, self._arrays = product, [matrix.array() for matrix in matrices]

    def issue(self, previous: mtl.Event | None) -> bool:
        """See `Command`."""
        self._product.multiply(*self._arrays)
        return True
