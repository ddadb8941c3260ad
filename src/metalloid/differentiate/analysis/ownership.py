"""Buffers of which no two threads read the same element; no atomic functions add to theirs.

An index is a sum of digits: a position of the thread or a counter of a loop, times a stride. If
each stride is larger than what the digits of smaller strides add up to, the index determines all
digits, as the digits of a number do. A thread owns the elements that it reads if the digits
determine the thread. Strides and ranges are known when the kernel is launched.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.differentiate.analysis.activity import all_reads
from metalloid.differentiate.analysis.indices import SIZES, Counter, Indices, Polynomial, evaluate
from metalloid.differentiate.program.tree import Expression, Program

_MAX_INDEX = 2**31
_SIMD_WIDTH = 32
_LOCAL = ("local", "flat", "lane", "simdgroup")
_AXES = "xyz"
_USUAL_NUMBERS = (128, 1024)
_USUAL_GRIDS = ((64, 1, 1), (64, 4, 1), (64, 256, 1), (64, 4, 2))
_USUAL_GROUPS = ((32, 1, 1), (64, 1, 1), (8, 2, 1))


@dataclass(frozen=True)
class Accesses:
    """The indices at which a kernel reads a buffer.

    Attributes
    ----------
    polynomials : tuple of Polynomial
    indices : Indices
    """

    polynomials: tuple[Polynomial, ...]
    indices: Indices


class _Unknown(Exception):
    """A number that is not known when the kernel is launched."""


def accesses_of(program: Program, names: Collection[str]) -> dict[str, Accesses]:
    """The buffers that a kernel reads at indices that are polynomials, by name."""
    indices = Indices(program)
    polynomials: dict[str, list[Polynomial]] = {}
    refused = {p.name for p in program.parameters if "&" in p.declaration}
    for value in all_reads(program.body):
        for each in value.walk():
            is_element = each.op == "element" and each.args[0].op == "variable"
            if is_element and each.base.name in names:
                polynomial = _polynomial(indices, each)
                if polynomial is None:
                    refused.add(each.base.name)
                else:
                    polynomials.setdefault(each.base.name, []).append(polynomial)
            elif each.op == "pointer":
                refused.add(each.base.name)
    return {
        name: Accesses(tuple(each), indices)
        for name, each in polynomials.items()
        if name not in refused
    }


def own_elements(program: Program, accesses: Mapping[str, Accesses]) -> dict[str, Accesses]:
    """The buffers of which threads may own the elements that they read, by name."""
    owned: dict[str, Accesses] = {}
    for name, each in accesses.items():
        used = _positions(each.indices, list(_known_values(each.indices, program)))
        determined = _positions(each.indices, each.polynomials)
        if _is_plausible(determined, used) and _holds_somewhere(each):
            owned[name] = each
    return owned


def max_index(
    accesses: Accesses, arguments: Mapping[str, Any], grid: Sequence[int], group: Sequence[int]
) -> int | None:
    """The largest index of the accesses of a launch; None if it is not known."""
    launch, highest = _Launch(arguments, grid, group), 0
    try:
        for polynomial in accesses.polynomials:
            digits, offset = _digits(accesses.indices, polynomial, launch)
            if offset < 0:
                return None
            reach = offset + sum(stride * (digit.extent - 1) for stride, digit in digits)
            highest = max(highest, reach)
    except _Unknown:
        return None
    return highest if highest < _MAX_INDEX else None


def _holds_somewhere(accesses: Accesses) -> bool:
    """Whether threads of some usual launches own what they read."""
    return any(
        owns(accesses, dict.fromkeys(_names(accesses), number), grid, group)
        for number in _USUAL_NUMBERS
        for grid in _USUAL_GRIDS
        for group in _USUAL_GROUPS
    )


def _names(accesses: Accesses) -> set[str]:
    """The names of the numbers of a launch that indices depend on."""
    counters = accesses.indices.counters.values()
    polynomials = [*accesses.polynomials, *(p for c in counters for p in (c.first, c.step, c.end))]
    return {name.split(".")[0] for each in polynomials for names in each for name in names}


def _known_values(indices: Indices, program: Program) -> Iterator[Polynomial]:
    """All that a kernel reads of positions of threads."""
    for value in all_reads(program.body):
        for each in value.walk():
            if each.op in ("variable", "component"):
                yield indices.polynomial(each) or {}


def _polynomial(indices: Indices, element: Expression) -> Polynomial | None:
    polynomial = indices.polynomial(element.args[1])
    if polynomial is None or len(element.args) != 2:
        return None
    for names in polynomial:
        if sum(_varies(indices, name) for name in names) > 1:
            return None
    return polynomial


def _varies(indices: Indices, name: str) -> bool:
    """Whether a factor differs between threads or iterations."""
    is_size = name.partition(".")[0] in SIZES.values()
    stem = name.split(".")[0].split(" ")[0]
    return name in indices.counters or name in indices.atoms or (
        not is_size and stem in ("grid", "group", *_LOCAL)
    )  # fmt: skip


def _positions(indices: Indices, polynomials: Sequence[Polynomial]) -> set[str]:
    """The positions that indices depend on."""
    names = {name for each in polynomials for term in each for name in term}
    names |= {
        name
        for counter in names & set(indices.counters)
        for term in indices.counters[counter].first
        for name in term
    }
    names |= {indices.atoms[name].position for name in names & set(indices.atoms)}
    return {n for n in names if n.split(".")[0] in ("grid", "group", *_LOCAL) and " " not in n}


def _is_plausible(determined: set[str], used: set[str]) -> bool:
    """Whether indices of a buffer may determine the positions that the kernel uses."""
    has_local = any(name.split(".")[0] in _LOCAL for name in determined)
    for name in used - determined:
        stem, _, axis = name.partition(".")
        if stem == "grid" and not (f"group.{axis}" in determined and has_local):
            return False
        if stem == "group" and f"grid.{axis}" not in determined:
            return False
        if stem in _LOCAL and not has_local and not any(n.startswith("grid") for n in determined):
            return False
    return bool(determined)


@dataclass
class _Digit:
    """A digit of an index: its range, and what it determines of the thread."""

    extent: int
    determines: str


class _Launch:
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
            return _SIMD_WIDTH
        stem, _, rest = name.partition(".")
        sizes = {"grid_size": self.grid, "group_size": self.group, "group_count": self.counts}
        if stem in sizes:
            return sizes[stem][_AXES.index(rest)]
        value = self.arguments.get(stem)
        try:
            if rest and not isinstance(value, int):
                value = value[rest]  # type: ignore[index]
            if isinstance(value, np.ndarray):
                value = value.item()
            if isinstance(value, int | np.integer):  # else in memory of a device
                return int(value)
        except (TypeError, ValueError, IndexError):
            pass
        raise _Unknown

    def extent(self, position: str) -> int:
        """The number of values of a position."""
        stem, _, axis = position.partition(".")
        threads = math.prod(self.group)
        if stem == "lane":
            return min(threads, _SIMD_WIDTH)
        if stem == "simdgroup":
            return -(-threads // _SIMD_WIDTH)
        if stem == "flat":
            return threads
        sizes = {"grid": self.grid, "group": self.counts, "local": self.group}
        return int(sizes[stem][_AXES.index(axis)])

    def determines(self, known: set[str]) -> bool:
        """Whether positions determine a thread."""
        is_known = {name for name in _all_positions() if self.extent(name) == 1} | known
        local = "flat" in is_known or {"lane", "simdgroup"} <= is_known or (
            {"local.x", "local.y", "local.z"} <= is_known
        )  # fmt: skip
        return all(
            f"grid.{axis}" in is_known or (local and f"group.{axis}" in is_known) for axis in _AXES
        )


def _all_positions() -> list[str]:
    return [*(f"{stem}.{axis}" for stem in ("grid", "group", "local") for axis in _AXES),
            "lane", "simdgroup", "flat"]  # fmt: skip


def owns(
    accesses: Accesses, arguments: Mapping[str, Any], grid: Sequence[int], group: Sequence[int]
) -> bool:
    """Whether threads of a launch own the elements that they read."""
    launch = _Launch(arguments, grid, group)
    strides: dict[tuple[int, str], int] = {}  # extents, by stride and what the digit determines
    structures = set()
    offsets = []
    try:
        for polynomial in accesses.polynomials:
            digits, offset = _digits(accesses.indices, polynomial, launch)
            offsets.append(offset)
            structures.add(frozenset((stride, digit.determines) for stride, digit in digits))
            for stride, digit in digits:
                key = stride, digit.determines
                strides[key] = max(strides.get(key, 1), digit.extent)
    except _Unknown:
        return False
    if len(structures) != 1 or min(offsets) < 0:
        return False
    total = max(offsets) - min(offsets)
    for (stride, _), extent in sorted(strides.items()):
        if stride <= total:
            return False
        total += stride * (extent - 1)
    if total + min(offsets) >= _MAX_INDEX:
        return False
    return launch.determines(_determined(accesses.indices, strides, launch))


def _determined(
    indices: Indices, strides: Mapping[tuple[int, str], int], launch: _Launch
) -> set[str]:
    known = {determines.partition(" @ ")[0] for _, determines in strides}
    for text, atom in indices.atoms.items():
        fits = launch.extent(atom.position) <= atom.divisor
        rest = f"{atom.position} % {atom.divisor}"
        if text in known and (fits if atom.operator == "%" else rest in known):
            known.add(atom.position)
    return known


def _digits(
    indices: Indices, polynomial: Polynomial, launch: _Launch
) -> tuple[list[tuple[int, _Digit]], int]:
    """The digits of an index with their strides, and what is added to them."""
    strides: dict[str, int] = {}
    offset = 0
    for names, factor in polynomial.items():
        varying = [name for name in names if _varies(indices, name)]
        stride = factor * math.prod(launch.number(n) for n in names if n not in varying)
        if varying:
            strides[varying[0]] = strides.get(varying[0], 0) + stride
        else:
            offset += stride
    digits = []
    for name, stride in strides.items():
        digit = _digit(indices, name, launch)
        if stride < 0:
            raise _Unknown
        if digit.extent > 1 and stride > 0:
            digits.append((stride, digit))
    return digits, offset


def _digit(indices: Indices, name: str, launch: _Launch) -> _Digit:
    if name in indices.counters:
        return _counted(indices.counters[name], launch)
    if name in indices.atoms:
        atom = indices.atoms[name]
        extent = launch.extent(atom.position)
        count = -(-extent // atom.divisor) if atom.operator == "/" else min(extent, atom.divisor)
        return _Digit(count, name)
    return _Digit(launch.extent(name), name)


def _counted(counter: Counter, launch: _Launch) -> _Digit:
    """The digit of a counter: it determines a position where it begins, if its step is larger."""
    end, step = evaluate(counter.end, launch.number), evaluate(counter.step, launch.number)
    first = [(names, factor) for names, factor in counter.first.items() if names]
    if step <= 0:
        raise _Unknown
    if not first:
        if counter.first.get((), 0) < 0:
            raise _Unknown
        return _Digit(max(end, 0), "")
    if len(first) != 1 or counter.first.get(()) or first[0][1] != 1 or len(first[0][0]) != 1:
        raise _Unknown
    (position,) = first[0][0]
    if position.partition(".")[0] not in ("grid", "group", *_LOCAL):
        if launch.number(position) < 0:
            raise _Unknown
        return _Digit(max(end, 0), "")
    if launch.extent(position) > step:
        raise _Unknown
    return _Digit(max(end, 0), f"{position} @ {step}")
