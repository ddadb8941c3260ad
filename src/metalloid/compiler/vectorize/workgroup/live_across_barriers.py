"""Threadgroup barriers: code in regions between them, and what a simdgroup keeps for later.

At a barrier the function of a simdgroup returns. The caller lets every simdgroup come so far and
calls them again, to continue after it: continuation-based synchronisation (Meyer et al., IWOCL
2022). Values that are needed after a barrier live in the simdgroup's *state*, not on the stack.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Set
from types import MappingProxyType

from metalloid.compiler.analysis.barriers import barrier_blocks
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Value
from metalloid.compiler.vectorize.slots import Slot, SlotKind, bare

#: A frame begins with the region to continue with and the lanes that have reached it.
HEADER_BYTES = 64
FRAME = "%mtl.frame"
#: The address of workgroup-uniform values.
UNIFORM_FRAME = "%mtl.uniform_frame"
_OF_ONE_INSTRUCTION = (SlotKind.MATRIX, SlotKind.EXCHANGE, SlotKind.PENDING, SlotKind.RESULTS)


class LiveAcrossBarriers:
    """Finds the slots that live across a barrier.

    Blocks run in the one order in which they are written, loops aside. So a slot crosses a barrier
    that stands between a write and a read; or in a loop with the read, but not with the write.

    Parameters
    ----------
    function, graph : Function, Graph
    order : list of str
        Of all blocks.
    set_by : mapping of str
        Blocks whose masks are set by one block alone, and these.
    straight : set of (str, str)
        Edges that lanes follow at once, with no other block in between.
    """

    def __init__(
        self,
        function: Function,
        graph: Graph,
        order: list[str],
        set_by: Mapping[str, str] = MappingProxyType({}),
        straight: Set[tuple[str, str]] = frozenset(),
    ) -> None:
        self._set_by, self._straight = set_by, straight
        self._graph = graph
        self._position = {name: position for position, name in enumerate(order)}
        blocks = function.blocks
        barriers = barrier_blocks(function)
        #: Their positions, and the headers of the loops that they are in.
        self._barriers = [self._position[name] for name in order if name in barriers]
        self._waiting = {loop.header for loop in graph.loops if loop.blocks & barriers}
        # By what the names of slots end with.
        self._blocks = {bare(name): name for name in order}
        self._homes: dict[str, str] = {}
        self._uses: dict[str, set[str]] = {}
        self._phis: dict[str, tuple[str, list[str]]] = {}
        for name in order:
            block = blocks[name]
            for instruction in (*block.phis, *block.body):
                self._homes[bare(instruction.result)] = name
            for instruction in (*block.body, block.end):
                for value in instruction.operands:
                    self._add_use(value, name)
            for phi in block.phis:
                self._phis[bare(phi.result)] = name, phi.labels
                for value, predecessor in zip(phi.operands, phi.labels, strict=True):
                    self._add_use(value, predecessor)

    def _add_use(self, value: Value, block: str) -> None:
        if not value.is_constant:  # the constant 41 is not %1
            self._uses.setdefault(bare(value.name), set()).add(block)

    def is_crossed(self, slot: Slot) -> bool:
        """Whether the contents of `slot` are needed after a barrier."""
        kind, name = slot
        if kind in (SlotKind.SCALAR, SlotKind.VECTOR):
            home = self._homes[name]
            return any(self._between(home, use) for use in self._uses.get(name, ()))
        if kind in (SlotKind.PHI, SlotKind.PHI_VECTOR):
            block, predecessors = self._phis[name]
            forward = [p for p in predecessors if self._position[p] < self._position[block]]
            return any(self._carried_across(predecessor, block) for predecessor in forward)
        if kind in (SlotKind.MASK, SlotKind.ANY, SlotKind.ALL):
            return self._mask_crosses(self._blocks[name])
        return kind not in _OF_ONE_INSTRUCTION

    def _between(self, write: str, read: str) -> bool:
        """Whether a barrier is after `write` (or at its end) and before `read`."""
        return self._is_above(write, read) or self._waits_around(read, write)

    def _carried_across(self, predecessor: str, block: str) -> bool:
        """Whether lanes may wait at a barrier between `predecessor` and `block`."""
        if (predecessor, block) in self._straight:
            return False
        # After some lanes have left a loop, the others run its next iteration.
        return self._is_above(predecessor, block) or self._waits_around(predecessor, block)

    def _is_above(self, above: str, below: str) -> bool:
        """Whether a barrier comes between the two in the order of blocks."""
        following = bisect_left(self._barriers, self._position[above])
        return following < len(self._barriers) and self._barriers[following] < self._position[below]

    def _waits_around(self, inside: str, outside: str) -> bool:
        """Whether a loop with a barrier has the one block in it, and not the other."""
        loop = self._graph.loop_of[inside]
        while loop is not None and outside not in loop.blocks:
            if loop.header in self._waiting:
                return True
            loop = loop.parent
        return False

    def _mask_crosses(self, name: str) -> bool:
        """Masks are cleared where their level begins, and gathered from there on."""
        if name in self._set_by:
            return self._between(self._set_by[name], name)
        loop = self._graph.loop_of[name]
        if loop is not None and loop.header == name:
            if name in self._waiting:
                return True
            loop = loop.parent
        start = self._graph.entry if loop is None else loop.header
        return self._between(start, name)
