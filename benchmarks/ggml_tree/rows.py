"""Copies: rows gathered and scattered, and conversions between all types."""

from __future__ import annotations

import re

import numpy as np
from mlx_tree.agreement import FLOAT, assert_within, ceildiv, roundoff

from ggml_tree.formats import FORMATS, decode
from ggml_tree.operands import FLOATS, TYPES, operand
from ggml_tree.quantise import EXPECTED, TOLERANCE
from ggml_tree.source import extents, run

_GET = re.compile(rf"kernel_get_rows_({TYPES}|i32)$")
#: From 2026 on the names begin with the type of the source: what they had before comes last.
_SET = re.compile(rf"kernel_set_rows_({TYPES})_(i32|i64)(?:_({TYPES}))?$")
_COPY = re.compile(rf"kernel_cpy_({TYPES}|i32)_({TYPES}|i32)$")

_INTEGERS = {"i32": np.int32, "i64": np.int64}
_PLAIN = {**FLOATS, **_INTEGERS}


def _columns(type_: str) -> tuple[int, ...]:
    if type_ in FORMATS:
        return (FORMATS[type_].width, 3 * FORMATS[type_].width)
    return 1, 33, 300


def _plain(type_, shape, rng):
    if type_ in _INTEGERS:
        return rng.integers(-(2**31), 2**31, shape).astype(_INTEGERS[type_])
    return (rng.normal(size=shape) * 30).astype(FLOATS[type_])


def _dequantised(left, dtype):
    """The values that a kernel computes from blocks, and their tolerance."""
    error = 8 * roundoff(FLOAT) * left.magnitudes
    return left.values, error + (
        0 if dtype == np.float32 else roundoff(dtype) * 1.01 * left.magnitudes
    )


def check_get(source, library, name, rng):
    type_ = _GET.match(name)[1]
    kernel = library.function(name)
    for columns in _columns(type_):
        if type_ in FORMATS:
            left = operand(type_, (2, 3, 7, columns), rng, source)
            stored = left.stored
            exact, error = _dequantised(left, np.float32)
        else:
            stored = _plain(type_, (2, 3, 7, columns), rng)
            exact, error = stored.astype(np.float64), 0
        rows = rng.integers(0, 7, (2, 3, 5)).astype(np.int32)
        out = np.full((2, 3, 5, columns), -1, np.int32 if type_ == "i32" else np.float32)
        width = columns // 16 if type_ in FORMATS else columns
        arguments = source.arguments(
            "get_rows",
            **extents(stored, "0", columns),
            **extents(rows, "1"),
            **extents(out),
            ne00t=width,
        )
        threads = min(width, 256)
        run(kernel, (arguments, stored, rows, out), (ceildiv(width, threads) * 5, 3, 2), (threads,))
        expected = np.take_along_axis(exact, rows[..., None], 2)
        errors = np.take_along_axis(np.broadcast_to(error, exact.shape), rows[..., None], 2)
        assert_within(out, expected, errors)


def _assert_quantised(source, type_, blocks, x):
    """The blocks stand for what the definition of the format makes of `x`."""
    width = FORMATS[type_].width
    expected = EXPECTED[type_](x.reshape(*x.shape[:-1], -1, width), source.tables).reshape(x.shape)
    values, _ = decode(type_, blocks, source.tables)
    assert_within(values, expected, TOLERANCE.get(type_, 0.0) * np.abs(expected))


def check_set(source, library, name, rng):
    first, index_type, last = _SET.match(name).groups()
    source_type, type_ = (first, last) if last else ("f32", first)
    kernel = library.function(name)
    for columns in _columns(type_):
        x = _plain(source_type, (2, 3, 5, columns), rng)
        width = FORMATS[type_].width if type_ in FORMATS else 1
        dtype = FORMATS[type_].dtype if type_ in FORMATS else FLOATS[type_]
        rows = np.stack([rng.permutation(9)[:5] for _ in range(3)]).astype(_INTEGERS[index_type])
        out = np.zeros((2, 3, 9, columns // width), dtype)
        arguments = source.arguments(
            "set_rows",
            **extents(x, "0"),
            **extents(rows, "1"),
            **extents(out),
            nk0=columns // width,
        )
        threads = min(32, columns // width)
        per_group = ceildiv(32, threads)
        run(kernel, (arguments, x, rows, out), (ceildiv(5, per_group), 3, 2), (threads, per_group))
        for head in range(3):
            actual = out[:, head, rows[head]]
            if type_ in FORMATS:
                _assert_quantised(source, type_, actual, x[:, head])
            else:
                np.testing.assert_array_equal(actual, x[:, head].astype(dtype))
            untouched = np.setdiff1d(np.arange(9), rows[head])
            assert not np.any(out[:, head, untouched].copy().view(np.uint8))


def check_copy(source, library, name, rng):
    from_, to = _COPY.match(name).groups()
    kernel = library.function(name)
    for columns in _columns(from_ if from_ in FORMATS else to):
        shape = (2, 3, 5, columns)
        if from_ in FORMATS:
            left = operand(from_, shape, rng, source)
            memory = view = left.stored
            count, threads, per_group = columns // 16, columns // 16, 1
        else:
            # Plain types may be copied from a permuted view.
            memory = _plain(from_, (2, 5, 3, columns), rng)
            view = memory.transpose(0, 2, 1, 3)
            if to in FORMATS:
                count = threads = columns // FORMATS[to].width
                per_group = 1
            else:
                count, threads = columns, min(columns, 256)
                per_group = max(1, min(15, 256) // threads)
        dtype = FORMATS[to].dtype if to in FORMATS else _PLAIN[to]
        out = np.zeros((2, 3, 5, columns // (FORMATS[to].width if to in FORMATS else 1)), dtype)
        arguments = source.arguments(
            "cpy", **extents(view, "0", columns), **extents(out, "", columns), nk0=count
        )
        across = 1 if per_group > 1 else ceildiv(count, threads)
        groups = (across * ceildiv(5, per_group), 3, 2)
        run(kernel, (arguments, memory, out), groups, (threads, per_group))
        if from_ in FORMATS:
            assert_within(out, *_dequantised(left, dtype))
        elif to in FORMATS:
            _assert_quantised(source, to, out, np.ascontiguousarray(view))
        else:
            np.testing.assert_array_equal(out, view.astype(dtype))


FAMILIES = (
    ("get rows", check_get, _GET),
    ("set rows", check_set, _SET),
    ("copy and quantise", check_copy, _COPY),
)
