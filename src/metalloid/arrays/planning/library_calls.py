"""Steps of calls of the library: operands are stored contiguously, buffers numbered and bound."""

from __future__ import annotations

from metalloid.arrays.ir.layout import contiguous
from metalloid.arrays.ir.node import BUFFER, LIBRARY_CALL
from metalloid.arrays.planning.context import PlanContext
from metalloid.arrays.planning.kernel_builder import plain
from metalloid.arrays.planning.schedule import LibraryKernel, MaterializeReason


def plan_call(planner: PlanContext, index: int) -> None:
    """Add the launches of a call."""
    node, args = planner.graph.nodes[index], planner.graph.args[index]
    reason = MaterializeReason.LIBRARY_CALL
    if node.data.is_update:
        out, args = _updatable(planner, args[0], node.data.owns_base), args[1:]
    else:
        out = planner.new_buffer(node.dtype, node.shape, reason)
    for arg in args:
        planner.store(arg, reason)
        if plain(planner.location(arg)[1]) != plain(contiguous(planner.graph.nodes[arg].shape)):
            planner.store_copy(arg)
    operands = [planner.location(arg) for arg in args]
    temporaries = [
        planner.new_buffer(dtype, shape, reason) for dtype, shape in node.data.temporaries
    ]
    buffers = [*(source for source, _ in operands), out, *temporaries]
    offsets = [*(layout.offset for _, layout in operands), *(0 for _ in (out, *temporaries))]
    for launch in node.data.launches:
        reads = tuple((buffers[k], offsets[k]) for k in launch.reads)
        writes = tuple(buffers[k] for k in launch.writes)
        planner.steps.append(LibraryKernel(launch, reads, writes))
    planner.materialized[index] = out, contiguous(node.shape)


def _updatable(planner: PlanContext, index: int, is_owned: bool) -> int:
    """A buffer with the values of a node, which a call may overwrite.

    Parameters
    ----------
    is_owned : bool
        Whether only the call refers to the node, of all graphs.
    """
    node = planner.graph.nodes[index]
    if planner.uses[index] == 1:
        if node.kind is BUFFER and is_owned:
            return planner.location(index)[0]
        if node.kind is LIBRARY_CALL:
            planner.store(index, MaterializeReason.LIBRARY_CALL)
            source = planner.location(index)[0]
            # A leaf's memory that was overwritten does not have the values to compute it again.
            if is_owned or planner.sources[source].leaf is None:
                del planner.materialized[index]
                return source
    out = planner.new_buffer(node.dtype, node.shape, MaterializeReason.LIBRARY_CALL)
    planner.compute_into(index, out, contiguous(node.shape))
    return out
