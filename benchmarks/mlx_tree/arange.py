"""Sequences of equal steps."""

from __future__ import annotations

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family
from mlx_tree.element_types import is_float, types_at_end


def expected(start, step, size, dtype):
    """Start + index * step in the type: floats round twice, integers wrap."""
    dtype = np.dtype(dtype)
    if not is_float(dtype):
        return (start + np.arange(size) * step).astype(dtype)
    products = (np.arange(size).astype(dtype) * dtype.type(step)).astype(dtype)
    return (dtype.type(start) + products).astype(dtype)


def run(kernel: mtl.Kernel, start, step, size, dtype):
    out = np.empty(size, dtype)
    kernel(start, step, out, threads=size, group_size=min(size, 1024))
    return out


def check_kernel(kernel: mtl.Kernel, dtype) -> None:
    """Compare sequences of some lengths, going up and, where numbers have signs, down."""
    dtype = np.dtype(dtype)
    signed = is_float(dtype) or dtype.kind == "i"
    for size in (1, 31, 1000):
        for start, step in ((3, 2), (-7, 3), (100, -1)) if signed else ((3, 2), (100, 7)):
            out = run(kernel, start, step, size, dtype)
            np.testing.assert_array_equal(out, expected(start, step, size, dtype))


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    _, (dtype,) = types_at_end(name)
    check_kernel(library.function(name), dtype)


FAMILIES = (Family("arange", ("arange.metal",), check),)
