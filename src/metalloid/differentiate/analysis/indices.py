"""Indices as polynomials in the positions of threads, counters of loops and numbers of a launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from metalloid.differentiate.analysis.activity import assignments_of
from metalloid.differentiate.program.text import text_of
from metalloid.differentiate.program.tree import (
    Assign,
    Expression,
    Loop,
    Parameter,
    Program,
    flatten,
)

_INTEGERS = ("int", "uint", "long", "ulong", "short", "ushort", "char", "uchar")
_ATTRIBUTE = re.compile(r"\[\[(\w+)\]\]")
#: What varies between threads, by the attribute of the parameter.
POSITIONS = {
    "thread_position_in_grid": "grid",
    "threadgroup_position_in_grid": "group",
    "thread_position_in_threadgroup": "local",
    "thread_index_in_threadgroup": "flat",
    "thread_index_in_simdgroup": "lane",
    "simdgroup_index_in_threadgroup": "simdgroup",
}
#: What all threads have in common.
SIZES = {
    "threads_per_grid": "grid_size",
    "threads_per_threadgroup": "group_size",
    "threadgroups_per_grid": "group_count",
    "threads_per_simdgroup": "simd_width",
}
#: The number of values of narrow integers that are at least 0.
_NARROW = {"short": 2**15, "ushort": 2**16, "char": 2**7, "uchar": 2**8}
#: Positions are less, by their stems.
_LIMITS = {"local": 1024, "flat": 1024, "lane": 32, "simdgroup": 32}
#: Names of positions and sizes, which parameters may have, too.
_RESERVED = {*POSITIONS.values(), *SIZES.values()}
_SCALAR_POSITIONS = ("flat", "lane", "simdgroup")
_MAX_DEPTH = 24
#: Indices are less.
MAX_INDEX = 2**31

#: Factors, by the sorted names of what they multiply.
Polynomial = dict[tuple[str, ...], int]


@dataclass(frozen=True)
class Counter:
    """A variable that a loop steps from a first value to a bound.

    Attributes
    ----------
    first, step, end : Polynomial
        Its values are less than `end`.
    """

    first: Polynomial
    step: Polynomial
    end: Polynomial


@dataclass
class Atom:
    """A quotient or a remainder of a position by a constant.

    Attributes
    ----------
    position : str
    operator : str
        ``"/"`` or ``"%"``.
    divisor : int
    """

    position: str
    operator: str
    divisor: int


@dataclass
class Indices:
    """Recognises polynomials.

    Attributes
    ----------
    counters : dict of Counter
        By name.
    atoms : dict of Atom
        By text.
    arrays : set of str
        Vectors and arrays in constant memory of which polynomials have numbers.
    """

    program: Program
    counters: dict[str, Counter] = field(default_factory=dict)
    atoms: dict[str, Atom] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        counts = assignments_of(self.program)
        self._symbols: dict[str, str] = {}
        for parameter in self.program.parameters:
            known = {**POSITIONS, **SIZES}.get(attribute_of(parameter), "")
            limit = _LIMITS.get(known, MAX_INDEX)
            if known and not counts.get(parameter.name) and (
                limit <= _NARROW.get(parameter.type.scalar, MAX_INDEX)
            ):  # fmt: skip
                self._symbols[parameter.name] = known
            elif parameter.type.space == "constant" and parameter.name not in _RESERVED:
                self._symbols[parameter.name] = parameter.name
        self._values: dict[str, Expression] = {}
        firsts: dict[str, list[Assign]] = {}
        for statement in flatten(self.program.body):
            if isinstance(statement, Assign) and statement.target.op == "variable":
                firsts.setdefault(statement.target.name, []).append(statement)
        for name, statements in firsts.items():
            if len(statements) == 1 == counts[name]:
                self._values[name] = statements[0].value
        for loop in flatten(self.program.body):
            if isinstance(loop, Loop):
                self._read_counter(loop, firsts)

    def _read_counter(self, loop: Loop, firsts: dict[str, list[Assign]]) -> None:
        for step in loop.step:
            if not isinstance(step, Assign) or step.value.name != "+":
                continue
            name = step.target.base.name
            others = [each for each in firsts.get(name, ()) if each is not step]
            end = self._end(loop.condition, name)
            if len(others) != 1 or end is None or step.target.op != "variable":
                continue
            if name not in loop.own:
                continue  # it is read after the loop
            first, by = self.polynomial(others[0].value), self.polynomial(step.value.args[1])
            if first is not None and by is not None:
                self.counters[name] = Counter(first, by, end)

    def _end(self, condition: Expression, name: str) -> Polynomial | None:
        """The exclusive upper bound that a condition gives a variable."""
        if condition.op != "binary":
            return None
        left, right = condition.args
        if condition.name == "&&":
            return self._end(left, name) or self._end(right, name)
        while left.op == "cast" and left.type.scalar in _INTEGERS and _fits(left, None):
            left = left.args[0]
        if condition.name not in ("<", "<=") or left.op != "variable" or left.name != name:
            return None
        end = self.polynomial(right)
        if end is not None and condition.name == "<=":
            end = _sum(end, {(): 1})
        return end

    def polynomial(self, value: Expression, depth: int = _MAX_DEPTH) -> Polynomial | None:
        """An expression of integers; None if it is something else."""
        if depth == 0:
            return None
        if value.op == "constant":
            digits = value.name.rstrip("uUlL")
            return {(): int(digits)} if digits.isdigit() else None
        if value.op == "cast" and value.type.scalar in _INTEGERS:
            inner = self.polynomial(value.args[0], depth - 1)
            return inner if _fits(value, inner) else None
        if value.op == "variable":
            return self._variable(value, depth)
        if value.op in ("component", "element") and value.args[0].op == "variable":
            return self._number_of(value)
        if value.op == "member" and value.args[0].op == "variable":
            is_known = self._symbols.get(value.args[0].name) == value.args[0].name
            is_known = is_known and value.type.scalar in _INTEGERS
            return {(text_of(value),): 1} if is_known else None
        if value.op == "binary":
            pair = [self.polynomial(arg, depth - 1) for arg in value.args]
            if pair[0] is not None and pair[1] is not None:
                return self._binary(value.name, pair[0], pair[1])
        return None

    def _number_of(self, value: Expression) -> Polynomial | None:
        """A component of a position, or a number of a vector or an array in constant memory."""
        base, rest = value.args[0], value.name
        while base.name in self._values and self._values[base.name].op == "variable":
            base = self._values[base.name]
        name, symbol = base.name, self._symbols.get(base.name)
        if symbol is None or value.type.scalar not in _INTEGERS or value.type.lanes != 1:
            return None
        if value.op == "element":
            index = self.polynomial(value.args[1], 1)
            if index is None or set(index) > {()} or len(value.args) != 2 or symbol != name:
                return None
            rest = str(index.get((), 0))
        if symbol == name:
            self.arrays.add(name)
        return {(f"{symbol}.{rest}",): 1}

    def _variable(self, value: Expression, depth: int) -> Polynomial | None:
        name = value.name
        symbol = self._symbols.get(name)
        if symbol in _SCALAR_POSITIONS or symbol == name or symbol == "simd_width":
            return {(symbol,): 1} if symbol and value.type.lanes == 1 else None
        if symbol is not None:
            return {(f"{symbol}.x",): 1} if value.type.lanes == 1 else None
        if name in self.counters:
            return {(name,): 1}
        if name in self._values:
            return self.polynomial(self._values[name], depth - 1)
        return None

    def _binary(self, operator: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
        if operator == "+":
            return _sum(left, right)
        if operator == "*":
            product: Polynomial = {}
            for a, m in left.items():
                for b, n in right.items():
                    product = _sum(product, {tuple(sorted((*a, *b))): m * n})
            return product
        is_constant = list(right) == [()] and right[()] > 0
        is_one = list(left.values()) == [1] and len(next(iter(left))) == 1
        if operator not in "/%" or not is_constant or not is_one:
            return None
        ((position,),) = left
        if (
            position in (*self.counters, *self.atoms)
            or position.partition(".")[0] not in POSITIONS.values()
        ):
            return None
        text = f"{position} {operator} {right[()]}"
        self.atoms[text] = Atom(position, operator, right[()])
        return {(text,): 1}


def _fits(cast: Expression, of: Polynomial | None) -> bool:
    """Whether a conversion to an integer does not change a value of a polynomial."""
    limit = _NARROW.get(cast.type.scalar)
    if limit is None or _NARROW.get(cast.args[0].type.scalar, MAX_INDEX) <= limit:
        return True
    if of is None:
        return False
    largest = 0
    for names, factor in of.items():
        for name in names:
            if name.split(".")[0] not in _LIMITS:
                return False
            factor *= _LIMITS[name.split(".")[0]] - 1
        largest += factor
    return largest < limit


def attribute_of(parameter: Parameter) -> str:
    """The name of the attribute of a parameter, if it has one without arguments."""
    attribute = _ATTRIBUTE.search(parameter.attributes)
    return attribute[1] if attribute else ""


def _sum(left: Polynomial, right: Polynomial) -> Polynomial:
    terms = dict(left)
    for names, factor in right.items():
        terms[names] = terms.get(names, 0) + factor
    return {names: factor for names, factor in terms.items() if factor}


def evaluate(polynomial: Polynomial, number_of: Callable[[str], int]) -> int:
    """The value of a polynomial, from those of what it multiplies."""
    total = 0
    for names, factor in polynomial.items():
        for name in names:
            factor *= number_of(name)
        total += factor
    return total


def is_distinct(indices: Indices, index: Expression, counter: str, changed: Iterable[str]) -> bool:
    """Whether an index differs in all iterations of a loop with a counter.

    Parameters
    ----------
    changed : iterable of str
        Variables that the loop changes.
    """
    polynomial = indices.polynomial(index)
    if polynomial is None or counter not in indices.counters:
        return False
    used = {name for names in polynomial for name in names}
    others = (set(changed) & set(indices.counters)) - {counter}
    step = indices.counters[counter].step
    is_linear = [names for names in polynomial if counter in names] == [(counter,)]
    return is_linear and not used & others and list(step) == [()] and step[()] > 0
