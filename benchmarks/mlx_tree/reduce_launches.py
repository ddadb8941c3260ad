"""Launches of reductions, as MLX's: of a full array, of rows, of columns.

Arrays are contiguous; reduced and retained axes may alternate. A *row* reduction sums over the last
axis and perhaps others, a *column* one keeps the last axis.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import ceildiv, strides_of

SIMD = 32
READS = 4  # values that a thread reads at once
ROWS_AT_ONCE = 4
MAX_THREADS = 1024
#: A value goes through this many additions in simd_sum, then once more across the simdgroups.
TWO_SIMD_SUMS = 2 * (SIMD - 1)
#: Blocks into which two-pass reductions divide their rows.
OUTER_BLOCKS = 32
#: Threads and columns of the tiled column reductions.
TILE_THREADS, TILE_COLUMNS = 256, 32


def in_simdgroups(threads: int) -> int:
    """Threads in whole simdgroups."""
    return SIMD * ceildiv(threads, SIMD)


def row_group(size: int) -> int:
    """Threads that read a row four values at a time, in whole simdgroups."""
    return min(MAX_THREADS, in_simdgroups(ceildiv(size, READS)))


def threads_for_row(size: int) -> int:
    """MLX's threadgroup_size_from_row_size."""
    return 32 if size <= 512 else 128 if size <= 1024 else row_group(size)


class Axes(NamedTuple):
    """Shapes and strides of retained and reduced axes, as the kernels take them."""

    shape: np.ndarray
    strides: np.ndarray
    ndim: int
    reduce_shape: np.ndarray
    reduce_strides: np.ndarray
    reduce_ndim: int


def _axes(shape, retained, reduced) -> Axes:
    strides = strides_of(shape)

    def some(axes):
        if not axes:  # kernels want no empty arrays
            return np.zeros(1, np.int32), np.zeros(1, np.int64), 0
        return np.array(shape, np.int32)[axes], strides[axes], len(axes)

    return Axes(*some(retained), *some(reduced))


def all_reduce(kernel: mtl.Kernel, x, out) -> int:
    """Reduce everything in one threadgroup; the most additions that a value goes through."""
    group = row_group(x.size)
    kernel(x, out, x.size, x.size, threads=group, group_size=group)
    return ceildiv(x.size, group) + READS + TWO_SIMD_SUMS


def all_reduce_in_two_passes(first: mtl.Kernel, second: mtl.Kernel, x, out, rows: int) -> int:
    """Reduce `rows` equal parts, then their results."""
    partial = np.empty(rows, out.dtype)
    row = ceildiv(x.size, rows)
    group = row_group(row)
    first(x, partial, x.size, row, threads=(group, rows, 1), group_size=(group, 1, 1))
    second(partial, out, rows, rows, threads=SIMD, group_size=SIMD)
    return ceildiv(row, group) + ceildiv(rows, SIMD) + 2 * READS + 2 * TWO_SIMD_SUMS


def row_reduce_simple(kernel: mtl.Kernel, x, out) -> int:
    """Reduce each row of a matrix; a group does four rows, and the last ones may overlap."""
    rows, size = x.shape
    group = threads_for_row(size)
    if x.itemsize == 8:
        group = min(group, 512)
    grid = (group, ceildiv(rows, ROWS_AT_ONCE), 1)
    kernel(x, out, size, rows, threads=grid, group_size=(group, 1, 1))
    return ceildiv(size, group) + READS + TWO_SIMD_SUMS


def _row_arguments(x, out, retained, reduced):
    others = int(np.prod([x.shape[axis] for axis in reduced[:-1]]))
    return (x, out, x.shape[-1], others, *_axes(x.shape, retained, reduced[:-1])), others


def row_reduce_small(kernel: mtl.Kernel, x, out, retained, reduced) -> int:
    """Reduce short rows: a result is a thread's, or a simdgroup's where there are many rows."""
    arguments, others = _row_arguments(x, out, retained, reduced)
    size = x.shape[-1]
    if (others < 32 and size <= 8) or others <= 8:
        kernel(*arguments, threads=out.size, group_size=min(out.size, MAX_THREADS))
        return others * size
    kernel(*arguments, threads=(SIMD, out.size, 1), group_size=(SIMD, 1, 1))
    return ceildiv(others, SIMD) * size + SIMD - 1


def row_reduce_looped(kernel: mtl.Kernel, x, out, retained, reduced) -> int:
    """Reduce long rows, one after the other, in one threadgroup a result."""
    arguments, others = _row_arguments(x, out, retained, reduced)
    group = threads_for_row(x.shape[-1])
    kernel(*arguments, threads=(group, out.size, 1), group_size=(group, 1, 1))
    return others * (ceildiv(x.shape[-1], group) + READS) + TWO_SIMD_SUMS


def _column_arguments(x, out, retained, reduced):
    columns = x.shape[-1]
    rows = int(np.prod([x.shape[axis] for axis in reduced]))
    last = x.shape[reduced[-1]]
    axes = _axes(x.shape, [axis for axis in retained if axis != x.ndim - 1], reduced)
    return (x, out, last, columns, *axes, rows // last), rows, columns, out.size // columns


def col_reduce_small(kernel: mtl.Kernel, x, out, retained, reduced) -> int:
    """Reduce a few rows. Threads beyond the last column return before the others' barrier."""
    arguments, rows, columns, outer = _column_arguments(x, out, retained, reduced)
    quarters = ceildiv(columns, READS)
    width = min(quarters, SIMD)
    depth = min(8, MAX_THREADS // width, rows)
    grid = (ceildiv(quarters, width) * width, outer * depth, 1)
    with mtl.config.scope(strict_barriers=False):
        kernel(*arguments, threads=grid, group_size=(width, depth, 1))
    return ceildiv(rows, depth) + depth


def _first_column(kernel: mtl.Kernel) -> tuple[int, ...]:
    """Where a tiled kernel begins; MLX 0.32.4 asks, the tree of the table does not."""
    asked = any(parameter.name == "column_offset" for parameter in kernel.signature.buffers)
    return (0,) if asked else ()


def col_reduce_looped(
    kernel: mtl.Kernel, x, out, retained, reduced, tile: int = TILE_COLUMNS
) -> int:
    """Reduce tiles of some columns and 1024 / columns rows, one after the other."""
    arguments, rows, columns, outer = _column_arguments(x, out, retained, reduced)
    grid = (TILE_THREADS * ceildiv(columns, tile), outer, 1)
    kernel(*arguments, *_first_column(kernel), threads=grid, group_size=(TILE_THREADS, 1, 1))
    height = MAX_THREADS // tile
    return ceildiv(rows, height) + height


def _second_pass(kernel: mtl.Kernel, partial, out) -> int:
    flat = partial.reshape(len(partial), -1)
    return col_reduce_looped(kernel, flat, out.reshape(-1), [], [0])


def col_reduce_longcolumn(
    kernel: mtl.Kernel, second: mtl.Kernel, x, out, retained, reduced, blocks: int = OUTER_BLOCKS
) -> int:
    """Reduce blocks of rows of few columns, then the blocks' results."""
    arguments, rows, columns, outer = _column_arguments(x, out, retained, reduced)
    partial = np.empty((blocks, *out.shape), out.dtype)
    depth = min(32, ceildiv(rows, blocks))
    kernel(
        arguments[0], partial, *arguments[2:], out.size,
        threads=(columns * outer, depth, blocks), group_size=(columns, depth, 1),
    )  # fmt: skip
    return ceildiv(rows, depth * blocks) + depth + _second_pass(second, partial, out)


def col_reduce_2pass(kernel: mtl.Kernel, second: mtl.Kernel, x, out, retained, reduced) -> int:
    """Reduce every 32nd tile of 32 rows, then the results."""
    arguments, rows, columns, outer = _column_arguments(x, out, retained, reduced)
    partial = np.empty((OUTER_BLOCKS, *out.shape), out.dtype)
    kernel(
        arguments[0], partial, *arguments[2:], *_first_column(kernel), outer,
        threads=(TILE_THREADS * ceildiv(columns, TILE_COLUMNS), outer * OUTER_BLOCKS, 1),
        group_size=(TILE_THREADS, 1, 1),
    )  # fmt: skip
    return ceildiv(rows, OUTER_BLOCKS * SIMD) + SIMD + _second_pass(second, partial, out)
