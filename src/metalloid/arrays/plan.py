"""From a graph to steps: which values get memory, and what one kernel computes on the way.

A value gets memory if somebody asked for it, if it is no map, movement, reduction or gather, or
by one of the other rules of `Reason`. Everything else is computed where it is used.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from metalloid.arrays import product_plan
from metalloid.arrays.access import BUNDLE
from metalloid.arrays.costs import highest_costly, repeated
from metalloid.arrays.graph import Graph
from metalloid.arrays.layout import Ints, Layout, Movement, contiguous, moved, moved_through
from metalloid.arrays.node import (
    CALL,
    COUNT,
    JOIN,
    MAP,
    MEMORY,
    MOVE,
    NUMBER,
    PART,
    PRODUCT,
    REDUCE,
)
from metalloid.arrays.product_rule import FOREIGN
from metalloid.arrays.steps import CallStep, FusedKernel, Reason, Source
from metalloid.arrays.trace import (
    MOST_ENTRIES,
    MOST_LOADS,
    Entry,
    NeedsCopy,
    TooLarge,
    Trace,
    plain,
)
from metalloid.arrays.types import DType
from metalloid.arrays.walk import ends_below

#: Operations behind each other, and calls or reductions behind each other, after which a value is
#: kept: neither expressions nor this program's recursion grow without limit.
DEEPEST_EXPRESSION, DEEPEST_CHAIN = 256, 12

#: A row is cut into chunks of at most this many elements.
_LONGEST_ROW = 2**17
#: So few rows are cut, for more threadgroups to work on them.
_FEW_ROWS = 256
#: So many chunks of columns lie behind each other, for neighbours to add them up.
_MANY_CHUNKS = 16


@dataclass
class Planner:
    """Makes the steps for a graph.

    Attributes
    ----------
    graph : Graph
    forced : dict
        Nodes to keep, and why.
    sources : list of Source
    steps : list of FusedKernel or CallStep
    stored : dict
        By node: source and layout of what lies in memory.
    partials : dict
        By reduction: source and layout of a number for each chunk, along a last axis.
    """

    graph: Graph
    forced: dict[int, Reason]
    sources: list[Source] = field(default_factory=list)
    steps: list[FusedKernel | CallStep] = field(default_factory=list)
    stored: dict[int, tuple[int, Layout]] = field(default_factory=dict)
    partials: dict[int, tuple[int, Layout]] = field(default_factory=dict)
    touched: list[set[int]] = field(default_factory=list)

    def run(self) -> None:
        """Make the steps for all roots."""
        leaf = 0
        for place, node in enumerate(self.graph.nodes):
            if node.kind is MEMORY or node.kind is COUNT:
                self.sources.append(Source(leaf, node.dtype, node.shape))
                at_zero = Layout(node.shape, node.data[0], 0)
                self._leaves[place] = len(self.sources) - 1, at_zero
                leaf += 1
        kept = dict.fromkeys(self._deep(), Reason.SIZE)
        kept.update(dict.fromkeys(repeated(self.graph, self.forced.keys()), Reason.REPEATED))
        for place, reason in sorted((kept | self.forced).items()):
            self.store(place, reason)  # lowest first: what is above finds it
        for root in self.graph.roots:
            if self.graph.nodes[root].kind is not MEMORY:
                self.store(root, Reason.RESULT)

    def __post_init__(self) -> None:
        self._leaves: dict[int, tuple[int, Layout]] = {}
        self._calls: dict[int, tuple[int, ...]] = {}
        self.traits = self.graph.nodes[0].device.traits
        self._has_products = any(node.kind is PRODUCT for node in self.graph.nodes)

    def _deep(self) -> list[int]:
        """Nodes so far above their leaves that they are kept, lowest first."""
        depths: list[tuple[int, int]] = []
        found = []
        for place, node in enumerate(self.graph.nodes):
            below = [depths[arg] for arg in self.graph.args[place]]
            depth = max((d for d, _ in below), default=0) + (node.kind is MAP)
            chain = max((c for _, c in below), default=0) + (node.kind not in (MAP, MOVE))
            if depth >= DEEPEST_EXPRESSION or chain >= DEEPEST_CHAIN:
                found.append(place)
                depth = chain = 0
            depths.append((depth, chain))
        return found

    # -- what lies in memory

    def where(self, place: int) -> tuple[int, Layout]:
        """Source and layout of a node that lies in memory."""
        return self.stored.get(place) or self._leaves[place]

    def may_fuse(self, place: int) -> bool:
        """Whether a reduction may be computed inside the kernel that uses it."""
        return place not in self.stored and self._chunks(place) == 1

    def store(self, place: int, reason: Reason = Reason.REDUCTION) -> None:
        """See to it that a node lies in memory."""
        node = self.graph.nodes[place]
        if place in self.stored or node.kind is MEMORY:
            return
        if node.kind is JOIN:
            self._join(place)
        elif node.kind is CALL:
            self._call(place)
        elif node.kind is PART:
            (call,) = self.graph.args[place]
            self._call(call)
            self.stored[place] = self._calls[call][node.data], contiguous(node.shape)
        elif node.kind is PRODUCT and product_plan.way(self, place, False) in FOREIGN:
            self._call(place)
            self.touched.append({place})
            self.stored[place] = self._calls[place][0], contiguous(node.shape)
        elif not self._is_view(place, reason):
            self._compute(place, reason)

    def _new(self, dtype: DType, shape: Ints, reason: Reason) -> int:
        """A source of the plan's own."""
        self.sources.append(Source(None, dtype, shape, reason))
        return len(self.sources) - 1

    def _is_view(self, place: int, reason: Reason) -> bool:
        """Keep what is below a movement, if the movement costs nothing; whether that was done."""
        node = self.graph.nodes[place]
        if node.kind is not MOVE or node.data.kind == "slice":
            return False
        (base,) = self.graph.args[place]
        if self.graph.nodes[base].kind in (NUMBER, COUNT):
            return False
        if self.graph.nodes[base].kind is not MEMORY:
            self.store(base, reason)
        source, layout = self.where(base)
        after = moved(layout, node.data)
        if after is not None:
            self.stored[place] = source, after
        return after is not None

    def _copy(self, place: int) -> None:
        """Keep a node in its elements' own order, although it may lie in memory already."""
        self.stored.pop(place, None)
        self._compute(place, Reason.ORDER)

    def seen_through(self, place: int, moves: Sequence[Movement | int]) -> Layout | None:
        """The layout of a node's elements after movements, as if they lay behind each other."""
        nodes = self.graph.nodes
        found = (nodes[move].data if isinstance(move, int) else move for move in moves)
        return moved_through(contiguous(nodes[place].shape), found)

    # -- kernels

    def tried(
        self, attempt: Callable[[], tuple[Trace, int]], split: Callable[[], None]
    ) -> tuple[Trace, int]:
        """A trace and the entry of its result; what stands in the way gets memory."""
        while True:
            try:
                return attempt()
            except NeedsCopy as error:
                self._copy(error.place)
            except TooLarge:
                split()

    def _compute(self, place: int, reason: Reason) -> None:
        node = self.graph.nodes[place]
        shape = node.shape
        out = self._new(node.dtype, shape, reason)
        product = self._product(place)
        if product is not None:
            product_plan.compute(self, place, product, out)
        else:
            trace, result = self.tried(lambda: self._trace(place), lambda: self.split(place))
            strides = plain(contiguous(shape))
            if trace.space != shape:  # one result for each row
                strides = self._kept_strides(trace)
            self._emit(trace, result, out, strides)
        self.stored[place] = out, contiguous(shape)

    def _product(self, place: int) -> int | None:
        """A matrix product that the kernel for `place` can make."""
        if self.graph.nodes[place].kind is PRODUCT:
            return place
        if not self._has_products or self._row(place) is not None:
            return None
        return product_plan.product_below(self, place)

    def _kept_strides(self, trace: Trace) -> Ints:
        return plain(contiguous(trace.kept))

    def _emit(self, trace: Trace, result: int, out: int, strides: Ints, start: int = 0,
              chunk: int = 0) -> None:  # fmt: skip
        self.touched.append(trace.touched)
        if all(trace.space) or trace.row_axes:
            self.steps.append(FusedKernel(trace.space, trace.row_axes, tuple(trace.entries),
                                          result, out, strides, start, chunk))  # fmt: skip

    def _trace(self, place: int) -> tuple[Trace, int]:
        """The entries of a node, in the space that suits the reductions in it."""
        shape = self.graph.nodes[place].shape
        row = self._row(place)
        if row is None:
            trace = Trace(self, shape)
            return trace, trace.value(place)
        reduction, is_back = row
        node = self.graph.nodes[reduction]
        (arg,) = self.graph.args[reduction]
        space, axes = self.graph.nodes[arg].shape, node.data[1]
        if is_back:
            trace = Trace(self, space, axes)
            return trace, trace.value(place)
        kept = node.shape
        if self._chunks(reduction) > 1:
            self._reduce_chunks(reduction)
            chunks = self.partials[reduction][1].shape[-1]
            space, axes, kept = (*kept, chunks), (len(kept),), (*kept, 1)
        trace = Trace(self, space, axes)
        moves = () if kept == shape else (Movement("reshape", kept),)
        return trace, trace.value(place, moves)

    def _row(self, place: int) -> tuple[int, bool] | None:
        """A reduction that a kernel for `place` can be built around.

        With it, whether every element of the row is computed from it; otherwise the result has one
        element for each row.
        """
        nodes, args = self.graph.nodes, self.graph.args
        root = nodes[place]
        own = plain(contiguous(root.shape))
        for at, _, layout in ends_below(self.graph, place, self.stored):
            node = nodes[at]
            if node.kind is not REDUCE or at in self.stored or layout is None or layout.start:
                continue
            if plain(layout) == own and node.size == root.size:
                return at, False
            arg_shape = nodes[args[at][0]].shape
            back = plain(contiguous(node.shape))
            if root.shape == arg_shape and plain(layout) == back and self.may_fuse(at):
                return at, True
        return None

    def split(self, place: int, most_loads: int = MOST_LOADS) -> None:
        """Keep the largest part below a node that one kernel may hold; less is left."""
        args = self.graph.args
        below = [0] * (place + 1)  # by node, as bits: what is computed below it,
        leaves = [0] * (place + 1)  # and what is read
        for at in range(place + 1):
            is_read = at in self.stored or not args[at]
            for arg in () if is_read else args[at]:
                below[at] |= below[arg]
                leaves[at] |= leaves[arg]
            (leaves if is_read else below)[at] |= 1 << at
        parts = [
            at
            for at in range(place)
            if below[place] >> at & 1
            and self.graph.nodes[at].kind in (MAP, REDUCE)
            and below[at].bit_count() <= MOST_ENTRIES // 2  # numbers are entries too
            and leaves[at].bit_count() <= most_loads
        ]
        if not parts:
            raise RecursionError("[array] an expression that cannot be split")
        self.store(max(parts, key=lambda at: below[at].bit_count()), Reason.SIZE)

    # -- reductions of long rows

    def _chunks(self, place: int) -> int:
        """Into how many chunks the rows of a reduction should be cut."""
        if place in self.partials:
            return self.partials[place][1].shape[-1]
        node = self.graph.nodes[place]
        size = self.graph.nodes[self.graph.args[place][0]].size
        if size == 0:
            return 1
        rows, length = node.size, size // node.size
        wanted = -(-length // _LONGEST_ROW)
        if size >= 2**16:
            if self._is_by_columns(place):
                wanted = max(wanted, min(self.traits.threads // rows, length // 64))
            elif rows <= _FEW_ROWS:
                wanted = max(wanted, min(self.traits.threadgroups // rows, length // 4096))
        return wanted

    def _is_by_columns(self, place: int) -> bool:
        """Whether the last axis is kept."""
        node = self.graph.nodes[place]
        shape = self.graph.nodes[self.graph.args[place][0]].shape
        last = max((k for k, n in enumerate(shape) if n != 1), default=0)
        return last not in node.data[1]

    def _reduce_chunks(self, place: int) -> None:
        """A kernel that leaves a number for each chunk of each row."""
        if place in self.partials:
            return
        graph = self.graph
        node, (arg,) = graph.nodes[place], graph.args[place]

        def attempt() -> tuple[Trace, int]:
            trace = Trace(self, graph.nodes[arg].shape, node.data[1])
            return trace, trace.value(arg)

        trace, value = self.tried(attempt, lambda: self.split(place))
        extent, *others = trace.row_extents()
        chunk = -(-extent // self._chunks(place))
        if not others:  # so that chunks begin where vectors may
            chunk = -(-chunk // BUNDLE) * BUNDLE
        result = trace.add(Entry("reduce", node.data[0], (value,), node.dtype))
        chunks = -(-extent // chunk)
        out = self._new(node.dtype, (*node.shape, chunks), Reason.LONG_ROWS)
        kept, step = self._kept_strides(trace), node.size
        are_many = self.traits.has_thin_threads and chunks >= _MANY_CHUNKS
        if are_many or not self._is_by_columns(place):
            kept, step = tuple(s * chunks for s in kept), 1
        self._emit(trace, result, out, (*kept, step), chunk=chunk)
        self.partials[place] = out, Layout((*node.shape, chunks), (*kept, step), 0)

    # -- steps that are no fused kernels

    def _join(self, place: int) -> None:
        """Every argument is computed into its place in the result."""
        node = self.graph.nodes[place]
        out = self._new(node.dtype, node.shape, Reason.JOIN)
        whole = contiguous(node.shape)
        for arg, movement in zip(self.graph.args[place], node.data, strict=True):
            region = moved(whole, movement)
            assert region is not None

            def attempt(arg: int = arg, space: Ints = region.shape) -> tuple[Trace, int]:
                trace = Trace(self, space)
                return trace, trace.value(arg)

            split = functools.partial(self.store, arg, Reason.SIZE)
            trace, result = self.tried(attempt, split)
            self._emit(trace, result, out, plain(region), region.start)
        self.stored[place] = out, whole

    def _call(self, place: int) -> None:
        if place in self._calls:
            return
        node = self.graph.nodes[place]
        for arg in self.graph.args[place]:
            self.store(arg, Reason.CALL)
        args = tuple(self.where(arg) for arg in self.graph.args[place])
        outs = tuple(self._new(dtype, shape, Reason.CALL) for dtype, shape in node.data.results)
        self._calls[place] = outs
        self.steps.append(CallStep(place, args, outs))

    # -- what is computed on the way

    def passed(self) -> Ints:
        """Costly nodes that no memory is kept of; of those above each other, the highest."""
        inside = set().union(*self.touched) - set(self.stored)
        return tuple(highest_costly(self.graph, inside))

    def shared(self) -> set[int]:
        """Costly nodes that several kernels compute; of those above each other, the highest."""
        counts = Counter(place for touched in self.touched for place in touched)
        several = {place for place, n in counts.items() if n > 1} - set(self.forced)
        products = {place for place in several if self.graph.nodes[place].kind is PRODUCT}
        return highest_costly(self.graph, several - set(self.stored) | products)


def plan(graph: Graph) -> Planner:
    """The steps for all roots of a graph."""
    forced = dict.fromkeys(graph.again, Reason.AGAIN)
    while True:
        planner = Planner(graph, dict(forced))
        planner.run()
        shared = planner.shared()
        if not shared:
            return planner
        forced.update(dict.fromkeys(shared, Reason.SHARED))
