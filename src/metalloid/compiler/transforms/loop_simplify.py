"""Control flow in the form that the other passes expect.

One exit block without instructions; branches of at most two edges; every loop with one block that
enters it (the preheader) and one empty block that returns to its header (the latch).
"""

from __future__ import annotations

from metalloid.compiler.ir.cfg import EXIT, Graph, Loop
from metalloid.compiler.ir.function import Block, Function, Instruction, Value, replace_predecessor
from metalloid.compiler.ir.types import I1, Unsupported


def simplify_loops(function: Function) -> Graph:
    """Bring `function` into canonical form; the graph of the result."""
    _unify_exits(function)
    for block in list(function.blocks.values()):
        if block.end.op == "switch":
            _lower_switch(function, block)
    for block in function.blocks.values():
        _join_equal_targets(function, block)
    _drop_unreachable(function)
    # New blocks change the graph, but not the other edges into a header: one snapshot does for all.
    graph = Graph(function)
    for loop in sorted(graph.loops, key=lambda loop: loop.header):
        for inside in (False, True):
            _single_entry(function, graph, loop, inside)
    return Graph(function)


def _unify_exits(function: Function) -> None:
    for block in function.blocks.values():
        if block.end.op in ("ret", "unreachable"):
            block.end = Instruction("br", labels=[EXIT])
    function.blocks[EXIT] = Block(EXIT, end=Instruction("ret"))


def _lower_switch(function: Function, block: Block) -> None:
    """A switch as a chain of comparisons."""
    default, *targets = block.end.labels
    condition = block.end.operands[0]
    cases = block.end.cases
    predecessors: dict[str, list[str]] = {}
    current = block
    for number, (case, target) in enumerate(zip(cases, targets, strict=True)):
        test = Instruction(
            "icmp", f"{block.name}.is{number}", I1, [condition, Value(condition.type, str(case))],
            predicate="eq",
        )  # fmt: skip
        current.body.append(test)
        last = number == len(cases) - 1
        other = default if last else f"{block.name}.case{number + 1}"
        current.end = Instruction("br", operands=[test.value], labels=[target, other])
        predecessors.setdefault(target, []).append(current.name)
        if last:
            predecessors.setdefault(default, []).append(current.name)
        else:
            current = function.blocks[other] = Block(other)
    if not cases:
        block.end = Instruction("br", labels=[default])
        return
    for target, froms in predecessors.items():
        for phi in function.blocks[target].phis:
            value = phi.operands[phi.labels.index(block.name)]
            remaining = [
                pair for pair in zip(phi.operands, phi.labels, strict=True) if pair[1] != block.name
            ]
            remaining += [(value, predecessor) for predecessor in dict.fromkeys(froms)]
            phi.operands, phi.labels = [v for v, _ in remaining], [label for _, label in remaining]


def _join_equal_targets(function: Function, block: Block) -> None:
    """A branch whose targets are the same block is none."""
    if block.end.op != "br" or len(block.end.labels) != 2:
        return
    target = block.end.labels[0]
    if target != block.end.labels[1]:
        return
    for phi in function.blocks[target].phis:
        duplicates = [i for i, label in enumerate(phi.labels) if label == block.name]
        if len({phi.operands[i].name for i in duplicates}) > 1:
            raise Unsupported("a phi with two values from one block").at(phi.debug)
        for duplicate in duplicates[:0:-1]:
            del phi.operands[duplicate], phi.labels[duplicate]
    block.end = Instruction("br", labels=[target])


def _drop_unreachable(function: Function) -> None:
    reachable = set(Graph(function).order)
    for name in list(function.blocks):
        if name not in reachable and name != EXIT:
            del function.blocks[name]
    for block in function.blocks.values():
        for phi in block.phis:
            remaining = [
                pair for pair in zip(phi.operands, phi.labels, strict=True) if pair[1] in reachable
            ]
            phi.operands, phi.labels = [v for v, _ in remaining], [label for _, label in remaining]


def remove_edge(function: Function, block: str, target: str) -> None:
    """Forget an edge that the end of `block` no longer has, and blocks that it alone led to."""
    for phi in function.blocks[target].phis:
        remaining = [
            pair for pair in zip(phi.operands, phi.labels, strict=True) if pair[1] != block
        ]
        phi.operands, phi.labels = [v for v, _ in remaining], [label for _, label in remaining]
    _drop_unreachable(function)


def _single_entry(function: Function, graph: Graph, loop: Loop, inside: bool) -> None:
    """Give a loop a preheader, or (`inside`) an empty latch."""
    predecessors = [p for p in graph.predecessors[loop.header] if (p in loop.blocks) == inside]
    header = function.blocks[loop.header]
    new = Block(f"{loop.header}.{'latch' if inside else 'pre'}")
    if predecessors == [new.name]:
        return  # from an earlier run, on IR that was printed and read again
    new.end = Instruction("br", labels=[loop.header])
    for predecessor in predecessors:
        end = function.blocks[predecessor].end
        end.labels = [new.name if label == loop.header else label for label in end.labels]
    for phi in header.phis:
        pairs = list(zip(phi.operands, phi.labels, strict=True))
        moved = [pair for pair in pairs if pair[1] in predecessors]
        value = moved[0][0]
        if any(other.name != value.name for other, _ in moved):
            joined = Instruction(
                "phi", f"{phi.result}{new.name}", phi.type, [v for v, _ in moved], phi.flags,
                [label for _, label in moved],
            )  # fmt: skip
            new.phis.append(joined)
            value = joined.value
        pairs = [pair for pair in pairs if pair[1] not in predecessors] + [(value, new.name)]
        phi.operands, phi.labels = [v for v, _ in pairs], [label for _, label in pairs]
    function.blocks[new.name] = new


def split_block(function: Function, block: Block, index: int, name: str) -> Block:
    """Move what follows instruction `index` of `block` to a new block that it goes to."""
    rest = Block(name, body=block.body[index + 1 :], end=block.end)
    block.body = block.body[: index + 1]
    block.end = Instruction("br", labels=[name])
    for successor in rest.successors:
        replace_predecessor(function.blocks[successor], block.name, name)
    function.blocks[name] = rest
    return rest
