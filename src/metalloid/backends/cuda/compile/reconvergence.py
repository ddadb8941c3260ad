"""Which threads of a warp are in a block that a branch has parted from the rest.

All who pass a block come to another one if every way from the one leads there, and every way there
comes from the one, in the same round of the loops that threads leave one by one. And those who take
a side of a branch are known where the branch is: all who pass it vote. So it is known, too, who is
in a round of a loop with one way out: who enters it, and then who goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from metalloid.compiler.llvm.cfg import (
    Loop,
    immediate_dominators,
    immediate_postdominators,
    reverse_postorder,
)
from metalloid.compiler.llvm.ir import Block
from metalloid.compiler.spmd.canonical import EXIT
from metalloid.compiler.spmd.divergence import Divergence


class Side(NamedTuple):
    """Those of the threads in a block that its branch sends one way.

    Attributes
    ----------
    block : str
    is_taken : bool
        Whether it is the way of those for whom the condition holds.
    """

    block: str
    is_taken: bool


class Round(NamedTuple):
    """Those of the threads in a loop that are in the same round of it.

    Attributes
    ----------
    header : str
        Where it begins.
    origins : tuple of str or Side
        Whence they enter the loop: from a block all of whose threads do, or a side of one.
    staying : Side
        Who goes on with the next round.
    """

    header: str
    origins: tuple[str | Side, ...]
    staying: Side


def find_sides(divergence: Divergence, blocks: Mapping[str, Block]) -> dict[str, Side | Round]:
    """Who is in a block that some may miss, for each where it is known.

    Parameters
    ----------
    divergence : Divergence
    blocks : mapping
        Those of the text, before they became canonical.
    """
    return _Search(divergence, blocks).run()


class _Search:
    def __init__(self, divergence: Divergence, blocks: Mapping[str, Block]) -> None:
        self._divergence, self._graph, self._blocks = divergence, divergence.graph, blocks
        #: Where all ways to the end of a round meet, by the loop's header; of the kernel's: "".
        self._meetings = {"": immediate_postdominators(divergence.graph, EXIT)}
        self._found: dict[str, Side | Round] = {}

    def run(self) -> dict[str, Side | Round]:
        for block in self._graph.order:  # what dominates a block is before it
            if block in self._divergence.masked and (known := self._who(block)) is not None:
                self._found[block] = known
        return self._found

    def _who(self, block: str) -> Side | Round | None:
        if block in self._divergence.loops:
            return self._round(block)
        above = block
        while above != self._graph.entry:
            above = self._graph.dominator[above]
            if self._all_come(above, block):
                return self._found.get(above)
        origin, *others = self._graph.predecessors[block]
        if others or not self._is_known(origin) or self._rounds(origin) != self._rounds(block):
            return None
        if origin not in self._divergence.branches:
            return self._found.get(origin)
        return self._side(origin, self._graph.successors[origin][0] == block)

    def _round(self, header: str) -> Round | None:
        inside = self._loop(header).blocks
        lasts = [one for one in inside if not inside.issuperset(self._graph.successors[one])]
        if len(lasts) != 1 or not self._all_come(header, lasts[0]):
            return None
        staying = self._side(lasts[0], self._graph.successors[lasts[0]][0] in inside)
        origins: list[str | Side | None] = []
        for name, block in self._blocks.items():
            if header not in block.end.labels or name in inside or name not in self._graph.number:
                continue
            if not self._is_known(name) or self._rounds(name) != self._rounds(header)[1:]:
                return None
            if name in self._divergence.branches:
                origins.append(self._side(name, block.end.labels[0] == header))
            else:
                origins.append(name if self._ends_in_branch(name) else None)
        known = tuple(origin for origin in origins if origin is not None)
        return Round(header, known, staying) if staying and len(known) == len(origins) else None

    def _side(self, block: str, is_taken: bool) -> Side | None:
        # Not of the branches that a switch has become, nor of the first block, which has no label.
        is_plain = self._ends_in_branch(block) and len(self._blocks[block].end.labels) == 2
        return Side(block, is_taken) if is_plain and block != self._graph.entry else None

    def _ends_in_branch(self, block: str) -> bool:
        return block in self._blocks and self._blocks[block].end.op == "br"

    def _is_known(self, block: str) -> bool:
        return block not in self._divergence.masked or block in self._found

    def _all_come(self, above: str, below: str) -> bool:
        """Whether who is in the one is in the other, in the same round."""
        if self._rounds(above) != self._rounds(below):
            return False
        meeting = self._meeting((*self._rounds(above), "")[0])
        while above not in (below, EXIT):
            above = meeting[above]
        return above == below

    def _meeting(self, header: str) -> dict[str, str]:
        if header not in self._meetings:
            # A round ends where the next one begins: who comes there only in that is not meant.
            latch, graph = self._loop(header).latch, self._graph
            origins = {**graph.predecessors, EXIT: [*graph.predecessors[EXIT], latch]}
            origins[header] = [name for name in origins[header] if name != latch]
            order = reverse_postorder(EXIT, origins.__getitem__)
            ways = {**graph.successors, latch: [EXIT]}
            self._meetings[header] = immediate_dominators(order, ways)
        return self._meetings[header]

    def _rounds(self, block: str) -> list[str]:
        """Headers of the loops around a block that threads leave one by one."""
        found, loop = [], self._graph.loop_of[block]
        while loop is not None:
            if loop.header in self._divergence.loops:
                found.append(loop.header)
            loop = loop.parent
        return found

    def _loop(self, header: str) -> Loop:
        loop = self._graph.loop_of[header]
        assert loop is not None
        return loop
