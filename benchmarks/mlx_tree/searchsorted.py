"""Indices of values in a sorted array."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family
from mlx_tree.element_types import TYPES, numbers
from mlx_tree.sort import in_order, sorting_key


def run(kernel: mtl.Kernel, table, values, stride=1):
    """One thread a value; `table` holds every `stride`-th element's neighbours, too."""
    out = np.empty(values.shape, np.uint32)
    size = len(table) // stride
    group = min(values.size, 1024)
    kernel(table, values, out, size, stride, threads=values.shape[::-1], group_size=group)
    return out


def check_kernel(kernel: mtl.Kernel, dtype, side: str, rng) -> None:
    """Compare the indices before (left) or after (right) equal elements."""
    dtype = np.dtype(dtype)
    for size, stride in ((1, 1), (33, 1), (200, 2)):
        table = numbers(dtype, size * stride, rng, -9, 9)
        if size > 1 and dtype.kind in "fV":
            table[0] = np.nan  # NaN comes last
        table[::stride] = in_order(table[::stride])
        values = np.append(numbers(dtype, 40, rng, -9, 9), np.resize(table[::stride], 37))
        out = run(kernel, table, values.reshape(7, 11), stride)
        # Numbers of each kind, mapped to integers in the same order.
        keys = sorting_key(np.append(table[::stride], values))
        np.testing.assert_array_equal(
            out.reshape(-1), np.searchsorted(keys[:size], keys[size:], side)
        )


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    match = re.fullmatch("searchsorted_(.*)_(left|right)", name)
    assert match, name
    check_kernel(library.function(name), TYPES[match[1]], match[2], rng)


FAMILIES = (Family("searchsorted", ("searchsorted.metal",), check),)
