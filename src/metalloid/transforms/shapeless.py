"""Traced functions as templates, from which programs for other sizes are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.arrays.ir.extents import SymbolicExtent, at_extents
from metalloid.arrays.ir.layout import Layout
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.operands import as_number
from metalloid.errors import TraceError
from metalloid.transforms.extents import Extent, ExtentTrace, Guard
from metalloid.transforms.numbers import TracedNumber
from metalloid.transforms.program import Program
from metalloid.transforms.tracing import Trace
from metalloid.transforms.variants import Variant

OTHER_SIZES = "other sizes, without a trace"


class Template:
    """A function traced with symbolic extents.

    Parameters
    ----------
    trace : Trace
    traced : ExtentTrace
    roots, tracers : sequence of Node
        Results and arguments.
    states : sequence of Layout
        Of the states, whose tracers are the last ones.
    variant : Variant
        Without its program.
    """

    def __init__(self, trace: Trace, traced: ExtentTrace, roots: Sequence[Node],
                 tracers: Sequence[Node], states: Sequence[Layout],
                 variant: Variant) -> None:  # fmt: skip
        self._trace, self._traced, self._roots, self._tracers = trace, traced, roots, tracers
        self._states, self._variant = states, variant

    def broken_guard(self, values: Sequence[Any]) -> Guard | None:
        """The first fact that is not true for the numbers and extents of a call."""
        return next((guard for guard in self._traced.guards if not guard.holds(values)), None)

    def is_for(self, numbers: Sequence[Any]) -> bool:
        """Whether the function has read the same values of numbers."""
        return self._variant.is_for(numbers)

    def program(self, values: Sequence[Any], layouts: Sequence[Layout], reason: str) -> Variant:
        """The program for some sizes.

        Parameters
        ----------
        values : sequence
            The numbers and then the extents of the call.
        layouts : sequence of Layout
            Of the arrays.
        """
        traced, first = self._traced, self._traced.first
        layouts = [*layouts, *self._states]

        def size(extent: SymbolicExtent) -> Any:
            if not isinstance(extent, Extent) or extent.trace is not traced:
                raise TraceError(
                    "[compile] the function uses a size of another trace. Arrays of a compiled "
                    "function, and their shapes, must not be kept outside of it."
                )
            return extent.compute(values)

        def at_call(number: TracedNumber) -> Any:
            if all(k >= first for k in number.inputs):
                return number.compute(values)
            extents, compute = values[first:], number.compute
            if all(k < first for k in number.inputs):
                return number
            return TracedNumber(traced, number.value, lambda n: compute([*n, *extents]))

        tracers = [
            self._trace.placeholder(node, layout.shape)
            for node, layout in zip(self._tracers, layouts, strict=True)
        ]
        known = dict(zip(self._tracers, tracers, strict=True))
        numbers: list[tuple[Node, TracedNumber]] = []
        for node, number in traced.nodes:
            value = at_call(number)
            if isinstance(value, TracedNumber):
                known[node] = self._trace.typed_placeholder(node.dtype, node.device)
                numbers.append((known[node], value))
            else:
                known[node] = as_number(value, node.dtype, node.device)
        roots = at_extents(self._roots, known, size)
        program = Program(roots, tracers, layouts, numbers) if roots else None
        others = [
            at_call(leaf) if isinstance(leaf, TracedNumber) else leaf
            for leaf in self._variant.others
        ]
        return self._variant._replace(program=program, others=others, reason=reason)


def adapted(name: str, templates: Sequence[Template], numbers: Sequence[Any],
            extents: Sequence[int], layouts: Sequence[Layout]) -> Variant | str:  # fmt: skip
    """A program for other sizes from one of the traces; otherwise the reason to trace again.

    Raises
    ------
    ValueError
        If the function itself depends on sizes that differ from those of the trace.
    """
    values, reason = [*numbers, *extents], ""
    for template in templates:
        if not template.is_for(numbers):
            continue
        guard = template.broken_guard(values)
        if guard is None:
            return template.program(values, layouts, OTHER_SIZES)
        if guard.is_read:
            raise ValueError(
                f"[compile] {name} was traced with other sizes, and depends on them at "
                f"{guard.line}, where {guard.text} in the trace. shapeless=True does not trace "
                "again: compute with arrays and their extents only, or leave out shapeless."
            )
        reason = f"no longer: {guard.text}, at {guard.line}"
    return reason
