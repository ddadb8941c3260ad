"""Evaluations whose plan has run before, found by the structure of the graph.

native/evaluation.c finds and runs them.
"""

from __future__ import annotations

import ctypes
import functools
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from metalloid.arrays.execution.executable import ExecutablePlan
from metalloid.arrays.execution.repeated_plan import Frame, RepeatedPlan
from metalloid.arrays.ir.layout import Layout
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.native import library
from metalloid.arrays.ir.node import BUFFER, CONSTANT, CUSTOM_CALL, ELEMENTWISE, PRIMITIVE, Node
from metalloid.arrays.ir.primitives import structural

#: Plans by the structure of a graph; the keys of native functions are among them.
plans: dict[Any, Any] = {}


class NativeEvaluation(NamedTuple):
    """The functions of native/evaluation.c.

    Attributes
    ----------
    evaluate : callable
        From roots to True with their values; False if their structure is not known; None if Python
        has to evaluate them; the known evaluation and the nodes if only its run needs Python.
    graph_key : callable
        From roots to the key of their structure and their nodes; None if they have none.
    """

    evaluate: Callable[[list[Node]], bool | tuple[KnownEvaluation, list[Node]] | None]
    graph_key: Callable[[list[Node]], tuple[Any, list[Node]] | None]


@functools.cache
def native_evaluation() -> NativeEvaluation | None:
    """The native functions, where they are available."""
    functions = library()
    if functions is None:
        return None
    kinds = BUFFER, CONSTANT, ELEMENTWISE, CUSTOM_CALL, PRIMITIVE, structural
    return NativeEvaluation(*functions.mtl_evaluation(ctypes.py_object((plans, kinds, ()))))


class KnownEvaluation(NamedTuple):
    """The run of a repeated plan, for all graphs of a structure.

    Nodes are numbered in the order in which they are reached from the roots.

    Attributes
    ----------
    plan : tuple or None
        See `RepeatedPlan.native`.
    leaves, inputs : bytes
        Leaves of the plan, and its leaves and constants: 32-bit indices of nodes.
    has_numbers : bool
        Whether there are constants.
    results : tuple
        By result, operands first: the indices of nodes that get it, the index of its memory among
        the results of the plan, and strides and offset.
    unsaved : bytes
        Nodes that are computed without being saved.
    elements : bytes
        By leaf: alignment and size of its elements, in bytes.
    repeated : RepeatedPlan
    types : frozenset of numpy.dtype
        Those whose addresses are in the key.
    """

    plan: tuple[Any, ...] | None
    leaves: bytes
    inputs: bytes
    has_numbers: bool
    results: tuple[tuple[tuple[int, ...], int, tuple[Any, ...]], ...]
    unsaved: bytes
    elements: bytes
    repeated: RepeatedPlan
    types: frozenset[Any]

    def run(self, nodes: Sequence[Node], wait: bool) -> bool:
        """Materialize the roots, if the plan supports the leaves."""
        leaves = [nodes[k] for k in memoryview(self.leaves).cast("I")]
        memories = [leaf.memory for leaf in leaves]
        offsets = [leaf.data[1] * leaf.dtype.itemsize for leaf in leaves]
        inputs = [nodes[k] for k in memoryview(self.inputs).cast("I")]
        stored: list[Memory] | None
        stored = self.repeated(memories, inputs, wait, offsets)  # type: ignore[arg-type]
        if stored is None:
            return False
        for k in memoryview(self.unsaved).cast("I"):
            nodes[k].inlined = True
        for indices, index, data in self.results:
            for k in indices:
                nodes[k].materialize(stored[index], Layout(nodes[k].shape, *data))
        return True


class Numbering(NamedTuple):
    """The key of a structure, the indices of its nodes, and the number of nodes without operands.

    Primitives may be lowered since.
    """

    key: Any
    index_of: dict[Node, int]
    leaves: int

    @classmethod
    def of(cls, roots: list[Node]) -> Numbering | None:
        """Number the nodes; None if their structure has no key."""
        native = native_evaluation()
        walked = None if native is None else native.graph_key(roots)
        if walked is None:
            return None
        key, nodes = walked
        leaves = sum(not node.args for node in nodes)
        return cls(key, {node: k for k, node in enumerate(nodes)}, leaves)

    def remember(self, graph: LinearizedGraph, roots: list[Node], plan: ExecutablePlan,
                 repeated: RepeatedPlan) -> None:  # fmt: skip
        """Let native functions find a plan that has run.

        Not if leaves or constants were merged, which the key tells apart, nor if there are results
        or leaves that the lowering of a primitive made.
        """
        first = graph.nodes[: len(graph.leaves) + len(graph.numbers)]
        given = [*first, *(graph.nodes[result.node] for result in plan.results)]
        if len(first) != self.leaves or any(node not in self.index_of for node in given):
            return

        def indices(nodes: Sequence[Node]) -> bytes:
            return array("I", [self.index_of[node] for node in nodes]).tobytes()

        native = repeated.native(Frame.pack)
        if native is None and plan.device.memory != "own":
            return
        results = []
        for result in sorted(plan.results, key=lambda result: result.node):
            nodes = {graph.nodes[result.node]}
            nodes |= {root for root, k in zip(roots, graph.roots, strict=True) if k == result.node}
            numbers = tuple(self.index_of[node] for node in nodes)
            results.append((numbers, repeated.results.index(result.source), result.layout[1:]))
        elements: list[int] = []
        for k, leaf in enumerate(graph.leaves):
            elements += repeated.alignment_of(k), leaf.dtype.itemsize
        unsaved = [graph.nodes[index] for index in plan.unsaved_outputs]
        plans[self.key] = KnownEvaluation(
            native,
            indices(graph.leaves),
            indices(first),
            bool(graph.numbers),
            tuple(results),
            indices([node for node in unsaved if node in self.index_of]),
            array("Q", elements).tobytes(),
            repeated,
            frozenset(node.dtype for node in self.index_of),
        )
