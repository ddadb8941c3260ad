"""Builds the operations of one kernel: views become strides, and equal work is done once.

A kernel visits each index of its *iteration space*, a shape. Each operation is a value at such an
index; leaves are read by strides along the axes of the space. The axes that reductions of the
kernel run along are its *row axes*: what does not vary along them is computed once per row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import (
    MAX_COLLAPSED_EXTENT,
    Ints,
    Layout,
    ViewOp,
    contiguous,
    planned_view,
)
from metalloid.arrays.ir.node import (
    BUFFER,
    CONSTANT,
    ELEMENTWISE,
    GATHER,
    IOTA,
    MATMUL,
    REDUCE,
    VIEW,
)
from metalloid.arrays.planning.context import PlanContext
from metalloid.arrays.planning.kernel_op import KernelOp
from metalloid.arrays.planning.schedule import MaterializeReason
from metalloid.kernels.strides import collapse

#: A kernel may have 31 buffers; the result and the layout are two of them.
MAX_LOADS = 28
MAX_OPS = 1024
MAX_DEPTH = 64


class NonStridedView(Exception):
    """Strides cannot express a view; `index` is the node to copy first."""

    def __init__(self, index: int) -> None:
        self.index = index


class KernelLimitExceeded(Exception):
    """The operations exceed the limits of one kernel."""


@dataclass
class KernelBuilder:
    """The operations that compute a value over an iteration space.

    Attributes
    ----------
    planner : PlanContext
        It knows which nodes are materialized, and materializes others on request.
    iteration_space : tuple of int
    row_axes : tuple of int
    ops : list of KernelOp
        Operands precede their users.
    fused_nodes : set of int
        Nodes that this kernel computes.
    reductions : dict
        By operation, the reductions among them.
    product : int
        The matrix product that the kernel computes, of the shape of the space; -1 for none.
    max_loads : int
        Maximum number of buffers that it may read.
    """

    planner: PlanContext
    iteration_space: Ints
    row_axes: Ints = ()
    ops: list[KernelOp] = field(default_factory=list)
    fused_nodes: set[int] = field(default_factory=set)
    reductions: dict[int, int] = field(default_factory=dict)
    product: int = -1
    max_loads: int = MAX_LOADS

    def __post_init__(self) -> None:
        self._indices: dict[Any, int] = {}
        self._values: dict[Any, int] = {}
        self._depth = 0
        self._loads = 0
        #: The iteration space with extent 1 along the row axes.
        self.outer = tuple(
            1 if k in self.row_axes else n for k, n in enumerate(self.iteration_space)
        )
        #: Strides of one result per row.
        self.outer_strides = plain(contiguous(self.outer))

    def value(self, index: int, moves: tuple[ViewOp | int, ...] = ()) -> int:
        """The operation of a node seen through views: indices of VIEW nodes, or `ViewOp`s."""
        if self.planner.graph.nodes[index].kind is CONSTANT:
            moves = ()  # a constant has the same value everywhere
        if moves:
            # Views that cancel out are dropped, so that a value reached on several paths is one.
            layout = self.planner.layout_through(index, moves)
            if layout == contiguous(self.planner.graph.nodes[index].shape):
                moves = ()
            key: Any = (index, layout or moves)
        else:
            key = index
        value = self._values.get(key)
        if value is None:
            if not moves and self.planner.graph.nodes[index].kind is ELEMENTWISE:
                self._visit_maps_below(index)
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise KernelLimitExceeded
            value = self._values[key] = self._make(index, moves)
            self._depth -= 1
        return value

    def _visit_maps_below(self, index: int) -> None:
        """Build elementwise operations in topological order, so that recursion stays shallow."""
        graph, materialized = self.planner.graph, self.planner.materialized
        operands: set[int] = set()
        pending = [] if index in materialized else [index]
        while pending:
            for arg in graph.args[pending.pop()]:
                is_new = arg not in operands and arg not in self._values and arg not in materialized
                if is_new and graph.nodes[arg].kind is ELEMENTWISE:
                    operands.add(arg)
                    pending.append(arg)
        for at in sorted(operands):
            self.value(at)

    def _make(self, index: int, moves: tuple[ViewOp | int, ...]) -> int:
        graph, planner = self.planner.graph, self.planner
        node = graph.nodes[index]
        kind = node.kind
        if kind is CONSTANT:
            return self.add(KernelOp("constant", index, (), node.dtype))
        if index in planner.materialized or kind is BUFFER or kind is IOTA:
            return self._load(index, moves)
        if kind is ELEMENTWISE:
            args = tuple(self.value(arg, moves) for arg in graph.args[index])
            self.fused_nodes.add(index)
            varies = any(self.ops[arg].varies for arg in args)
            return self.add(KernelOp("elementwise", node.data, args, node.dtype, varies=varies))
        if kind is VIEW:
            return self.value(graph.args[index][0], (index, *moves))
        if kind is GATHER:
            return self._gather(index, moves)
        if kind is REDUCE and self._is_row_reduction(index, moves):
            partial = planner.partials.get(index)
            if partial is not None:
                source, layout = partial
                arg = self.add(_strided_op("load", source, node.dtype, layout, self.row_axes))
            else:
                self.fused_nodes.add(index)
                arg = self.value(graph.args[index][0])
            reduction = self.add(KernelOp("reduce", node.data[0], (arg,), node.dtype))
            self.reductions[reduction] = index
            return reduction
        if index == self.product and not moves:
            self.fused_nodes.add(index)
            return self.add(KernelOp("matmul", "matmul", (), node.dtype))
        planner.store(
            index, MaterializeReason.MATMUL if kind is MATMUL else MaterializeReason.REDUCTION
        )
        return self._load(index, moves)

    def _moved(self, index: int, layout: Layout, moves: tuple[ViewOp | int, ...]) -> Layout:
        graph, base = self.planner.graph, index
        for move in moves:
            is_node = isinstance(move, int)
            after = planned_view(layout, graph.nodes[move].data if is_node else move)  # type: ignore
            if after is None:
                raise NonStridedView(graph.args[move][0] if is_node else base)  # type: ignore[index]
            layout = after
            if is_node:
                base = move  # type: ignore[assignment]
        return layout

    def _load(self, index: int, moves: tuple[ViewOp | int, ...]) -> int:
        node = self.planner.graph.nodes[index]
        source, layout = self.planner.location(index)
        layout = self._moved(index, layout, moves)
        kind = "iota" if node.kind is IOTA and index not in self.planner.materialized else "load"
        return self.add(_strided_op(kind, source, node.dtype, layout, self.row_axes))

    def _gather(self, index: int, moves: tuple[ViewOp | int, ...]) -> int:
        """An element of a buffer at computed indices."""
        graph, planner = self.planner.graph, self.planner
        node = graph.nodes[index]
        base, *arguments = graph.args[index]
        planner.store(base, MaterializeReason.GATHER)
        source, layout = planner.location(base)
        indexed = len(arguments)
        rest = layout.shape[indexed:]
        lead = len(node.shape) - len(rest)
        strides = (0,) * lead + layout.strides[indexed:]
        viewed = self._moved(index, Layout(node.shape, strides, layout.offset), moves)
        widened = ViewOp("reshape", node.shape[:lead] + (1,) * len(rest))
        repeated = ViewOp("broadcast", node.shape)
        args = tuple(self.value(arg, (widened, repeated, *moves)) for arg in arguments)
        self.fused_nodes.add(index)
        op = _strided_op("gather", source, node.dtype, viewed, self.row_axes)
        varies = op.varies or any(self.ops[arg].varies for arg in args)
        return self.add(
            KernelOp(
                kind="gather",
                data=source,
                args=args,
                dtype=node.dtype,
                strides=op.strides,
                offset=op.offset,
                varies=varies,
                steps=layout.strides[:indexed],
            )
        )

    def _is_row_reduction(self, index: int, moves: tuple[ViewOp | int, ...]) -> bool:
        """Whether a reduction runs along the row axes and its result belongs to the same row."""
        graph, planner = self.planner.graph, self.planner
        node = graph.nodes[index]
        _, axes = node.data
        if index in planner.partials:
            if self.iteration_space[:-1] != node.shape or self.row_axes != (len(node.shape),):
                return False
        elif (
            axes != self.row_axes
            or graph.nodes[graph.args[index][0]].shape != self.iteration_space
            or not planner.can_fuse(index)
        ):
            return False
        try:
            layout = self._moved(index, contiguous(node.shape), moves)
        except NonStridedView:
            return False
        return layout.offset == 0 and plain(layout) == self.outer_strides

    def row_extents(self) -> Ints:
        """Extents of the row axes, merged where the strides allow; at least one."""
        read = [op.strides for op in self.ops if op.is_read]
        shape, *strides = (
            tuple(each[axis] for axis in self.row_axes) for each in (self.iteration_space, *read)
        )
        return collapse(shape, *strides, max_extent=MAX_COLLAPSED_EXTENT)[0] or (1,)

    def add(self, op: KernelOp) -> int:
        """The index of an operation, the same for equal ones."""
        key = (op.kind, op.data, op.args, op.dtype, op.strides, op.offset)
        index = self._indices.get(key)
        if index is None:
            self._loads += op.kind in ("load", "gather")
            if self._loads > self.max_loads or len(self.ops) >= MAX_OPS:
                raise KernelLimitExceeded
            index = self._indices[key] = len(self.ops)
            self.ops.append(op)
        return index


def plain(layout: Layout) -> Ints:
    """Strides of a layout, with 0 for axes of extent 1."""
    return tuple(0 if n == 1 else s for n, s in zip(layout.shape, layout.strides, strict=True))


def _strided_op(kind: str, source: int, dtype: DType, layout: Layout, row_axes: Ints) -> KernelOp:
    strides = plain(layout)
    varies = any(strides[axis] for axis in row_axes)
    return KernelOp(kind, source, (), dtype, strides, layout.offset, varies)
