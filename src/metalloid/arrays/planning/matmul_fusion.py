"""Fusion of matrix products with the elementwise operations before and after them.

Elementwise users of a product become the epilogue of its kernel if the product has no other users.
The operations of a factor become a prologue if they are cheap, as each tile recomputes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.ir.layout import Ints, ViewOp, apply_views, contiguous
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
from metalloid.arrays.planning.frontier import FrontierValue, fusion_frontier
from metalloid.arrays.planning.kernel_builder import MAX_LOADS, KernelBuilder, plain
from metalloid.arrays.planning.matmul_dispatch import (
    AUTO,
    DOTS,
    EXTERNAL_BACKENDS,
    PANELS,
    TENSOR_CORES,
    choose_backend,
    is_transposed,
    shape_of_work,
)
from metalloid.arrays.planning.packing import pack, paired
from metalloid.arrays.planning.product_tiles import TILE
from metalloid.arrays.planning.schedule import Factor, FusedKernel, MaterializeReason, ProductKernel

#: Limits of a factor that every tile recomputes: cost in additions, and loads.
_CHEAP, _FEW_LOADS = 4, 4
#: Maximum number of loads of an epilogue.
_LOADS = MAX_LOADS - 2 * _FEW_LOADS


def backend(planner: PlanContext, index: int, has_epilogue: bool) -> str:
    """The backend of a product.

    Parameters
    ----------
    has_epilogue : bool
        Whether a generated kernel would compute users of the product as well.
    """
    nodes, args = planner.graph.nodes, planner.graph.args
    node = nodes[index]
    if node.data.backend != AUTO:
        return str(node.data.backend)
    fused = [node.size] if has_epilogue else []
    for arg in args[index]:
        size = nodes[arg].size
        while nodes[arg].kind is VIEW:
            (arg,) = args[arg]
        if nodes[arg].kind is CONSTANT:
            fused.append(size)
        is_computed = nodes[arg].kind is ELEMENTWISE and arg not in planner.materialized
        if is_computed and _is_cheap(planner, arg, 2):
            fused.append(nodes[arg].size)
    left, right = (nodes[arg] for arg in args[index])
    shape = shape_of_work(node.shape, right)
    depth = left.shape[-1]
    transposed = is_transposed(left), is_transposed(right)
    return choose_backend(node.device, node.dtype, shape, depth, fused, transposed)


def product_below(planner: PlanContext, index: int) -> int | None:
    """A product that a node is computed from element by element, so that they can be fused."""
    nodes = planner.graph.nodes
    root = nodes[index]
    own = plain(contiguous(root.shape)), 0
    ends = list(fusion_frontier(planner.graph, index, planner.materialized))
    for at, _, layout in ends:
        node = nodes[at]
        if node.kind is not MATMUL or at in planner.materialized or layout is None:
            continue
        is_same = node.size == root.size and (plain(layout), layout.offset) == own
        if is_same and backend(planner, at, True) not in EXTERNAL_BACKENDS:
            break
    else:
        return None
    return at if fits_shape(planner, ends, root.shape, node.shape) else None


def fits_shape(planner: PlanContext, ends: Sequence[FrontierValue], shape: Ints,
               other: Ints) -> bool:  # fmt: skip
    """Whether strides can express what a node is computed from in another shape of its elements."""
    back = ViewOp("reshape", other)
    return shape == other or all(_has_layout(planner, end.node, (*end.moves, back)) for end in ends)


def _has_layout(planner: PlanContext, index: int, moves: Sequence[ViewOp]) -> bool:
    """Whether strides can express a node seen through views."""
    node = planner.graph.nodes[index]
    in_memory = index in planner.materialized or node.kind in (BUFFER, IOTA)
    layout = planner.location(index)[1] if in_memory else contiguous(node.shape)
    return apply_views(layout, moves) is not None


def compute(planner: PlanContext, index: int, product: int, out: int) -> None:
    """Add the step that computes a node and the product it is computed from."""
    nodes = planner.graph.nodes
    shape = nodes[product].shape
    moves = () if nodes[index].shape == shape else (ViewOp("reshape", shape),)

    def attempt() -> tuple[KernelBuilder, int]:
        builder = KernelBuilder(planner, shape, product=product, max_loads=_LOADS)
        return builder, builder.value(index, moves)

    builder, result = planner.retry_after_split(attempt, lambda: planner.split(index, _LOADS))
    strides = plain(contiguous(shape))
    ops = tuple(builder.ops)
    step = FusedKernel(shape, (), ops, result, out, strides, nodes=frozenset(builder.fused_nodes))
    if product in builder.fused_nodes:
        by = backend(planner, product, True)
        operands = zip(planner.graph.args[product], reversed(shape[-2:]), strict=True)
        factors = tuple(_factor(planner, builder, arg, other, by) for arg, other in operands)
        if by == PANELS:
            factors = pack(planner, factors)
        elif by == DOTS:
            factors = paired(planner, factors)
        fused = frozenset(builder.fused_nodes)  # those of the factors, too
        step = ProductKernel(shape, (), ops, result, out, strides, nodes=fused, factors=factors,
                             backend=by)  # fmt: skip
    planner.fused_nodes.append(builder.fused_nodes)
    if all(shape):
        planner.steps.append(step)


def _factor(planner: PlanContext, kernel: KernelBuilder, index: int, other: int, by: str) -> Factor:
    """One operand of a product, by whose elements `other` rows or columns are multiplied."""
    times = -(-other // TILE)  # that each element is read
    # Only copies from memory keep up with tensor cores; panels read elements more often than tiles.
    is_reread = by == TENSOR_CORES and times > 1
    if by == PANELS or (by == DOTS and other > 1):
        is_reread = planner.graph.nodes[_base(planner, index)].kind is not CONSTANT
    is_slow = is_reread and _is_computed(planner, index)
    if is_slow or not _is_cheap(planner, index, times):
        planner.store(index, MaterializeReason.FACTOR)

    def attempt() -> tuple[KernelBuilder, int]:
        builder = KernelBuilder(planner, planner.graph.nodes[index].shape)
        return builder, builder.value(index)

    builder, result = planner.retry_after_split(attempt, lambda: planner.split(index))
    kernel.fused_nodes |= builder.fused_nodes
    return Factor(builder.iteration_space, tuple(builder.ops), result)


def _base(planner: PlanContext, index: int) -> int:
    """The node below the views of a node."""
    while planner.graph.nodes[index].kind is VIEW and index not in planner.materialized:
        (index,) = planner.graph.args[index]
    return index


def _is_computed(planner: PlanContext, index: int) -> bool:
    index = _base(planner, index)
    return index not in planner.materialized and planner.graph.nodes[index].kind is not BUFFER


def _is_cheap(planner: PlanContext, index: int, times: int) -> bool:
    """Whether a factor may be recomputed wherever it is read."""
    below, pending = {index}, [index]
    cost = loads = 0
    while pending:
        at = pending.pop()
        node = planner.graph.nodes[at]
        if at in planner.materialized or node.kind not in (ELEMENTWISE, VIEW, REDUCE, GATHER):
            loads += node.kind is not CONSTANT
            continue
        if node.kind in (REDUCE, GATHER):
            return False
        cost += node.data.cost if node.kind is ELEMENTWISE else 0
        new = set(planner.graph.args[at]) - below
        below |= new
        pending += new
    return loads <= _FEW_LOADS and (cost <= _CHEAP or times == 1)
