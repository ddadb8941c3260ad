"""Prefix scans by the functions of `scans.metal`, of rows on SIMT devices by `scan_tiles.metal`."""

from __future__ import annotations

import functools
import math

from metalloid.arrays.ir.dtypes import DType, kind_of, msl_name
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.library_call import LibraryCall, LibraryLaunch, library_call
from metalloid.arrays.ir.node import Node, permute
from metalloid.arrays.planning.loop_axes import VECTOR_WIDTH
from metalloid.kernels.operands import MAX_ELEMENTS

_FILES = ("scans",)
_FILES_OF_TILES = "wide", "scans", "scan_tiles"
_LANES = 32
#: Threads and elements of a tile, as in scan_tiles.metal.
_THREADS, _TILE = 256, 4096
#: Elements of a chunk; rows up to twice as long are not split.
_CHUNK = 8192
#: Fewer columns do not fill the lanes of a core, or the threads of a GPU.
_FEW_COLUMNS, _FEW_COLUMNS_OF_SIMT = 64, 4096
#: Where there are few columns, longer ones are scanned as rows.
_LONG_COLUMN = 1024
_OPS = {
    "cumulative_sum": "Sum", "cumulative_prod": "Product", "cummax": "Maximum", "cummin": "Minimum",
}  # fmt: skip
#: MSL types by size. Signed integers wrap around like unsigned ones.
_WRAPPING = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


def has_columns(x: Node, name: str, axis: int) -> bool:
    """Whether a thread should scan each column."""
    if not has_rows(x, name, axis) or math.prod(x.shape[axis + 1 :]) == 1:
        return False
    columns = x.size // x.shape[axis]
    if x.device.traits.is_simt:
        return columns >= _FEW_COLUMNS_OF_SIMT or (
            columns >= _FEW_COLUMNS and x.shape[axis] <= _LONG_COLUMN
        )
    return columns >= _FEW_COLUMNS


def has_rows(x: Node, name: str, axis: int) -> bool:
    """Whether threadgroups can scan tiles of rows, or simdgroups chunks of them."""
    return 0 < x.size <= MAX_ELEMENTS


def scan_columns(x: Node, name: str, axis: int) -> Node:
    """The scan along an axis that is not the innermost one."""
    return library_call(_columns(x.dtype, x.shape, name, axis), [x], x.dtype, x.shape)


def scan_rows(x: Node, name: str, axis: int) -> Node:
    """The scan along any axis."""
    order = (*(k for k in range(len(x.shape)) if k != axis), axis)
    rows = permute(x, order)
    launches = _tiles if x.device.traits.is_simt else _rows
    call = launches(x.dtype, rows.shape, name)
    result = library_call(call, [rows], x.dtype, rows.shape)
    return permute(result, tuple(order.index(k) for k in range(len(order))))


def _types(dtype: DType, name: str) -> tuple[str, str]:
    """The MSL type in which elements are combined, and the type of the state."""
    is_wrapping = kind_of(dtype) == "i" and name in ("cumulative_sum", "cumulative_prod")
    type_ = _WRAPPING[dtype.itemsize] if is_wrapping else msl_name(dtype)
    return type_, f"numpy::{_OPS[name]}<{type_}>"


def _files(dtype: DType, files: tuple[str, ...]) -> tuple[str, ...]:
    return ("complex", *files) if kind_of(dtype) == "c" else files


@functools.lru_cache(maxsize=1024)
def _columns(dtype: DType, shape: Ints, name: str, axis: int) -> LibraryCall:
    type_, op = _types(dtype, name)
    count, inner = shape[axis], math.prod(shape[axis + 1 :])
    body = (
        "const ulong first = ulong(at.y) * params.count * params.inner + at.x;\n"
        f"numpy::scan_column<{op}>((device const {type_} *)x0 + first,\n"
        f"    (device {type_} *)out + first, params.count, params.inner);"
    )
    launch = LibraryLaunch(
        name=f"{name}_of_columns",
        body=body,
        files=_files(dtype, _FILES),
        reads=(0,),
        writes=(1,),
        numbers=(("count", count), ("inner", inner)),
        threads=(inner, math.prod(shape[:axis]), 1),
    )
    return LibraryCall((launch,))


@functools.lru_cache(maxsize=1024)
def _rows(dtype: DType, shape: Ints, name: str) -> LibraryCall:
    """Chunks are added up, the totals are scanned, and chunks are scanned from there on."""
    type_, op = _types(dtype, name)
    rows, count = math.prod(shape[:-1]), shape[-1]
    values = f"(device const {type_} *)x0"

    def launch(step: str, body: str, reads: Ints, writes: Ints, chunks: int,
               *numbers: tuple[str, int]) -> LibraryLaunch:  # fmt: skip
        return LibraryLaunch(
            name=f"{name}_{step}",
            body=body,
            files=_files(dtype, _FILES),
            reads=reads,
            writes=writes,
            numbers=numbers,
            threads=(chunks * _LANES, rows, 1),
            group_size=(_LANES, 1, 1),
        )

    row = (
        "const ulong first = ulong(group.y) * params.count;\n"
        f"numpy::scan_chunk<{op}>({values} + first, (device {type_} *)out + first, params.count,\n"
        f"    {op}(), lane);"
    )
    if count <= 2 * _CHUNK:
        return LibraryCall((launch("of_rows", row, (0,), (1,), 1, ("count", count)),))
    chunks = -(-count // _CHUNK)
    chunk = (
        f"const uint start = group.x * {_CHUNK};\n"
        f"const uint count = min({_CHUNK}u, params.count - start);\n"
        "const ulong first = ulong(group.y) * params.count + start;\n"
        "const ulong chunk = ulong(group.y) * params.chunks + group.x;\n"
    )
    total = (
        f"((device {type_} *)out)[chunk] = numpy::total_chunk<{op}>({values} + first, count, lane);"
    )
    scan = (
        f"{op} state;\n"
        "if (group.x > 0) {\n"
        f"  state.add(((device const {type_} *)x1)[chunk - 1]);\n"
        "}\n"
        f"numpy::scan_chunk<{op}>({values} + first, (device {type_} *)out + first, count, state,\n"
        "    lane);"
    )
    sizes = ("count", count), ("chunks", chunks)
    return LibraryCall(
        launches=(
            launch("of_chunks", chunk + total, (0,), (2,), chunks, *sizes),
            launch("of_totals", row, (2,), (3,), 1, ("count", chunks)),
            launch("in_chunks", chunk + scan, (0, 3), (1,), chunks, *sizes),
        ),
        temporaries=((dtype, (rows, chunks)), (dtype, (rows, chunks))),
    )


@functools.lru_cache(maxsize=1024)
def _tiles(dtype: DType, shape: Ints, name: str) -> LibraryCall:
    """Tiles are added up, the totals are scanned, and tiles are scanned from there on."""
    type_, op = _types(dtype, name)
    rows, count = math.prod(shape[:-1]), shape[-1]
    tiles = -(-count // _TILE)
    width = VECTOR_WIDTH if count % VECTOR_WIDTH == 0 and kind_of(dtype) != "c" else 0
    is_aligned = "is_aligned" if width else "false"

    def launch(step: str, body: str, reads: Ints, writes: Ints, groups: int,
               aligned_to: int = 0) -> LibraryLaunch:  # fmt: skip
        return LibraryLaunch(
            name=f"{name}_{step}",
            body=f"threadgroup {type_} shared[32];\n{row}{body}",
            files=_files(dtype, _FILES_OF_TILES),
            reads=reads,
            writes=writes,
            numbers=(("count", count), ("tiles", tiles)),
            threads=(groups * _THREADS, rows, 1),
            group_size=(_THREADS, 1, 1),
            uses_lanes=False,
            aligned_to=aligned_to,
        )

    row = (
        "const ulong first = ulong(group.y) * params.count;\n"
        "const ulong first_tile = ulong(group.y) * params.tiles;\n"
    )
    total = (
        f"const {type_} total = numpy::total_tile<{op}, {is_aligned}>(\n"
        f"    (device const {type_} *)x0 + first, group.x, params.count, shared, thread_.x);\n"
        "if (thread_.x == 0) {\n"
        f"  ((device {type_} *)out)[first_tile + group.x] = total;\n"
        "}"
    )
    totals = (
        f"numpy::scan_tiles<{op}, false>((device const {type_} *)x0 + first_tile,\n"
        f"    (device {type_} *)out + first_tile, 0, params.tiles, params.tiles, {op}().total,\n"
        "    true, shared, thread_.x);"
    )
    before = f"((device const {type_} *)x1)[first_tile + group.x]"
    scan = (
        f"const {type_} carried = {before if tiles > 1 else f'{op}().total'};\n"
        f"const uint tile = group.x * {_TILE};\n"
        f"numpy::scan_tiles<{op}, {is_aligned}>((device const {type_} *)x0 + first,\n"
        f"    (device {type_} *)out + first, tile, tile + 1, params.count, carried, false,\n"
        "    shared, thread_.x);"
    )
    if tiles == 1:
        return LibraryCall((launch("of_tiles", scan, (0,), (1,), 1, width),))
    return LibraryCall(
        launches=(
            launch("totals_of_tiles", total, (0,), (2,), tiles, width),
            launch("of_totals", totals, (2,), (3,), 1),
            launch("of_tiles", scan, (0, 3), (1,), tiles, width),
        ),
        temporaries=((dtype, (rows, tiles)), (dtype, (rows, tiles))),
    )
