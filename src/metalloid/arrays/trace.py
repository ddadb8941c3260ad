"""From nodes to the entries of one kernel: movements become strides, and equal work is done once.

A kernel has a *space*, a shape whose every place it visits. Each entry is a value at a place of the
space; a leaf is read there by strides along the axes of the space. The axes that reductions of the
kernel run along are its *row axes*: what does not vary along them is computed once for each row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metalloid.arrays.layout import Ints, Layout, Movement, collapsed, contiguous, moved
from metalloid.arrays.node import COUNT, GATHER, MAP, MEMORY, MOVE, NUMBER, PRODUCT, REDUCE
from metalloid.arrays.steps import Reason
from metalloid.arrays.types import DType

if TYPE_CHECKING:
    from metalloid.arrays.plan import Planner

#: A kernel may have 31 buffers; the result and the layout are two of them.
MOST_LOADS = 28
MOST_ENTRIES = 1024
MOST_DEPTH = 64


class NeedsCopy(Exception):
    """A movement that strides cannot express; the node to copy first."""

    def __init__(self, place: int) -> None:
        self.place = place


class TooLarge(Exception):
    """More than one kernel should hold."""


@dataclass(frozen=True)
class Entry:
    """A value at a place of the space.

    Attributes
    ----------
    kind : str
        ``"load"``, ``"count"``, ``"number"``, ``"map"``, ``"gather"``, ``"reduce"`` or
        ``"product"``.
    data : object
        Op of a map, name of a reduction, the node that is read.
    args : tuple of int
        Entries.
    dtype : numpy.dtype
    strides : tuple of int
        Of what is read, along the axes of the space.
    start : int
        Beyond the leaf's own.
    varies : bool
        Along the row axes.
    steps : tuple of int
        Of a gather: elements for each number of an index.
    """

    kind: str
    data: Any
    args: Ints
    dtype: DType
    strides: Ints = ()
    start: int = 0
    varies: bool = False
    steps: Ints = ()

    @property
    def is_read(self) -> bool:
        """Whether it has a place along the axes of the space: memory, or a count."""
        return self.kind in ("load", "gather", "count")


@dataclass
class Trace:
    """The entries that a value in a space takes.

    Attributes
    ----------
    planner : Planner
        Knows which nodes lie in memory, and is asked for those that have to.
    space : tuple of int
    row_axes : tuple of int
    entries : list of Entry
        Arguments first.
    touched : set of int
        Nodes that are computed here.
    product : int
        The matrix product that the kernel makes, of the shape of the space; -1 for none.
    most_loads : int
        Memories that it may read.
    """

    planner: Planner
    space: Ints
    row_axes: Ints = ()
    entries: list[Entry] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    product: int = -1
    most_loads: int = MOST_LOADS

    def __post_init__(self) -> None:
        self._places: dict[Any, int] = {}
        self._values: dict[Any, int] = {}
        self._depth = 0
        self._loads = 0
        #: The space with one place for each row.
        self.kept = tuple(1 if k in self.row_axes else n for k, n in enumerate(self.space))
        self._kept_strides = plain(contiguous(self.kept))

    def value(self, place: int, moves: tuple[Movement | int, ...] = ()) -> int:
        """The entry of a node after some movements: MOVE nodes, or movements of our own."""
        if self.planner.graph.nodes[place].kind is NUMBER:
            moves = ()  # it is the same everywhere
        if moves:
            # Movements that undo each other are none: what is reached in many ways is one value.
            layout = self.planner.seen_through(place, moves)
            if layout == contiguous(self.planner.graph.nodes[place].shape):
                moves = ()
            key: Any = (place, layout or moves)
        else:
            key = place
        found = self._values.get(key)
        if found is None:
            if not moves and self.planner.graph.nodes[place].kind is MAP:
                self._visit_maps_below(place)
            self._depth += 1
            if self._depth > MOST_DEPTH:
                raise TooLarge
            found = self._values[key] = self._make(place, moves)
            self._depth -= 1
        return found

    def _visit_maps_below(self, place: int) -> None:
        """The entries of operations below a node, lowest first: no recursion follows a long row."""
        graph, stored = self.planner.graph, self.planner.stored
        found: set[int] = set()
        pending = [] if place in stored else [place]
        while pending:
            for arg in graph.args[pending.pop()]:
                is_new = arg not in found and arg not in self._values and arg not in stored
                if is_new and graph.nodes[arg].kind is MAP:
                    found.add(arg)
                    pending.append(arg)
        for at in sorted(found):
            self.value(at)

    def _make(self, place: int, moves: tuple[Movement | int, ...]) -> int:
        graph, planner = self.planner.graph, self.planner
        node = graph.nodes[place]
        kind = node.kind
        if kind is NUMBER:
            return self.add(Entry("number", place, (), node.dtype))
        if place in planner.stored or kind is MEMORY or kind is COUNT:
            return self._load(place, moves)
        if kind is MAP:
            args = tuple(self.value(arg, moves) for arg in graph.args[place])
            self.touched.add(place)
            varies = any(self.entries[arg].varies for arg in args)
            return self.add(Entry("map", node.data, args, node.dtype, varies=varies))
        if kind is MOVE:
            return self.value(graph.args[place][0], (place, *moves))
        if kind is GATHER:
            return self._gather(place, moves)
        if kind is REDUCE and self._is_of_the_row(place, moves):
            partial = planner.partials.get(place)
            if partial is not None:
                source, layout = partial
                arg = self.add(_at_place("load", source, node.dtype, layout, self.row_axes))
            else:
                self.touched.add(place)
                arg = self.value(graph.args[place][0])
            return self.add(Entry("reduce", node.data[0], (arg,), node.dtype))
        if place == self.product and not moves:
            self.touched.add(place)
            return self.add(Entry("product", "matmul", (), node.dtype))
        planner.store(place, Reason.PRODUCT if kind is PRODUCT else Reason.REDUCTION)
        return self._load(place, moves)

    def _moved(self, place: int, layout: Layout, moves: tuple[Movement | int, ...]) -> Layout:
        graph, base = self.planner.graph, place
        for move in moves:
            is_node = isinstance(move, int)
            after = moved(layout, graph.nodes[move].data if is_node else move)  # type: ignore
            if after is None:
                raise NeedsCopy(graph.args[move][0] if is_node else base)  # type: ignore[index]
            layout = after
            if is_node:
                base = move  # type: ignore[assignment]
        return layout

    def _load(self, place: int, moves: tuple[Movement | int, ...]) -> int:
        node = self.planner.graph.nodes[place]
        source, layout = self.planner.where(place)
        layout = self._moved(place, layout, moves)
        kind = "count" if node.kind is COUNT and place not in self.planner.stored else "load"
        return self.add(_at_place(kind, source, node.dtype, layout, self.row_axes))

    def _gather(self, place: int, moves: tuple[Movement | int, ...]) -> int:
        """An element of memory at indices that are values themselves."""
        graph, planner = self.planner.graph, self.planner
        node = graph.nodes[place]
        base, *indices = graph.args[place]
        planner.store(base, Reason.GATHER)
        source, layout = planner.where(base)
        indexed = len(indices)
        rest = layout.shape[indexed:]
        lead = len(node.shape) - len(rest)
        strides = (0,) * lead + layout.strides[indexed:]
        at_place = self._moved(place, Layout(node.shape, strides, layout.start), moves)
        widened = Movement("reshape", node.shape[:lead] + (1,) * len(rest))
        repeated = Movement("broadcast", node.shape)
        args = tuple(self.value(index, (widened, repeated, *moves)) for index in indices)
        self.touched.add(place)
        entry = _at_place("gather", source, node.dtype, at_place, self.row_axes)
        varies = entry.varies or any(self.entries[arg].varies for arg in args)
        return self.add(Entry("gather", source, args, node.dtype, entry.strides, entry.start,
                               varies, layout.strides[:indexed]))  # fmt: skip

    def _is_of_the_row(self, place: int, moves: tuple[Movement | int, ...]) -> bool:
        """Whether a reduction runs along the row axes, and its result belongs to the same row."""
        graph, planner = self.planner.graph, self.planner
        node = graph.nodes[place]
        _, axes = node.data
        if place in planner.partials:
            if self.space[:-1] != node.shape or self.row_axes != (len(node.shape),):
                return False
        elif (
            axes != self.row_axes
            or graph.nodes[graph.args[place][0]].shape != self.space
            or not planner.may_fuse(place)
        ):
            return False
        try:
            layout = self._moved(place, contiguous(node.shape), moves)
        except NeedsCopy:
            return False
        return layout.start == 0 and plain(layout) == self._kept_strides

    def row_extents(self) -> Ints:
        """Extents of the row axes, as few as the memory allows; at least one."""
        read = [entry.strides for entry in self.entries if entry.is_read]
        shape, *strides = (
            tuple(each[axis] for axis in self.row_axes) for each in (self.space, *read)
        )
        return collapsed(shape, *strides)[0] or (1,)

    def add(self, entry: Entry) -> int:
        """The place of an entry; the same for equal ones."""
        key = (entry.kind, entry.data, entry.args, entry.dtype, entry.strides, entry.start)
        place = self._places.get(key)
        if place is None:
            self._loads += entry.kind in ("load", "gather")
            if self._loads > self.most_loads or len(self.entries) >= MOST_ENTRIES:
                raise TooLarge
            place = self._places[key] = len(self.entries)
            self.entries.append(entry)
        return place


def plain(layout: Layout) -> Ints:
    """Strides of a layout, 0 where there is one element."""
    return tuple(0 if n == 1 else s for n, s in zip(layout.shape, layout.strides, strict=True))


def _at_place(kind: str, source: int, dtype: DType, layout: Layout, row_axes: Ints) -> Entry:
    strides = plain(layout)
    varies = any(strides[axis] for axis in row_axes)
    return Entry(kind, source, (), dtype, strides, layout.start, varies)
