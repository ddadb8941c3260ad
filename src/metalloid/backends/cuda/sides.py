"""Which threads of a warp are in a block that a branch has parted from the rest.

All who pass a block come to another one if every way from the one leads there, and every way there
comes from the one, in the same round of the loops that threads leave one by one. And those who take
a side of a branch are known where the branch is: all who pass it vote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from metalloid.compiler.llvm.cfg import immediate_postdominators
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


def find_sides(divergence: Divergence, blocks: Mapping[str, Block]) -> dict[str, Side]:
    """Who is in a block that some may miss, for each where it is known.

    Parameters
    ----------
    divergence : Divergence
    blocks : mapping
        Those of the text, before they became canonical.
    """
    graph, meeting = divergence.graph, immediate_postdominators(divergence.graph, EXIT)

    def rounds(block: str) -> list[str]:
        """Headers of the loops around a block that threads leave one by one."""
        found, loop = [], graph.loop_of[block]
        while loop is not None:
            if loop.header in divergence.loops:
                found.append(loop.header)
            loop = loop.parent
        return found

    def leads_to(above: str, below: str) -> bool:
        while above not in (below, EXIT):
            above = meeting[above]
        return above == below

    found: dict[str, Side | None] = {}

    def side(block: str) -> Side | None:
        above = block
        while above != graph.entry:
            above = graph.dominator[above]
            if leads_to(above, block) and rounds(above) == rounds(block):
                return found.get(above)
        origin, *others = graph.predecessors[block]
        # The header of a loop that threads leave one by one has two, so there nothing is known.
        if others or (origin in divergence.masked and found.get(origin) is None):
            return None
        if origin not in divergence.branches:
            return found.get(origin)
        # Not the branches that a switch has become, nor the first block, which has no label.
        was = blocks[origin].end if origin in blocks and origin != graph.entry else None
        if was is None or was.op != "br" or len(was.labels) != 2:
            return None
        return Side(origin, graph.successors[origin][0] == block)

    for block in graph.order:  # what dominates a block is before it
        if block in divergence.masked:
            found[block] = side(block)
    return {block: known for block, known in found.items() if known is not None}
