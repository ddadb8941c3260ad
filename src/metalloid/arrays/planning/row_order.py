"""The order of a sum's additions depends on the sum alone, not on what is fused with it.

Row axes are merged, and rows spread over lanes or threads, as the strides of all operands of a
kernel allow. A sum that would be added in another order on its own has a kernel of its own: results
then do not depend on what else is computed with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metalloid.arrays.ir.dtypes import kind_of
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.planning.kernel_builder import KernelBuilder
from metalloid.arrays.planning.kernel_op import KernelOp
from metalloid.arrays.planning.loop_axes import Axes
from metalloid.arrays.planning.schedule import FusedKernel


class ReorderedSum(Exception):
    """The additions of a sum would have another order; `index` is its node."""

    def __init__(self, index: int) -> None:
        self.index = index


def check_order(builder: KernelBuilder, index: int, result: int, strides: Ints) -> None:
    """Raise `ReorderedSum` for a sum below `index` that should have a kernel of its own.

    Parameters
    ----------
    index : int
        The node of the kernel.
    result : int
        Its operation.
    strides : tuple of int
        Strides of the result.
    """
    sums = {k: node for k, node in builder.reductions.items() if _is_rounded(builder.ops[k])}
    if not sums:
        return
    own = {k: _operations_of(builder.ops, k) for k in sums}
    varying = [_varying_reads(ops) for ops in (builder.ops, *own.values())]
    is_by_element = any(strides[axis] for axis in builder.row_axes)
    if not is_by_element and all(reads == varying[0] for reads in varying):
        return
    space, rows = builder.iteration_space, builder.row_axes
    is_simt = builder.planner.traits.is_simt
    kernel = FusedKernel(space, rows, tuple(builder.ops), result, 0, strides)
    order = Axes(kernel, is_simt).order
    for k, node in sums.items():
        ops = own[k]
        alone = FusedKernel(space, rows, ops, len(ops) - 1, 0, builder.outer_strides)
        if node != index and Axes(alone, is_simt).order != order:
            raise ReorderedSum(node)


def _is_rounded(op: KernelOp) -> bool:
    return op.data in ("sum", "prod") and kind_of(op.dtype) in "fc"


def _varying_reads(ops: Sequence[KernelOp]) -> set[Ints]:
    return {op.strides for op in ops if op.is_read and op.varies}


def _operations_of(ops: Sequence[KernelOp], index: int) -> tuple[KernelOp, ...]:
    """An operation and those it is computed from; other reductions are constants of a row."""
    needed, pending = {index}, [*ops[index].args]
    while pending:
        at = pending.pop()
        if at not in needed:
            needed.add(at)
            pending += () if ops[at].kind == "reduce" else ops[at].args
    order = sorted(needed)
    position = {at: k for k, at in enumerate(order)}
    constant = KernelOp("constant", None, (), ops[index].dtype)
    return tuple(
        constant
        if at != index and ops[at].kind == "reduce"
        else replace(ops[at], args=tuple(position[arg] for arg in ops[at].args))
        for at in order
    )
