"""Sorts: merge sorts of one threadgroup, and of several whose blocks are merged in pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import BFLOAT, Family, assert_same, ceildiv, element_strides
from mlx_tree.element_types import TYPES, is_float, numbers, special_values

PARTS = ("sort", "partition", "merge")


def sorting_key(x):
    """Integers in the order of the numbers: complex ones by real parts first, NaN last."""
    keys = x.astype(np.float32) if x.dtype == BFLOAT else x.copy()
    if keys.dtype.kind in "fc":
        keys[np.isnan(keys)] = np.nan
    return np.unique(keys, return_inverse=True)[1].reshape(x.shape)


def stable_order(x, axis=-1):
    return np.argsort(sorting_key(x), axis=axis, kind="stable")


def in_order(x):
    """A sorted copy of a row."""
    return x[stable_order(x)]


def argument(dtype, shape, rng):
    """Special values and numbers with many ties, so that argsort has to be stable."""
    dtype = np.dtype(dtype)
    x = numbers(dtype, int(np.prod(shape)), rng, -50, 50)
    if dtype.kind == "c":
        x = np.rint(x.view(np.float32)).view(dtype)
    elif is_float(dtype):
        x = np.rint(x.astype(np.float32)).astype(dtype)
    if x.size > 100:
        x[::7] = np.resize(special_values(dtype), len(x[::7]))
    return rng.permutation(x).reshape(shape)


def sort_rows(kernel: mtl.Kernel, x, result, group: int, columns: bool = False):
    """Sort each row in one threadgroup; with `columns`, each column of a contiguous array."""
    out = np.empty(x.shape, result)
    rows, size = x.shape[::-1] if columns else x.shape
    step, next_row = (rows, 1) if columns else (1, size)
    kernel(
        x, out, size, step, step, next_row, next_row, threads=(group, rows, 1),
        group_size=(group, 1, 1),
    )  # fmt: skip
    return out


def sort_view(kernel: mtl.Kernel, base, view, axis: int, result, group: int):
    """Sort along an axis of a view into `base`, of any strides."""
    out = np.empty(view.shape, result)
    strides, back = element_strides(view), element_strides(out)
    others = [i for i in range(view.ndim) if i != axis]
    shape = np.array(view.shape, np.int32)[others]
    kernel(
        base, out, view.shape[axis], int(strides[axis]), int(back[axis]), len(others), shape,
        strides[others], back[others], threads=(group, int(np.prod(shape)), 1),
        group_size=(group, 1, 1),
    )  # fmt: skip
    return out


def sort_blocks(kernels: Mapping[str, mtl.Kernel], x, group: int, per_thread: int):
    """Sort blocks of each row, then merge them in pairs, in pairs of pairs, and so on."""
    rows, size = x.shape
    blocks = ceildiv(size, group * per_thread)
    values, indices = np.empty((2, rows, size), x.dtype), np.empty((2, rows, size), np.uint32)
    partitions = np.empty((rows, blocks + 1), np.uint32)
    grid = {"threads": (blocks * group, rows, 1), "group_size": (group, 1, 1)}
    kernels["sort"](
        x, values[0], indices[0], size, 1, 1, np.array([rows], np.int32),
        np.array([size], np.int64), **grid,
    )  # fmt: skip
    now, tiles = 0, 2
    while tiles // 2 < blocks:
        kernels["partition"](
            partitions, values[now], indices[now], size, tiles, blocks,
            threads=(blocks + 1, rows, 1), group_size=(blocks + 1, 1, 1),
        )  # fmt: skip
        kernels["merge"](
            partitions, values[now], indices[now], values[1 - now], indices[1 - now], size, tiles,
            blocks, **grid,
        )  # fmt: skip
        now, tiles = 1 - now, tiles * 2
    return values[now], indices[now]


def assert_sorted(out, x, axis=-1, indices=False):
    """Assert that `out` holds `x` in order, or the indices of that order."""
    order = stable_order(x, axis)
    if indices:
        np.testing.assert_array_equal(out, order)
    else:
        assert_same(out, np.take_along_axis(x, order, axis))


_BLOCK_SORT = re.compile(r"(n?c)(arg)?_block_sort_([a-z0-9]+)_[a-z0-9]+_bn(\d+)_tn(\d+)")
_BLOCKS_SORT = re.compile(r"(sort|partition|merge)(_mbsort_(\w+)_uint32_bn(\d+)_tn(\d+))")


def check_rows(kernel: mtl.Kernel, dtype, indices: bool, group: int, per_thread: int, rng) -> None:
    """Compare a kernel for rows, or columns, of contiguous arrays."""
    result = np.uint32 if indices else dtype
    block = group * per_thread
    for size in (1, block // 2 + 1, block):
        for shape, columns in (((3, size), False), ((size, 2), True)):
            x = argument(dtype, shape, rng)
            out = sort_rows(kernel, x, result, group, columns)
            assert_sorted(out, x, 0 if columns else 1, indices)


def check_view(kernel: mtl.Kernel, dtype, indices: bool, group: int, per_thread: int, rng) -> None:
    """Compare a kernel for arrays whose axes are in any order."""
    view = argument(dtype, (3, group * per_thread // 2 + 1, 2), rng).transpose(2, 1, 0)
    out = sort_view(kernel, view.base, view, 1, np.uint32 if indices else dtype, group)
    assert_sorted(out, view, 1, indices)


def check_blocks(
    kernels: Mapping[str, mtl.Kernel], dtype, group: int, per_thread: int, rng
) -> None:
    """Compare the kernels that sort three blocks together."""
    x = argument(dtype, (2, 2 * group * per_thread + 77), rng)
    values, indices = sort_blocks(kernels, x, group, per_thread)
    assert_sorted(values, x)
    assert_sorted(indices, x, indices=True)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    if match := _BLOCK_SORT.fullmatch(name):
        run = check_rows if match[1] == "c" else check_view
        group, per_thread = int(match[4]), int(match[5])
        kernel = library.function(name)
        run(kernel, TYPES[match[3]], bool(match[2]), group, per_thread, rng)
        return
    match = _BLOCKS_SORT.fullmatch(name)
    assert match, name
    kernels = {step: library.function(step + match[2]) for step in PARTS}
    check_blocks(kernels, TYPES[match[3]], int(match[4]), int(match[5]), rng)


FAMILIES = (Family("sort", ("sort.metal",), check),)
