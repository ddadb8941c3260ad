"""Sums, extremes and orders of rows."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import assert_within, ceildiv, sum_error

from ggml_tree.source import extents, run

_SUM_ROWS = re.compile(r"kernel_sum_rows_f32_f32(_4)?$")
_SUM = re.compile(r"kernel_op_sum_f32$")
_RUNNING = re.compile(r"kernel_cumsum_(blk|add)_f32$")
_ARGMAX = re.compile(r"kernel_argmax_f32$")
_ARGSORT = re.compile(r"kernel_argsort_f32_i32_(asc|desc)$")
_MERGE = re.compile(r"kernel_argsort_merge_f32_i32_(asc|desc)$")


def check_sum_rows(source, library, name, rng):
    """Sums and means of rows."""
    wide = _SUM_ROWS.match(name)[1]
    for columns in (4, 80, 256, 640) if wide else (1, 20, 64, 1025):
        for operation in ("SUM_ROWS", "MEAN"):
            x = rng.normal(size=(2, 3, 4, columns)).astype(np.float32)
            out = np.full((2, 3, 4, 1), np.nan, np.float32)
            width = columns // 4 if wide else columns
            threads = min(2 ** max(5, int(np.ceil(np.log2(width)))), 1024, width)
            number = source.numbers[f"OP_SUM_ROWS_NUM_{operation}"]
            arguments = source.arguments("sum_rows", **extents(x, "0", width), **extents(out))
            kernel = library.function(name, {"FC_sum_rows_op": number})
            run(kernel, (arguments, x, out), (4, 3, 2), (threads,), 32 * (16 if wide else 4))
            divisor = columns if operation == "MEAN" else 1
            exact = x.astype(np.float64).sum(-1, keepdims=True) / divisor
            error = sum_error(x, columns + 1)[..., None] / divisor
            assert_within(out, exact, error)


def check_sum(source, library, name, rng):
    kernel = library.function(name)
    for count, threads in ((1, 32), (1000, 256), (5000, 1024)):
        x = rng.normal(size=count).astype(np.float32)
        out = np.full(1, np.nan, np.float32)
        run(kernel, (source.arguments("sum", np=count), x, out), (1,), (threads,), 32 * 4)
        assert_within(out, x.astype(np.float64).sum(keepdims=True), sum_error(x, count))


def check_running_sum(source, library, name, rng):
    """Running sums of rows: of blocks, then of the blocks' sums, which are added."""
    blocks, add = (library.function(f"kernel_cumsum_{kind}_f32") for kind in ("blk", "add"))

    def block_sums(x, threads):
        """Running sums of each block of `threads` elements, and the blocks' sums."""
        count = ceildiv(x.shape[-1], threads)
        out, last = np.full_like(x, np.nan), np.full((*x.shape[:3], count), np.nan, np.float32)
        sizes = extents(x, "0") | _renamed(extents(last), "t")
        arguments = source.arguments("cumsum_blk", **sizes, outb=count > 1)
        groups = (count * x.shape[2], *reversed(x.shape[:2]))
        run(blocks, (arguments, x, last, out), groups, (threads,), 32 * 4)
        return out, last

    for columns, threads in ((1, 1), (20, 32), (300, 512), (1000, 64)):
        x = rng.normal(size=(2, 3, 4, columns)).astype(np.float32)
        out, last = block_sums(x, threads)
        if columns > threads:
            before, _ = block_sums(last, threads)
            sizes = extents(x, "0") | _renamed(extents(before), "t")
            groups = (last.shape[-1] * 4, 3, 2)
            run(add, (source.arguments("cumsum_add", **sizes), before, out), groups, (threads,))
        exact = x.astype(np.float64).cumsum(-1)
        assert_within(out, exact, sum_error(x, columns)[..., None])


def _renamed(sizes, digit):
    return {key[:2] + digit + key[2:]: value for key, value in sizes.items()}


def check_argmax(source, library, name, rng):
    kernel = library.function(name)
    for columns, threads in ((1, 32), (33, 64), (500, 256)):
        x = rng.permutation(6 * columns).reshape(6, columns).astype(np.float32)
        out = np.full(6, -1, np.int32)
        arguments = source.arguments("argmax", **extents(x, "0"))
        run(kernel, (arguments, x, out), (6,), (threads,), 32 * 8)
        np.testing.assert_array_equal(out, x.argmax(-1))


def _blocks_in_order(source, library, order, x, limit):
    """Indices of each block of up to `limit` columns in order; and the block's length."""
    columns = x.shape[-1]
    threads = 1
    while threads < columns and 2 * threads <= limit:
        threads *= 2
    blocks = ceildiv(columns, threads)
    out = np.full(x.shape, -1, np.int32)
    arguments = source.arguments("argsort", **extents(x, "0"), **extents(out), top_k=threads)
    kernel = library.function(f"kernel_argsort_f32_i32_{order}")
    run(kernel, (arguments, x, out), (blocks * x.shape[2], 3, 2), (threads,), 4 * threads)
    return out, threads


def _distinct(rng, columns):
    return rng.permutation(2 * 3 * 4 * columns).reshape(2, 3, 4, columns).astype(np.float32)


def _in_order(x, order):
    return np.argsort(x if order == "asc" else -x, -1)


def check_argsort(source, library, name, rng):
    """A bitonic sort of the indices of each row."""
    order = _ARGSORT.match(name)[1]
    for columns in (1, 5, 64, 300):
        x = _distinct(rng, columns)
        out, _ = _blocks_in_order(source, library, order, x, 1024)
        np.testing.assert_array_equal(out, _in_order(x, order))


def check_merge(source, library, name, rng):
    """Rows longer than a threadgroup: blocks in order, then merged two by two."""
    order = _MERGE.match(name)[1]
    kernel = library.function(name)
    x = _distinct(rng, 300)
    blocks, length = _blocks_in_order(source, library, order, x, 64)
    while length < 300:
        merged = np.full_like(blocks, -1)
        arguments = source.arguments(
            "argsort_merge", **extents(x, "0"), **extents(blocks), top_k=300, len=length
        )
        run(kernel, (arguments, x, blocks, merged), (ceildiv(300, 2 * length) * 4, 3, 2), (64,))
        blocks, length = merged, 2 * length
    np.testing.assert_array_equal(blocks, _in_order(x, order))


FAMILIES = (
    ("sum of rows", check_sum_rows, _SUM_ROWS),
    ("sum", check_sum, _SUM),
    ("running sum", check_running_sum, _RUNNING),
    ("argmax", check_argmax, _ARGMAX),
    ("argsort", check_argsort, _ARGSORT),
    ("merge of sorted rows", check_merge, _MERGE),
)
