"""Steps of calls of the library: operands are stored contiguously, buffers numbered and bound.

Launches with equal statements become one, such as products that share an operand: each of them has
threadgroups of its own, which follow those of the one before. On a device that hides latency by
many threads, a launch takes longer than the threads of a small one run.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace

from metalloid.arrays.ir.layout import contiguous
from metalloid.arrays.ir.library_call import LibraryLaunch
from metalloid.arrays.ir.node import BUFFER, LIBRARY_CALL
from metalloid.arrays.planning.context import PlanContext
from metalloid.arrays.planning.kernel_builder import plain
from metalloid.arrays.planning.schedule import (
    BufferSpec,
    LibraryKernel,
    MaterializeReason,
    Step,
    buffers_read,
    buffers_written,
    merge_with_earlier,
)

#: Limits of one launch: Metal has 31 buffers.
_MAX_LAUNCHES, _MAX_BUFFERS = 4, 28


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


def merge_launches(steps: Sequence[Step], sources: Sequence[BufferSpec]) -> list[Step]:
    """Merge launches of a plan that may be divided, with earlier ones of equal statements."""
    merged: list[Step] = []
    for step in steps:
        merge = functools.partial(_merged, later=step, sources=sources)
        is_divisible = isinstance(step, LibraryKernel) and step.launch.is_divisible
        if not (is_divisible and merge_with_earlier(merged, step, merge)):
            merged.append(step)
    return merged


def _merged(earlier: Step, later: Step, sources: Sequence[BufferSpec]) -> LibraryKernel | None:
    if not isinstance(earlier, LibraryKernel) or not isinstance(later, LibraryKernel):
        return None
    kernels = [*(earlier.merged or (earlier,)), later]
    forms = [_form(kernel, sources) for kernel in kernels]
    is_small = (
        len(kernels) <= _MAX_LAUNCHES
        and sum(len(kernel.reads) + len(kernel.writes) for kernel in kernels) <= _MAX_BUFFERS
    )
    is_dependent = buffers_read(later) & buffers_written(earlier) or (
        buffers_written(later) & (buffers_read(earlier) | buffers_written(earlier))
    )
    if not is_small or is_dependent or any(form != forms[0] for form in forms):
        return None
    return LibraryKernel(
        _launch([kernel.launch for kernel in kernels]),
        tuple(read for kernel in kernels for read in kernel.reads),
        tuple(out for kernel in kernels for out in kernel.writes),
        tuple(kernels),
    )


def _form(kernel: LibraryKernel, sources: Sequence[BufferSpec]) -> tuple[object, ...]:
    """The properties that launches have in common if they may become one."""
    launch = kernel.launch
    buffers = [*(source for source, _ in kernel.reads), *kernel.writes]
    types = tuple(sources[source].dtype for source in buffers)
    return (types, launch.body, launch.files, launch.threads[1:], launch.group_size,
            launch.aligned_to, launch.max_threads, launch.is_divisible)  # fmt: skip


def _launch(launches: Sequence[LibraryLaunch]) -> LibraryLaunch:
    """One launch, whose threadgroups choose buffers and numbers by their index."""
    first = launches[0]
    assert first.group_size is not None
    reads, writes, width = len(first.reads), len(first.writes), first.group_size[0]
    numbers = {f"{name}_{k}": n for k, each in enumerate(launches) for name, n in each.numbers}
    groups = [-(-each.threads[0] // width) for each in launches]
    ends = [sum(groups[: k + 1]) for k in range(len(launches) - 1)]
    numbers |= {f"end_{k}": end for k, end in enumerate(ends)}

    def chosen(names: Sequence[str]) -> str:
        *others, last = names
        tests = [f"number == {k} ? {name} : " for k, name in enumerate(others)]
        return "".join(tests) + last

    every = range(len(launches))
    number = " + ".join(f"uint(group.x >= params.end_{k})" for k in range(len(ends)))
    start = chosen(["0", *(f"params.end_{k}" for k in range(len(ends)))])
    lines = [f"const uint number = {number};", f"group.x -= {start};"]
    lines += [f"x{j} = {chosen([f'x{k * reads + j}' for k in every])};" for j in range(reads)]
    for j in range(writes):
        names = [_output(k * writes + j) for k in every]
        lines.append(f"{names[0]} = {chosen(names)};")
    for name, _ in first.numbers:
        value = chosen([f"params.{name}_{k}" for k in every])
        lines.append(f"const uint own_{name} = {value};")
    body = re.sub(r"\bparams\.(\w+)", r"own_\1", first.body)
    return replace(
        first,
        body="\n".join([*lines, body]),
        reads=tuple(range(reads * len(launches))),
        writes=tuple(range(reads * len(launches), (reads + writes) * len(launches))),
        numbers=tuple(numbers.items()),
        threads=(sum(groups) * width, *first.threads[1:]),
    )


def _output(k: int) -> str:
    """The name of a written buffer in statements."""
    return f"out{k or ''}"
