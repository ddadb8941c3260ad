"""Threads that return before a barrier that others of their threadgroup reach.

Metal's GPUs, and NVIDIA's, do not wait at a barrier for threads that have returned. OpenCL wants
all of them there: on Intel's runtime for CPUs no thread gets further than the last subgroup. So a
thread that returns early here goes on to the barriers, in a copy of the code (its *shadow*) of
which nothing remains but the branches that decide which barrier comes next. These must be uniform,
and what they depend on is computed in the shadow as well.

Both paths meet at every barrier, and at the headers of loops with barriers, which would have two
entries otherwise::

    u: br %returns, ...           load, compute, ...     (others)
             |                         |
        shadow of ...                  |
             +----> barrier <----------+
                       |  br %alive
             +---------+---------------+
        shadow of what follows     what follows
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from operator import or_

from metalloid.backends.opencl.compile.dominance import Slots, restore_dominance
from metalloid.backends.opencl.compile.execution_barriers import BARRIER, analyse_divergence
from metalloid.compiler.ir.cfg import EXIT, Graph, immediate_postdominators
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.types import I1, Unsupported
from metalloid.compiler.transforms.clone_blocks import clone
from metalloid.compiler.transforms.loop_simplify import (
    remove_edge,
    simplify_loops,
    split_block,
)

Returns = dict[str, tuple[str, str]]
_WORKGROUP = "2"  # as in target_spirv.h
_COPIED = INTEGER_BINARY | FLOAT_BINARY | CASTS | {
    "icmp", "fcmp", "fneg", "freeze", "select", "getelementptr", "extractelement",
    "insertelement", "shufflevector", "load", "phi",
}  # fmt: skip


def let_returned_threads_reach_barriers(function: Function, names: FreshNames) -> bool:
    """Change `function` as far as it can be done; whether it was changed."""
    if not any(map(_is_barrier, function.instructions())):
        return False
    copy = function.copy()
    slots = Slots(copy, names)
    try:
        simplify_loops(copy)
        _isolate_barriers(copy, names)
        pruned = copy.copy()
        returns = _remove_early_returns(pruned)
        if not returns:
            return False
        _Shadow(copy, pruned, names, slots, returns).write()
        _forget_edges(copy, returns)
        restore_dominance(copy, names, slots)
    except Unsupported:
        return False  # a barrier that is not uniform even without early returns, for example
    function.blocks = copy.blocks
    return True


def _is_barrier(i: Instruction) -> bool:
    return i.op == "call" and i.callee == BARRIER and i.operands[0].name == _WORKGROUP


def _isolate_barriers(function: Function, names: FreshNames) -> None:
    """Give every barrier a block of its own."""
    for block in list(function.blocks.values()):
        positions = [n for n, i in enumerate(block.body) if _is_barrier(i)]
        for position in reversed(positions):
            split_block(function, block, position, names("%after.barrier"))
            split_block(function, block, position - 1, names("%barrier"))


def _barriers(function: Function) -> set[str]:
    return {name for name, block in function.blocks.items() if any(map(_is_barrier, block.body))}


def _area(graph: Graph, barriers: Iterable[str]) -> set[str]:
    """The blocks from which a barrier can be reached."""
    bits = graph.bits(barriers)
    return {name for name in graph.order if graph.reach[name] & bits}


def _remove_early_returns(function: Function) -> Returns:
    """Remove edges that not all threads take, and which lead to where no barrier follows.

    Returns
    -------
    dict of (str, str)
        By block: to where the edge led, and the only successor now.
    """
    returns: Returns = {}
    while True:
        divergence = analyse_divergence(function)
        graph, barriers = divergence.graph, _barriers(function)
        area = _area(graph, barriers)
        # The blocks that follow each block until the next barrier.
        until = graph.ahead({name: 1 << n for name, n in graph.number.items()}, barriers)
        ends = {}
        for name in graph.order:
            labels = function.blocks[name].end.labels
            outside = [label for label in labels if label not in area]
            if name in area and len(labels) == 2 and outside:
                ends[name] = outside[0], labels[1 - labels.index(outside[0])]
        branches = divergence.branches & area
        leaving = ends.keys() & branches
        for end in ends.keys() - branches if not leaving else ():
            # A uniform branch in code that not all threads run, for another reason than returns.
            around = graph.ahead(dict.fromkeys(barriers, 1), barriers | {end})
            deciding = [b for b in branches if any(around[s] for s in graph.successors[b])]
            if any(until[branch] >> graph.number[end] & 1 for branch in deciding):
                leaving.add(end)
        if not leaving:
            return returns
        for name in ends:
            if name in leaving:
                returns[name] = ends[name]
                function.blocks[name].end = Instruction("br", labels=[ends[name][1]])
        _forget_edges(function, {name: ends[name] for name in leaving})


def _forget_edges(function: Function, returns: Returns) -> None:
    for name, (target, _) in returns.items():
        if target in function.blocks:  # unless another edge was the last one to it
            remove_edge(function, name, target)


class _Shadow:
    """The code of threads that have returned.

    Parameters
    ----------
    function : Function
        In canonical form, with barriers in blocks of their own.
    pruned : Function
        The same without `returns`.
    names : FreshNames
    slots : Slots
        For what the threads take along.
    returns : dict of (str, str)
        See `_remove_early_returns`.
    """

    def __init__(
        self,
        function: Function,
        pruned: Function,
        names: FreshNames,
        slots: Slots,
        returns: Returns,
    ) -> None:
        self._function, self._names, self._slots, self._returns = function, names, slots, returns
        self._before = before = Graph(function)
        self._blocks = pruned.blocks
        self._divergence = analyse_divergence(pruned)
        self._graph = graph = self._divergence.graph
        self._next = immediate_postdominators(graph, EXIT)
        barriers = _barriers(pruned)
        if barriers & self._divergence.masked:
            raise Unsupported("a barrier that some threads do not reach")
        reached = functools.reduce(or_, (graph.reach[other] for _, other in returns.values()))
        area = _area(graph, barriers)
        self._shadows = {
            name: names(f"{name}.shadow")
            for name in graph.order
            if name in area and reached >> graph.number[name] & 1
        }
        loops = {loop.header for loop in graph.loops if loop.blocks & barriers}
        self._meetings = [name for name in self._shadows if name in barriers | loops]
        self._home = {
            i.result: name for name in graph.order for i in self._blocks[name].instructions()
        }
        # What is computed once, before any thread returns, is there for the shadow as well.
        later = functools.reduce(or_, (before.reach[s] for u in returns for s in returns[u]))
        self._common = {
            name for name in graph.order
            if not later >> before.number[name] & 1
            and all(before.dominates(name, u) for u in returns)
        }  # fmt: skip
        self._branches: set[str] = set()
        self._values: set[str] = set()
        self._inside = {name: self._blocks_inside(name) for name in self._shadows}
        for name, inside in self._inside.items():
            if inside & graph.bits(barriers):
                self._need_values(self._need_branch(name))

    def _blocks_inside(self, name: str) -> int:
        """The blocks from a branch to where its paths meet: bits."""
        if len(self._blocks[name].end.labels) != 2:
            return 0
        seen, todo = {name, self._next[name]}, [name]
        while todo:
            for successor in self._graph.successors[todo.pop()]:
                if successor not in seen:
                    seen.add(successor)
                    todo.append(successor)
        return self._graph.bits(seen - {self._next[name]})

    def _need_branch(self, name: str) -> list[Value]:
        """Let the shadow have a branch; the values that it needs then."""
        if name in self._branches or name not in self._shadows:
            return []
        if name in self._divergence.branches:
            raise Unsupported("a barrier after a divergent branch")
        self._branches.add(name)
        return self._blocks[name].end.operands[:1]

    def _need_values(self, values: list[Value]) -> None:
        while values:
            value = values.pop()
            home = self._home.get(value.name)
            if home is None or home in self._common or value.name in self._values:
                continue
            i = next(i for i in self._blocks[home].instructions() if i.result == value.name)
            is_intrinsic = i.op == "call" and i.callee.startswith("@llvm.")
            if not (i.op in _COPIED or is_intrinsic) or i.ordering or "volatile" in i.flags:
                raise Unsupported(f"{i.op} in the condition of a barrier")
            if not self._divergence.shape(value, home).is_uniform:
                raise Unsupported("a barrier whose condition differs between threads")
            self._values.add(value.name)
            values += i.operands
            # How often it is computed, and which of its values a phi has, earlier branches decide.
            bit = self._graph.bits([home])
            for name, inside in self._inside.items():
                if inside & bit or (inside and i.op == "phi" and self._next[name] == home):
                    values += self._need_branch(name)

    # -- writing

    def write(self) -> None:
        """Add the shadow to the function, whose values then need not dominate their uses."""
        for name in self._shadows:
            self._write_shadow(name)
        for name, (target, other) in self._returns.items():
            self._redirect(name, target, other)
        self._save_values()
        for name in self._meetings:
            self._join(name)

    def _shadow_of(self, name: str) -> str:
        return self._shadows.get(name, EXIT)

    def _write_shadow(self, name: str) -> None:
        block = self._blocks[name]
        body: list[Instruction] = []
        for phi in self._needed(block.phis):
            taken = self._slots.load(_incoming(phi), phi.type)
            body += [taken, self._slots.store(phi.result, taken.value)]
        for i in self._needed(block.body):
            operands = [self._read(value, body) for value in i.operands]
            copied = replace(i, result=self._names(f"{i.result}.shadow"), operands=operands)
            body += [copied, self._slots.store(i.result, copied.value)]
        end = Instruction("br", labels=[self._shadow_of(label) for label in block.end.labels])
        if name in self._branches:
            end.operands = [self._read(block.end.operands[0], body)]
        elif len(end.labels) == 2:
            end.labels = [self._shadow_of(self._next[name])]
        for successor in block.successors:
            for phi in self._needed(self._blocks[successor].phis):
                value = self._read(phi.operands[phi.labels.index(name)], body)
                body.append(self._slots.store(_incoming(phi), value))
        own = self._shadows[name]
        self._function.blocks[own] = Block(own, [], body, end)

    def _needed(self, instructions: Iterable[Instruction]) -> list[Instruction]:
        return [i for i in instructions if i.result in self._values]

    def _read(self, value: Value, body: list[Instruction]) -> Value:
        if value.name not in self._values:
            return value
        body.append(self._slots.load(value.name, value.type))
        return body[-1].value

    def _redirect(self, name: str, target: str, other: str) -> None:
        """Let the threads that return at `name` go to the shadow, after what they do until then."""
        blocks, before = self._function.blocks, self._before
        entry = Block(self._names(f"{name}.returned"))
        for phi in self._needed(self._blocks[other].phis):
            value = phi.operands[phi.labels.index(name)]
            entry.body.append(self._slots.store(_incoming(phi), value))
        entry.end = Instruction("br", labels=[self._shadow_of(other)])
        rest = {n for n in before.order if before.reach[target] >> before.number[n] & 1} - {EXIT}
        for each in rest & self._graph.number.keys():
            calls = (i.callee for i in blocks[each].body if i.op == "call")
            if not all(callee.startswith("@llvm.") for callee in calls):
                raise Unsupported("a simdgroup function where returned threads meet the others")
        copies, _ = clone(self._function, rest, ".returning", self._names)
        for own in copies.values():
            block = blocks[own]
            block.end.labels = [entry.name if n == EXIT else n for n in block.end.labels]
            sources = {*copies.values()} | ({name} if own == copies[target] else set())
            for phi in block.phis:
                pairs = [
                    pair for pair in zip(phi.operands, phi.labels, strict=True)
                    if pair[1] in sources
                ]  # fmt: skip
                phi.operands, phi.labels = [v for v, _ in pairs], [n for _, n in pairs]
        blocks[entry.name] = entry
        end = blocks[name].end
        end.labels = [copies.get(n, entry.name) if n == target else n for n in end.labels]

    def _save_values(self) -> None:
        """Let the other threads save what the shadow goes on with if they return."""
        for name in self._graph.order:
            block = self._function.blocks[name]
            body = [self._slots.store(i.result, i.value) for i in self._needed(block.phis)]
            for i in block.body:
                body.append(i)
                if i.result in self._values:
                    body.append(self._slots.store(i.result, i.value))
            block.body = body

    def _join(self, name: str) -> None:
        """Let all threads meet before a block of a barrier, and execute it, or before a header."""
        blocks, shadow = self._function.blocks, self._shadows[name]
        block = blocks[name]
        alive = Instruction("phi", self._names("%alive"), I1)
        end = Instruction("br", operands=[alive.value], labels=[name, shadow])
        meeting = Block(self._names(f"{name}.meeting"), [alive], [], end)
        for source in blocks.values():
            for label, is_alive in ((name, "true"), (shadow, "false")):
                if label not in source.end.labels:
                    continue
                source.end.labels = [meeting.name if n == label else n for n in source.end.labels]
                alive.operands.append(Value(I1, is_alive))
                alive.labels.append(source.name)
                if label == name:
                    for phi in block.phis:
                        value = phi.operands[phi.labels.index(source.name)]
                        source.body.append(self._slots.store(_incoming(phi), value))
        taken = [
            Instruction("load", phi.result, phi.type, [self._slots.of(_incoming(phi), phi.type)])
            for phi in block.phis
        ]
        meeting.body = [i for i in block.body if _is_barrier(i)]
        block.phis, block.body = [], taken + [i for i in block.body if not _is_barrier(i)]
        blocks[meeting.name] = meeting


def _incoming(phi: Instruction) -> str:
    """Name of the slot of what a phi gets."""
    return f"{phi.result}.in"
