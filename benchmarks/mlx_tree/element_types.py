"""Element types by the names that MLX's kernels carry, and arguments of each."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from mlx_tree.agreement import BFLOAT, FLOAT, HALF

#: Some files shorten the names, others say them as C++ does.
TYPES = {
    "bool_": np.dtype(bool),
    **{name: np.dtype(name) for name in (
        "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
        "float32", "complex64",
    )},
    "bfloat16": BFLOAT,
    "float": FLOAT, "half": HALF, "float16_t": HALF, "bfloat16_t": BFLOAT,
}  # fmt: skip

#: A group of a regular expression that takes one type's name.
TYPE = "(" + "|".join(sorted(TYPES, key=len, reverse=True)) + ")"


def types_at_end(name: str) -> tuple[str, list[np.dtype]]:
    """The prefix of the types that end a kernel's name, and the types."""
    dtypes: list[np.dtype] = []
    # One underscore may separate them, or be the last letter of a type.
    while match := re.search(f"{TYPE}$", name) or re.search(f"{TYPE}_$", name):
        dtypes.insert(0, TYPES[match[1]])
        name = name[: match.start()]
    return name.removesuffix("_"), dtypes


def is_float(dtype) -> bool:
    """Whether a type is a real floating-point one (bfloat is no such kind to NumPy)."""
    return np.dtype(dtype).kind in "fV"


def special_values(dtype):
    """Zeros, extremes, infinities, NaN: where arithmetic goes wrong."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        every = {0, 1, 2, 7, info.max, info.max - 1, info.min, info.min + 1, max(info.min, -1)}
        return np.array(sorted(every), dtype)
    if dtype.kind == "c":
        parts = np.array([0, -0.0, 1, -2.5, np.inf, -np.inf, np.nan], np.float32)
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    info = ml_dtypes.finfo(dtype)
    ends = [float(x) for x in (info.max, info.tiny, info.smallest_subnormal)]
    values = [0, 0.5, 1, 1.5, 2, 3, *ends, np.inf]
    return np.array([np.nan, *values, *(-x for x in values)], np.float64).astype(dtype)


def numbers(dtype, size, rng, low=-100.0, high=100.0):
    """Random numbers between two bounds; integers of all magnitudes."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    if dtype.kind in "iu":
        bits = rng.integers(0, 2**63, size, np.uint64) * 2 + rng.integers(0, 2, size, np.uint64)
        return (bits >> rng.integers(0, 64, size, np.uint64)).astype(dtype)
    if dtype.kind == "c":
        return (rng.uniform(low, high, size) + 1j * rng.uniform(low, high, size)).astype(dtype)
    return rng.uniform(low, high, size).astype(dtype)


def wide(x):
    """The same numbers in the widest type of their kind; integers and truths as they are."""
    if x.dtype.kind in "biu":
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
