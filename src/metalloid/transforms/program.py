"""Programs: the plan of a traced function, whose inputs and numbers each call passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from metalloid.arrays.execution.evaluate import plan_of
from metalloid.arrays.execution.executable import run, with_offset
from metalloid.arrays.ir.layout import Layout
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.node import BUFFER, CONSTANT, TRACER, Node, in_memory
from metalloid.arrays.ir.operands import as_number
from metalloid.arrays.ir.substitute import traced_nodes
from metalloid.errors import TraceError
from metalloid.transforms.numbers import TracedNumber


class Output(NamedTuple):
    """A result of a program.

    Attributes
    ----------
    leaf : int or None
        The leaf that it is.
    source : int
        Otherwise, the source of the plan that holds it.
    layout : Layout
    node : Node
    """

    leaf: int | None
    source: int
    layout: Layout
    node: Node


class Program:
    """The plan of a traced function.

    Parameters
    ----------
    roots : sequence of Node
        Results, as expressions of tracers.
    inputs : sequence of Node
        The tracers of arrays. They become leaves of the graph.
    layouts : sequence of Layout
        Of the arrays.
    numbers : sequence of (Node, TracedNumber)
        The tracers of numbers. They become constants.
    """

    def __init__(self, roots: Sequence[Node], inputs: Sequence[Node], layouts: Sequence[Layout],
                 numbers: Sequence[tuple[Node, TracedNumber]]) -> None:  # fmt: skip
        devices = {root.device for root in roots}
        if len(devices) > 1:
            names = ", ".join(sorted(device.name for device in devices))
            raise TraceError(f"[compile] the results are on several devices: {names}.")
        traced = traced_nodes(roots)
        for node, layout in zip(inputs, layouts, strict=True):
            node.kind, node.data, node.flags = BUFFER, (layout.strides, 0), 0
            node.memory = _Placeholder()  # type: ignore[assignment]
        for node, _ in numbers:
            # Each NaN differs from all others: constants of equal value stay apart.
            node.kind, node.data, node.flags = CONSTANT, float("nan"), 0
        for node in traced:
            if node.kind is TRACER:  # of a transform inside
                node.become(node.args[0])
        graph = LinearizedGraph(list(dict.fromkeys(roots)))
        self._nodes, self._plan = graph.nodes, plan_of(graph, roots[0].device)
        # A tracer of a transform inside may stand for an input: look for what they share.
        position = {node.memory: k for k, node in enumerate(inputs)}
        self._leaves = [(position.get(leaf.memory), leaf) for leaf in graph.leaves]
        computed = {id(node.data): number for node, number in numbers}
        self._numbers = [
            (index, node, computed[id(node.data)])
            for index, node in enumerate(graph.nodes)
            if node.kind is CONSTANT and id(node.data) in computed
        ]
        at_leaf = {leaf: k for k, leaf in enumerate(graph.leaves)}
        stored = {result.node: result for result in self._plan.results}
        index_of = dict(zip(dict.fromkeys(roots), graph.roots, strict=True))
        self._outputs: list[Output] = []
        for root in roots:
            index = index_of[root]
            node = graph.nodes[index]
            if node.kind is BUFFER:
                self._outputs.append(Output(at_leaf[node], 0, node.layout, node))
            else:
                result = stored[index]
                self._outputs.append(Output(None, result.source, result.layout, node))

    def __call__(self, inputs: Sequence[Node], numbers: Sequence[Any]) -> list[Node]:
        """Run the program; return leaves with the results.

        Parameters
        ----------
        inputs : sequence of Node
            Leaves, of the layouts for which it was made.
        numbers : sequence
        """
        leaves = [leaf if k is None else inputs[k] for k, leaf in self._leaves]
        nodes: Sequence[Node] = self._nodes
        if self._numbers:
            nodes = list(nodes)
            for index, node, number in self._numbers:
                nodes[index] = as_number(number.compute(numbers), node.dtype, node.device)
        plan = self._plan
        offsets = [leaf.data[1] for leaf in leaves]
        wait = plan.device.memory == "host"
        memories = run(plan, [leaf.memory for leaf in leaves], offsets, nodes, (), wait, True)
        results = []
        for leaf, source, layout, node in self._outputs:
            if leaf is not None:
                results.append(leaves[leaf])
                continue
            memory = memories[source]
            assert memory is not None
            layout = with_offset(layout, plan.sources[source], offsets)
            results.append(in_memory(memory, layout, node.dtype))
        return results


class _Placeholder:
    """Stands for the memory of an input, so that equal inputs are not merged."""
