"""Evaluation: plans are cached by the structure of the graph, then kernels are launched."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from metalloid.arrays.execution.calls import first_number, run_call
from metalloid.arrays.execution.executable import ExecutablePlan, executable, run, with_offset
from metalloid.arrays.execution.known_evaluations import (
    HostEvaluation,
    NativeEvaluation,
    Numbering,
    lock,
    native_evaluation,
    observers,
)
from metalloid.arrays.execution.known_evaluations import plans as _plans
from metalloid.arrays.execution.repeated_plan import RepeatedPlan
from metalloid.arrays.ir.dtypes import chosen_type_rules, type_rules
from metalloid.arrays.ir.extents import at_extents, open_traces
from metalloid.arrays.ir.index_checks import IndexCheck, checks_below, verify
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.memory import UNORDERED, Memory
from metalloid.arrays.ir.node import BUFFER, CHECKED, HAS_PRIMITIVES, IOTA, TRACED, Node
from metalloid.arrays.ir.primitives import lower
from metalloid.arrays.ir.substitute import concrete, is_traced
from metalloid.arrays.planning.plan import make_plan
from metalloid.runtime.devices.device import Device

MAX_CACHED_PLANS = 2048
#: Intermediate values that other nodes may need are saved by each run of a repeated plan, whether
#: or not there are such nodes, unless they are larger.
_MAX_SAVED_BYTES = 2**23
_NEEDS_GENERAL_PATH = TRACED | CHECKED


def observe(evaluations: Callable[[Sequence[Node], bool], Sequence[Node]] | None) -> None:
    """Let a function see all evaluations, which it runs with ``is_observed=True``; None ends it."""
    observers[:] = [] if evaluations is None else [evaluations]


def evaluate(roots: Sequence[Node], wait: bool = True, is_observed: bool = False) -> Sequence[Node]:
    """Compute the values of all roots.

    Parameters
    ----------
    is_observed : bool
        Whether the observer has seen it.

    Returns
    -------
    sequence of Node
        Leaves with the values: the roots, or copies of those that depend on tracers
        or symbolic extents.

    Raises
    ------
    OutOfMemory, KernelFault, IndexError
        The nodes are unchanged and can be evaluated again.
    TraceError
        If a root depends on a tracer without a value.
    """
    if observers and not is_observed:
        return observers[0](roots, wait)
    if len(roots) == 1 and (roots[0].kind is BUFFER or _is_known(roots[0], wait)):
        return roots
    if type_rules.are_numpys:  # primitives are lowered by the standard's rules
        with chosen_type_rules(are_numpys=False, are_chosen=False):
            return evaluate(roots, wait, is_observed=True)
    with lock:
        for root in roots:
            if root.flags & TRACED and is_traced(root):
                roots = concrete(roots)
                break
        if open_traces:
            roots = at_extents(roots, {}, operator.index)
        by_device: dict[Device, list[Node]] = {}
        for root in roots:
            if root.kind is not BUFFER:
                by_device.setdefault(root.device, []).append(root)
        for device, missing in by_device.items():
            _evaluate(device, missing, wait)
    return roots


def _is_known(root: Node, wait: bool) -> bool:
    """Whether a root has the structure of one that was evaluated before, and is evaluated now.

    This is the case of most evaluations, and needs nothing that the general path looks for.
    """
    is_on_host = root.device.memory != "own"
    native = native_evaluation() if wait or not is_on_host else None
    if native is None:
        return False
    if is_on_host:
        return native.evaluate_alone(root)
    if root.kind is BUFFER or root.flags & _NEEDS_GENERAL_PATH or open_traces:
        return False
    with lock:
        return bool(_run_known(native, [root], wait))


def settled(node: Node) -> Node:
    """The node, evaluated at once if another library may write to memory that it depends on.

    An expression has the values of the time at which it was built.
    """
    if node.is_shared and node.kind is not BUFFER and not node.flags & TRACED:
        evaluate([node], wait=bool(node.flags & UNORDERED))
    return node


class CachedPlan(NamedTuple):
    """A plan, and its form for repeated runs if it has one.

    Attributes
    ----------
    plan : ExecutablePlan
    repeated : RepeatedPlan or None
    """

    plan: ExecutablePlan
    repeated: RepeatedPlan | None


def plan_of(graph: LinearizedGraph, device: Device) -> CachedPlan:
    """The plan of a graph, from the cache if there was one of its structure."""
    counters = {k: leaf.data[1] for k, leaf in enumerate(graph.leaves) if leaf.kind is IOTA}
    key = device, graph.key, *counters.values()
    cached: CachedPlan | None = _plans.get(key)
    if cached is None:
        if len(_plans) >= MAX_CACHED_PLANS:
            _plans.clear()
        plan = executable(make_plan(graph), device)
        repeated = None
        not_requested = {r.source for r in plan.not_requested}.difference(plan.overwritten)
        size = sum(plan.sizes[source] for source in not_requested)
        sources = list(dict.fromkeys(
            r.source for r in plan.results
            if r.source not in plan.overwritten and (not r.references or size <= _MAX_SAVED_BYTES)
        ))  # fmt: skip
        # Others are views of those that are saved, such as before an axis is removed.
        if all(plan.sources[source].leaf is None for source in sources) and not_requested.issubset(
            sources
        ):
            repeated = RepeatedPlan.of(plan, sources, bool(graph.numbers), counters)
        cached = _plans[key] = CachedPlan(plan, repeated)
    return cached


def _evaluate(device: Device, roots: list[Node], wait: bool) -> None:
    checks = _add_codes(roots)
    if not checks and run_call(roots, wait):
        return
    # Where codes are read at once, results of wrong indices do not become values of nodes.
    is_verified_first = bool(checks) and (wait or device.memory != "own")
    read_first = checks if is_verified_first else ()
    is_repeatable = wait or device.memory == "own"
    can_be_known = is_repeatable and (not is_verified_first or device.memory == "own")
    native = native_evaluation() if can_be_known else None
    is_done, numbering = _run_known_or_lower(native, roots, wait, read_first)
    if not is_done:
        graph = LinearizedGraph(roots)
        plan, repeated = plan_of(graph, device)
        if repeated is not None and is_repeatable:
            if numbering is None and is_done is False:
                numbering = Numbering.of(roots)
            is_done = _run_repeated(graph, plan, repeated, wait, read_first)
        if is_done:
            _finish(plan, graph, roots)
            if numbering is not None and repeated is not None:
                numbering.remember(graph, plan, repeated, roots)
        else:
            numbering = None  # it refers to nodes
            _run_plan(graph, plan, wait, read_first)
            _finish(plan, graph, roots)
    if not is_verified_first:
        _verify_nodes(checks)


def _add_codes(roots: list[Node]) -> Sequence[tuple[Node, IndexCheck]]:
    """The checks of indices below roots, whose codes become roots."""
    if not any(root.flags & CHECKED for root in roots):
        return ()
    checks = checks_below(roots)
    roots += [code for code, _ in checks]
    return checks


def _run_known_or_lower(
    native: NativeEvaluation | None, roots: list[Node], wait: bool,
    read_first: Sequence[tuple[Node, IndexCheck]],
) -> tuple[bool | None, Numbering | None]:  # fmt: skip
    """Run a known evaluation of the structure of the roots, before or after they are lowered.

    Returns
    -------
    bool or None
        As `_run_known` does; True also if a single call computed the roots.
    Numbering or None
        Of roots with primitives that are not known.
    """
    known, numbering = None, None
    if native is not None and any(root.flags & HAS_PRIMITIVES for root in roots):
        known = _run_known(native, roots, wait, read_first)
        numbering = Numbering.of(roots) if known is False else None
    if not known:
        lower(roots)
        if all(root.kind is BUFFER for root in roots):  # results of a primitive that has run
            return True, None
        by_host = HostEvaluation.of(numbering, roots[0]) if numbering is not None else None
        if run_call(roots, wait):  # operands may have become values
            if numbering is not None and by_host is not None:
                _plans[numbering.key] = by_host
            return True, None
        if native is not None and numbering is None:
            known = _run_known(native, roots, wait, read_first)
    return known, numbering


def _run_repeated(
    graph: LinearizedGraph, plan: ExecutablePlan, repeated: RepeatedPlan, wait: bool,
    read_first: Sequence[tuple[Node, IndexCheck]],
) -> bool:  # fmt: skip
    """Run a plan whose launches have been bound before; False if it does not take the leaves."""
    passed = [leaf for leaf in graph.leaves if leaf.kind is BUFFER]
    memories = [leaf.memory for leaf in passed]
    in_bytes = [leaf.data[1] * leaf.dtype.itemsize for leaf in passed]
    stored = repeated(memories, graph.nodes, wait, in_bytes)  # type: ignore[arg-type]
    if stored is None:
        return False
    memory_of = dict(zip(repeated.results, stored, strict=True))
    for source, k in plan.overwritten.items():
        memory_of[source] = graph.leaves[k].memory  # type: ignore[assignment]
    if read_first:
        _verify(read_first, graph, plan, memory_of)
    for result in plan.results:
        graph.nodes[result.node].materialize(memory_of[result.source], result.layout)
    return True


def _run_plan(
    graph: LinearizedGraph,
    plan: ExecutablePlan,
    wait: bool,
    read_first: Sequence[tuple[Node, IndexCheck]],
) -> None:
    """Bind and run the launches of a plan."""
    leaves = [leaf.memory for leaf in graph.leaves]
    offsets = [leaf.data[1] for leaf in graph.leaves]
    retained = {
        source
        for index, source, _, references in plan.not_requested
        if sys.getrefcount(graph.nodes[index]) > references
    }
    memories = run(plan, leaves, offsets, graph.nodes, retained, wait or bool(read_first))
    if read_first:
        _verify(read_first, graph, plan, dict(enumerate(memories)))
    for index, source, layout, _ in plan.results:
        memory = memories[source]
        if memory is None:  # nothing else refers to the node
            continue
        layout = with_offset(layout, plan.sources[source], offsets)
        graph.nodes[index].materialize(memory, layout)


def _run_known(native: NativeEvaluation, roots: list[Node], wait: bool,
               read_first: Sequence[tuple[Node, IndexCheck]] = ()) -> bool | None:  # fmt: skip
    """True if a known evaluation computed the roots, False if none has their structure.

    Parameters
    ----------
    read_first : sequence of (Node, IndexCheck)
        Checks whose codes are read before nodes get values, which native functions do not.
    """
    if read_first:
        walked = native.graph_key(roots)
        evaluation = None if walked is None else _plans.get(walked[0])
        if walked is None or evaluation is None:
            return None if walked is None else False
        return evaluation.run(walked[1], wait, read_first) or None
    known = native.evaluate(roots)
    if isinstance(known, tuple):
        evaluation, nodes = known
        return evaluation.run(nodes, wait) or None
    return known


def _verify_nodes(checks: Sequence[tuple[Node, IndexCheck]]) -> None:
    """Verify checks whose codes are nodes that have values."""
    verify((code.memory, check) for code, check in checks if code.memory is not None)


def _verify(checks: Sequence[tuple[Node, IndexCheck]], graph: LinearizedGraph,
            plan: ExecutablePlan, memory_of: Mapping[int, Memory | None]) -> None:  # fmt: skip
    """Verify checks whose codes, the last roots, are computed but not assigned to nodes.

    Parameters
    ----------
    memory_of : mapping
        By source of the plan.
    """
    source_of = {result.node: result.source for result in plan.results}
    for (_, check), index in zip(checks, graph.roots[-len(checks) :], strict=True):
        memory = memory_of[source_of[index]]
        assert memory is not None
        check.verify(first_number(memory))


def _finish(plan: ExecutablePlan, graph: LinearizedGraph, roots: list[Node]) -> None:
    """Materialize roots that were merged with others, and record what was not saved."""
    for root, index in zip(roots, graph.roots, strict=True):
        node = graph.nodes[index]
        if root is not node:
            root.materialize(node.memory, node.layout)  # type: ignore[arg-type]
    for index in plan.unsaved_outputs:
        graph.nodes[index].inlined = True
