"""Indices of the least and the greatest element; the first of equal ones."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, ceildiv, element_strides
from mlx_tree.element_types import TYPES, numbers, wide
from mlx_tree.reduce_launches import MAX_THREADS, READS, in_simdgroups


def run(kernel: mtl.Kernel, base, view, axis: int):
    """Reduce an axis of a view into `base`, of any strides."""
    shape = np.delete(np.array(view.shape, np.int32), axis)
    out = np.empty(shape, np.uint32)
    strides, back = np.delete(element_strides(view), axis), element_strides(out)
    size = view.shape[axis]
    group = in_simdgroups(min(ceildiv(size, READS), MAX_THREADS))
    kernel(
        base, out, shape, strides, back, len(shape), int(element_strides(view)[axis]), size,
        threads=(group, out.size, 1), group_size=(group, 1, 1),
    )  # fmt: skip
    return out


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    match = re.fullmatch("arg(min|max)_(.*)", name)
    assert match, name
    kernel, dtype = library.function(name), TYPES[match[2]]
    oracle = np.argmin if match[1] == "min" else np.argmax
    for size in (1, 33, 600):
        base = numbers(dtype, 3 * size * 2, rng, -9, 9).reshape(3, size, 2)
        for view, axis in ((base, 1), (base.transpose(2, 0, 1), 2)):
            # The first one wins in NumPy as well; NaN does not arise: no comparison finds it.
            out = run(kernel, base, view, axis)
            np.testing.assert_array_equal(out, oracle(wide(view), axis=axis))


FAMILIES = (Family("arg_reduce", ("arg_reduce.metal",), check),)
