"""Evaluations whose plan has run before, found by the structure of the graph.

native/evaluation.c finds and runs them.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from metalloid.arrays.execution.calls import HostCall, first_number
from metalloid.arrays.execution.executable import ExecutablePlan
from metalloid.arrays.execution.repeated_plan import Frame, RepeatedPlan
from metalloid.arrays.ir.extents import open_traces
from metalloid.arrays.ir.index_checks import IndexCheck
from metalloid.arrays.ir.layout import Layout, contiguous
from metalloid.arrays.ir.linearize import LinearizedGraph, leaf_identity
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.native import library
from metalloid.arrays.ir.node import (
    BUFFER,
    CONSTANT,
    CUSTOM_CALL,
    ELEMENTWISE,
    GET_TUPLE_ITEM,
    IOTA,
    PRIMITIVE,
    TUPLE,
    Node,
    in_memory,
)
from metalloid.arrays.ir.primitives import structural

#: Plans by the structure of a graph; the keys of native functions are among them.
plans: dict[Any, Any] = {}
#: One evaluation at a time, as it turns expressions into leaves.
lock = threading.RLock()
#: What is called instead of `evaluate` while a profile looks at evaluations; at most one.
observers: list[Callable[[Sequence[Node], bool], Sequence[Node]]] = []


class NativeEvaluation(NamedTuple):
    """The functions of native/evaluation.c.

    Attributes
    ----------
    evaluate : callable
        From roots to True with their values; False if their structure is not known; None if Python
        has to evaluate them; the known evaluation and the nodes if only its run needs Python.
    graph_key : callable
        From roots to the key of their structure, their nodes, and the number of different ones
        without operands; None if they have none.
    evaluate_alone : callable
        From a root to True with its value, if all of this is done without Python: with the lock,
        for a root that needs nothing else.
    """

    evaluate: Callable[[list[Node]], bool | tuple[KnownEvaluation, list[Node]] | None]
    graph_key: Callable[[list[Node]], tuple[Any, list[Node], int] | None]
    evaluate_alone: Callable[[Node], bool]


@functools.cache
def native_evaluation() -> NativeEvaluation | None:
    """The native functions, where they are available."""
    functions = library()
    if functions is None:
        return None
    kinds = BUFFER, CONSTANT, ELEMENTWISE, CUSTOM_CALL, PRIMITIVE, IOTA, structural
    guards = lock.acquire, lock.release, open_traces, observers
    state = plans, kinds, (), guards
    return NativeEvaluation(*functions.mtl_evaluation(ctypes.py_object(state)))


class KnownEvaluation(NamedTuple):
    """The run of a repeated plan, for all graphs of a structure.

    Nodes are numbered in the order in which they are reached from the roots.

    Attributes
    ----------
    plan : object or None
        See `RepeatedPlan.native`.
    leaves, inputs : bytes
        Leaves of the plan that have memory, and its leaves and constants: 32-bit indices of nodes,
        then of those that it holds.
    has_numbers : bool
        Whether there are constants.
    results : tuple
        By result, operands first: the indices of nodes that get it, the index of its memory among
        the results of the plan and then its leaves, and strides and offset.
    unsaved : bytes
        Nodes that are computed without being saved.
    elements : bytes
        By leaf: its alignment, the size of the node's elements, and how far from the first of them
        it begins, in bytes.
    held : tuple of Node
        Constants and leaves that the implementations of primitives made.
    overwritten : bytes
        Leaves that it overwrites: 32-bit indices of those of the plan.
    repeated : RepeatedPlan
    types : frozenset of numpy.dtype
        Those whose addresses are in the key.
    """

    plan: Any
    leaves: bytes
    inputs: bytes
    has_numbers: bool
    results: tuple[tuple[tuple[int, ...], int, tuple[Any, ...]], ...]
    unsaved: bytes
    elements: bytes
    held: tuple[Node, ...]
    overwritten: bytes
    repeated: RepeatedPlan
    types: frozenset[Any]

    def run(self, nodes: Sequence[Node], wait: bool,
            read_first: Sequence[tuple[Node, IndexCheck]] = ()) -> bool:  # fmt: skip
        """Materialize the roots, if the plan supports the leaves and no check fails."""
        nodes = [*nodes, *self.held]
        leaves = [nodes[k] for k in memoryview(self.leaves).cast("I")]
        memories = [leaf.memory for leaf in leaves]
        shifts = memoryview(self.elements).cast("q")[2::3]
        offsets = [
            leaf.data[1] * leaf.dtype.itemsize + shift
            for leaf, shift in zip(leaves, shifts, strict=True)
        ]
        inputs = [nodes[k] for k in memoryview(self.inputs).cast("I")]
        stored: list[Memory] | None
        stored = self.repeated(memories, inputs, wait, offsets)  # type: ignore[arg-type]
        if stored is None:
            return False
        if read_first:
            memory_of = {nodes[k]: stored[index] for some, index, _ in self.results for k in some}
            for code, check in read_first:
                check.verify(first_number(memory_of[code]))
        for k in memoryview(self.unsaved).cast("I"):
            nodes[k].inlined = True
        stored += memories  # type: ignore[arg-type]
        for indices, index, data in self.results:
            for k in indices:
                nodes[k].materialize(stored[index], Layout(nodes[k].shape, *data))
        return True


class HostEvaluation(NamedTuple):
    """The run of a primitive by a function of the host, for all graphs of a structure.

    Attributes
    ----------
    plan : None
        As native functions do not run it.
    call : HostCall
    leaves : tuple of int
        Nodes that are operands of the call.
    result : int or None
        The index of the result if the primitive, the second node, has several.
    types : frozenset of numpy.dtype
        Those whose addresses are in the key.
    """

    plan: None
    call: HostCall
    leaves: tuple[int, ...]
    result: int | None
    types: frozenset[Any]

    @classmethod
    def of(cls, numbering: Numbering, root: Node) -> HostEvaluation | None:
        """That of a primitive or one of its results, which has been lowered to a call of leaves.

        None of other roots.
        """
        if root.kind is not GET_TUPLE_ITEM or type(root.args[0].data) is not HostCall:
            return None
        (call,) = root.args
        lowered = [node for node in numbering.index_of if node.kind is TUPLE]
        of_call = lowered[0].args if lowered else (root,)
        is_in_order = all(n.args == (call,) and n.data == k for k, n in enumerate(of_call))
        leaves = tuple(numbering.index_of.get(arg, -1) for arg in call.args)
        has_no_more = len(numbering.index_of) == 1 + len(lowered) + len({*leaves})
        if (
            not is_in_order
            or not has_no_more
            or any(arg not in numbering.offset_of for arg in call.args)
        ):
            return None
        types = frozenset(node.dtype for node in numbering.index_of)
        return cls(None, call.data.copy(), leaves, root.data if lowered else None, types)

    def run(self, nodes: Sequence[Node], wait: bool,
            read_first: Sequence[tuple[Node, IndexCheck]] = ()) -> bool:  # fmt: skip
        """Materialize the root."""
        root, results = nodes[0], self.call.results
        memories = self.call.run([nodes[k] for k in self.leaves], root.device, wait)
        layouts = [contiguous(shape) for _, shape in results]
        if self.result is not None:
            nodes[1].become_tuple(
                in_memory(memory, layout, dtype)
                for memory, layout, (dtype, _) in zip(memories, layouts, results, strict=True)
            )
        k = self.result or 0
        root.materialize(memories[k], layouts[k])
        return True


class Numbering(NamedTuple):
    """The key of a structure, and the indices of its nodes.

    Primitives may be lowered since.

    Attributes
    ----------
    key : object
    index_of : dict
    constants : frozenset
        Nodes that are constants.
    offset_of : dict
        Of the leaves, in bytes.
    """

    key: Any
    index_of: dict[Node, int]
    constants: frozenset[Node]
    offset_of: dict[Node, int]

    @classmethod
    def of(cls, roots: list[Node]) -> Numbering | None:
        """Number the nodes; None if their structure has no key.

        Nor if it tells leaves apart that `LinearizedGraph` merges.
        """
        native = native_evaluation()
        walked = None if native is None else native.graph_key(roots)
        if walked is None:
            return None
        key, nodes, count = walked
        leaves = [node for node in nodes if not node.args]
        if len(set(map(leaf_identity, leaves))) != count:
            return None
        constants = frozenset(leaf for leaf in leaves if leaf.kind is CONSTANT)
        offset_of = {leaf: _offset(leaf) for leaf in leaves if leaf.kind is BUFFER}
        return cls(key, {node: k for k, node in enumerate(nodes)}, constants, offset_of)

    def remember(self, graph: LinearizedGraph, plan: ExecutablePlan,
                 repeated: RepeatedPlan, roots: list[Node]) -> None:  # fmt: skip
        """Let native functions find a plan that has run.

        Leaves that the lowering of a primitive made are views of others, or tables that it holds.
        """
        native = repeated.native(Frame.pack)
        if native is None and plan.device.memory != "own":
            return
        computed = {result.node for result in plan.results}
        if not computed.issuperset(graph.roots):  # a root may have become a leaf
            return
        held: dict[Node, int] = {}
        base_of = {leaf.memory: leaf for leaf in reversed(self.offset_of)}

        def index(node: Node) -> int:
            if node in self.offset_of or node in self.constants:
                return self.index_of[node]
            return len(self.index_of) + held.setdefault(node, len(held))

        passed = [leaf for leaf in graph.leaves if leaf.kind is BUFFER]
        leaves, elements = array("I"), array("q")
        for k, leaf in enumerate(passed):
            # A node of the graph may have become a leaf since, as a result of a call.
            base = leaf if leaf in self.offset_of else base_of.get(leaf.memory, leaf)
            if base in self.index_of and base not in self.offset_of:
                return
            shift = _offset(leaf) - self.offset_of.get(base, _offset(leaf))
            leaves.append(index(base))
            elements.extend((repeated.alignment_of(k), base.dtype.itemsize, shift))
        first = graph.nodes[: len(graph.leaves) + len(graph.numbers)]
        inputs = array("I", map(index, first))
        results = []
        for result in sorted(plan.results, key=lambda result: result.node):
            nodes = {graph.nodes[result.node]}
            nodes |= {root for root, k in zip(roots, graph.roots, strict=True) if k == result.node}
            numbers = tuple(self.index_of[node] for node in nodes if node in self.index_of)
            overwritten = repeated.overwritten.get(result.source)
            index_of_memory = (
                repeated.results.index(result.source) if overwritten is None
                else len(repeated.results) + overwritten
            )  # fmt: skip
            results.append((numbers, index_of_memory, result.layout[1:]))
        unsaved = [graph.nodes[k] for k in plan.unsaved_outputs]
        unsaved_indices = array("I", [self.index_of[n] for n in unsaved if n in self.index_of])
        plans[self.key] = KnownEvaluation(
            native,
            leaves.tobytes(),
            inputs.tobytes(),
            bool(graph.numbers),
            tuple(results),
            unsaved_indices.tobytes(),
            elements.tobytes(),
            tuple(held),
            array("I", repeated.overwritten.values()).tobytes(),
            repeated,
            frozenset(node.dtype for node in self.index_of),
        )


def _offset(leaf: Node) -> int:
    """The offset of its first element, in bytes."""
    return int(leaf.data[1]) * leaf.dtype.itemsize
