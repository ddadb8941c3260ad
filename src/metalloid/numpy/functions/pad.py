"""Arrays with a border, in all modes of NumPy."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.creation import asarray
from metalloid.arrays.functions.evenly_spaced import arange
from metalloid.arrays.functions.manipulation import broadcast_to, concat
from metalloid.arrays.functions.searching import take
from metalloid.arrays.ir.dtypes import default_float, kind_of
from metalloid.arrays.ir.node import broadcast
from metalloid.arrays.ir.operands import as_number
from metalloid.arrays.ir.views import joined, sliced
from metalloid.numpy.functions import reductions
from metalloid.numpy.known_calls import structural_function

#: Modes that repeat elements: `numpy.pad` of the indices tells which.
_REPEATING = ("edge", "reflect", "symmetric", "wrap")


def _pairs(value: Any, rank: int) -> list[tuple[Any, Any]]:
    """Numbers before and after, along each axis."""
    if isinstance(value, dict):
        both: list[Any] = [value.get(k, value.get(k - rank, 0)) for k in range(rank)]
        return _pairs([pair if np.ndim(pair) else (pair, pair) for pair in both], rank)
    pairs = np.broadcast_to(np.asarray(value), (rank, 2)).tolist()
    return [(low, high) for low, high in pairs]


def _counts(name: str, value: Any, rank: int) -> list[tuple[int, int]]:
    """Numbers of elements before and after, along each axis."""
    if type(value) is int and value >= 0:
        return [(value, value)] * rank
    if not isinstance(value, dict) and np.asarray(value).dtype.kind not in "iu":
        raise TypeError(f"[pad] `{name}` must be of integral type, got {value!r}.")
    pairs = [(operator.index(low), operator.index(high)) for low, high in _pairs(value, rank)]
    if any(low < 0 or high < 0 for low, high in pairs):
        raise ValueError(f"[pad] `{name}`: index can't contain negative values, got {value}.")
    return pairs


@structural_function(1)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Array:
    """Add a border to an array.

    Parameters
    ----------
    pad_width : int, pair, sequence of pairs, or dict
        Numbers of elements before and after, along each axis.
    mode : str or callable
        "constant" (`constant_values`), "edge", "linear_ramp" (`end_values`), "maximum", "mean",
        "median", "minimum" (`stat_length`), "reflect", "symmetric" (`reflect_type`), "wrap",
        "empty"; or a function, which NumPy calls.

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.pad([1, 2, 3], 2, "reflect")
    array([3, 2, 1, 2, 3, 2, 1])
    """
    x = as_array(array, "pad")
    widths = _counts("pad_width", pad_width, x.ndim)
    is_odd = options.get("reflect_type", "even") == "odd"
    if callable(mode) or is_odd:
        padded = np.pad(np.asarray(x), [*widths], mode, **options)
        return asarray(padded, device=x.device)
    for name in options.keys() - _OPTIONS.get(mode, {*options}):
        raise ValueError(f"[pad] unsupported keyword arguments for mode '{mode}': {name}.")
    if mode in _REPEATING:
        for axis, (low, high) in enumerate(widths):
            if (low or high) and not x.shape[axis]:
                raise ValueError(f"[pad] can't extend empty axis {axis} using modes other than "
                                 f"'constant' or 'empty', got {mode!r}.")  # fmt: skip
        is_mirror = mode in ("reflect", "symmetric")
        mirrored = []
        for axis, (low, high) in enumerate(widths):
            if is_mirror and max(low, high) < x.shape[axis]:  # one reflection of the elements
                mirrored += [axis] if low or high else []
            elif low or high:
                indices = np.pad(np.arange(x.shape[axis]), (low, high), mode)
                x = take(x, asarray(indices, device=x.device), axis)
        for first in range(0, len(mirrored), 2):
            axes = mirrored[first : first + 2]
            pairs = [widths[k] if k in axes else (0, 0) for k in range(x.ndim)]
            x = _mirrored(x, pairs, int(mode == "reflect"))
        return x
    border = _BORDERS.get(mode)
    if border is None:
        raise ValueError(f"[pad] mode '{mode}' is not supported.")
    values = _pairs(next(iter(options.values())), x.ndim) if options else None
    if options.get("stat_length") is not None:
        values = _counts("stat_length", options["stat_length"], x.ndim)
    for axis, (low, high) in enumerate(widths):
        if not (low or high):
            continue
        if not x.shape[axis] and mode not in ("constant", "empty"):
            raise ValueError(f"[pad] can't extend empty axis {axis} using modes other than "
                             f"'constant' or 'empty', got {mode!r}.")  # fmt: skip
        numbers = values[axis] if values else (None, None)
        pieces = [
            border(x, axis, low, numbers[0], False),
            x,
            border(x, axis, high, numbers[1], True),
        ]
        x = concat([piece for piece in pieces if piece.shape[axis]] or [x], axis)
    return x


def _mirrored(x: Array, widths: list[tuple[int, int]], skipped: int) -> Array:
    """With a border of mirrored elements, in one pass; the outermost ones may be skipped."""
    lines = []  # of each axis: the elements that are read, and where they go
    for n, (low, high) in zip(x.shape, widths, strict=True):
        pieces = [
            ((skipped + low - 1, -1, low), (0, 1, low)),
            ((0, 1, n), (low, 1, n)),
            ((n - 1 - skipped, -1, high), (low + n, 1, high)),
        ]
        lines.append([piece for piece in pieces if piece[0][2]])
    tiles = list(itertools.product(*lines))
    operands = [sliced(x._node, [read for read, _ in tile]) for tile in tiles]
    shape = tuple(low + n + high for n, (low, high) in zip(x.shape, widths, strict=True))
    return Array(joined(operands, [[to for _, to in tile] for tile in tiles], shape, x.dtype))


_OPTIONS: dict[Any, set[str]] = {
    "constant": {"constant_values"},
    "edge": set(),
    "empty": set(),
    "linear_ramp": {"end_values"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
} | {mode: {"stat_length"} for mode in ("maximum", "mean", "median", "minimum")}


def _constant(x: Array, axis: int, width: int, value: Any, is_after: bool) -> Array:
    shape = tuple(width if k == axis else n for k, n in enumerate(x.shape))
    if value is None:
        return Array(broadcast(as_number(0, x.dtype, x.device), shape))
    number = np.asarray(value)  # also of integers from 2**63 on
    return broadcast_to(as_array(number, "pad", x.device).astype(x.dtype), shape)


def _line(x: Array, axis: int, index: int) -> Array:
    return x[(slice(None),) * axis + (slice(index, index + 1 or None),)]


def _ramp(x: Array, axis: int, width: int, value: Any, is_after: bool) -> Array:
    edge = _line(x, axis, -1 if is_after else 0)
    wide = edge.astype(default_float()) if kind_of(x.dtype) in "biu" else edge
    end = as_array(0 if value is None else value, "pad", x.device).astype(wide.dtype)
    part = arange(width, dtype=wide.dtype, device=x.device) / max(width, 1)
    part = part.reshape([width if k == axis else 1 for k in range(x.ndim)])
    ramp = end + (wide - end) * part
    ramp = ew.floor(ramp) if kind_of(x.dtype) in "iu" else ramp
    ramp = ramp.astype(x.dtype)
    return ramp[(slice(None),) * axis + (slice(None, None, -1),)] if is_after else ramp


def _statistic(name: str) -> Callable[..., Array]:
    def border(x: Array, axis: int, width: int, length: Any, is_after: bool) -> Array:
        from metalloid.numpy.functions.quantiles import median

        count = x.shape[axis] if length is None else min(int(length), x.shape[axis])
        if count == 0 and name in ("max", "min"):
            raise ValueError("[pad] stat_length of 0 yields no value for padding.")
        lines = slice(x.shape[axis] - count, None) if is_after else slice(0, count)
        part = x[(slice(None),) * axis + (lines,)]
        if name == "median":
            value = median(part, axis, keepdims=True)
        else:
            value = getattr(reductions, name)(part, axis, keepdims=True)
        if kind_of(x.dtype) in "iu" and kind_of(value.dtype) == "f":
            value = ew.round(value)
        shape = tuple(width if k == axis else n for k, n in enumerate(x.shape))
        return broadcast_to(value.astype(x.dtype), shape)

    return border


_BORDERS: dict[str, Callable[..., Array]] = {
    "constant": _constant,
    "empty": _constant,
    "linear_ramp": _ramp,
    "maximum": _statistic("max"),
    "mean": _statistic("mean"),
    "median": _statistic("median"),
    "minimum": _statistic("min"),
}
