"""Convolution and pooling by the functions of `windows.metal`."""

from __future__ import annotations

import functools
import math

import numpy as np

from metalloid.arrays.codegen.matmul import sum_type
from metalloid.arrays.ir.dtypes import DType, kind_of
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node
from metalloid.arrays.lowering.windows import Overlaps, Windows
from metalloid.arrays.planning.product_tiles import TILE
from metalloid.kernels.strides import row_major
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.program import Size

_PRODUCTS = ("products/products", "products/tiles", "products/wide_products")
_FILES = ("wide", *_PRODUCTS, "windows")
#: Groups with fewer outputs use the direct kernel: a tile would be mostly empty.
_DIRECT_OUTPUTS = 8
#: With at least this many outputs or channels, lanes take adjacent channels.
_MIN_ADJACENT = 16
_LANES = 32
#: Threads of a tile of a product, and those on SIMT devices.
_THREADS, _THREADS_OF_SIMT = 512, 256


def convolved(x: Node, weights: Node, windows: Windows, groups: int) -> Node:
    """The product of each window with weights (window elements and channels, outputs)."""
    outputs = weights.shape[-1]
    tables = _tables(x.device, windows, windows.shape[-1] // groups)
    # Tiles on SIMT devices only fit accumulators up to 32 bits.
    is_simt = x.device.traits.is_simt and x.dtype.itemsize <= 4
    call = _convolution(x.dtype, windows, groups, outputs, is_simt)
    shape = (windows.shape[0], *windows.counts, outputs)
    return library_call(call, [x, weights, *tables], x.dtype, shape)


def pooled(x: Node, windows: Windows, largest: bool) -> Node:
    """The maximum or the sum of each window, for each channel."""
    tables = _tables(x.device, windows, 1)
    call = _pooling(x.dtype, windows, largest)
    shape = (windows.shape[0], *windows.counts, windows.shape[-1])
    return library_call(call, [x, *tables], pooled_type(x.dtype, largest), shape)


def pooled_type(dtype: DType, largest: bool) -> DType:
    """Return the accumulator type of a pooling."""
    is_short = kind_of(dtype) == "f" and dtype.itemsize < 4
    return np.dtype(np.float32) if is_short and not largest else dtype


@functools.lru_cache(maxsize=1024)
def _convolution(dtype: DType, windows: Windows, groups: int, outputs: int,
                 is_simt: bool) -> LibraryCall:  # fmt: skip
    channels, outputs_of_group = windows.shape[-1] // groups, outputs // groups
    sums = sum_type(dtype)
    sizes = channels, outputs_of_group, outputs
    operands = "x0, x1, x2, x3, out, windows"
    if outputs_of_group < _DIRECT_OUTPUTS:
        across, threads = _by_results(windows, outputs)
        body = f"numpy::convolve_directly<{across}, {sums}>({operands}, at);"
        return _call("convolve", body, dtype, windows, sizes, 4, threads)
    is_adjacent = not is_simt and channels % _LANES == 0 and dtype.itemsize <= 8
    capacity = "square_capacity<4>" if is_simt else f"product_capacity<{sums}>"
    body = (
        f"threadgroup {sums} tiles[numpy::{capacity}()];\n"
        f"numpy::convolve<{str(is_simt).lower()}, {str(is_adjacent).lower()}>({operands}, tiles,\n"
        "    group, simdgroup, lane);"
    )
    count = math.prod(windows.counts) * windows.shape[0]
    group = _THREADS_OF_SIMT if is_simt else _THREADS
    threads = -(-outputs_of_group // TILE) * group, -(-count // TILE), groups
    return _call("convolve", body, dtype, windows, sizes, 4, threads, (group, 1, 1))


@functools.lru_cache(maxsize=1024)
def _pooling(dtype: DType, windows: Windows, largest: bool) -> LibraryCall:
    channels = windows.shape[-1]
    across, threads = _by_results(windows, channels)
    body = f"numpy::pool<{across}, {str(largest).lower()}>(x0, x1, x2, out, windows, at);"
    name = "pool_largest" if largest else "pool_sum"
    return _call(name, body, dtype, windows, (1, 1, channels), 3, threads)


def _by_results(windows: Windows, outputs: int) -> tuple[str, Size]:
    """Whether neighbouring threads take windows, as text, and a grid with a thread per result."""
    *outer, width = windows.counts
    rows = math.prod(outer) * windows.shape[0]
    if outputs < _MIN_ADJACENT:
        return "true", (width, outputs, rows)
    return "false", (outputs, width, rows)


def correlated(x: Node, y: Node, overlaps: Overlaps) -> Node:
    """Correlate two vectors."""
    return library_call(_correlation(x.dtype, overlaps), [x, y], x.dtype, (overlaps.windows,))


@functools.lru_cache(maxsize=1024)
def _correlation(dtype: DType, overlaps: Overlaps) -> LibraryCall:
    size, width, left, count, flips = overlaps
    launch = LibraryLaunch(
        name="convolve_vectors" if flips else "correlate_vectors",
        body=f"numpy::correlate<{sum_type(dtype)}, {str(flips).lower()}>(\n"
        "    x0, x1, out, params.size, params.width, params.left, at.x);",
        files=("complex", *_FILES) if kind_of(dtype) == "c" else _FILES,
        reads=(0, 1),
        writes=(2,),
        numbers=(("size", size), ("width", width), ("left", left)),
        threads=(count, 1, 1),
    )
    return LibraryCall((launch,))


def polynomial_of_roots(roots: Node) -> Node:
    """The coefficients of the polynomial with these roots, the highest power first."""
    count = roots.shape[0]
    return library_call(_linear_factors(roots.dtype, count), [roots], roots.dtype, (count + 1,))


@functools.lru_cache(maxsize=1024)
def _linear_factors(dtype: DType, count: int) -> LibraryCall:
    launch = LibraryLaunch(
        name="polynomial_of_roots",
        body="numpy::multiply_linear_factors(x0, out, params.count, lane);",
        files=("complex", *_FILES) if kind_of(dtype) == "c" else _FILES,
        reads=(0,),
        writes=(1,),
        numbers=(("count", count),),
        threads=(_LANES, 1, 1),
        group_size=(_LANES, 1, 1),
    )
    return LibraryCall((launch,))


def _call(name: str, body: str, dtype: DType, windows: Windows, sizes: Ints, operands: int,
          threads: Size, group_size: Size | None = None) -> LibraryCall:  # fmt: skip
    """A launch whose statements use `windows`.

    `sizes` are the channels and outputs of a group, and the outputs of all groups.
    """
    counts, channels = windows.counts, sizes[0]
    members = "width", "step", "count", "depth", "channels", "outputs", "all"
    values = (
        counts[-1], windows.step, math.prod(counts) * windows.shape[0],
        math.prod(windows.size) * channels, *sizes,
    )  # fmt: skip
    # A literal step of 1, by which neighbouring threads read contiguous elements.
    text = ", ".join(
        "1" if member == "step" and windows.step == 1 else f"params.{member}" for member in members
    )
    launch = LibraryLaunch(
        name=name,
        body=f"const numpy::Windows windows{{{text}}};\n{body}",
        files=("complex", *_FILES) if kind_of(dtype) == "c" else _FILES,
        reads=tuple(range(operands)),
        writes=(operands,),
        numbers=tuple(zip(members, values, strict=True)),
        threads=threads,
        group_size=group_size,
    )
    return LibraryCall((launch,))


@functools.lru_cache(maxsize=64)
def _tables(device: Device, windows: Windows, channels: int) -> tuple[Node, Node]:
    """The offsets of rows of windows, and those of window elements."""
    strides = row_major(windows.shape)
    steps = [s * k for s, k in zip(strides[1:-1], windows.stride, strict=True)]
    gaps = [s * d for s, d in zip(strides[1:-1], windows.dilation, strict=True)]
    rows = _element_offsets((windows.shape[0], *windows.counts[:-1]), (strides[0], *steps[:-1]))
    offsets = _element_offsets((*windows.size, channels), (*gaps, 1))
    if offsets[-1] < 2**31:
        offsets = offsets.astype(np.int32)
    return from_numpy(rows, device), from_numpy(offsets, device)


def _element_offsets(extents: Ints, strides: Ints) -> np.ndarray:
    """Return the offsets of all elements of a layout, in row-major order."""
    total = np.zeros((), np.int64)
    for extent, stride in zip(extents, strides, strict=True):
        total = total[..., None] + np.arange(extent, dtype=np.int64) * stride
    return total.reshape(-1)
