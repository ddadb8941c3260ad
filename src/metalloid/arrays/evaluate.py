"""From nodes to values: plan once for each structure, then launch."""

from __future__ import annotations

import functools
import importlib.resources
import math
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from metalloid.arrays.calls import hand_out
from metalloid.arrays.graph import Graph
from metalloid.arrays.layout import Ints, Layout
from metalloid.arrays.memory import UNORDERED, Memory
from metalloid.arrays.node import MEMORY, Node, in_memory
from metalloid.arrays.numbers import Packer
from metalloid.arrays.pieces import MOST_PLACES, pieces
from metalloid.arrays.plan import Planner, plan
from metalloid.arrays.render import Rendered, render
from metalloid.arrays.steps import CallStep, FusedKernel, Source
from metalloid.kernels.kernel import Kernel, launch_row
from metalloid.kernels.library import library
from metalloid.runtime.device import Device
from metalloid.runtime.launches import Launch as BoundLaunch

_MOST_PLANS = 2048
#: One evaluation at a time: nodes change from expressions to leaves in it.
_lock = threading.RLock()
_plans: dict[Any, Prepared] = {}


@functools.cache
def _file(name: str) -> str:
    return (importlib.resources.files("metalloid.arrays") / name).read_text("utf-8")


def full_text(rendered: Rendered) -> str:
    """What is compiled: the kernel behind the files that it calls."""
    head = "#include <metal_stdlib>\nusing namespace metal;\n\n"
    return head + "\n".join([*map(_file, rendered.files), rendered.text])


@functools.lru_cache(maxsize=4096)
def _compiled(text: str, name: str, device: Device) -> Kernel:
    macros = dict.fromkeys(device.traits.macros, True)
    return library(text, device=device, defines=macros)[name]


class Launch:
    """A kernel of a plan, ready to be launched again and again.

    Attributes
    ----------
    rendered : Rendered
    loose : Launch or None
        For leaves that do not lie where `rendered` wants them; made when there are some.
    """

    def __init__(self, step: FusedKernel, sources: Sequence[Source], device: Device,
                 is_aligned: bool = True) -> None:  # fmt: skip
        self.rendered = rendered = render(step, sources, device.traits, is_aligned)
        kernel = _compiled(full_text(rendered), rendered.name, device)
        self._bound = kernel.sized(rendered.threads, rendered.group_size)
        self._pack = Packer(rendered.members) if rendered.members else None
        self._aligned = [
            (source, leaf, sources[source].dtype.itemsize, nbytes)
            for source, nbytes in rendered.aligned
            if (leaf := sources[source].leaf) is not None
        ]
        self.loose: Launch | None = None
        self._make_loose = functools.partial(Launch, step, sources, device, False)

    def bound(self, memories: list[Memory | None], starts: Sequence[int],
              nodes: Sequence[Node]) -> BoundLaunch:  # fmt: skip
        """With its arguments."""
        for source, leaf, size, nbytes in self._aligned:
            if (memories[source].address + starts[leaf] * size) % nbytes:  # type: ignore[union-attr]
                if self.loose is None:
                    self.loose = self._make_loose()
                return self.loose.bound(memories, starts, nodes)
        buffers = self.rendered.buffers
        args = [memories[source].bound for source in buffers]  # type: ignore[union-attr]
        if self._pack is not None:
            args.append(self._pack(starts, nodes))
        return self._bound(args)


class Result(NamedTuple):
    """A value that gets memory.

    Attributes
    ----------
    place : int
        The node.
    source : int
    layout : Layout
    references : int
        To the node, if nobody but the graph has it; 0 for what was asked for.
    """

    place: int
    source: int
    layout: Layout
    references: int


@dataclass(frozen=True)
class Prepared:
    """A plan whose kernels are compiled.

    Attributes
    ----------
    steps : tuple
        Launches and calls.
    sizes : tuple of int
        In bytes, of the sources.
    makes, frees : tuple of tuple of int
        By step: the sources that get memory before it, and those that nobody needs after it.
    ends_row : tuple of bool
        By step: whether the launches up to it are made now. They are made together, since one waits
        for the other and Python between them would keep both waiting; but memory goes back to
        others only when nothing is going to use it.
    results : tuple of Result
        Everything that gets memory.
    unasked : tuple of Result
        Those of them that nobody asked for: whoever holds such a node gets its value all the same.
    empty : tuple of int
        Sources of what was asked for and has no elements, so that no step makes it.
    passed : tuple of int
        Costly nodes that are computed on the way: kept when they are needed again.
    """

    steps: tuple[Launch | CallStep, ...]
    sources: tuple[Source, ...]
    sizes: Ints
    makes: tuple[Ints, ...]
    frees: tuple[Ints, ...]
    ends_row: tuple[bool, ...]
    results: tuple[Result, ...]
    unasked: tuple[Result, ...]
    empty: Ints
    passed: Ints


def evaluate(roots: Sequence[Node], wait: bool = True) -> None:
    """Give every root memory with its values.

    Raises
    ------
    OutOfMemory, KernelFault
        The nodes are as they were, and can be evaluated again.
    """
    with _lock:
        by_device: dict[Device, list[Node]] = {}
        for root in roots:
            if root.kind is not MEMORY:
                by_device.setdefault(root.device, []).append(root)
        for device, missing in by_device.items():
            _evaluate(device, missing, wait)


def settled(node: Node) -> Node:
    """The node, evaluated if it depends on memory that another library may write from now on.

    An expression has the values of the time at which it was written down.
    """
    if node.sharing and node.kind is not MEMORY:
        evaluate([node], wait=bool(node.sharing & UNORDERED))
    return node


def _evaluate(device: Device, roots: list[Node], wait: bool) -> None:
    graph = Graph(roots)
    key = device, graph.key
    prepared = _plans.get(key)
    if prepared is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        prepared = _plans[key] = _prepare(plan(graph), device)
    starts = [leaf.data[1] for leaf in graph.leaves]
    memories = _run(prepared, graph, starts, device, wait)
    for place, source, layout, _ in prepared.results:
        memory = memories[source]
        if memory is None:  # only the graph had the node
            continue
        layout = _placed(layout, prepared.sources[source], starts)
        graph.nodes[place].become(memory, layout)
    for root, place in zip(roots, graph.roots, strict=True):
        node = graph.nodes[place]
        if root is not node:
            root.become(node.memory, node.layout)  # type: ignore[arg-type]
    for place in prepared.passed:
        graph.nodes[place].inlined = True


def _run(prepared: Prepared, graph: Graph, starts: Sequence[int], device: Device,
         wait: bool) -> list[Memory | None]:  # fmt: skip
    sources, sizes, leaves = prepared.sources, prepared.sizes, graph.leaves
    memories: list[Memory | None] = [
        None if source.leaf is None else leaves[source.leaf].memory for source in sources
    ]
    held = {
        source
        for place, source, _, references in prepared.unasked
        if sys.getrefcount(graph.nodes[place]) > references
    }
    row: list[BoundLaunch] = []
    for step, makes, frees, ends_row in zip(
        prepared.steps, prepared.makes, prepared.frees, prepared.ends_row, strict=True
    ):
        for place in makes:
            memories[place] = Memory(device, sizes[place])
        if isinstance(step, Launch):
            row.append(step.bound(memories, starts, graph.nodes))
            if ends_row:
                launch_row(device, row, wait)
                row = []
        else:
            args = [_argument(sources, memories, starts, arg) for arg in step.args]
            call = graph.nodes[step.place].data
            results = call.run(args, device, wait)
            hand_out(call, results)
            for place, memory in zip(step.outs, results, strict=True):
                memories[place] = memory
        for place in frees:
            if place not in held:
                memories[place] = None
    for place in prepared.empty:
        memories[place] = Memory(device, 0)
    return memories


def _argument(sources: Sequence[Source], memories: list[Memory | None], starts: Sequence[int],
              arg: tuple[int, Layout]) -> Node:  # fmt: skip
    """What a call is given: a leaf."""
    place, layout = arg
    source = sources[place]
    memory = memories[place]
    assert memory is not None
    return in_memory(memory, _placed(layout, source, starts), source.dtype)


def _placed(layout: Layout, source: Source, starts: Sequence[int]) -> Layout:
    """A layout of a plan with the place where a leaf starts this time."""
    if source.leaf is None:
        return layout
    return layout._replace(start=layout.start + starts[source.leaf])


def _expect_room(sources: Iterable[Source], device: Device) -> None:
    """Raise OutOfMemory before work without end is cut into pieces."""
    for source in sources:
        if source.leaf is None and math.prod(source.shape) > MOST_PLACES:
            Memory(device, math.prod(source.shape) * source.dtype.itemsize)


def _prepare(planner: Planner, device: Device) -> Prepared:
    steps: list[Launch | CallStep] = []
    makes: list[Ints] = []
    uses: list[set[int]] = []
    made: set[int] = set()
    _expect_room(planner.sources, device)
    for step in chain.from_iterable(map(pieces, planner.steps)):
        if isinstance(step, FusedKernel):
            launch = Launch(step, planner.sources, device)
            steps.append(launch)
            uses.append(set(launch.rendered.buffers))
        else:
            steps.append(step)
            uses.append({source for source, _ in step.args} | set(step.outs))
            made |= set(step.outs)  # by the function itself
        # The result, and what no step has made because it is empty.
        makes.append(tuple(s for s in uses[-1] - made if planner.sources[s].leaf is None))
        made |= uses[-1]
    uses_of = Counter(arg for args in planner.graph.args for arg in args)
    roots = set(planner.graph.roots)
    results = tuple(
        # The list of nodes, and the argument of what counts.
        Result(place, source, layout, 0 if place in roots else uses_of[place] + 2)
        for place, (source, layout) in planner.stored.items()
        if planner.graph.nodes[place].kind is not MEMORY
    )
    frees: list[Ints] = []
    later = {result.source for result in results if not result.references}
    for used in reversed(uses):
        frees.append(tuple(s for s in used - later if planner.sources[s].leaf is None))
        later |= used
    rows = zip(reversed(frees), [*steps, None][1:], strict=True)
    sources = tuple(planner.sources)
    asked = {result.source for result in results if not result.references}
    return Prepared(
        tuple(steps),
        sources,
        tuple(math.prod(source.shape) * source.dtype.itemsize for source in sources),
        tuple(makes),
        tuple(reversed(frees)),
        tuple(bool(freed) or not isinstance(after, Launch) for freed, after in rows),
        results,
        tuple(result for result in results if result.references),
        tuple(s for s in asked - made if sources[s].leaf is None),
        planner.passed(),
    )
