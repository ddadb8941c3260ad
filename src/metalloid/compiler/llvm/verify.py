"""Whether a function is in SSA form: for tests of passes."""

from __future__ import annotations

from collections import Counter

from metalloid.compiler.llvm.cfg import Graph
from metalloid.compiler.llvm.ir import Function


def violations(function: Function) -> list[str]:
    """What of a function breaks SSA form, as sentences; empty if it is well formed.

    Each value has one definition, which dominates its uses, and phis have one value for each
    predecessor.
    """
    graph = Graph(function)
    defined = Counter(value.name for value in function.parameters)
    places = {value.name: (graph.entry, -1) for value in function.parameters}
    for name, block in function.blocks.items():
        for number, one in enumerate(block.instructions()):
            if one.result:
                defined[one.result] += 1
                places[one.result] = name, number if one.op != "phi" else -1
    found = [f"{name} has {n} definitions" for name, n in defined.items() if n > 1]

    def use(value: str, block: str, number: int) -> None:
        if value not in places:
            found.append(f"{value}, used in {block}, has no definition")
            return
        home, place = places[value]
        if place >= number if home == block else not graph.dominates(home, block):
            found.append(f"{value} is used in {block}, which its definition does not dominate")

    for name in graph.order:
        block = function.blocks[name]
        for phi in block.phis:
            origins = [label for label in phi.labels if label in graph.number]
            if sorted(origins) != sorted(graph.predecessors[name]):
                found.append(f"{phi.result} in {name} has other origins than predecessors")
            for value, origin in zip(phi.operands, phi.labels, strict=True):
                if not value.is_constant and origin in graph.number:
                    use(value.name, origin, len(list(function.blocks[origin].instructions())))
        for number, one in enumerate(block.instructions()):
            for value in one.operands if one.op != "phi" else ():
                if not value.is_constant:
                    use(value.name, name, number)
    return found
