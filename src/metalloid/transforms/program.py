"""Programs: the plan of a traced function, whose inputs and numbers each call passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from metalloid.arrays.execution.evaluate import plan_of
from metalloid.arrays.execution.executable import run
from metalloid.arrays.execution.repeated_plan import RepeatedPlan
from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.layout import Layout
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import BUFFER, CONSTANT, TRACER, Node, in_memory
from metalloid.arrays.ir.operands import as_number
from metalloid.arrays.ir.primitives import lower
from metalloid.arrays.ir.substitute import traced_nodes
from metalloid.errors import TraceError
from metalloid.transforms.numbers import TracedNumber


class Output(NamedTuple):
    """A result of a program.

    Attributes
    ----------
    leaf : int or None
        The leaf of whose memory it is a view.
    source : int
        Otherwise, the source of the plan that holds it.
    layout : Layout
        Relative to the offset of the leaf.
    dtype : numpy.dtype
    """

    leaf: int | None
    source: int
    layout: Layout
    dtype: DType


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
        lower(roots)  # while inputs are tracers: views of them are nodes, with offsets of their own
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
        self._nodes, self._plan = graph.nodes, plan_of(graph, roots[0].device).plan
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
                layout = node.layout._replace(offset=0)
                self._outputs.append(Output(at_leaf[node], -1, layout, node.dtype))
            else:
                result = stored[index]
                leaf = self._plan.sources[result.source].leaf
                self._outputs.append(Output(leaf, result.source, result.layout, node.dtype))
        owned = dict.fromkeys(o.source for o in self._outputs if o.leaf is None)
        has_counters = any(leaf.memory is None for leaf in graph.leaves)  # IOTA nodes
        self._repeated = None
        if not has_counters:
            self._repeated = RepeatedPlan.of(self._plan, tuple(owned), bool(self._numbers))
        #: By output, the index of its memory among those of leaves and results.
        self._owners = [
            len(self._leaves) + list(owned).index(o.source) if o.leaf is None else o.leaf
            for o in self._outputs
        ]

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
        memories = [leaf.memory for leaf in leaves]
        offsets = [leaf.data[1] for leaf in leaves]
        plan = self._plan
        if self._repeated is not None and not any(offsets):
            results = self._repeated(memories, nodes, False)  # type: ignore[arg-type]
            if results is not None:
                memories += results
                pairs = zip(self._owners, self._outputs)  # noqa: B905 - same length
                return [
                    in_memory(memories[owner], output.layout, output.dtype)  # type: ignore[arg-type]
                    for owner, output in pairs
                ]
        wait = plan.device.memory == "host"
        stored = run(plan, memories, offsets, nodes, (), wait, True)
        return [self._result(output, leaves, stored, offsets) for output in self._outputs]

    def _result(self, output: Output, leaves: Sequence[Node], stored: Sequence[Memory | None],
                offsets: Sequence[int]) -> Node:  # fmt: skip
        if output.leaf is not None:
            memory, start = leaves[output.leaf].memory, offsets[output.leaf]
        else:
            memory, start = stored[output.source], 0
        assert memory is not None
        layout = output.layout._replace(offset=output.layout.offset + start)
        return in_memory(memory, layout, output.dtype)


class _Placeholder:
    """Stands for the memory of an input, so that equal inputs are not merged."""

    sharing = 0  # tracers of transforms inside become copies of the input
