"""Plans with compiled kernels, and how they run."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from metalloid.arrays.codegen.kernel_source import Rendered, render
from metalloid.arrays.codegen.params import Packer
from metalloid.arrays.execution.calls import HostCall, assign_results
from metalloid.arrays.execution.compilation import compile_ahead, compiled
from metalloid.arrays.ir.layout import Ints, Layout
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import BUFFER, Node, in_memory
from metalloid.arrays.planning.grid_partition import MAX_GRID_POINTS, partition_grid
from metalloid.arrays.planning.plan import Planner
from metalloid.arrays.planning.schedule import (
    BufferSpec,
    CallStep,
    GeneratedKernel,
    buffers_written,
)
from metalloid.kernels.kernel import launch_batch
from metalloid.runtime.devices.device import Device
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.launches import Launch as BoundLaunch


class Launch:
    """A compiled kernel of a plan.

    Attributes
    ----------
    rendered : Rendered
    packer : Packer or None
    unaligned_variant : Launch or None
        For leaves without the alignment that `rendered` relies on; compiled on first use.
    """

    def __init__(self, step: GeneratedKernel, rendered: Rendered, sources: Sequence[BufferSpec],
                 device: Device) -> None:  # fmt: skip
        self.rendered = rendered
        kernel = compiled(rendered, device)
        self._bound = kernel.sized(rendered.threads, rendered.group_size)
        self.packer = Packer(rendered.members) if rendered.members else None
        self._aligned = [
            (source, leaf, sources[source].dtype.itemsize, nbytes)
            for source, nbytes in rendered.aligned
            if (leaf := sources[source].leaf) is not None
        ]
        self.unaligned_variant: Launch | None = None
        self._make_unaligned = functools.partial(_unaligned, step, sources, device)

    @property
    def alignments(self) -> list[tuple[int, int]]:
        """Leaves whose first element must be aligned, and to how many bytes."""
        return [(leaf, nbytes) for _, leaf, _, nbytes in self._aligned]

    def bound(self, memories: list[Memory | None], offsets: Sequence[int],
              nodes: Sequence[Node]) -> BoundLaunch:  # fmt: skip
        """Bind the arguments."""
        for source, leaf, size, nbytes in self._aligned:
            if (memories[source].address + offsets[leaf] * size) % nbytes:  # type: ignore[union-attr]
                return self.for_unaligned().bound(memories, offsets, nodes)
        return self.bind(memories, None if self.packer is None else self.packer(offsets, nodes))

    def for_unaligned(self) -> Launch:
        """The launch for all leaves."""
        if not self._aligned:
            return self
        if self.unaligned_variant is None:
            self.unaligned_variant = self._make_unaligned()
        return self.unaligned_variant

    def bind(self, memories: Sequence[Memory | None], params: bytearray | None) -> BoundLaunch:
        """Bind the arguments; the launch reads the parameters when it runs."""
        buffers = self.rendered.buffers
        args = [memories[source].bound for source in buffers]  # type: ignore[union-attr]
        if params is not None:
            args.append(params)
        return self._bound(args)


@dataclass(frozen=True)
class LaunchedCall(CallStep):
    """A call that repeated plans launch.

    Attributes
    ----------
    launch : BoundLaunch
        Its first words are the addresses of the operands and of the results.
    """

    launch: BoundLaunch = field(kw_only=True)

    @property
    def sources(self) -> Ints:
        """The operands and the results."""
        return (*(source for source, _ in self.args), *self.outs)

    def bind(self, memories: Sequence[Memory | None]) -> BoundLaunch:
        """The launch, with words of its own."""
        arguments = Arguments(0)
        arguments.words = [*self.launch.arguments.words]
        for position, source in enumerate(self.sources):
            arguments.words[position] = memories[source].address  # type: ignore[union-attr]
        return self.launch._replace(arguments=arguments)


def _call_step(step: CallStep, planner: Planner, device: Device) -> CallStep:
    """The step, with its launch if there is one."""
    call = planner.graph.nodes[step.index].data
    args = [layout for _, layout in step.args]
    launch = call.as_launch(args, device) if isinstance(call, HostCall) else None
    if launch is None:
        return step
    return LaunchedCall(step.index, step.args, step.outs, step.nodes, launch=launch)


def _unaligned(step: GeneratedKernel, sources: Sequence[BufferSpec], device: Device) -> Launch:
    return Launch(step, render(step, sources, device.traits, is_aligned=False), sources, device)


class Result(NamedTuple):
    """A materialized value.

    Attributes
    ----------
    node : int
        Its index.
    source : int
    layout : Layout
    references : int
        Reference count of the node if only the graph refers to it; 0 if it was requested.
    """

    node: int
    source: int
    layout: Layout
    references: int


@dataclass(frozen=True)
class ExecutablePlan:
    """A plan with compiled kernels.

    Attributes
    ----------
    device : Device
    steps : tuple
        Launches and calls.
    sizes : tuple of int
        In bytes, of the sources.
    allocate, release : tuple of tuple of int
        By step: buffers to allocate before it, and buffers that are dead after it.
    ends_batch : tuple of bool
        By step: whether to launch the batch up to it. Launches are batched because each waits for
        the one before, but a buffer may be released only after the launches that use it.
    results : tuple of Result
        All materialized values.
    not_requested : tuple of Result
        Those that were not requested. Other holders of such a node get its value as well.
    empty : tuple of int
        Buffers of requested values without elements, which no step computes.
    unsaved_outputs : tuple of int
        Costly fused nodes, which are materialized if a later evaluation needs them again.
    overwritten : dict
        Sources that are leaves and that steps write to, because nothing else refers to them: the
        index of the leaf.
    """

    device: Device
    steps: tuple[Launch | CallStep, ...]
    sources: tuple[BufferSpec, ...]
    sizes: Ints
    allocate: tuple[Ints, ...]
    release: tuple[Ints, ...]
    ends_batch: tuple[bool, ...]
    results: tuple[Result, ...]
    not_requested: tuple[Result, ...]
    empty: Ints
    unsaved_outputs: Ints
    overwritten: dict[int, int]


def run(plan: ExecutablePlan, leaves: Sequence[Memory | None], offsets: Sequence[int],
        nodes: Sequence[Node], retained: Collection[int], wait: bool,
        is_traced: bool = False) -> list[Memory | None]:  # fmt: skip
    """Run the steps of a plan; return the memory of each source.

    Parameters
    ----------
    leaves, offsets
        Memory of each leaf, and the offset of its first element.
    nodes : sequence of Node
        Of the graph: constants, and calls.
    retained : collection of int
        Sources that are not released, although only later steps of the plan use them.
    is_traced : bool
        Whether the nodes are those of a compiled function, which stay as they are.
    """
    sources, sizes, device = plan.sources, plan.sizes, plan.device
    memories: list[Memory | None] = [
        None if source.leaf is None else leaves[source.leaf] for source in sources
    ]
    row: list[BoundLaunch] = []
    for step, allocate, release, ends_batch in zip(
        plan.steps, plan.allocate, plan.release, plan.ends_batch, strict=True
    ):
        for index in allocate:
            memories[index] = Memory(device, sizes[index])
        if isinstance(step, Launch):
            row.append(step.bound(memories, offsets, nodes))
            if ends_batch:
                launch_batch(device, row, wait)
                row = []
        else:
            args = [_argument(sources, memories, offsets, arg) for arg in step.args]
            call = nodes[step.index].data
            results = call.run(args, device, wait)
            if not is_traced:
                assign_results(call, results)
            for index, memory in zip(step.outs, results, strict=True):
                memories[index] = memory
        for index in release:
            if index not in retained:
                memories[index] = None
    for index in plan.empty:
        memories[index] = Memory(device, 0)
    return memories


def _argument(sources: Sequence[BufferSpec], memories: list[Memory | None], offsets: Sequence[int],
              arg: tuple[int, Layout]) -> Node:  # fmt: skip
    """The argument of a call, as a leaf."""
    index, layout = arg
    source = sources[index]
    memory = memories[index]
    assert memory is not None
    return in_memory(memory, with_offset(layout, source, offsets), source.dtype)


def with_offset(layout: Layout, source: BufferSpec, offsets: Sequence[int]) -> Layout:
    """A layout of a plan, with the leaf's offset of this evaluation."""
    if source.leaf is None or not offsets[source.leaf]:
        return layout
    return layout._replace(offset=layout.offset + offsets[source.leaf])


def _check_capacity(sources: Iterable[BufferSpec], device: Device) -> None:
    """Raise OutOfMemory before a huge kernel is partitioned."""
    for source in sources:
        if source.leaf is None and math.prod(source.shape) > MAX_GRID_POINTS:
            Memory(device, math.prod(source.shape) * source.dtype.itemsize)


def executable(planner: Planner, device: Device) -> ExecutablePlan:
    """Compile the kernels of a plan."""
    steps: list[Launch | CallStep] = []
    allocate: list[Ints] = []
    uses: list[set[int]] = []
    allocated: set[int] = set()
    _check_capacity(planner.sources, device)
    partitioned = list(chain.from_iterable(map(partition_grid, planner.steps)))
    texts = [
        None if isinstance(step, CallStep) else render(step, planner.sources, device.traits)
        for step in partitioned
    ]
    compile_ahead(filter(None, texts), device)
    for step, rendered in zip(partitioned, texts, strict=True):
        if not isinstance(step, CallStep):
            assert rendered is not None
            launch = Launch(step, rendered, planner.sources, device)
            steps.append(launch)
            uses.append(set(launch.rendered.buffers))
        else:
            steps.append(_call_step(step, planner, device))
            uses.append({source for source, _ in step.args} | set(step.outs))
            allocated |= set(step.outs)  # by the function itself
        # The output, and empty buffers that no step computes.
        allocate.append(tuple(s for s in uses[-1] - allocated if planner.sources[s].leaf is None))
        allocated |= uses[-1]
    uses_of = Counter(arg for args in planner.graph.args for arg in args)
    roots = set(planner.graph.roots)
    results = tuple(
        # Two references: the list of nodes, and the argument of getrefcount.
        Result(index, source, layout, 0 if index in roots else uses_of[index] + 2)
        for index, (source, layout) in planner.materialized.items()
        if planner.graph.nodes[index].kind is not BUFFER
    )
    release: list[Ints] = []
    later = {result.source for result in results if not result.references}
    for used in reversed(uses):
        release.append(tuple(s for s in used - later if planner.sources[s].leaf is None))
        later |= used
    rows = zip(reversed(release), [*steps, None][1:], strict=True)
    sources = tuple(planner.sources)
    written = sorted(set().union(*map(buffers_written, partitioned)))
    requested = {result.source for result in results if not result.references}
    return ExecutablePlan(
        device=device,
        steps=tuple(steps),
        sources=sources,
        sizes=tuple(math.prod(source.shape) * source.dtype.itemsize for source in sources),
        allocate=tuple(allocate),
        release=tuple(reversed(release)),
        ends_batch=tuple(bool(freed) or not isinstance(after, Launch) for freed, after in rows),
        results=results,
        not_requested=tuple(result for result in results if result.references),
        empty=tuple(s for s in requested - allocated if sources[s].leaf is None),
        unsaved_outputs=planner.unsaved_outputs(),
        overwritten={s: leaf for s in written if (leaf := sources[s].leaf) is not None},
    )
