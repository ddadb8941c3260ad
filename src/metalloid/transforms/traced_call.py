"""A call of a compiled function with tracers: the arguments it had, and what it returned."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir.layout import Layout, contiguous
from metalloid.arrays.ir.node import BUFFER, CONSTANT, Node
from metalloid.transforms.extents import ExtentTrace
from metalloid.transforms.numbers import NumberTrace
from metalloid.transforms.program import NUMBERS
from metalloid.transforms.tracing import Trace
from metalloid.transforms.variants import Variant


class TracedCall:
    """A run of a function with tracers.

    Parameters
    ----------
    count : int, optional
        Of numbers, after which the extents of the arguments are traced as well.

    Attributes
    ----------
    tracers, layouts : list
        Of the arrays: arguments, then states such as that of random numbers.
    arguments : int
        How many of these are arguments.
    states : list of (state, first tracer, last value)
        States that the function read or changed.
    results : list
        Leaves of what it returned, and of its outputs.
    structure, state_structure
        Those of the returned value, and of the outputs.
    """

    def __init__(self, count: int | None) -> None:
        self.trace = Trace("compile")
        placeholder = self.trace.typed_placeholder
        self.numbers: NumberTrace = (
            NumberTrace(placeholder) if count is None else ExtentTrace(placeholder, count)
        )
        self._count = itertools.count()
        self.tracers: list[Node] = []
        self.layouts: list[Layout] = []
        self.arguments = 0
        self.states: list[Any] = []
        self.results: list[Any] = []
        self.structure: Any = None
        self.state_structure: Any = None

    def argument(self, leaf: Any) -> Any:
        """The tracer of a leaf of the arguments; the leaf if it is neither array nor number."""
        if type(leaf) in NUMBERS:
            return self.numbers.number(next(self._count), leaf)
        node = getattr(leaf, "_node", None)
        if node is None:
            return leaf
        if node.kind is CONSTANT:
            number = self.numbers.number(next(self._count), node.data)
            return Array(number.as_node(node.dtype, node.device))
        shape = node.shape
        if isinstance(self.numbers, ExtentTrace):
            shape = self.numbers.extents(shape)
        return self._tracer(node, shape, layout_of(node))

    def state(self, value: Array) -> Array:
        """The tracer of a state."""
        node = value._node
        return self._tracer(node, node.shape, node.layout)

    def _tracer(self, node: Node, shape: Any, layout: Layout) -> Array:
        self.tracers.append(self.trace.placeholder(node, shape))
        self.layouts.append(layout)
        return Array(self.tracers[-1])

    @property
    def roots(self) -> list[Node]:
        """The arrays of the results, then the last values of the states."""
        arrays = [leaf._node for leaf in self.results if isinstance(leaf, Array)]
        return arrays + [last._node for _, _, last in self.states]

    def variant(self, numbers: Sequence[Any]) -> Variant:
        """A variant without a program, for the numbers that the function has read."""
        return Variant(
            {k: numbers[k] for k in self.numbers.fixed}, None, self.structure,
            self.state_structure,
            [None if isinstance(leaf, Array) else leaf for leaf in self.results],
            [state for state, _, _ in self.states],
        )  # fmt: skip


def layout_of(node: Node) -> Layout:
    """The layout of an array, if it has not been computed, when it will have been."""
    return node.layout if node.kind is BUFFER else contiguous(node.shape)
