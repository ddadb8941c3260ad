"""Adjoints of which a launch stores each element once, so that they need no zeros before it.

A store has one index in each thread that runs it, and in each iteration of the loops around it. If
these indices differ, are less than the number of elements, and are as many, each element is stored
once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from metalloid.differentiate.analysis.digits import (
    AXES,
    SIMD_WIDTH,
    Digit,
    Launch,
    Unknown,
    determined,
    digit_of,
    strides_of,
    varies,
)
from metalloid.differentiate.analysis.indices import MAX_INDEX, Indices, Polynomial, evaluate
from metalloid.differentiate.program.tree import Assign, Expression, Loop, Statement

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Guard:
    """A branch that a store is in: it runs if the condition is as `holds` says."""

    condition: Expression
    holds: bool


@dataclass(frozen=True)
class Iteration:
    """A loop that a store is in, and the statements of the same block that precede it."""

    loop: Loop
    before: Sequence[Statement]


#: None is a branch of an expression.
Context = Guard | Iteration | None


@dataclass(frozen=True)
class Store:
    """A statement that stores an element of an adjoint.

    Attributes
    ----------
    index : Polynomial
    limits : tuple of (str, Polynomial)
        Positions of threads, and what they are less than in the threads that run it.
    counters : tuple of str
        Those of the loops around it, which run for all their values.
    """

    index: Polynomial
    limits: tuple[tuple[str, Polynomial], ...]
    counters: tuple[str, ...]


def store_of(indices: Indices, index: Expression, contexts: Sequence[Context]) -> Store | None:
    """The store of an element; None if it is not known which threads and iterations run it."""
    polynomial = indices.polynomial(index)
    if polynomial is None:
        return None
    for names in polynomial:
        if sum(varies(indices, name) for name in names) > 1:
            return None
    limits: list[tuple[str, Polynomial]] = []
    counters = []
    for context in contexts:
        if isinstance(context, Guard):
            for limit in _limits(indices, context.condition, context.holds):
                if limit is None:
                    return None
                limits.append(limit)
        elif isinstance(context, Iteration):
            counter = _counter_of(indices, context)
            if counter is None:
                return None
            counters.append(counter)
        else:
            return None
    used = {name for names in polynomial for name in names if name in indices.counters}
    if used != set(counters):
        return None
    return Store(polynomial, tuple(limits), tuple(counters))


def _limits(
    indices: Indices, condition: Expression, holds: bool
) -> Iterator[tuple[str, Polynomial] | None]:
    """The limits of positions that a condition states; None where it states something else."""
    if condition.op == "unary" and condition.name == "!":
        yield from _limits(indices, condition.args[0], not holds)
        return
    if condition.op == "binary" and condition.name == ("&&" if holds else "||"):
        for arg in condition.args:
            yield from _limits(indices, arg, holds)
        return
    yield _limit(indices, condition, holds)


def _limit(indices: Indices, condition: Expression, holds: bool) -> tuple[str, Polynomial] | None:
    if condition.op != "binary" or condition.name not in _MIRRORED:
        return None
    operator = condition.name if holds else _NEGATED[condition.name]
    operands = [indices.polynomial(arg) for arg in condition.args]
    if operator in (">", ">="):
        operator, operands = _MIRRORED[operator], operands[::-1]
    position, limit = operands
    if position is None or limit is None or list(position.values()) != [1]:
        return None
    (names,) = position
    is_position = len(names) == 1 and names[0] not in (*indices.counters, *indices.atoms)
    if not is_position or not varies(indices, names[0]):
        return None
    if operator == "<=":
        limit = {**limit, (): limit.get((), 0) + 1}
    return names[0], limit


def _counter_of(indices: Indices, iteration: Iteration) -> str | None:
    """The counter of a loop that runs for all its values each time that it is reached."""
    condition = iteration.loop.condition
    if condition.op != "binary" or condition.name not in ("<", "<="):
        return None
    (left, *_) = condition.args
    while left.op == "cast":
        left = left.args[0]
    is_counter = left.op == "variable" and left.name in indices.counters
    starts = [
        each.target.name
        for each in iteration.before
        if isinstance(each, Assign) and each.target.op == "variable"
    ]
    steps = [each.target.base.name for each in iteration.loop.step if isinstance(each, Assign)]
    return left.name if is_counter and left.name in starts and left.name in steps else None


class _LimitedLaunch(Launch):
    """The threads of a launch that run a store."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch.arguments, launch.grid, launch.group)
        self.limits: dict[str, int] = {}

    def number(self, name: str) -> int:
        """A number that all threads have in common, at least 0."""
        number = super().number(name)
        if not 0 <= number < MAX_INDEX:  # others differ if they are converted
            raise Unknown
        return number

    def extent(self, position: str) -> int:
        """The number of values of a position."""
        extent = super().extent(position)
        return min(extent, self.limits.get(position, extent))


def covers(
    stores: Sequence[Store], indices: Indices, arguments: Mapping[str, Any],
    grid: Sequence[int], group: Sequence[int], count: int,
) -> bool:  # fmt: skip
    """Whether the stores of a launch store each of `count` elements exactly once."""
    launch = Launch(arguments, grid, group)
    first = stores[0]
    if any((s.limits, s.counters) != (first.limits, first.counters) for s in stores):
        return False
    try:
        limited = _LimitedLaunch(launch)
        for position, limit in first.limits:
            number = _number(limit, limited)
            limited.limits[position] = min(number, limited.extent(position))
        runs = _runs(first, indices, limited, launch)
        known = [_digits(store, indices, limited) for store in stores]
    except Unknown:
        return False
    digits, offsets = known[0][0], [offset for _, offset in known]
    if any(each != digits for each, _ in known) or len(set(offsets)) != len(offsets):
        return False
    total = max(offsets) - min(offsets)
    for stride, extent, _ in digits:
        if stride <= total:
            return False
        total += stride * (extent - 1)
    strides = {(stride, determines): extent for stride, extent, determines in digits}
    are_indices = min(offsets) >= 0 and total + min(offsets) < min(count, MAX_INDEX)
    return (
        are_indices
        and runs * len(stores) == count
        and limited.determines(determined(indices, strides, limited))
    )


def _digits(
    store: Store, indices: Indices, launch: Launch
) -> tuple[list[tuple[int, int, str]], int]:
    """Strides, extents and what they determine of the digits of an index, and what is added."""
    strides, offset = strides_of(indices, store.index, launch)
    digits: list[tuple[int, Digit]] = []
    for name, stride in strides.items():
        digit = digit_of(indices, name, launch)
        if digit.extent > 1:
            if stride <= 0:
                raise Unknown
            digits.append((stride, digit))
    return sorted((stride, d.extent, d.determines) for stride, d in digits), offset


def _runs(store: Store, indices: Indices, limited: Launch, launch: Launch) -> Fraction:
    """The number of times that the threads of a launch run a store."""
    runs = Fraction(math.prod(launch.grid))
    claimed: list[str] = []
    for position in dict(store.limits):
        _claim(position, claimed, launch)
        runs *= Fraction(limited.extent(position), launch.extent(position))
    for name in store.counters:
        counter = indices.counters[name]
        end, step = _number(counter.end, limited), _number(counter.step, limited)
        if step == 0:
            raise Unknown
        positions = [names for names in counter.first if any(varies(indices, n) for n in names)]
        if not positions:
            runs *= max(0, -(-(end - _number(counter.first, limited)) // step))
            continue
        if list(counter.first.items()) != [(positions[0], 1)] or len(positions[0]) != 1:
            raise Unknown
        (position,) = positions[0]
        if position in indices.counters or position in indices.atoms:
            raise Unknown
        _claim(position, claimed, launch)
        extent = launch.extent(position)
        if extent > step:
            raise Unknown
        # They have all values less than the end whose remainder is a value of the position.
        runs *= Fraction(end // step * extent + min(end % step, extent), extent)
    return runs


def _number(polynomial: Polynomial, launch: Launch) -> int:
    number = evaluate(polynomial, launch.number)
    if not 0 <= number < MAX_INDEX:
        raise Unknown
    return number


def _claim(position: str, claimed: list[str], launch: Launch) -> None:
    """Note a position, each value of which as many threads have.

    So it must be with each value of those that are claimed.
    """
    if any(_depend(position, each) for each in claimed):
        raise Unknown
    claimed.append(position)
    stem, _, axis = position.partition(".")
    if stem == "grid":
        return
    axes = [AXES.index(axis)] if axis else range(len(AXES))
    if any(launch.grid[k] % launch.group[k] for k in axes):
        raise Unknown
    if stem in ("lane", "simdgroup"):
        threads = math.prod(launch.group)
        if threads > SIMD_WIDTH and threads % SIMD_WIDTH:
            raise Unknown


def _depend(a: str, b: str) -> bool:
    """Whether one position says something of another one."""
    (stem, _, axis), (other, _, second) = a.partition("."), b.partition(".")
    if "group" in (stem, other) and {stem, other} & {"local", "flat", "lane", "simdgroup"}:
        return False
    if {stem, other} == {"lane", "simdgroup"}:
        return False
    return axis == second or not (axis and second)
