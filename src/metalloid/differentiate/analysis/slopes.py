"""Branches from one number to another one, of which the forward sweep computes the derivative.

It is a number, the slope. So the reverse sweep has a product instead of the branch: it needs no
value of the branch, and what functions and their derivatives have in common is computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from metalloid.differentiate.analysis.activity import (
    all_reads,
    assignments_of,
    float_variables,
    live_in,
)
from metalloid.differentiate.lane_rules import is_lane_function
from metalloid.differentiate.program.tree import Assign, Expression, If, Program, flatten


class Slope(NamedTuple):
    """The variables that a branch reads and assigns."""

    source: str
    result: str


def slopes_of(program: Program, active: Collection[str]) -> dict[int, Slope]:
    """The branches whose derivative is a slope, by their identity."""
    counts = assignments_of(program)
    reads = _reads(all_reads(program.body))
    slopes = {}
    for statement in flatten(program.body):
        if isinstance(statement, If):
            slope = _slope_of(statement, program, set(active), counts, reads)
            if slope is not None:
                slopes[id(statement)] = slope
    return slopes


def _slope_of(
    statement: If, program: Program, active: set[str], counts: dict[str, int], reads: Counter[str]
) -> Slope | None:
    inner = [*statement.then, *statement.other]
    assigns = [each for each in inner if isinstance(each, Assign)]
    if len(assigns) < len(inner) or not all(_is_number(each, program) for each in assigns):
        return None
    own = _reads(all_reads(inner))
    names = {each.target.name for each in assigns}
    results = {name for name in names if reads[name] > own[name]}
    branches = [
        [each.target.name for each in branch if isinstance(each, Assign)]
        for branch in (statement.then, statement.other)
    ]
    sources = set().union(*(float_variables(each.value) for each in assigns)) & active - names
    if len(results) != 1 or len(sources) != 1 or live_in(inner, names):
        return None
    (result,), (source,) = results, sources
    is_assigned_once = all(branch.count(result) == 1 for branch in branches) and all(
        counts[name] == 1 + (name == result) for name in names
    )
    return Slope(source, result) if is_assigned_once and result in active else None


def _is_number(statement: Assign, program: Program) -> bool:
    """Whether a statement computes a number from numbers of the thread's own, as to derivatives."""
    variables = [statement.target.name, *float_variables(statement.value)]
    types = [program.variables.get(name) for name in variables]
    calls = [each.name for each in statement.value.walk() if each.op in ("call", "method")]
    return (
        statement.target.op == "variable"
        and not any(map(is_lane_function, calls))
        and all(
            type_ is not None
            and type_.lanes == 1
            and not (type_.extents or type_.space or type_.is_pointer or type_.is_aggregate)
            for type_ in types
        )
    )


def _reads(values: Iterable[Expression]) -> Counter[str]:
    return Counter(each.name for value in values for each in value.walk() if each.op == "variable")
