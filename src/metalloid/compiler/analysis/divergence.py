"""Divergent branches of a simdgroup, and the values that vary between its lanes.

Shapes of values and divergence of branches depend on each other: a branch on a varying condition
makes the values varying that its edges join. Both start from the assumption that everything is
uniform, and are refined in turns to a fixed point. (Rosemann, Moll, Hack: An Abstract
Interpretation for SPMD Divergence on Reducible Control Flow Graphs, POPL 2021, in the plain form of
section 2.)
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from metalloid.compiler.analysis.libcalls import is_libcall
from metalloid.compiler.analysis.shapes import (
    VARYING,
    Shape,
    alignment_of,
    join,
    lane_step,
    shape_of,
    uniform,
)
from metalloid.compiler.analysis.simdgroup_functions import ALL_PASS, NONE_PASSES, shape_of_call
from metalloid.compiler.analysis.target_builtins import is_lanewise
from metalloid.compiler.ir.cfg import EXIT, Graph, Loop, immediate_postdominators
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY

_ARITHMETIC = (
    INTEGER_BINARY | FLOAT_BINARY | CASTS | {"icmp", "fcmp", "fneg", "select", "getelementptr"}
)


@dataclass
class Divergence:
    """The result.

    Attributes
    ----------
    shapes : dict of Shape
        Of each value, as seen in the block that computes it.
    of_threadgroup : bool
        Whether lanes stand for simdgroups, which do not run at the same time.
    branches : set of str
        Blocks that end in a divergent branch.
    forbidden : dict
        Branches that must be uniform (`barrier_divergence`), as far as they may diverge.
    agreed : set of str
    masked : set of str
        Blocks that may run with some lanes inactive.
    loops : set of Loop
        Loops that lanes leave in different iterations.
    joins : set of str
        Blocks where lanes that have diverged reconverge.
    """

    function: Function
    graph: Graph
    width: int
    shapes: dict[str, Shape]
    of_threadgroup: bool = False
    branches: set[str] = field(default_factory=set)
    forbidden: dict[str, tuple[int, str]] = field(default_factory=dict)
    agreed: set[str] = field(default_factory=set)
    masked: set[str] = field(default_factory=set)
    loops: set[str] = field(default_factory=set)
    joins: set[str] = field(default_factory=set)
    _home: dict[str, str] = field(default_factory=dict)

    def shape(self, value: Value, block: str) -> Shape:
        """Shape of `value` as seen from `block`.

        A value of a loop that lanes leave in different iterations is varying after the loop.
        """
        computed = self._shape(value, block)
        return VARYING if computed is None else computed

    def _shape(self, value: Value, block: str) -> Shape | None:
        if value.is_constant:
            number = value.integer
            return uniform(self.width, 0 if number is None else alignment_of(number))
        shape = self.shapes.get(value.name)
        if shape is not None and not shape.is_varying and self.leaves_loop(value, block):
            return VARYING
        return shape

    def leaves_loop(self, value: Value, block: str) -> bool:
        """Whether `value` comes from a divergent loop that `block` is not in."""
        home = self._home.get(value.name)
        loop = self.graph.loop_of[home] if home else None
        while loop is not None:
            if loop.header in self.loops and block not in loop.blocks:
                return True
            loop = loop.parent
        return False

    def home(self, value: Value) -> str:
        """Block that computes it; empty for parameters."""
        return self._home.get(value.name, "")


def analyse(
    function: Function,
    graph: Graph,
    width: int,
    parameters: dict[str, Shape],
    all_masked: bool,
    of_threadgroup: bool = False,
    forbidden: Mapping[str, tuple[int, str]] = MappingProxyType({}),
) -> Divergence:
    """Find shapes and divergence.

    Parameters
    ----------
    function, graph : Function, Graph
        In canonical form.
    width : int
        Lanes of the simdgroup.
    parameters : dict of Shape by name
    all_masked : bool
        Whether lanes may be inactive from the start.
    of_threadgroup : bool
        Whether lanes stand for simdgroups, which do not run at the same time.
    forbidden : dict
        Branches at which lanes may not part.
    """
    result = Divergence(function, graph, width, dict(parameters), of_threadgroup)
    result.forbidden.update(forbidden)
    for block in function.blocks.values():
        for instruction in (*block.phis, *block.body):
            if instruction.result:
                result._home[instruction.result] = block.name
    if all_masked:
        result.masked |= set(graph.order)
    _Analysis(result).run()
    return result


def _is_the_same_at_any_time(instruction: Instruction) -> bool:
    """Whether equal operands give equal results, whatever others do meanwhile."""
    if instruction.op == "load":
        return instruction.reads_the_same
    if instruction.op == "call":
        return is_lanewise(instruction.callee) or is_libcall(instruction.callee)
    return instruction.op in _ARITHMETIC


class _Analysis:
    def __init__(self, result: Divergence) -> None:
        self._result = result
        self._graph = result.graph
        self._blocks = result.function.blocks
        self._meeting = immediate_postdominators(result.graph, EXIT)

    def run(self) -> None:
        while True:
            self._find_shapes()
            computed = False
            for name in self._graph.order:
                end = self._blocks[name].end
                if len(end.labels) != 2 or name in self._result.branches | self._result.agreed:
                    continue
                if not self._result.shape(end.operands[0], name).is_uniform:
                    if name in self._result.forbidden:
                        self._result.agreed.add(name)
                        continue
                    self._result.branches.add(name)
                    self._spread(self._meeting[name], end.labels, self._graph.loop_of[name])
                    computed = True
            if not computed:
                return

    # -- shapes

    def _find_shapes(self) -> None:
        shapes = self._result.shapes
        changed = True
        while changed:
            changed = False
            for name in self._graph.order:
                block = self._blocks[name]
                for instruction in (*block.phis, *block.body):
                    if not instruction.result:
                        continue
                    known = shapes.get(instruction.result)
                    if known is not None and known.is_varying:
                        continue
                    new = join(known, self._transfer(instruction, block))
                    if new is not None and new != known:
                        shapes[instruction.result] = new
                        changed = True

    def _transfer(self, instruction: Instruction, block: Block) -> Shape | None:
        result, width = self._result, self._result.width
        if instruction.op == "phi":
            names = {value.name for value in instruction.operands}
            if block.name in result.joins and len(names) > 1:
                return VARYING
            shape: Shape | None = None
            for value in instruction.operands:
                shape = join(shape, result._shape(value, block.name))
            return shape
        operands = [result._shape(value, block.name) for value in instruction.operands]
        known = [shape for shape in operands if shape is not None]
        if len(known) < len(operands):
            return None
        if result.of_threadgroup and not _is_the_same_at_any_time(instruction):
            return VARYING
        if instruction.op == "alloca":
            step = lane_step(instruction)
            return Shape(tuple(lane * step for lane in range(width)))
        if instruction.op == "load":
            return uniform(width) if known[0].is_uniform and not instruction.ordering else VARYING
        if instruction.op in ("atomicrmw", "cmpxchg", "extractvalue"):
            return VARYING
        if instruction.op == "call":
            if instruction.callee in (ALL_PASS, NONE_PASSES):
                return uniform(width)
            computed = shape_of_call(instruction, known, width)
            if computed is not None:
                return computed
        return shape_of(instruction, known, width)

    # -- control

    def _spread(self, stop: str, targets: list[str], loop: Loop | None) -> None:
        """Mark joins of lanes that diverge towards `targets` and reconverge by `stop`.

        A block that is reached on two different paths is a join. A path is identified by its last
        join, or else by the target it began with.
        """
        graph, number = self._graph, self._graph.number
        incoming: dict[str, str] = {}
        todo: list[int] = []
        left = False

        def arrive(block: str, edge: str) -> None:
            nonlocal left
            if loop is not None and block == loop.header:
                return
            if loop is not None and block not in loop.blocks:
                left = True
            elif block not in incoming:
                incoming[block] = edge
                heapq.heappush(todo, number[block])
            elif incoming[block] != edge:
                incoming[block] = block
                self._result.joins.add(block)

        for target in targets:
            arrive(target, target)
        while todo:
            block = graph.order[heapq.heappop(todo)]
            if block == stop:
                continue
            self._result.masked.add(block)
            inner = graph.loop_of[block]
            for successor in graph.successors[block]:
                is_back = number[successor] <= number[block] and (
                    inner is not None and successor == inner.header and inner is not loop
                )
                if not is_back:
                    arrive(successor, incoming[block])
        if left and loop is not None:
            self._leave(loop)

    def _leave(self, loop: Loop) -> None:
        """Mark a loop that lanes leave in different iterations, or by different exits."""
        result, graph = self._result, self._graph
        if loop.header in result.loops:
            return
        result.loops.add(loop.header)
        result.masked |= loop.blocks
        for exit in loop.exits:
            if len(graph.predecessors[exit]) > 1:
                result.joins.add(exit)
        outside = loop.parent
        leaves_two = outside is not None and any(exit not in outside.blocks for exit in loop.exits)
        if len(loop.exits) > 1 or leaves_two:
            stop = loop.header
            while stop in loop.blocks:
                stop = self._meeting[stop]
            self._spread(stop, loop.exits, outside)
