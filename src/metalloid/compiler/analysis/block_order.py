"""The order in which the blocks stand in the vector code.

Every block comes before those it leads to, a loop's blocks stand side by side with its latch last,
and the blocks that a block dominates follow it as closely as that allows. (Moll, Hack: Partial
control-flow linearization, PLDI 2018, section 3.)
"""

from __future__ import annotations

from collections.abc import Iterator

from metalloid.compiler.ir.cfg import Graph, Loop, reverse_postorder


def block_order(graph: Graph) -> list[str]:
    """The blocks of a graph in canonical form."""
    order = _Dominance(graph).order
    return order if _is_topological(graph, order) else _collapsed(graph, None, graph.entry)


def _is_topological(graph: Graph, order: list[str]) -> bool:
    position = {name: i for i, name in enumerate(order)}
    latches = {loop.latch for loop in graph.loops}
    return len(order) == len(graph.order) and all(
        position[successor] > position[name] or name in latches
        for name in order
        for successor in graph.successors[name]
    )


class _Dominance:
    """Blocks by the tree of dominators, loop by loop."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._dominated: dict[str, list[str]] = {}
        for name in graph.order[1:]:
            self._dominated.setdefault(graph.dominator[name], []).append(name)
        self._loop_at = {loop.header: loop for loop in graph.loops}
        #: As keys, for they are asked for.
        self._ordered: dict[str, None] = {}
        # Python's stack is too short for the tree of a long kernel.
        stack = [self._append(graph.entry, None)]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
            else:
                stack.append(self._append(*following))
        self.order = list(self._ordered)

    def _append(self, name: str, loop: Loop | None) -> Iterator[tuple[str, Loop | None]]:
        """Append a block; blocks that it yields have to be appended before it is resumed."""
        inner = self._loop_at.get(name)
        if inner is not None and inner is not loop:
            if inner.parent is loop:
                yield from self._append_loop(inner)
        elif self._graph.loop_of[name] is loop:
            self._ordered[name] = None
            for below in self._dominated.get(name, ()):
                if loop is None or below in loop.blocks:
                    yield below, loop

    def _append_loop(self, loop: Loop) -> Iterator[tuple[str, Loop | None]]:
        yield loop.header, loop
        del self._ordered[loop.latch]
        self._ordered[loop.latch] = None
        outer = loop.parent
        dominated = [below for name in loop.blocks for below in self._dominated.get(name, ())]
        for name in sorted(dominated, key=self._graph.number.__getitem__):
            follows = name not in loop.blocks and (outer is None or name in outer.blocks)
            if follows and name not in self._ordered:
                yield name, outer


def _collapsed(graph: Graph, loop: Loop | None, start: str) -> list[str]:
    """A topological order in which each inner loop counts as one block."""

    def child(name: str) -> Loop | None:
        """The loop directly inside `loop` that `name` belongs to."""
        inner = graph.loop_of[name]
        if inner is loop:
            return None
        while inner is not None and inner.parent is not loop:
            inner = inner.parent
        return inner

    def successors(name: str) -> list[str]:
        inner = child(name)
        targets = graph.successors[name] if inner is None else inner.exits
        inside = [n for n in targets if loop is None or (n in loop.blocks and n != loop.header)]
        return [n if (c := child(n)) is None else c.header for n in inside]

    order: list[str] = []
    for name in reverse_postorder(start, successors):
        inner = child(name)
        order += [name] if inner is None else _collapsed(graph, inner, name)
    if loop is not None:
        order.remove(loop.latch)
        order.append(loop.latch)
    return order
