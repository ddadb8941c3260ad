"""Running sums, products, extremes and logarithms of sums."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import (
    Family,
    assert_near,
    assert_same,
    assert_within,
    ceildiv,
    roundoff,
    smallest,
    sum_error,
)
from mlx_tree.element_types import TYPES, is_float, numbers, wide
from mlx_tree.reduce import initial_value
from mlx_tree.reduce_launches import MAX_THREADS, SIMD

#: Rows and columns of a tile of the strided kernel.
TILE = 32


def reads_of(dtype) -> int:
    """Values that a thread reads at once."""
    return 4 if np.dtype(dtype).itemsize <= 4 else 2


def contiguous_group(size: int, reads: int) -> int:
    """Threads for a row, in whole simdgroups; long rows are done in two blocks or more."""
    each = reads * SIMD
    if size <= reads * 1024:
        return ceildiv(size, each) * SIMD
    if size <= reads * 2048:
        return ceildiv(size // 2, each) * SIMD
    return MAX_THREADS


def scan_rows(kernel: mtl.Kernel, x, result, reads: int):
    """Scan the rows of a matrix; also the most additions that a value goes through."""
    rows, size = x.shape
    out = np.empty(x.shape, result)
    group = contiguous_group(size, reads)
    kernel(x, out, size, threads=(group, rows, 1), group_size=(group, 1, 1))
    # Within a thread, up a simdgroup (five levels), up the simdgroups, and once each for the parts
    # that are put together, in each of the blocks that make up the row.
    return out, reads + 2 * 5 + 3 + 3 * ceildiv(size, group * reads)


def scan_columns(kernel: mtl.Kernel, x, result, reads: int):
    """Scan the middle axis of three; also the most additions that a value goes through."""
    outer, rows, stride = x.shape
    out = np.empty(x.shape, result)
    blocks = ceildiv(stride, TILE)
    group = TILE // reads * SIMD
    grid = (group, outer * blocks, 1)
    kernel(x, out, rows, stride, blocks, threads=grid, group_size=(group, 1, 1))
    return out, 5 + ceildiv(rows, SIMD)


class Scan(NamedTuple):
    """The operation of a kernel; an exclusive scan leaves the element itself out."""

    op: str
    inclusive: bool
    reverse: bool = False


_ORACLES = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "logaddexp": np.logaddexp,
}  # fmt: skip


def argument(op, dtype, shape, rng):
    """Numbers whose scan says something: products that stay in range, sums that can be bounded."""
    size = int(np.prod(shape))
    if op == "prod" and (is_float(dtype) or dtype.kind == "c"):
        units = [1, -1, 1j, -1j] if dtype.kind == "c" else [1, -1, 1.5, 0.5]
        odds = [0.25] * 4 if dtype.kind == "c" else [0.49, 0.49, 0.01, 0.01]
        x = rng.choice(np.array(units), size, p=odds).astype(dtype)
    elif op == "prod" and dtype.kind in "iu":
        x = numbers(dtype, size, rng) | dtype.type(1)  # even ones would soon give 0
    else:
        x = numbers(dtype, size, rng, -3, 3)
    return x.reshape(shape)


def exact_scan(scan: Scan, x, result):
    """Along the last axis, in the widest type of the kind (integers wrap as in the kernel)."""
    op, inclusive, reverse = scan
    values = x.astype(result) if x.dtype.kind in "biu" else wide(x)
    values = values[..., ::-1] if reverse else values
    if x.dtype.kind == "c" and op not in ("sum", "prod"):
        extreme = max if op == "max" else min
        results = np.frompyfunc(lambda a, b: extreme(a, b, key=_pair), 2, 1).accumulate(
            values, axis=-1, dtype=object
        )
        scanned = results.astype(np.complex128)
    elif x.dtype.kind == "b" and result.kind == "b":
        oracle = np.logical_or if op == "max" else np.logical_and
        scanned = oracle.accumulate(values, axis=-1)
    else:
        scanned = _ORACLES[op].accumulate(values, axis=-1, dtype=values.dtype)
    if not inclusive:
        first = initial_value("max" if op == "logaddexp" else op, result)
        start = np.full((*values.shape[:-1], 1), first, scanned.dtype)
        scanned = np.concatenate([start, scanned[..., :-1]], axis=-1)
    return scanned[..., ::-1] if reverse else scanned


def _pair(z):
    return z.real, z.imag


def _compare_exponentials(scan: Scan, x, out, additions):
    """Logarithms of complex numbers are compared before they are taken.

    Their imaginary parts have no one value, and where a sum is small they are ill-conditioned.
    """
    terms = np.exp(wide(x))
    total = scan._replace(op="sum")
    exact = exact_scan(total, terms, terms.dtype)
    sums = exact_scan(total, np.abs(terms), np.dtype(np.float64))
    if not scan.inclusive:  # the logarithm of 0
        first = out[..., -1 if scan.reverse else 0]
        assert np.all(np.isneginf(first.real))
    with np.errstate(invalid="ignore"):
        got = np.where(np.isneginf(out.real), 0, np.exp(wide(out)))
    # Each step errs by some ulps of numbers of this size.
    size = 1 + np.max(np.abs(out), initial=0, where=np.isfinite(out))
    assert np.all(np.abs(got - exact) <= 24 * size * additions * roundoff(x.dtype) * sums)


def compare(scan: Scan, x, out, additions):
    """Assert that `out` is the scan of `x` along the last axis."""
    op, _, reverse = scan
    if op == "logaddexp" and x.dtype.kind == "c":
        _compare_exponentials(scan, x, out, additions)
        return
    exact = exact_scan(scan, x, out.dtype)
    if x.dtype.kind in "biu" or op in ("max", "min"):
        assert_same(out, exact.astype(out.dtype))
        return
    unit = roundoff(x.dtype)
    magnitudes = np.abs(wide(x))[..., ::-1] if reverse else np.abs(wide(x))
    if op == "prod":  # as many rounded products as factors that are no powers of two
        bound = np.cumsum(magnitudes == 1.5, axis=-1)
        bound = (bound[..., ::-1] if reverse else bound) + 1
        error = np.abs(exact) * bound * unit * 1.01
    elif op == "logaddexp":
        # Each step adds a few ulps of its result, and passes earlier errors on undiminished.
        largest = np.maximum.accumulate(np.abs(np.where(np.isfinite(exact), exact, 0)), axis=-1)
        largest = np.max(largest, axis=-1, keepdims=True)
        error = (largest + 1) * 6 * 2 * unit * additions
    else:
        sums = np.cumsum(magnitudes, axis=-1)
        error = sum_error((sums[..., ::-1] if reverse else sums)[..., None], additions, x.dtype)
    if x.dtype.kind == "c":
        assert_near(np.ascontiguousarray(out.real), exact.real, error)
        assert_near(np.ascontiguousarray(out.imag), exact.imag, error)
    else:
        assert_within(out, exact, error + smallest(x.dtype))


_NAME = re.compile(r"(contig|strided)_scan_(reverse_)?(inclusive|exclusive)_([a-z]+)_(\w+)_(\w+)")


def check_rows(kernel: mtl.Kernel, scan: Scan, source, result, reads: int, rng) -> None:
    """Compare scans of rows of some lengths."""
    shapes = [(2, 1), (3, 33), (2, 300)]
    # A sum of 16 bits cannot be bounded usefully over long rows.
    if np.dtype(source).itemsize >= 4 and scan.op != "logaddexp":
        shapes.append((1, 2 * MAX_THREADS * reads + 5))
    for shape in shapes:
        x = argument(scan.op, np.dtype(source), shape, rng)
        out, additions = scan_rows(kernel, x, result, reads)
        compare(scan, x, out, additions)


def check_columns(kernel: mtl.Kernel, scan: Scan, source, result, reads: int, rng) -> None:
    """Compare scans of the middle one of three axes."""
    for shape in ((1, 1, 1), (2, 33, 37), (1, 70, 4)):
        x = argument(scan.op, np.dtype(source), shape, rng)
        out, additions = scan_columns(kernel, x, result, reads)
        compare(scan, np.moveaxis(x, 1, -1), np.moveaxis(out, 1, -1), additions)


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    match = _NAME.fullmatch(name)
    assert match, name
    scan = Scan(match[4], match[3] == "inclusive", bool(match[2]))
    source, result = TYPES[match[5]], TYPES[match[6]]
    run = check_rows if match[1] == "contig" else check_columns
    run(library.function(name), scan, source, result, reads_of(source), rng)


FAMILIES = (Family("scan", ("scan.metal",), check),)
