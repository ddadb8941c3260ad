"""Hadamard's transform and triangular systems."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import FLOAT, assert_within, ceildiv, roundoff
from scipy.linalg import hadamard, solve_triangular

from ggml_tree.source import extents, run

_HADAMARD = re.compile(r"kernel_fwht_f32_(\d+)$")
_SOLVE = re.compile(r"kernel_solve_tri_f32$")

_U = roundoff(FLOAT)
_SIMDGROUPS = 8


def check_hadamard(source, library, name, rng):
    size, rows = int(_HADAMARD.match(name)[1]), 5
    x = rng.normal(size=(rows, size)).astype(np.float32)
    out = np.full_like(x, np.nan)
    run(library.function(name), (source.arguments("fwht", nrows=rows), x, out), (2,), (128,))
    exact = x.astype(np.float64) @ hadamard(size) / np.sqrt(size)
    error = (np.log2(size) + 4) * _U * np.abs(x).sum(1, keepdims=True) / np.sqrt(size)
    assert_within(out, exact, error)


def check_solve(source, library, name, rng):
    """Lower triangular systems with several right sides each, by substitution."""
    for size, columns in ((7, 3), (32, 8), (50, 21)):
        a = np.tril(rng.uniform(-1, 1, (2, 3, size, size))) / size
        a += np.eye(size)
        a, b = a.astype(np.float32), rng.normal(size=(2, 3, size, columns)).astype(np.float32)
        # The kernel reads elements up to a multiple of 32 and multiplies them by zero: not NaN.
        slack = np.zeros(32 * max(size, columns), np.float32)
        left = np.concatenate([a.ravel(), slack])
        memory = np.concatenate([np.zeros_like(b.ravel()), slack])
        out = memory[: b.size].reshape(b.shape)
        constants = dict(zip(["nsg", "n", "k"], (_SIMDGROUPS, size, columns), strict=True))
        kernel = library.function(
            name, {f"FC_solve_tri_{key}": value for key, value in constants.items()}
        )
        sizes = extents(a, "0") | extents(b, "1") | extents(out)
        arguments = source.arguments("solve_tri", **sizes)
        groups = (ceildiv(columns, _SIMDGROUPS), 3, 2)
        rows_of_a = ceildiv(size, 32) * 32 * _SIMDGROUPS * 4
        run(kernel, (arguments, left, b, memory), groups, (32, _SIMDGROUPS), rows_of_a)
        for index in np.ndindex(2, 3):
            exact = solve_triangular(a[index].astype(np.float64), b[index], lower=True)
            # |a| has an inverse of norm below 4: diagonal 1, rows that sum to 2 at most.
            assert_within(out[index], exact, 16 * size * _U * np.abs(exact).max())


FAMILIES = (
    ("Hadamard's transform", check_hadamard, _HADAMARD),
    ("triangular systems", check_solve, _SOLVE),
)
