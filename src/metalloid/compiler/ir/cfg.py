"""Control flow: order of blocks, dominators, loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

from metalloid.compiler.ir.function import Block, Function
from metalloid.compiler.ir.types import Unsupported

#: Name of the single exit block that `loop_simplify` makes.
EXIT = "%mtl.exit"


@dataclass(slots=True, eq=False)
class Loop:
    """A natural loop.

    Attributes
    ----------
    header : str
        The one block where it is entered.
    blocks : set of str
        With those of inner loops.
    parent : Loop or None
    exits : list of str
        Blocks outside that blocks inside go to.
    preheader, latch : str
        The only blocks from outside and inside that go to the header, in canonical form.
    """

    header: str
    blocks: set[str] = field(default_factory=set)
    parent: Loop | None = None
    exits: list[str] = field(default_factory=list)
    preheader: str = ""
    latch: str = ""


class Graph:
    """The control flow graph of a function. A snapshot: make a new one after edits.

    Attributes
    ----------
    order : list of str
        Reachable blocks in reverse postorder.
    number : dict
        Position of each in `order`.
    successors, predecessors : dict of list
    dominator : dict
        Immediate dominator; the entry's is itself.
    loops : list of Loop
        Inner loops first.
    loop_of : dict
        Innermost loop of each block, or None.
    """

    def __init__(self, function: Function) -> None:
        blocks = function.blocks
        self.entry = function.entry.name
        self.order = reverse_postorder(self.entry, lambda name: blocks[name].successors)
        self.number = {name: position for position, name in enumerate(self.order)}
        self.successors = {name: blocks[name].successors for name in self.order}
        self.predecessors: dict[str, list[str]] = {name: [] for name in self.order}
        for name in self.order:
            for successor in self.successors[name]:
                self.predecessors[successor].append(name)
        self.dominator = immediate_dominators(self.order, self.predecessors)
        self._find_loops(blocks)

    def dominates(self, above: str, below: str) -> bool:
        """Whether every path to `below` goes through `above`."""
        while below != above:
            if below == self.entry:
                return False
            below = self.dominator[below]
        return True

    @cached_property
    def reach(self) -> dict[str, int]:
        """The blocks of all paths from each block, with itself: bits by `number`."""
        return self.ahead({name: 1 << position for name, position in self.number.items()})

    def bits(self, names: Iterable[str]) -> int:
        """A set of blocks."""
        return sum(1 << self.number[name] for name in set(names))

    def ahead(self, own: Mapping[str, int], ends: Set[str] = frozenset()) -> dict[str, int]:
        """The bits that are the `own` ones of any block on paths from each; `ends` end paths."""
        reached = {name: own.get(name, 0) for name in self.order}
        changed = True
        while changed:  # once more for each level of loops
            changed = False
            for name in reversed(self.order):
                if name in ends:
                    continue
                bits = reached[name]
                for successor in self.successors[name]:
                    bits |= reached[successor]
                changed |= bits != reached[name]
                reached[name] = bits
        return reached

    def _find_loops(self, blocks: dict[str, Block]) -> None:
        reached: dict[str, Loop] = {}
        for name in self.order:
            for header in self.successors[name]:
                if self.number[header] > self.number[name]:
                    continue
                if not self.dominates(header, name):
                    raise Unsupported("a loop with two entries").at(blocks[name].end.debug)
                loop = reached.setdefault(header, Loop(header, {header}))
                todo = [name]
                while todo:
                    block = todo.pop()
                    if block not in loop.blocks:
                        loop.blocks.add(block)
                        todo += self.predecessors[block]
        self.loops = sorted(reached.values(), key=lambda loop: len(loop.blocks))
        self.loop_of: dict[str, Loop | None] = dict.fromkeys(self.order)
        for position, loop in enumerate(self.loops):
            outer = self.loops[position + 1 :]
            loop.parent = next((other for other in outer if loop.header in other.blocks), None)
            for name in loop.blocks:
                self.loop_of[name] = self.loop_of[name] or loop
            inside = sorted(loop.blocks, key=self.number.__getitem__)
            leaving = [s for n in inside for s in self.successors[n] if s not in loop.blocks]
            loop.exits = list(dict.fromkeys(leaving))
            entering = self.predecessors[loop.header]
            latches = [name for name in entering if name in loop.blocks]
            outside = [name for name in entering if name not in loop.blocks]
            if len(latches) == 1:
                loop.latch = latches[0]
            if len(outside) == 1:
                loop.preheader = outside[0]


def reverse_postorder(start: str, successors: Callable[[str], Iterable[str]]) -> list[str]:
    """Nodes reachable from `start`; each before those it leads to, loops aside."""
    order: list[str] = []
    seen = {start}
    path = [(start, iter(successors(start)))]
    while path:
        node, targets = path[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                path.append((target, iter(successors(target))))
                break
        else:
            order.append(node)
            path.pop()
    return order[::-1]


def immediate_dominators(order: list[str], predecessors: Mapping[str, list[str]]) -> dict[str, str]:
    """Immediate dominator of each node of a reverse postorder (Cooper, Harvey, Kennedy, 2001)."""
    number = {name: position for position, name in enumerate(order)}
    dominator = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for name in order[1:]:
            new = ""
            for predecessor in predecessors[name]:
                if predecessor not in dominator:
                    continue
                other = predecessor
                while new and other != new:
                    if number[other] > number[new]:
                        other = dominator[other]
                    else:
                        new = dominator[new]
                new = other
            if dominator.get(name) != new:
                dominator[name] = new
                changed = True
    return dominator


def immediate_postdominators(graph: Graph, exit: str) -> dict[str, str]:
    """The block each block's paths to `exit` meet in first.

    Raises
    ------
    Unsupported
        If some block does not lead there: a loop without end.
    """
    # A block that cannot reach the exit is not in the reversed graph.
    order = reverse_postorder(exit, lambda name: graph.predecessors.get(name, ()))
    if len(order) != len(graph.order):
        raise Unsupported("a loop that never ends")
    return immediate_dominators(order, graph.successors)
