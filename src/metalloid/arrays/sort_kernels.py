"""Sorts, searches and counts by kernels: what `sorting.metal` and `searching.metal` are told."""

from __future__ import annotations

import functools
import importlib.resources
import math
from typing import Any

import numpy as np

from metalloid.arrays.evaluate import evaluate
from metalloid.arrays.layout import is_contiguous
from metalloid.arrays.memory import Memory
from metalloid.arrays.movement import joined, whole
from metalloid.arrays.node import Node
from metalloid.arrays.types import DType, kind_of
from metalloid.kernels.library import Library, library
from metalloid.runtime.device import Device

#: As in the .metal files.
_LANES, _DIGITS = 32, 256
MOST_BINS = 4096
#: A simdgroup sorts a row alone if it is no longer than this, or if there are so many rows.
_SHORT_ROW, _MANY_ROWS = 2**14, 256
#: What a simdgroup takes of a long row.
_CHUNK = 4096
#: Threadgroups that count together, how large they are, and how many numbers a thread has.
_MOST_GROUPS, _COUNTING_THREADS, _NUMBERS_EACH = 64, 256, 64


def sorted_rows(x: Node, descending: bool, with_places: bool) -> list[Memory]:
    """The elements in order along the last axis, and their places there (uint32) if wanted.

    Equal ones keep their order, also if the largest is first.
    """
    device, size, count = x.device, x.dtype.itemsize, x.shape[-1]
    rows = x.size // max(count, 1)
    x = _in_order(x)
    values, start = _bits(x)
    order = order_of(x.dtype, descending)
    places_bytes = 4 * x.size if with_places else 0
    results = [Memory(device, size * x.size), Memory(device, places_bytes)]
    spare = [Memory(device, size * x.size), Memory(device, places_bytes)]
    if count <= _SHORT_ROW or rows >= _MANY_ROWS:
        kernel = _kernel("argsort_rows" if with_places else "sort_rows", size, device)
        memory = [part.bound for part in (*results, *spare)]
        kernel(values, *memory, start, count, order,
               threads=rows * _LANES, group_size=_LANES, wait=False)  # fmt: skip
    else:
        _sort_chunks(values, start, rows, count, order, results, spare, with_places)
    return results if with_places else results[:1]


def _sort_chunks(
    values: Any, start: int, rows: int, count: int, order: bytes,
    results: list[Memory], spare: list[Memory], with_places: bool,
) -> None:  # fmt: skip
    """Long rows: three launches for each digit."""
    device, size = results[0].device, len(order) // 5
    chunks = math.ceil(count / _CHUNK)
    counts, starts = Memory(device, 4 * _DIGITS * chunks * rows), Memory(device, 4 * _DIGITS * rows)
    count_chunks = _kernel("count_chunks", size, device)
    place_chunks = _library(device)["place_chunks"]
    move_chunks = _kernel("move_chunks_and_places" if with_places else "move_chunks", size, device)
    grid: dict[str, Any] = {
        "threads": (chunks * _LANES, rows), "group_size": (_LANES, 1), "wait": False,
    }  # fmt: skip
    places = spare[1].bound
    for digit in range(size):
        to = results if (size - digit) % 2 else spare
        numbers = start, count, _CHUNK, 8 * digit, order
        count_chunks(values, counts.bound, *numbers, **grid)
        place_chunks(counts.bound, starts.bound, chunks,
                     threads=rows * _DIGITS, group_size=_DIGITS, wait=False)  # fmt: skip
        moved = [memory.bound for memory in to]
        move_chunks(values, places, counts.bound, starts.bound, *moved, *numbers, **grid)
        (values, places), start = moved, 0


def found_places(x: Node, values: Node, is_behind: bool) -> list[Memory]:
    """Where values would go among the sorted elements (uint32)."""
    places = Memory(x.device, 4 * values.size)
    x, values = _in_order(x), _in_order(values)
    among, among_start = _bits(x)
    wanted, start = _bits(values)
    kernel = _kernel("search", x.dtype.itemsize, x.device)
    kernel(among, wanted, places.bound, among_start, start, x.size, is_behind,
           order_of(x.dtype, False), threads=values.size, wait=False)  # fmt: skip
    return [places]


def count_groups(size: int) -> int:
    """How many threadgroups count so many numbers."""
    return max(1, min(_MOST_GROUPS, size // (_COUNTING_THREADS * _NUMBERS_EACH)))


def counted_places(x: Node, bins: int) -> list[Memory]:
    """How often each number below `bins` occurs (uint32), a row for each threadgroup."""
    groups = count_groups(x.size)
    counts = Memory(x.device, 4 * groups * bins)
    x = _in_order(x)
    places, start = _bits(x)
    _library(x.device)["count_places"](
        places, counts.bound, start, x.size, bins,
        threads=groups * _COUNTING_THREADS, group_size=_COUNTING_THREADS, wait=False,
    )  # fmt: skip
    return [counts]


@functools.cache
def order_of(dtype: DType, descending: bool) -> bytes:
    """``Order`` of a type."""
    bits = 8 * dtype.itemsize
    every, sign, kind = 2**bits - 1, 2 ** (bits - 1), kind_of(dtype)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    infinity, minus_zero = every, 0
    if kind == "f":
        infinity, minus_zero = int(np.array(np.inf, dtype).view(unsigned)), sign
    elif kind != "i":
        sign = 0
    flip = every if kind == "f" else sign
    turn = every if descending else 0
    return np.array([sign, flip, minus_zero, infinity, turn], unsigned).tobytes()


def _in_order(node: Node) -> Node:
    """A leaf whose elements lie behind each other: itself, or a copy that has to be kept."""
    if is_contiguous(node.layout):
        return node
    copy = joined([node], [whole(node.shape)], node.shape, node.dtype)
    evaluate([copy], wait=False)
    return copy


def _bits(node: Node) -> tuple[Any, int]:
    """The memory of a leaf, as a launch is given it, and the element where it starts."""
    assert node.memory is not None
    bound = node.memory.bound
    if isinstance(bound, np.ndarray):
        bound = bound.view(f"u{node.dtype.itemsize}")
    return bound, node.layout.start


def _kernel(name: str, size: int, device: Device) -> Any:
    return _library(device)[f"{name}_{8 * size}"]


@functools.cache
def text() -> str:
    """All that is compiled."""
    folder = importlib.resources.files("metalloid.arrays")
    names = ("order", "sorting", "searching")
    return "\n".join((folder / f"{name}.metal").read_text("utf-8") for name in names)


@functools.cache
def _library(device: Device) -> Library:
    return library(text(), device=device)
