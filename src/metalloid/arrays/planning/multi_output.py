"""Multi-output fusion: kernels that share operands, and visit the same indices, become one.

A step of an optimizer computes a parameter and its moments, an integrator positions and speeds, a
variance the means and squares of rows. With one kernel for all of them, what they share is read and
computed once. XLA has the same pass.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.node import ELEMENTWISE
from metalloid.arrays.planning.costs import COSTLY
from metalloid.arrays.planning.kernel_builder import MAX_LOADS, MAX_OPS
from metalloid.arrays.planning.kernel_op import KernelOp
from metalloid.arrays.planning.loop_axes import Axes
from metalloid.arrays.planning.schedule import (
    FusedKernel,
    Step,
    is_elementwise,
    merge_with_earlier,
)
from metalloid.runtime.devices.traits import DeviceTraits

#: More outputs would need more registers and streams to memory than a processor has.
_MAX_OUTPUTS = 8
#: In additions: the time to compile a larger kernel is more than a launch that is saved.
_MAX_COST = 512
#: Elements of a row; one thread or simdgroup computes shorter ones.
_LONG_ROW = 256
#: Kinds of loops of few cores.
_LOOPS_OF = {"sum": "sums"} | dict.fromkeys(("max", "min", "nanmax", "nanmin"), "extremes")


def merge_outputs(graph: LinearizedGraph, steps: Sequence[Step],
                  traits: DeviceTraits) -> list[Step]:  # fmt: skip
    """Merge kernels with earlier ones where that saves reads or operations.

    Those that reduce long rows to one result each are merged too; on a few cores sums with sums and
    extremes with extremes, which have loops of their own there.
    """
    merged: list[Step] = []
    for step in steps:
        if is_elementwise(step):
            kernel = _without_unit_axes(step)
        elif _reduces_long_rows(step, traits.is_simt):
            kernel = step
        else:
            merged.append(step)
            continue
        merge = functools.partial(_merged, later=kernel, graph=graph, is_simt=traits.is_simt)
        if not merge_with_earlier(merged, kernel, merge):
            merged.append(kernel)
    return merged


def _reduces_long_rows(step: Step, is_simt: bool) -> TypeGuard[FusedKernel]:
    """Whether it is a kernel that reduces rows of adjacent elements, each by many threads."""
    if not isinstance(step, FusedKernel) or not step.row_axes or step.is_by_element:
        return False
    if is_simt and step.chunk:
        return False
    if not is_simt and len(_kinds_of_loops(step)) > 1:
        return False
    axes = Axes(step, is_simt)
    return axes.form == "row" and len(axes.row) == 1 and axes.row[0] >= _LONG_ROW


def _without_unit_axes(kernel: FusedKernel) -> FusedKernel:
    """The kernel without axes of extent 1, so that equal iteration spaces compare equal."""
    space = kernel.iteration_space
    if 1 not in space:
        return kernel

    def without(strides: Ints) -> Ints:
        return tuple(stride for stride, n in zip(strides, space, strict=True) if n != 1)

    ops = (replace(op, strides=without(op.strides)) if op.is_read else op for op in kernel.ops)
    return replace(
        kernel, iteration_space=without(space), ops=tuple(ops), strides=without(kernel.strides)
    )


def _merged(earlier: Step, later: FusedKernel, graph: LinearizedGraph,
            is_simt: bool) -> FusedKernel | None:  # fmt: skip
    """One kernel for two over the same indices; None if it would be too large, or save nothing."""
    if not isinstance(earlier, FusedKernel) or not (
        is_elementwise(earlier) if is_elementwise(later) else _reduces_long_rows(earlier, is_simt)
    ):
        return None
    if _loops(earlier) != _loops(later):
        return None
    if later.row_axes and not is_simt and _kinds_of_loops(earlier) != _kinds_of_loops(later):
        return None
    ops = list(earlier.ops)
    index_of = {_key(op): index for index, op in enumerate(ops)}
    stored = {(o.out, o.strides, o.offset): o.result for o in earlier.outputs}
    written = {output.out for output in earlier.outputs}
    new_index: list[int] = []
    saved = cost_saved = 0
    for op in later.ops:
        if op.kind in ("load", "gather") and op.data in written:
            value = stored.get((op.data, op.strides, op.offset)) if op.kind == "load" else None
            if value is None:
                return None  # an element that another thread computes
            new_index.append(value)
            saved += 1
            continue
        moved = replace(op, args=tuple(new_index[arg] for arg in op.args))
        index = index_of.setdefault(_key(moved), len(ops))
        if index == len(ops):
            ops.append(moved)
        else:
            saved += op.kind != "constant"
            cost_saved += _cost(op)
        new_index.append(index)
    shares_result = bool(written & {output.out for output in later.outputs})
    if shares_result and not _is_interleaved(earlier, later):
        return None
    outputs = [*earlier.outputs, *(replace(o, result=new_index[o.result]) for o in later.outputs)]
    buffers = {op.data for op in ops if op.kind in ("load", "gather")} | {o.out for o in outputs}
    is_small = len(ops) <= MAX_OPS and len(buffers) <= MAX_LOADS and len(outputs) <= _MAX_OUTPUTS
    is_small = is_small and sum(map(_cost, ops)) <= _MAX_COST
    # Nodes that both compute at different indices are better materialized.
    common = [graph.nodes[index] for index in earlier.nodes & later.nodes]
    cost = sum(node.data.cost for node in common if node.kind is ELEMENTWISE)
    if not is_small or not (saved or shares_result) or cost - cost_saved >= COSTLY:
        return None
    merged = replace(
        earlier,
        ops=tuple(ops),
        nodes=earlier.nodes | later.nodes,
        other_outputs=tuple(outputs[1:]),
    )
    axes = [Axes(k, is_simt) for k in (earlier, later, merged) if later.row_axes]
    if len({(each.order, each.has_shared_operands) for each in axes}) > 1:
        return None
    return merged


def _loops(kernel: FusedKernel) -> tuple[object, ...]:
    return kernel.iteration_space, kernel.row_axes, kernel.chunk, kernel.interleave


def _kinds_of_loops(kernel: FusedKernel) -> set[str]:
    """On a few cores; more than one kind for reductions that are not merged."""
    reductions = [str(op.data) for op in kernel.ops if op.kind == "reduce"]
    others = {"others", *reductions}
    return set().union(*({_LOOPS_OF[name]} if name in _LOOPS_OF else others for name in reductions))


def _is_interleaved(earlier: FusedKernel, later: FusedKernel) -> bool:
    """Whether outputs in one buffer have no element in common, as members of a struct."""
    return all(
        a.strides == b.strides and any(a.strides) and (a.offset - b.offset) % math.gcd(*a.strides)
        for a in earlier.outputs
        for b in later.outputs
        if a.out == b.out
    )


def _key(op: KernelOp) -> tuple[object, ...]:
    return op.kind, op.data, op.args, op.dtype, op.strides, op.offset, op.steps


def _cost(op: KernelOp) -> int:
    return op.data.cost if op.kind == "elementwise" else 0
