"""Horizontal fusion: small independent elementwise kernels become one launch.

The pieces of a concatenation, the boundary of a grid and the parameters of a model are updated by
kernels of different shapes. On a device that hides latency by many threads, a launch takes longer
than such a kernel runs. XLA has the same pass, and optimizers of PyTorch do it by hand (foreach).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from metalloid.arrays.ir.layout import contiguous
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning.library_calls import merge_launches
from metalloid.arrays.planning.multi_output import merge_outputs
from metalloid.arrays.planning.schedule import (
    BufferSpec,
    FusedKernel,
    HorizontalKernel,
    Output,
    Step,
    buffers_read,
    buffers_written,
    is_elementwise,
    merge_with_earlier,
)
from metalloid.runtime.devices.traits import DeviceTraits

#: Larger kernels run for longer than a launch takes, and their own grid suits them better.
_MAX_ELEMENTS = 2**20
#: Limits of one kernel: parameters (Metal has 31 buffers), and the time to compile it.
_MAX_BUFFERS, _MAX_KERNELS, _MAX_OPS = 28, 16, 512


def merge_kernels(graph: LinearizedGraph, steps: Sequence[Step], sources: Sequence[BufferSpec],
                  traits: DeviceTraits) -> list[Step]:  # fmt: skip
    """Merge the kernels of a plan: those over the same indices, then small independent ones."""
    merged = merge_outputs(graph, steps, traits)
    if not traits.is_simt:
        return merged
    return _fuse_horizontally(merge_launches(merged, sources), sources)


def _fuse_horizontally(steps: Sequence[Step], sources: Sequence[BufferSpec]) -> list[Step]:
    fused: list[Step] = []
    for step in steps:
        join = functools.partial(_joined, later=step, sources=sources)
        if not (_is_small(step) and merge_with_earlier(fused, step, join)):
            fused.append(step)
    return fused


def _is_small(step: Step) -> bool:
    return is_elementwise(step) and 0 < math.prod(step.iteration_space) <= _MAX_ELEMENTS


def _kernels(step: Step) -> tuple[FusedKernel, ...]:
    if isinstance(step, HorizontalKernel):
        return step.kernels
    assert isinstance(step, FusedKernel)
    return (step,)


def _joined(earlier: Step, later: Step,
            sources: Sequence[BufferSpec]) -> HorizontalKernel | None:  # fmt: skip
    """One launch for both; None if they depend on each other, or would be too large."""
    if not isinstance(earlier, HorizontalKernel) and not _is_small(earlier):
        return None
    kernel = HorizontalKernel((*_kernels(earlier), *_kernels(later)))
    read, written = buffers_read(kernel), buffers_written(kernel)
    is_small = (
        len(kernel.kernels) <= _MAX_KERNELS
        and len(read | written) <= _MAX_BUFFERS
        and sum(len(each.ops) for each in kernel.kernels) <= _MAX_OPS
    )
    if not is_small or read & written:
        return None
    outputs = [(output, each) for each in _kernels(earlier) for output in each.outputs]
    for kernel_of_output in _kernels(later):
        for output in kernel_of_output.outputs:
            for other, kernel_of_other in outputs:
                if output.out == other.out and not _are_disjoint(
                    _box(output, kernel_of_output, sources), _box(other, kernel_of_other, sources)
                ):
                    return None
    return kernel


#: First and last index along each axis of a buffer.
_Box = list[tuple[int, int]]


def _are_disjoint(a: _Box | None, b: _Box | None) -> bool:
    """Whether two outputs have no element in common; False if that is not known."""
    if a is None or b is None:
        return False
    return any(
        a_last < b_first or b_last < a_first
        for (a_first, a_last), (b_first, b_last) in zip(a, b, strict=True)
    )


def _box(output: Output, kernel: FusedKernel, sources: Sequence[BufferSpec]) -> _Box | None:
    """The smallest box of a buffer that contains an output; None if strides do not tell."""
    shape = sources[output.out].shape
    steps = contiguous(shape).strides
    box = [
        (output.offset // step % extent,) * 2 if extent > 1 else (0, 0)
        for step, extent in zip(steps, shape, strict=True)
    ]
    for stride, count in zip(output.strides, kernel.iteration_space, strict=True):
        if count == 1:
            continue
        axis = next(
            (k for k, step in enumerate(steps) if shape[k] > 1 and stride and stride % step == 0),
            None,
        )
        if axis is None:
            return None
        first, last = box[axis]
        moved = stride // steps[axis] * (count - 1)
        box[axis] = min(first, first + moved), max(last, last + moved)
        if box[axis][0] < 0 or box[axis][1] >= shape[axis]:
            return None
    return box
