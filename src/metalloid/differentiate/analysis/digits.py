"""Digits of indices, and what is known of them when a kernel is launched.

An index is a sum of digits: a position of the thread or a counter of a loop, times a stride.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.differentiate.analysis.indices import SIZES, Counter, Indices, Polynomial, evaluate

SIMD_WIDTH = 32
#: Positions in a threadgroup.
LOCAL = ("local", "flat", "lane", "simdgroup")
AXES = "xyz"
_LANES = "xyzw"


class Unknown(Exception):
    """A number that is not known when the kernel is launched."""


@dataclass
class Digit:
    """A digit of an index: its range, and what it determines of the thread."""

    extent: int
    determines: str


class Launch:
    """The numbers of a launch.

    Parameters
    ----------
    arguments : mapping
        By name.
    grid, group : sequence of int
    """

    def __init__(
        self, arguments: Mapping[str, Any], grid: Sequence[int], group: Sequence[int]
    ) -> None:
        self.arguments, self.grid, self.group = arguments, grid, group
        self.counts = [-(-n // m) for n, m in zip(grid, group, strict=True)]

    def number(self, name: str) -> int:
        """A number that all threads have in common."""
        if name == "simd_width":
            return SIMD_WIDTH
        stem, _, rest = name.partition(".")
        sizes = {"grid_size": self.grid, "group_size": self.group, "group_count": self.counts}
        if stem in sizes:
            return sizes[stem][AXES.index(rest)]
        value = self.arguments.get(stem)
        try:
            if rest and isinstance(value, Mapping | np.ndarray | np.generic | list | tuple):
                value = _number_in(value, rest)
            if isinstance(value, np.ndarray):
                value = value.item()
            if isinstance(value, int | np.integer):  # else in memory of a device
                return int(value)
        except (TypeError, ValueError, LookupError):
            pass
        raise Unknown

    def extent(self, position: str) -> int:
        """The number of values of a position."""
        stem, _, axis = position.partition(".")
        threads = math.prod(self.group)
        if stem == "lane":
            return min(threads, SIMD_WIDTH)
        if stem == "simdgroup":
            return -(-threads // SIMD_WIDTH)
        if stem == "flat":
            return threads
        sizes = {"grid": self.grid, "group": self.counts, "local": self.group}
        return int(sizes[stem][AXES.index(axis)])

    def determines(self, known: set[str]) -> bool:
        """Whether positions determine a thread."""
        is_known = {name for name in _all_positions() if self.extent(name) == 1} | known
        local = "flat" in is_known or {"lane", "simdgroup"} <= is_known or (
            {"local.x", "local.y", "local.z"} <= is_known
        )  # fmt: skip
        return all(
            f"grid.{axis}" in is_known or (local and f"group.{axis}" in is_known) for axis in AXES
        )


def _number_in(values: Any, name: str) -> Any:
    """A component or an element of an array, or a member of a struct."""
    if isinstance(values, Mapping):
        return values[name]
    array = np.asarray(values)
    if array.dtype.names is not None:
        return array[name]
    return array.reshape(-1)[_LANES.index(name) if name in _LANES else int(name)]


def _all_positions() -> list[str]:
    return [*(f"{stem}.{axis}" for stem in ("grid", "group", "local") for axis in AXES),
            "lane", "simdgroup", "flat"]  # fmt: skip


def determined(
    indices: Indices, strides: Mapping[tuple[int, str], int], launch: Launch
) -> set[str]:
    """Positions that follow from an index with digits of some strides."""
    known = {determines.partition(" @ ")[0] for _, determines in strides}
    for text, atom in indices.atoms.items():
        fits = launch.extent(atom.position) <= atom.divisor
        rest = f"{atom.position} % {atom.divisor}"
        if text in known and (fits if atom.operator == "%" else rest in known):
            known.add(atom.position)
    return known


def strides_of(
    indices: Indices, polynomial: Polynomial, launch: Launch
) -> tuple[dict[str, int], int]:
    """The strides of an index by positions and counters, and what is added to them."""
    strides: dict[str, int] = {}
    offset = 0
    for names, factor in polynomial.items():
        varying = [name for name in names if varies(indices, name)]
        stride = factor * math.prod(launch.number(n) for n in names if n not in varying)
        if varying:
            strides[varying[0]] = strides.get(varying[0], 0) + stride
        else:
            offset += stride
    return strides, offset


def digits_of(
    indices: Indices, polynomial: Polynomial, launch: Launch
) -> tuple[list[tuple[int, Digit]], int]:
    """The digits of an index with their strides, and what is added to them."""
    strides, offset = strides_of(indices, polynomial, launch)
    digits = []
    for name, stride in strides.items():
        digit = digit_of(indices, name, launch)
        if stride < 0:
            raise Unknown
        if digit.extent > 1 and stride > 0:
            digits.append((stride, digit))
    return digits, offset


def digit_of(indices: Indices, name: str, launch: Launch) -> Digit:
    """The digit that a position or a counter is."""
    if name in indices.counters:
        return _counted(indices.counters[name], launch)
    if name in indices.atoms:
        atom = indices.atoms[name]
        extent = launch.extent(atom.position)
        count = -(-extent // atom.divisor) if atom.operator == "/" else min(extent, atom.divisor)
        return Digit(count, name)
    return Digit(launch.extent(name), name)


def _counted(counter: Counter, launch: Launch) -> Digit:
    """The digit of a counter: it determines a position where it begins, if its step is larger."""
    end, step = evaluate(counter.end, launch.number), evaluate(counter.step, launch.number)
    first = [(names, factor) for names, factor in counter.first.items() if names]
    if step <= 0:
        raise Unknown
    if not first:
        if counter.first.get((), 0) < 0:
            raise Unknown
        return Digit(max(end, 0), "")
    if len(first) != 1 or counter.first.get(()) or first[0][1] != 1 or len(first[0][0]) != 1:
        raise Unknown
    (position,) = first[0][0]
    if position.partition(".")[0] not in ("grid", "group", *LOCAL):
        if launch.number(position) < 0:
            raise Unknown
        return Digit(max(end, 0), "")
    if launch.extent(position) > step:
        raise Unknown
    return Digit(max(end, 0), f"{position} @ {step}")


def varies(indices: Indices, name: str) -> bool:
    """Whether a factor differs between threads or iterations."""
    is_size = name.partition(".")[0] in SIZES.values()
    stem = name.split(".")[0].split(" ")[0]
    return name in indices.counters or name in indices.atoms or (
        not is_size and stem in ("grid", "group", *LOCAL)
    )  # fmt: skip
