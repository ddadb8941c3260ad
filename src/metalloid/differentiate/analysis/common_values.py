"""Values that the threads of a simdgroup have in common, as far as the text of a kernel says.

What is added to one element by all threads of a simdgroup can be summed first. An index is common
to them if it depends on numbers of the launch, and on positions that differ between simdgroups
only. A quotient of such positions as differ may be common: whether it is, the adjoint finds out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from metalloid.differentiate.analysis.activity import (
    all_reads,
    has_lane_functions,
    indices_of,
)
from metalloid.differentiate.analysis.indices import POSITIONS, SIZES, attribute_of
from metalloid.differentiate.program.tree import (
    Assign,
    AtomicAdd,
    Barrier,
    Expression,
    If,
    Loop,
    Program,
    Statement,
    assigned,
    flatten,
)

_SIMD_WIDTH = 32
_AXES = "xyz"
#: Functions of a simdgroup that return the same in all threads that call them.
_COMMON_RESULTS = (
    "simd_sum", "simd_product", "simd_max", "simd_min", "simd_and", "simd_or", "simd_xor",
    "simd_all", "simd_any", "simd_broadcast_first",
)  # fmt: skip


class Level(IntEnum):
    """Degrees to which the threads of a simdgroup have a value in common.

    A quotient of a value that counts positions may be common.
    """

    COMMON = 0
    PERHAPS = 1
    POSITION = 2
    VARYING = 3


class Common(NamedTuple):
    """The level of a value, if positions along some axes are common.

    Attributes
    ----------
    level : Level
    axes : frozenset of str
        ``"y"`` and ``"z"``.
    """

    level: Level = Level.COMMON
    axes: frozenset[str] = frozenset()

    def joined(self, *others: Common) -> Common:
        """The level of a value that depends on several."""
        return Common(
            max(each.level for each in (self, *others)),
            self.axes.union(*(each.axes for each in others)),
        )


_VARYING = Common(Level.VARYING)


class CommonValues:
    """The levels of the expressions of a program.

    Parameters
    ----------
    program : Program
    """

    def __init__(self, program: Program) -> None:
        self._positions = {
            parameter.name: POSITIONS[attribute]
            for parameter in program.parameters
            if (attribute := attribute_of(parameter)) in POSITIONS
        }
        #: Parameters of which it is not known what they say of a thread.
        self._others = {
            parameter.name
            for parameter in program.parameters
            if parameter.attributes and not (parameter.type.is_handle or parameter.type.space)
            if attribute_of(parameter) not in (*POSITIONS, *SIZES)
        }
        assignments = [each for each in flatten(program.body) if isinstance(each, Assign)]
        added = [each for each in flatten(program.body) if isinstance(each, AtomicAdd)]
        self._counts = Counter(each.target.base.name for each in assignments)
        self._written = {*self._counts, *(each.target.base.name for each in added)}
        #: Counters of loops, which nothing outside of them reads.
        self._counters = {
            name
            for loop in flatten(program.body)
            if isinstance(loop, Loop)
            for name in loop.own & assigned(loop.step) - assigned(loop.body)
            if self._counts[name] == 2  # the first value and the step
        }
        self._reads: dict[int, Counter[str]] = {}
        self._all_reads = self._reads_of(program.body)
        self._known: dict[str, Common] = {}
        before: Mapping[str, Common] | None = None
        while before != self._known:
            before = dict(self._known)
            self._visit(program.body, Common())

    def _reads_of(self, block: Sequence[Statement]) -> Counter[str]:
        """Numbers of reads of variables."""
        total: Counter[str] = Counter()
        for statement in block:
            if id(statement) not in self._reads:
                values = list(all_reads([statement]))
                self._reads[id(statement)] = Counter(
                    each.name for v in values for each in v.walk() if each.op == "variable"
                )
            total += self._reads[id(statement)]
        return total

    def _visit(self, block: Sequence[Statement], control: Common) -> None:
        """Note what statements assign where `control` says which threads run them."""
        for number, statement in enumerate(block):
            match statement:
                case Assign(target=target, value=value):
                    name = target.base.name
                    common = self.of(value).joined(*map(self.of, indices_of(target)))
                    if control.level and not self._is_dominant(name, block[number + 1 :]):
                        common = common.joined(control)
                    self._known[name] = self._known.get(name, Common()).joined(common)
                case If(condition=condition, then=then, other=other):
                    inner = control.joined(self.of(condition))
                    self._visit(then, inner)
                    self._visit(other, inner)
                case Loop(condition=condition, body=body, step=step):
                    inner = control.joined(self.of(condition))
                    self._visit(body, inner)
                    self._visit(step, inner)

    def _is_dominant(self, name: str, rest: Sequence[Statement]) -> bool:
        """Whether only threads that run an assignment read its value."""
        if name in self._counters:
            return True
        return self._counts[name] == 1 and self._reads_of(rest)[name] == self._all_reads[name]

    def of(self, value: Expression) -> Common:
        """The level of a value, in the threads of a simdgroup that run together."""
        match value.op:
            case "variable":
                return self._variable(value)
            case "component" if value.args[0].op == "variable" and value.args[0].name in (
                self._positions
            ):
                return self._position(self._positions[value.args[0].name], value.name)
            case "element" if value.base.type.space or value.base.type.is_pointer:
                return self._memory(value)
            case "method" | "option" | "texel":
                return _VARYING
            case "call" if value.name.startswith(("simd_", "quad_")):
                return Common() if value.name in _COMMON_RESULTS else _VARYING
        parts = [self.of(arg) for arg in value.args]
        if value.op == "binary" and value.name in ("/", ">>") and (
            parts[0].level == Level.POSITION and parts[1].level == Level.COMMON
            and value.type.scalar not in ("float", "half", "bfloat")
        ):  # fmt: skip
            return Common(Level.PERHAPS, parts[0].axes | parts[1].axes)
        return Common().joined(*parts) if parts else Common()

    def _variable(self, value: Expression) -> Common:
        name = value.name
        if name in self._positions:
            return self._position(self._positions[name], _AXES[: value.type.lanes])
        is_shared = value.type.space == "threadgroup"
        if name in self._others or is_shared or (value.type.space and name in self._written):
            return _VARYING
        return self._known.get(name, Common())

    def _position(self, stem: str, axes: str) -> Common:
        if stem in ("group", "simdgroup"):
            return Common()
        if "x" in axes or stem in ("flat", "lane"):
            return Common(Level.POSITION)
        return Common(Level.COMMON, frozenset(axes))

    def _memory(self, element: Expression) -> Common:
        base = element.base
        if base.type.space == "threadgroup" or base.name in self._written:
            return _VARYING
        index = Common().joined(*(self.of(arg) for arg in element.args[1:]))
        return index if index.level <= Level.PERHAPS else _VARYING


def depends_on_threadgroups(program: Program) -> bool:
    """Whether what a thread computes may depend on how the grid is divided into threadgroups."""
    attributes = {attribute_of(parameter) for parameter in program.parameters}
    types = [*program.variables.values(), *(each.type for each in program.parameters)]
    return (
        not attributes <= {"", "thread_position_in_grid", "threads_per_grid"}
        or any(each.space == "threadgroup" for each in types)
        or any(isinstance(each, Barrier) for each in flatten(program.body))
        or has_lane_functions(program.body)
    )


def rows_are_common(axes: frozenset[str], grid: Sequence[int], group: Sequence[int]) -> bool:
    """Whether the threads of each simdgroup of a launch have the same position along axes."""
    return all(_row_is_common(_AXES.index(axis), grid, group) for axis in axes)


def _row_is_common(axis: int, grid: Sequence[int], group: Sequence[int]) -> bool:
    if group[axis] == 1:
        return True
    threads = 1  # of a threadgroup along the axes before; the last threadgroup may be smaller
    for n, m in zip(grid[:axis], group[:axis], strict=True):
        if n % m and (axis > 1 or n % _SIMD_WIDTH):
            return False
        threads *= m
    return threads % _SIMD_WIDTH == 0
