"""Launches of the convolution and pooling kernels, ``windows.metal``."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any

import numpy as np

from metalloid.arrays.codegen.matmul import sum_type
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.dtypes import DType, kind_of, msl_name
from metalloid.arrays.ir.layout import Ints, is_contiguous
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.operands import from_numpy
from metalloid.arrays.ir.views import contiguous_copy
from metalloid.arrays.lowering.windows import Windows
from metalloid.arrays.metal import metal_source
from metalloid.arrays.planning.matmul_dispatch import TILE
from metalloid.kernels.library import Library, library
from metalloid.kernels.strides import row_major
from metalloid.runtime.devices.device import Device

#: Groups with fewer outputs use the direct kernel: a tile would be mostly empty.
_DIRECT_OUTPUTS = 8
#: With at least this many outputs or channels, lanes take adjacent channels.
_MIN_ADJACENT = 16
_LANES = 32
#: Format of ``struct Windows``.
_NUMBERS = "=2q7I4x"


def convolved(x: Node, weights: Node, windows: Windows, groups: int) -> list[Memory]:
    """Multiply each window with weights (window elements and channels, outputs)."""
    outputs = weights.shape[-1]
    channels, outputs_per_group = windows.shape[-1] // groups, outputs // groups
    launch = _Launch(x, windows, channels, outputs_per_group, outputs)
    out = Memory(x.device, launch.count * outputs * x.dtype.itemsize)
    filters, offset = _contiguous_memory(weights)
    if outputs_per_group < _DIRECT_OUTPUTS:
        name, grid = launch.per_result("convolve_directly", outputs)
    else:
        is_simt = _is_simt(x.dtype, x.device)
        is_adjacent = not is_simt and channels % _LANES == 0 and x.dtype.itemsize <= 8
        name = "convolve_adjacent" if is_adjacent else "convolve_strided"
        threads = 256 if is_simt else 512
        tiles = -(-outputs_per_group // TILE), -(-launch.count // TILE)
        grid = {"threads": (tiles[0] * threads, tiles[1], groups), "group_size": (threads, 1, 1)}
    launch(name, [filters.bound, out.bound], grid, offset)
    return [out]


def pooled(x: Node, windows: Windows, largest: bool) -> list[Memory]:
    """Return the maximum or the sum of each window, for each channel."""
    channels = windows.shape[-1]
    launch = _Launch(x, windows, 1, 1, channels)
    out = Memory(x.device, launch.count * channels * pooled_type(x.dtype, largest).itemsize)
    name, grid = launch.per_result("pool_largest" if largest else "pool_sum", channels)
    launch(name, [out.bound], grid)
    return [out]


def pooled_type(dtype: DType, largest: bool) -> DType:
    """Return the accumulator type of a pooling."""
    is_short = kind_of(dtype) == "f" and dtype.itemsize < 4
    return np.dtype(np.float32) if is_short and not largest else dtype


def _contiguous_memory(node: Node) -> tuple[Memory, int]:
    """Return memory with the contiguous elements of a leaf, and their offset."""
    if not is_contiguous(node.layout):
        node = contiguous_copy(node)
        evaluate([node], wait=False)
    assert node.memory is not None
    return node.memory, node.layout.offset


def _is_simt(dtype: DType, device: Device) -> bool:
    """Whether to use the tiles for SIMT devices, which only fit accumulators up to 32 bits."""
    return device.traits.is_simt and dtype.itemsize <= 4


class _Launch:
    """A launch over all windows of an array.

    Attributes
    ----------
    count : int
        Number of windows.
    """

    def __init__(
        self, x: Node, windows: Windows, channels: int, outputs: int, total_outputs: int
    ) -> None:
        self._device, self._dtype = x.device, x.dtype
        self._memory, self._offset = _contiguous_memory(x)
        self._windows, self._channel_sizes = windows, (channels, outputs, total_outputs)
        *outer, self._width = windows.counts
        self._rows = math.prod(outer) * windows.shape[0]
        self.count = self._rows * self._width

    def per_result(self, stem: str, outputs: int) -> tuple[str, dict[str, Any]]:
        """Return the name and grid of a kernel with one result per thread."""
        if outputs < _MIN_ADJACENT:
            return f"{stem}_across", {"threads": (self._width, outputs, self._rows)}
        return f"{stem}_along", {"threads": (outputs, self._width, self._rows)}

    def __call__(self, name: str, others: list[Any], grid: dict[str, Any], offset: int = 0) -> None:
        windows, channels = self._windows, self._channel_sizes[0]
        rows, offsets, index_type = _tables(self._device, windows, channels)
        depth = math.prod(windows.size) * channels
        sizes = self._width, windows.step, self.count, depth, *self._channel_sizes
        numbers = struct.pack(_NUMBERS, self._offset, offset, *sizes)
        lib = _library(self._dtype, index_type, self._device)
        lib[name](
            self._memory.bound, *others, rows.bound, offsets.bound, numbers, wait=False, **grid
        )


@functools.lru_cache(maxsize=64)
def _tables(device: Device, windows: Windows, channels: int) -> tuple[Memory, Memory, str]:
    """Return the offsets of rows of windows and of window elements, and the type of the latter."""
    strides = row_major(windows.shape)
    steps = [s * k for s, k in zip(strides[1:-1], windows.stride, strict=True)]
    gaps = [s * d for s, d in zip(strides[1:-1], windows.dilation, strict=True)]
    rows = _element_offsets((windows.shape[0], *windows.counts[:-1]), (strides[0], *steps[:-1]))
    offsets = _element_offsets((*windows.size, channels), (*gaps, 1))
    is_near = offsets[-1] < 2**31
    tables = [rows, offsets.astype(np.int32) if is_near else offsets]
    first, second = (from_numpy(table, device).memory for table in tables)
    assert first is not None
    assert second is not None
    return first, second, "int" if is_near else "long"


def _element_offsets(extents: Ints, strides: Ints) -> np.ndarray:
    """Return the offsets of all elements of a layout, in row-major order."""
    total = np.zeros((), np.int64)
    for extent, stride in zip(extents, strides, strict=True):
        total = total[..., None] + np.arange(extent, dtype=np.int64) * stride
    return total.reshape(-1)


@functools.cache
def text(dtype: DType, index_type: str) -> str:
    """The Metal source for a type."""
    type_, sums = msl_name(dtype), sum_type(dtype)
    kernels = {
        f"convolve_{how}": f"convolve<{type_}, {sums}, {index_type}, {flag}>"
        for how, flag in (("adjacent", "true"), ("strided", "false"))
    }
    pooled_sum = msl_name(pooled_type(dtype, False))
    for how, flag in (("across", "true"), ("along", "false")):
        kernels[f"convolve_directly_{how}"] = (
            f"convolve_directly<{type_}, {sums}, {index_type}, {flag}>"
        )
        kernels[f"pool_sum_{how}"] = f"pool<{type_}, {pooled_sum}, {index_type}, {flag}, false>"
        if kind_of(dtype) != "c":
            kernels[f"pool_largest_{how}"] = f"pool<{type_}, {type_}, {index_type}, {flag}, true>"
    instances = (
        f'template [[host_name("{name}")]] [[kernel]] decltype({kernel}) {kernel};'
        for name, kernel in kernels.items()
    )
    names = ["arrays", "wide", "products/products", "products/wide_products", "windows"]
    if kind_of(dtype) == "c":
        names[1:1] = ["complex"]
    head = "#include <metal_stdlib>\nusing namespace metal;\n"
    return "\n".join([head, metal_source(*names), *instances, ""])


@functools.cache
def _library(dtype: DType, index_type: str, device: Device) -> Library:
    macros = {"METALLOID_SIMT": True} if _is_simt(dtype, device) else {}
    return library(text(dtype, index_type), device=device, defines=macros, bounds="unchecked")
