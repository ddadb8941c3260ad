"""Dot products: one partial sum a threadgroup."""

from __future__ import annotations

import re

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, assert_within, ceildiv, sum_error
from mlx_tree.element_types import TYPES
from mlx_tree.products import SIMD, exactly, operand, poisoned


def check_dot(kernel, dtype, per_thread: int, group: int, rng, sizes=(1, 31, 1000, 8192, 40_000)):
    for size in sizes:
        x, y = operand(rng, (2, size), dtype)
        groups = ceildiv(size, per_thread * group)
        out = poisoned(groups, np.float32)
        kernel(x, y, out, size, threads=group * groups, group_size=group)
        terms = exactly(x) * exactly(y)
        # A thread adds a quarter of its products to each of four sums; two sums over simdgroups.
        error = sum_error(terms, per_thread // 4 + 3 + 2 * (SIMD - 1) + 1)
        assert_within(np.array(out.sum(dtype=np.float64)), terms.sum(), error)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    parts = re.match(r"dot_product_([a-z]+\d+)_it(\d+)_tg(\d+)_sg\d+$", name)
    assert parts, name
    check_dot(library.function(name), TYPES[parts[1]], int(parts[2]), int(parts[3]), rng)


FAMILIES = (Family("dot", ("dot.metal",), check),)
