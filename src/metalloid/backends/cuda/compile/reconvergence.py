"""Reconvergence analysis: the threads of a warp that execute a block in divergent code.

If one block dominates another and the other post-dominates it, in the same iteration of the
divergent loops, the same threads execute both. The threads that take an edge of a divergent branch
are known at the branch, where all its threads vote. So the threads in an iteration of a loop with
one exit are known too: those that enter the loop, and then those that take the back edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from metalloid.compiler.analysis.divergence import Divergence
from metalloid.compiler.ir.cfg import (
    EXIT,
    Loop,
    immediate_dominators,
    immediate_postdominators,
    reverse_postorder,
)
from metalloid.compiler.ir.function import Block


class BranchEdge(NamedTuple):
    """The threads that take one edge of a block's branch.

    Attributes
    ----------
    block : str
    is_taken : bool
        Whether it is the edge for a true condition.
    """

    block: str
    is_taken: bool


class LoopIteration(NamedTuple):
    """The threads in the same iteration of a loop.

    Attributes
    ----------
    header : str
    entries : tuple of str or BranchEdge
        Entry edges: a block all of whose threads enter, or one edge of its branch.
    back_edge : BranchEdge
        The edge of the threads that continue with the next iteration.
    """

    header: str
    entries: tuple[str | BranchEdge, ...]
    back_edge: BranchEdge


def find_members(
    divergence: Divergence, blocks: Mapping[str, Block]
) -> dict[str, BranchEdge | LoopIteration]:
    """The threads of each divergent block for which they are known.

    Parameters
    ----------
    divergence : Divergence
    blocks : mapping
        The blocks of the text, before canonicalisation.
    """
    return _Search(divergence, blocks).run()


class _Search:
    def __init__(self, divergence: Divergence, blocks: Mapping[str, Block]) -> None:
        self._divergence, self._graph, self._blocks = divergence, divergence.graph, blocks
        #: Immediate post-dominators within an iteration, by loop header; within the kernel: "".
        self._postdominators = {"": immediate_postdominators(divergence.graph, EXIT)}
        self._members: dict[str, BranchEdge | LoopIteration] = {}

    def run(self) -> dict[str, BranchEdge | LoopIteration]:
        for block in self._graph.order:  # dominators come first
            if block in self._divergence.masked and (known := self._members_of(block)) is not None:
                self._members[block] = known
        return self._members

    def _members_of(self, block: str) -> BranchEdge | LoopIteration | None:
        if block in self._divergence.loops:
            return self._iteration(block)
        above = block
        while above != self._graph.entry:
            above = self._graph.dominator[above]
            if self._reaches_all(above, block):
                return self._members.get(above)
        source, *others = self._graph.predecessors[block]
        if (
            others
            or not self._is_known(source)
            or self._divergent_loops(source) != self._divergent_loops(block)
        ):
            return None
        if source not in self._divergence.branches:
            return self._members.get(source)
        return self._edge(source, self._graph.successors[source][0] == block)

    def _iteration(self, header: str) -> LoopIteration | None:
        inside = self._loop(header).blocks
        exiting = [name for name in inside if not inside.issuperset(self._graph.successors[name])]
        if len(exiting) != 1 or not self._reaches_all(header, exiting[0]):
            return None
        back_edge = self._edge(exiting[0], self._graph.successors[exiting[0]][0] in inside)
        entries: list[str | BranchEdge | None] = []
        for name, block in self._blocks.items():
            if header not in block.end.labels or name in inside or name not in self._graph.number:
                continue
            if (
                not self._is_known(name)
                or self._divergent_loops(name) != self._divergent_loops(header)[1:]
            ):
                return None
            if name in self._divergence.branches:
                entries.append(self._edge(name, block.end.labels[0] == header))
            else:
                entries.append(name if self._ends_in_br(name) else None)
        known = tuple(entry for entry in entries if entry is not None)
        return (
            LoopIteration(header, known, back_edge)
            if back_edge and len(known) == len(entries)
            else None
        )

    def _edge(self, block: str, is_taken: bool) -> BranchEdge | None:
        # Not branches lowered from a switch, nor the branch of the entry block, which has no label.
        is_plain = self._ends_in_br(block) and len(self._blocks[block].end.labels) == 2
        return BranchEdge(block, is_taken) if is_plain and block != self._graph.entry else None

    def _ends_in_br(self, block: str) -> bool:
        return block in self._blocks and self._blocks[block].end.op == "br"

    def _is_known(self, block: str) -> bool:
        return block not in self._divergence.masked or block in self._members

    def _reaches_all(self, above: str, below: str) -> bool:
        """Whether all threads of `above` execute `below` in the same iteration."""
        if self._divergent_loops(above) != self._divergent_loops(below):
            return False
        postdominator = self._postdominators_in((*self._divergent_loops(above), "")[0])
        while above not in (below, EXIT):
            above = postdominator[above]
        return above == below

    def _postdominators_in(self, header: str) -> dict[str, str]:
        if header not in self._postdominators:
            # An iteration ends at its latch: the back edge becomes an edge to the exit.
            latch, graph = self._loop(header).latch, self._graph
            predecessors = {**graph.predecessors, EXIT: [*graph.predecessors[EXIT], latch]}
            predecessors[header] = [name for name in predecessors[header] if name != latch]
            order = reverse_postorder(EXIT, predecessors.__getitem__)
            successors = {**graph.successors, latch: [EXIT]}
            self._postdominators[header] = immediate_dominators(order, successors)
        return self._postdominators[header]

    def _divergent_loops(self, block: str) -> list[str]:
        """Headers of the divergent loops around a block, inner ones first."""
        headers, loop = [], self._graph.loop_of[block]
        while loop is not None:
            if loop.header in self._divergence.loops:
                headers.append(loop.header)
            loop = loop.parent
        return headers

    def _loop(self, header: str) -> Loop:
        loop = self._graph.loop_of[header]
        assert loop is not None
        return loop
