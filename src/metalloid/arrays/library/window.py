"""Convolution and pooling by kernels: what ``windows.metal`` is told."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, NamedTuple

import numpy as np

from metalloid.arrays.codegen.matmul import sum_type
from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.dtypes import DType, kind_of, msl_name
from metalloid.arrays.ir.layout import Ints, is_contiguous, row_major
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.operands import from_numpy
from metalloid.arrays.ir.views import copied
from metalloid.arrays.metal import metal_source
from metalloid.arrays.planning.matmul_dispatch import TILE
from metalloid.kernels.library import Library, library
from metalloid.runtime.device import Device

#: So few outputs of a group are made one by one: most of a tile would be of no use.
_FEW_OUTPUTS = 8
#: So many outputs or channels beside each other keep a simdgroup busy.
_MANY = 16
_LANES = 32
#: As in ``struct Windows``.
_NUMBERS = "=2q7I4x"


class Windows(NamedTuple):
    """Where the windows of an array are.

    Attributes
    ----------
    shape : tuple of int
        Of the array: (batch, ..., channels).
    size, stride, spread : tuple of int
        Elements of a window, steps between windows, and steps between elements; along all axes but
        the first and the last.
    """

    shape: Ints
    size: Ints
    stride: Ints
    spread: Ints

    @property
    def counts(self) -> Ints:
        """Windows along each axis."""
        return tuple(
            (n - d * (k - 1) - 1) // max(s, 1) + 1
            for n, k, s, d in zip(
                self.shape[1:-1], self.size, self.stride, self.spread, strict=True
            )
        )

    @property
    def step(self) -> int:
        """Elements from one window of a row to the next."""
        return self.stride[-1] * self.shape[-1]


def convolved(x: Node, weights: Node, windows: Windows, groups: int) -> list[Memory]:
    """Sums of products of each window with weights (places and channels, outputs)."""
    outputs = weights.shape[-1]
    channels, each = windows.shape[-1] // groups, outputs // groups
    launch = _Launch(x, windows, channels, each, outputs)
    out = Memory(x.device, launch.count * outputs * x.dtype.itemsize)
    filters, start = _in_order(weights)
    if each < _FEW_OUTPUTS:
        name, grid = launch.each("convolve_directly", outputs)
    else:
        is_thin = _is_thin(x.dtype, x.device)
        is_beside = not is_thin and channels % _LANES == 0 and x.dtype.itemsize <= 8
        name = "convolve_beside" if is_beside else "convolve_apart"
        threads, tiles = (256 if is_thin else 512), (-(-each // TILE), -(-launch.count // TILE))
        grid = {"threads": (tiles[0] * threads, tiles[1], groups), "group_size": (threads, 1, 1)}
    launch(name, [filters.bound, out.bound], grid, start)
    return [out]


def pooled(x: Node, windows: Windows, largest: bool) -> list[Memory]:
    """The largest of each window, or the sum, for each channel."""
    channels = windows.shape[-1]
    launch = _Launch(x, windows, 1, 1, channels)
    out = Memory(x.device, launch.count * channels * pooled_type(x.dtype, largest).itemsize)
    name, grid = launch.each("pool_largest" if largest else "pool_sum", channels)
    launch(name, [out.bound], grid)
    return [out]


def pooled_type(dtype: DType, largest: bool) -> DType:
    """What the elements of a window are put together in."""
    is_short = kind_of(dtype) == "f" and dtype.itemsize < 4
    return np.dtype(np.float32) if is_short and not largest else dtype


def _in_order(node: Node) -> tuple[Memory, int]:
    """Memory in which the elements of a leaf lie behind each other, and where they begin."""
    if not is_contiguous(node.layout):
        node = copied(node)
        evaluate([node], wait=False)
    assert node.memory is not None
    return node.memory, node.layout.offset


def _is_thin(dtype: DType, device: Device) -> bool:
    """Whether tiles are those of many thin threads, which have no room for larger sums."""
    return device.traits.is_simt and dtype.itemsize <= 4


class _Launch:
    """A launch over all windows of an array.

    Attributes
    ----------
    count : int
        Of all windows.
    """

    def __init__(self, x: Node, windows: Windows, channels: int, outputs: int, all_: int) -> None:
        self._device, self._dtype = x.device, x.dtype
        self._memory, self._start = _in_order(x)
        self._windows, self._parts = windows, (channels, outputs, all_)
        *outer, self._width = windows.counts
        self._rows = math.prod(outer) * windows.shape[0]
        self.count = self._rows * self._width

    def each(self, stem: str, outputs: int) -> tuple[str, dict[str, Any]]:
        """Name and grid of a kernel whose threads make one result each."""
        if outputs < _MANY:
            return f"{stem}_across", {"threads": (self._width, outputs, self._rows)}
        return f"{stem}_along", {"threads": (outputs, self._width, self._rows)}

    def __call__(self, name: str, others: list[Any], grid: dict[str, Any], start: int = 0) -> None:
        windows, channels = self._windows, self._parts[0]
        rows, places, place = _tables(self._device, windows, channels)
        depth = math.prod(windows.size) * channels
        sizes = self._width, windows.step, self.count, depth, *self._parts
        numbers = struct.pack(_NUMBERS, self._start, start, *sizes)
        lib = _library(self._dtype, place, self._device)
        lib[name](
            self._memory.bound, *others, rows.bound, places.bound, numbers, wait=False, **grid
        )


@functools.lru_cache(maxsize=64)
def _tables(device: Device, windows: Windows, channels: int) -> tuple[Memory, Memory, str]:
    """Distances of rows of windows, and of the places in a window, in elements; their type."""
    strides = row_major(windows.shape)
    steps = [s * k for s, k in zip(strides[1:-1], windows.stride, strict=True)]
    gaps = [s * d for s, d in zip(strides[1:-1], windows.spread, strict=True)]
    rows = _sums((windows.shape[0], *windows.counts[:-1]), (strides[0], *steps[:-1]))
    places = _sums((*windows.size, channels), (*gaps, 1))
    is_near = places[-1] < 2**31
    found = [rows, places.astype(np.int32) if is_near else places]
    first, second = (from_numpy(table, device).memory for table in found)
    assert first is not None
    assert second is not None
    return first, second, "int" if is_near else "long"


def _sums(extents: Ints, strides: Ints) -> np.ndarray:
    """Where the elements of a layout lie, in their order."""
    total = np.zeros((), np.int64)
    for extent, stride in zip(extents, strides, strict=True):
        total = total[..., None] + np.arange(extent, dtype=np.int64) * stride
    return total.reshape(-1)


@functools.cache
def text(dtype: DType, place: str) -> str:
    """All that is compiled for a type."""
    type_, sums = msl_name(dtype), sum_type(dtype)
    made = {
        f"convolve_{how}": f"convolve<{type_}, {sums}, {place}, {flag}>"
        for how, flag in (("beside", "true"), ("apart", "false"))
    }
    pooled_sum = msl_name(pooled_type(dtype, False))
    for how, flag in (("across", "true"), ("along", "false")):
        made[f"convolve_directly_{how}"] = f"convolve_directly<{type_}, {sums}, {place}, {flag}>"
        made[f"pool_sum_{how}"] = f"pool<{type_}, {pooled_sum}, {place}, {flag}, false>"
        if kind_of(dtype) != "c":
            made[f"pool_largest_{how}"] = f"pool<{type_}, {type_}, {place}, {flag}, true>"
    instances = (
        f'template [[host_name("{name}")]] [[kernel]] decltype({kernel}) {kernel};'
        for name, kernel in made.items()
    )
    names = ["arrays", "wide", "products", "wide_products", "windows"]
    if kind_of(dtype) == "c":
        names[1:1] = ["complex"]
    head = "#include <metal_stdlib>\nusing namespace metal;\n"
    return "\n".join([head, metal_source(*names), *instances, ""])


@functools.cache
def _library(dtype: DType, place: str, device: Device) -> Library:
    macros = {"METALLOID_THIN_THREADS": True} if _is_thin(dtype, device) else {}
    return library(text(dtype, place), device=device, defines=macros)
