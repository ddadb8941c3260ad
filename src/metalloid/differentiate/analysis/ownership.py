"""Buffers of which no two threads read the same element; no atomic functions add to theirs.

Indices are sums of digits. If
each stride is larger than what the digits of smaller strides add up to, the index determines all
digits, as the digits of a number do. A thread owns the elements that it reads if the digits
determine the thread. Strides and ranges are known when the kernel is launched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metalloid.differentiate.analysis.activity import all_reads
from metalloid.differentiate.analysis.digits import (
    LOCAL,
    Launch,
    Unknown,
    determined,
    digits_of,
    varies,
)
from metalloid.differentiate.analysis.indices import MAX_INDEX, Indices, Polynomial
from metalloid.differentiate.program.tree import Expression, Program

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
    launch, highest = Launch(arguments, grid, group), 0
    try:
        for polynomial in accesses.polynomials:
            digits, offset = digits_of(accesses.indices, polynomial, launch)
            if offset < 0:
                return None
            reach = offset + sum(stride * (digit.extent - 1) for stride, digit in digits)
            highest = max(highest, reach)
    except Unknown:
        return None
    return highest if highest < MAX_INDEX else None


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
        if sum(varies(indices, name) for name in names) > 1:
            return None
    return polynomial


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
    return {n for n in names if n.split(".")[0] in ("grid", "group", *LOCAL) and " " not in n}


def _is_plausible(determined: set[str], used: set[str]) -> bool:
    """Whether indices of a buffer may determine the positions that the kernel uses."""
    has_local = any(name.split(".")[0] in LOCAL for name in determined)
    for name in used - determined:
        stem, _, axis = name.partition(".")
        if stem == "grid" and not (f"group.{axis}" in determined and has_local):
            return False
        if stem == "group" and f"grid.{axis}" not in determined:
            return False
        if stem in LOCAL and not has_local and not any(n.startswith("grid") for n in determined):
            return False
    return bool(determined)


def owns(
    accesses: Accesses, arguments: Mapping[str, Any], grid: Sequence[int], group: Sequence[int]
) -> bool:
    """Whether threads of a launch own the elements that they read."""
    launch = Launch(arguments, grid, group)
    strides: dict[tuple[int, str], int] = {}  # extents, by stride and what the digit determines
    structures = set()
    offsets = []
    try:
        for polynomial in accesses.polynomials:
            digits, offset = digits_of(accesses.indices, polynomial, launch)
            offsets.append(offset)
            structures.add(frozenset((stride, digit.determines) for stride, digit in digits))
            for stride, digit in digits:
                key = stride, digit.determines
                strides[key] = max(strides.get(key, 1), digit.extent)
    except Unknown:
        return False
    if len(structures) != 1 or min(offsets) < 0:
        return False
    total = max(offsets) - min(offsets)
    for (stride, _), extent in sorted(strides.items()):
        if stride <= total:
            return False
        total += stride * (extent - 1)
    if total + min(offsets) >= MAX_INDEX:
        return False
    return launch.determines(determined(accesses.indices, strides, launch))
