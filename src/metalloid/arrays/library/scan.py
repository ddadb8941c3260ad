"""Launches of the prefix-scan kernels for SIMT devices."""

from __future__ import annotations

import functools
import math
from typing import Any

from metalloid.arrays.execution.evaluate import evaluate
from metalloid.arrays.ir.dtypes import DType, kind_of, msl_name
from metalloid.arrays.ir.layout import is_contiguous
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.views import contiguous_copy
from metalloid.arrays.metal import metal_source
from metalloid.arrays.planning.loop_axes import VECTOR_WIDTH
from metalloid.kernels.library import Library, library
from metalloid.runtime.devices.device import Device

#: Threads and elements of a tile, as in wide_scans.metal.
_THREADS, _TILE = 256, 4096
_OPS = {"cumulative_sum": ("a + b", "0"), "cumulative_prod": ("a * b", "1")}
_KERNELS = ("total_tiles", "scan_tiles")


def scanned_rows(x: Node, name: str) -> list[Memory]:
    """Return the cumulative sums or products along the last axis."""
    if not is_contiguous(x.layout):
        x = contiguous_copy(x)
        evaluate([x], wait=False)
    assert x.memory is not None
    device, count, size = x.device, x.shape[-1], x.dtype.itemsize
    rows, offset = x.size // count, x.layout.offset
    tiles = math.ceil(count / _TILE)
    scanned, totals = Memory(device, x.size * size), Memory(device, rows * tiles * size)
    is_aligned = (x.memory.address + offset * size) % (VECTOR_WIDTH * size) == 0
    form = "packed" if is_aligned and count % VECTOR_WIDTH == 0 else "loose"
    lib, values = _library(name, wrapping_type(x.dtype), device), x.memory.bound
    grid: dict[str, Any] = {
        "threads": (tiles * _THREADS, rows), "group_size": (_THREADS, 1), "wait": False,
    }  # fmt: skip
    if tiles > 1:
        lib[f"total_tiles_{form}"](values, totals.bound, offset, count, **grid)
        lib["scan_totals"](totals.bound, tiles, threads=rows * _THREADS, group_size=_THREADS,
                           wait=False)  # fmt: skip
    lib[f"scan_tiles_{form}"](values, scanned.bound, totals.bound, offset, count, **grid)
    return [scanned]


def wrapping_type(dtype: DType) -> str:
    """The MSL type of a scan: signed integers wrap around like unsigned ones."""
    if kind_of(dtype) != "i":
        return msl_name(dtype)
    return {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[dtype.itemsize]


@functools.cache
def text(name: str, type_: str) -> str:
    """The Metal source for a type."""
    combined, none = _OPS[name]
    head = (
        "#include <metal_stdlib>\nusing namespace metal;\n\n"
        "template <typename T>\nstruct Op {\n"
        f"  static METAL_FUNC T of(T a, T b) {{ return T({combined}); }}\n"
        f"  static METAL_FUNC T none() {{ return T({none}); }}\n}};\n"
    )
    instances = [("scan_totals", "scan_totals", type_)] + [
        (f"{kernel}_{form}", kernel, f"{type_}, {is_packed}")
        for kernel in _KERNELS
        for form, is_packed in (("packed", "true"), ("loose", "false"))
    ]
    rows = (
        f'template [[host_name("{host}")]] [[kernel]] '
        f"decltype({kernel}<{types}>) {kernel}<{types}>;"
        for host, kernel, types in instances
    )
    return "\n".join([head, metal_source("wide", "wide_scans"), *rows, ""])


@functools.cache
def _library(name: str, type_: str, device: Device) -> Library:
    return library(text(name, type_), device=device, bounds="unchecked")
