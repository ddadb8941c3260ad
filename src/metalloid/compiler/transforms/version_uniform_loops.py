"""Versions of loops over indices without masks, for while all lanes are active.

``for (i = t; i < n; i += 256)`` is the form of most loops in kernels. Lanes leave it in different
iterations only if n lies between their indices; but as n is unknown, all iterations would be
masked. So a copy of the loop precedes it, whose branches test whether all lanes continue, or none,
from the first lane and the last (`lane_votes.all_lanes_pass`). If lanes diverge, the loop runs the
rest::

    guard:  br pass, loop, exit               guard:     br all pass, copy, guard'
    loop:   ...; br pass, loop, exit          copy:      ...; br all pass, copy, middle
                                              middle:    br none pass, exit, divergent
                                              divergent: br pass, preheader, exit
                                              guard':    br pass, preheader, exit
                                              preheader: br loop
                                              loop:      ...; br pass, loop, exit
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from metalloid.compiler.analysis.simdgroup_functions import ALL_PASS, NONE_PASSES
from metalloid.compiler.analysis.target_builtins import is_lanewise
from metalloid.compiler.ir.cfg import Graph, Loop
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value, replace_predecessor
from metalloid.compiler.ir.types import I1
from metalloid.compiler.transforms.clone_blocks import clone

#: Loops with more instructions than this are not duplicated.
_LONG = 96


@dataclass(frozen=True)
class _Counting:
    """A loop over indices.

    Attributes
    ----------
    loop : Loop
    exit_label : str
        The block after it.
    before : str
        That which enters it.
    guard : str
        The block with the branch before the loop; may be `before`.
    """

    loop: Loop
    exit_label: str
    before: str
    guard: str


def version_uniform_loops(function: Function, positions: Set[str]) -> None:
    """Insert such a copy before each loop over indices.

    Parameters
    ----------
    function : Function
    positions : set of str
        Parameters that lanes have different values of.
    """
    graph = Graph(function)
    differing = _depend_on(function, graph, positions)
    outer = {loop.parent.header for loop in graph.loops if loop.parent is not None}
    others = outer | _used_outside(function, graph)
    inner = [loop for loop in graph.loops if loop.header not in others]
    # No copy changes what is known of another loop.
    candidates = [_counting(function, graph, loop, differing) for loop in inner]
    names = FreshNames(function) if any(candidates) else None
    for candidate in candidates:
        if candidate is not None and names is not None:
            _copy(function, candidate, names)


def _counting(
    function: Function, graph: Graph, loop: Loop, differing: Set[str]
) -> _Counting | None:
    """The parts of a loop over indices; None for another loop."""
    blocks = function.blocks
    if not loop.latch or not loop.preheader or len(loop.exits) != 1:
        return None
    latch, before, [exit_label] = blocks[loop.latch], loop.preheader, loop.exits
    if exit_label not in latch.end.labels or len(latch.end.labels) != 2:
        return None
    if sum(exit_label in graph.successors[name] for name in loop.blocks) > 1:
        return None
    inside = [one for name in loop.blocks for one in blocks[name].instructions()]
    if len(inside) > _LONG or any(map(_meets_others, [*inside, *blocks[before].body])):
        return None
    if not _is_counted(function, loop, differing):
        return None
    guard = before
    if len(blocks[before].end.labels) == 1:
        if len(graph.predecessors[before]) != 1 or blocks[before].phis:
            return None
        guard = graph.predecessors[before][0]
    if len(blocks[guard].end.labels) != 2 or exit_label not in blocks[guard].end.labels:
        return None
    return _Counting(loop, exit_label, before, guard)


def _used_outside(function: Function, graph: Graph) -> set[str]:
    """Headers of loops whose values are used outside, other than by phis after them."""
    loop_of = {
        one.result: loop
        for name in graph.order
        if (loop := graph.loop_of[name]) is not None
        for one in function.blocks[name].instructions()
    }
    candidate = set()
    for name in graph.order:
        for one in function.blocks[name].instructions():
            for position, value in enumerate(one.operands):
                loop = loop_of.get(value.name)
                if loop is None or name in loop.blocks:
                    continue
                if one.op != "phi" or one.labels[position] != loop.latch:
                    candidate.add(loop.header)
    return candidate


def _meets_others(instruction: Instruction) -> bool:
    if instruction.op == "call":
        return not is_lanewise(instruction.callee)
    return instruction.op in ("fence", "alloca")


def _is_counted(function: Function, loop: Loop, differing: Set[str]) -> bool:
    """Whether it compares a sum of what lanes have different values of with what they share."""
    blocks = function.blocks
    computed_by = {one.result: one for name in loop.blocks for one in blocks[name].instructions()}
    latch = blocks[loop.latch]
    test = computed_by.get(latch.end.operands[0].name)
    if test is None or test.op != "icmp" or test not in latch.body:
        return False
    step = computed_by.get(test.operands[0].name)
    if step is None or step.op != "add":
        return False
    index = next((phi for phi in blocks[loop.header].phis if phi.value in step.operands), None)
    if index is None:
        return False
    first = index.operands[index.labels.index(loop.preheader)]
    return first.name in differing and test.operands[1].name not in differing


def _depend_on(function: Function, graph: Graph, names: Set[str]) -> set[str]:
    """Values computed from `names`, except along back edges."""
    candidate = set(names)
    for name in graph.order:
        for one in function.blocks[name].instructions():
            if one.result and any(value.name in candidate for value in one.operands):
                candidate.add(one.result)
    return candidate


def _copy(function: Function, counting: _Counting, names: FreshNames) -> None:
    """Put the copy there."""
    blocks, loop = function.blocks, counting.loop
    guard, before = blocks[counting.guard], blocks[counting.before]
    entered = [] if before is guard else [before.name]
    twice = loop.blocks.union(entered)
    new, mapped = clone(function, twice, ".uniform", names)
    second_guard, middle, divergent, preheader = (
        names(f"{loop.header}.{end}") for end in ("guard", "middle", "divergent", "ph")
    )

    last, header = blocks[new[loop.latch]], blocks[loop.header]
    test = last.end
    [stay] = [label for label in test.labels if label != counting.exit_label]
    blocks[divergent] = Block(divergent, end=replace(test, labels=list(test.labels)))
    blocks[divergent].end.labels[test.labels.index(stay)] = preheader
    done = _asked(last, test, counting.exit_label, "done")
    last.end = _branch(_asked(last, test, stay, "all"), stay, middle)
    blocks[middle] = Block(middle, end=_branch(done, counting.exit_label, divergent))

    blocks[second_guard] = Block(second_guard, end=guard.end)
    for successor in blocks[second_guard].successors:
        replace_predecessor(blocks[successor], guard.name, second_guard)
    [into] = [label for label in guard.end.labels if label != counting.exit_label]
    guard.end = _branch(_asked(guard, guard.end, into, "all"), new[into], second_guard)

    entering = before.name if entered else second_guard
    blocks[preheader] = Block(preheader, end=Instruction("br", labels=[loop.header]))

    def joined(of: Instruction, first: Value, later: Value) -> Value:
        phi = Instruction("phi", f"{of.result}.ph", of.type, [first, later])
        phi.labels = [entering, divergent]
        blocks[preheader].phis.append(phi)
        return phi.value

    for phi in header.phis:
        position = phi.labels.index(entering)
        of_latch = phi.operands[phi.labels.index(loop.latch)]
        phi.operands[position] = joined(phi, phi.operands[position], mapped(of_latch))
        phi.labels[position] = preheader
    end = blocks[entering].end
    end.labels = [preheader if label == loop.header else label for label in end.labels]
    exit_label = blocks[counting.exit_label].phis
    for phi in exit_label:
        candidate = mapped(phi.operands[phi.labels.index(loop.latch)])
        phi.operands += [candidate, candidate]
        phi.labels += [middle, divergent]
    # Values computed before the loop have two incoming blocks as well.
    computed = {
        one.result: joined(one, one.value, mapped(one.value))
        for name in entered
        for one in blocks[name].body
        if one.result
    }
    for name in loop.blocks if computed else ():
        for one in blocks[name].instructions():
            one.operands = [computed.get(value.name, value) for value in one.operands]
    for phi in exit_label:
        position = phi.labels.index(loop.latch)
        phi.operands[position] = computed.get(phi.operands[position].name, phi.operands[position])


def _asked(block: Block, branch: Instruction, target: str, name: str) -> Value:
    """Whether all lanes would follow `branch` to `target`; the test is inserted in `block`."""
    callee = ALL_PASS if branch.labels[0] == target else NONE_PASSES
    asked = Instruction("call", f"{block.name}.{name}", I1, [branch.operands[0]], callee=callee)
    block.body.append(asked)
    return asked.value


def _branch(condition: Value, yes: str, no: str) -> Instruction:
    return Instruction("br", operands=[condition], labels=[yes, no])
