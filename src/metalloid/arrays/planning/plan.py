"""The planner: which values of a graph are materialized, and which kernels compute them.

A value is materialized if it was requested, if it is no elementwise operation, view, reduction or
gather, or by one of the other rules of `MaterializeReason`. All others are fused into their users.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Ints, Layout, ViewOp, apply_view, contiguous, contiguous_view
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.node import (
    BUFFER,
    CONSTANT,
    CUSTOM_CALL,
    ELEMENTWISE,
    GET_TUPLE_ITEM,
    IOTA,
    LIBRARY_CALL,
    MATMUL,
    REDUCE,
    SCATTER_SLICES,
    VIEW,
)
from metalloid.arrays.planning import library_calls, matmul_fusion, row_chunks
from metalloid.arrays.planning.costs import (
    deep_nodes,
    highest_costly,
    read_repeatedly,
    recompute_candidates,
)
from metalloid.arrays.planning.frontier import before_reshapes, fusion_frontier
from metalloid.arrays.planning.horizontal import merge_kernels
from metalloid.arrays.planning.kernel_builder import (
    MAX_LOADS,
    MAX_OPS,
    KernelBuilder,
    KernelLimitExceeded,
    NonStridedView,
    plain,
)
from metalloid.arrays.planning.kernel_op import KernelOp
from metalloid.arrays.planning.loop_axes import VECTOR_WIDTH
from metalloid.arrays.planning.matmul_dispatch import EXTERNAL_BACKENDS
from metalloid.arrays.planning.row_order import ReorderedSum, check_order
from metalloid.arrays.planning.schedule import (
    BufferSpec,
    CallStep,
    FusedKernel,
    MaterializeReason,
    Step,
)

T = TypeVar("T")

#: From this many chunks of columns on, the chunks of a column are contiguous.
_MANY_CHUNKS = 16


@dataclass
class Planner:
    """Makes the steps for a graph.

    Attributes
    ----------
    graph : LinearizedGraph
    pinned : dict
        Nodes to materialize in any case, with the reason.
    sources : list of BufferSpec
    steps : list of Step
    materialized : dict
        By node: buffer and layout.
    partials : dict
        By reduction: buffer and layout of one value per chunk, along a last axis.
    fused_nodes : list of set of int
        By step: the nodes that it computes.
    uses : Counter
        By node, the number of its users; the caller is one of those of roots.
    """

    graph: LinearizedGraph
    pinned: dict[int, MaterializeReason]
    sources: list[BufferSpec] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    materialized: dict[int, tuple[int, Layout]] = field(default_factory=dict)
    partials: dict[int, tuple[int, Layout]] = field(default_factory=dict)
    fused_nodes: list[set[int]] = field(default_factory=list)

    def run(self) -> None:
        """Plan the steps for all roots."""
        leaf = 0
        for index, node in enumerate(self.graph.nodes):
            if node.kind is BUFFER or node.kind is IOTA:
                self.sources.append(BufferSpec(leaf, node.dtype, node.shape))
                at_zero = Layout(node.shape, node.data[0], 0)
                self._leaves[index] = len(self.sources) - 1, at_zero
                leaf += 1
        reasons = dict.fromkeys(deep_nodes(self.graph), MaterializeReason.SIZE)
        repeated = recompute_candidates(self.graph, self.pinned.keys())
        reasons.update(dict.fromkeys(repeated, MaterializeReason.REPEATED))
        reasons |= self.pinned
        # Results between them: their operands can be released before later values are computed.
        early = [root for root in self.graph.roots if root < max(reasons, default=0)]
        reasons = dict.fromkeys(early, MaterializeReason.RESULT) | reasons
        for index, reason in sorted(reasons.items()):
            self.store(index, reason)  # in topological order: users find it materialized
        for root in self.graph.roots:
            self.store(root, MaterializeReason.RESULT)
        self.steps = merge_kernels(self.graph, self.steps, self.sources, self.traits)

    def __post_init__(self) -> None:
        self._leaves: dict[int, tuple[int, Layout]] = {}
        self._calls: dict[int, tuple[int, ...]] = {}
        self.traits = self.graph.nodes[0].device.traits
        self.uses: Counter[int] = Counter(
            [*chain.from_iterable(self.graph.args), *self.graph.roots]
        )
        self._has_products = any(node.kind is MATMUL for node in self.graph.nodes)

    # -- materialization

    def location(self, index: int) -> tuple[int, Layout]:
        """Buffer and layout of a node that has memory."""
        return self.materialized.get(index) or self._leaves[index]

    def can_fuse(self, index: int) -> bool:
        """Whether the kernel that uses a reduction may compute it."""
        return index not in self.materialized and self._chunks(index) == 1

    def store(self, index: int, reason: MaterializeReason = MaterializeReason.REDUCTION) -> None:
        """Materialize a node."""
        node = self.graph.nodes[index]
        if index in self.materialized or node.kind is BUFFER:
            return
        if node.kind is SCATTER_SLICES:
            self._scatter_slices(index)
        elif node.kind is CUSTOM_CALL:
            self._call(index)
        elif node.kind is LIBRARY_CALL:
            library_calls.plan_call(self, index)
        elif node.kind is GET_TUPLE_ITEM:
            (call,) = self.graph.args[index]
            self._call(call)
            self.materialized[index] = self._calls[call][node.data], contiguous(node.shape)
        elif node.kind is MATMUL and matmul_fusion.backend(self, index, False) in EXTERNAL_BACKENDS:
            self._call(index)
            self.fused_nodes.append({index})
            self.materialized[index] = self._calls[index][0], contiguous(node.shape)
        elif not self._is_view(index, reason):
            self._compute(index, reason)

    def new_buffer(self, dtype: DType, shape: Ints, reason: MaterializeReason) -> int:
        """A buffer that the plan allocates."""
        self.sources.append(BufferSpec(None, dtype, shape, reason))
        return len(self.sources) - 1

    def _is_view(self, index: int, reason: MaterializeReason) -> bool:
        """Materialize the base of a view instead of the view; whether that is possible."""
        node = self.graph.nodes[index]
        if node.kind is not VIEW or node.data.kind == "slice":
            return False
        (base,) = self.graph.args[index]
        if self.graph.nodes[base].kind in (CONSTANT, IOTA):
            return False
        if self.graph.nodes[base].kind is not BUFFER:
            self.store(base, reason)
        source, layout = self.location(base)
        after = apply_view(layout, node.data)
        if after is None:  # a contiguous copy of the base has the elements in this order
            self.store_copy(base)
            source, layout = self.location(base)
            after = apply_view(layout, node.data)
        if after is not None:
            self.materialized[index] = source, after
        return after is not None

    def store_copy(self, index: int) -> None:
        """Materialize a node contiguously, even if it has memory already."""
        self.materialized.pop(index, None)
        self._compute(index, MaterializeReason.ORDER)

    def layout_through(self, index: int, moves: Sequence[ViewOp | int]) -> Layout | None:
        """Layout of a node after views, as if it were contiguous."""
        nodes = self.graph.nodes
        views = tuple(nodes[move].data if isinstance(move, int) else move for move in moves)
        return contiguous_view(nodes[index].shape, views)

    # -- kernels

    def retry_after_split(self, attempt: Callable[[], T], split: Callable[[], None]) -> T:
        """Call `attempt` until it succeeds; materialize values after each failure."""
        while True:
            try:
                return attempt()
            except NonStridedView as error:
                self.store_copy(error.index)
            except ReorderedSum as error:
                self.store(error.index, MaterializeReason.ADDITIONS)
            except KernelLimitExceeded:
                split()

    def _compute(self, index: int, reason: MaterializeReason) -> None:
        node = self.graph.nodes[index]
        shape = node.shape
        out = self.new_buffer(node.dtype, shape, reason)
        product = self._product(index)
        if product is not None:
            matmul_fusion.compute(self, index, product, out)
        else:
            builder, result, strides = self.retry_after_split(
                lambda: self._build(index), lambda: self.split(index)
            )
            self._emit(builder, result, out, strides)
        self.materialized[index] = out, contiguous(shape)

    def _product(self, index: int) -> int | None:
        """A matrix product that the kernel for `index` can compute."""
        if self.graph.nodes[index].kind is MATMUL:
            return index
        if not self._has_products or self._row(index) is not None:
            return None
        return matmul_fusion.product_below(self, index)

    def _emit(self, builder: KernelBuilder, result: int, out: int, strides: Ints, offset: int = 0,
              chunk: int = 0, interleave: int = 1) -> None:  # fmt: skip
        self.fused_nodes.append(builder.fused_nodes)
        if all(builder.iteration_space) or builder.row_axes:
            space, ops = builder.iteration_space, tuple(builder.ops)
            kernel = FusedKernel(
                iteration_space=space,
                row_axes=builder.row_axes,
                ops=ops,
                result=result,
                out=out,
                strides=strides,
                offset=offset,
                chunk=chunk,
                interleave=interleave,
                nodes=frozenset(builder.fused_nodes),
            )
            self.steps.append(kernel)

    def _build(self, index: int) -> tuple[KernelBuilder, int, Ints]:
        """The operations of a node over the space of its reductions; the strides of the result."""
        shape = self.graph.nodes[index].shape
        row = self._row(index)
        if row is None:
            builder = KernelBuilder(self, shape)
            return builder, builder.value(index), plain(contiguous(shape))
        reduction, is_by_element = row
        node = self.graph.nodes[reduction]
        (arg,) = self.graph.args[reduction]
        space, axes, outer = self.graph.nodes[arg].shape, node.data[1], node.shape
        if not is_by_element and self._chunks(reduction) > 1:
            self._reduce_chunks(reduction)
            chunks = self.partials[reduction][1].shape[-1]
            space, axes, outer = (*outer, chunks), (len(outer),), (*outer, 1)
        builder = KernelBuilder(self, space, axes)
        moves = () if is_by_element or outer == shape else (ViewOp("reshape", outer),)
        result = builder.value(index, moves)
        strides = plain(contiguous(shape)) if space == shape else builder.outer_strides
        check_order(builder, index, result, strides)
        return builder, result, strides

    def _row(self, index: int) -> tuple[int, bool] | None:
        """A reduction that determines the iteration space of a kernel for `index`.

        The second result tells whether the kernel stores each element of a row, as a softmax does,
        or one element per row.
        """
        nodes, args = self.graph.nodes, self.graph.args
        root = nodes[index]
        own = plain(contiguous(root.shape))
        ends = list(fusion_frontier(self.graph, index, self.materialized))
        for at, _, layout in ends:
            node = nodes[at]
            if (
                node.kind is not REDUCE
                or at in self.materialized
                or layout is None
                or layout.offset
            ):
                continue
            is_same = plain(layout) == own and node.size == root.size
            if is_same and matmul_fusion.fits_shape(self, ends, root.shape, node.shape):
                return at, False
            arg_shape = nodes[args[at][0]].shape
            back = plain(contiguous(node.shape))
            if root.shape == arg_shape and plain(layout) == back and self.can_fuse(at):
                return at, True
        return None

    def split(self, index: int, max_loads: int = MAX_LOADS) -> None:
        """Materialize the largest part of an expression that fits into one kernel."""
        args = self.graph.args
        below = [0] * (index + 1)  # bit sets by node: the nodes it is computed from,
        leaves = [0] * (index + 1)  # and the buffers that are read
        for at in range(index + 1):
            is_read = at in self.materialized or not args[at]
            for arg in () if is_read else args[at]:
                below[at] |= below[arg]
                leaves[at] |= leaves[arg]
            (leaves if is_read else below)[at] |= 1 << at
        candidates = [
            at
            for at in range(index)
            if below[index] >> at & 1
            and self.graph.nodes[at].kind in (ELEMENTWISE, REDUCE)
            and below[at].bit_count() <= MAX_OPS // 2  # constants are operations, too
            and leaves[at].bit_count() <= max_loads
        ]
        if not candidates:
            raise RecursionError("[array] an expression that cannot be split")
        self.store(max(candidates, key=lambda at: below[at].bit_count()), MaterializeReason.SIZE)

    # -- split reductions

    def _chunks(self, index: int) -> int:
        """The number of chunks that each row of a reduction is split into."""
        if index in self.partials:
            return self.partials[index][1].shape[-1]
        return row_chunks.chunk_count(self.graph, index, self.traits)

    def _reduce_chunks(self, index: int) -> None:
        """The first kernel of a split reduction: one value per chunk of each row."""
        if index in self.partials:
            return
        graph = self.graph
        node, (arg,) = graph.nodes[index], graph.args[index]

        def attempt() -> tuple[KernelBuilder, int]:
            builder = KernelBuilder(self, graph.nodes[arg].shape, node.data[1])
            return builder, builder.value(arg)

        builder, value = self.retry_after_split(attempt, lambda: self.split(index))
        extent, *others = builder.row_extents()
        interleave = 1 if others else row_chunks.interleave(graph, index, self.traits)
        chunk = -(-extent * interleave // self._chunks(index))
        if not others:  # chunks begin at aligned vectors
            step = math.lcm(VECTOR_WIDTH, interleave)
            chunk = -(-chunk // step) * step
        result = builder.add(KernelOp("reduce", node.data[0], (value,), node.dtype))
        chunks = -(-extent // chunk) * interleave
        out = self.new_buffer(node.dtype, (*node.shape, chunks), MaterializeReason.LONG_ROWS)
        outer, step = builder.outer_strides, node.size
        are_many = self.traits.is_simt and chunks >= _MANY_CHUNKS
        if are_many or not row_chunks.is_by_columns(graph, index):
            outer, step = tuple(s * chunks for s in outer), 1
        self._emit(builder, result, out, (*outer, step), 0, chunk, interleave)
        self.partials[index] = out, Layout((*node.shape, chunks), (*outer, step), 0)

    # -- other steps

    def _scatter_slices(self, index: int) -> None:
        """Compute each argument into its slice of the result."""
        node = self.graph.nodes[index]
        out = self.new_buffer(node.dtype, node.shape, MaterializeReason.SCATTER_SLICES)
        strides = contiguous(node.shape)
        self._compute_slices(index, out, strides)
        self.materialized[index] = out, strides

    def _compute_slices(self, index: int, out: int, layout: Layout) -> None:
        """Compute each argument of a node into its slice of a layout of the result."""
        for arg, view_op in zip(self.graph.args[index], self.graph.nodes[index].data, strict=True):
            region = apply_view(layout, view_op)
            assert region is not None
            if self._is_only_a_slice(arg):
                self._compute_slices(arg, out, region)
                continue
            self.compute_into(arg, out, region)

    def compute_into(self, index: int, out: int, region: Layout) -> None:
        """Compute a node into a region of a buffer, element by element."""
        index, region = before_reshapes(self.graph, index, region, self.materialized)

        def attempt() -> tuple[KernelBuilder, int]:
            builder = KernelBuilder(self, region.shape)
            return builder, builder.value(index)

        split = functools.partial(self.store, index, MaterializeReason.SIZE)
        builder, result = self.retry_after_split(attempt, split)
        self._emit(builder, result, out, plain(region), region.offset)

    def _is_only_a_slice(self, index: int) -> bool:
        """Whether a node is assembled from parts, for a slice of another such node only."""
        return (
            self.graph.nodes[index].kind is SCATTER_SLICES
            and index not in self.materialized
            and self.uses[index] == 1
        )

    def _call(self, index: int) -> None:
        if index in self._calls:
            return
        node = self.graph.nodes[index]
        for arg in self.graph.args[index]:
            self.store(arg, MaterializeReason.CUSTOM_CALL)
        args = tuple(self.location(arg) for arg in self.graph.args[index])
        outs = tuple(
            self.new_buffer(dtype, shape, MaterializeReason.CUSTOM_CALL)
            for dtype, shape in node.data.results
        )
        self._calls[index] = outs
        nodes = frozenset((index,) if node.kind is MATMUL else ())
        self.steps.append(CallStep(index, args, outs, nodes))

    # -- recomputation

    def unsaved_outputs(self) -> Ints:
        """Costly nodes that are computed but not materialized; only the last of a chain."""
        inside = set().union(*self.fused_nodes) - set(self.materialized)
        return tuple(highest_costly(self.graph, inside))

    def shared(self) -> set[int]:
        """Nodes that several kernels compute and that are better materialized."""
        counts = Counter(chain.from_iterable(step.nodes for step in self.steps))
        used_repeatedly = {index for index, n in counts.items() if n > 1} - set(self.pinned)
        products = {index for index in used_repeatedly if self.graph.nodes[index].kind is MATMUL}
        costly = highest_costly(self.graph, used_repeatedly - set(self.materialized) | products)
        return costly | read_repeatedly(self.graph, counts, self.uses, self.materialized)


def make_plan(graph: LinearizedGraph) -> Planner:
    """The plan of a graph; costly values that several kernels would compute are materialized."""
    pinned = dict.fromkeys(graph.recomputed, MaterializeReason.RECOMPUTED_EARLIER)
    while True:
        planner = Planner(graph, dict(pinned))
        planner.run()
        shared = planner.shared()
        if not shared:
            return planner
        pinned.update(dict.fromkeys(shared, MaterializeReason.SHARED))
