"""Python's numbers as inputs of compiled functions: another value does not trace again.

While a function is traced, its numbers are replaced by `TracedNumber`. Arithmetic with them is
repeated at each call. A number that the function reads, as ``if`` and ``float`` do, is fixed: the
program is valid for that value only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.node import Node
from metalloid.arrays.ir.operands import SymbolicNumber
from metalloid.runtime.devices.device import Device

Number = bool | int | float | complex
#: From the numbers of a call to the value.
Compute = Callable[[Sequence[Any]], Any]


class NumberTrace:
    """The numbers of a traced call.

    Attributes
    ----------
    nodes : list of (Node, TracedNumber)
        Constants of the program, and their values.
    fixed : set of int
        Indices of numbers that were read.
    """

    def __init__(self, make_node: Callable[[DType, Device], Node]) -> None:
        self._make_node = make_node
        self.nodes: list[tuple[Node, TracedNumber]] = []
        self.fixed: set[int] = set()

    def number(self, index: int, value: Number) -> TracedNumber:
        """The number at an index among those of the call."""
        return TracedNumber(self, value, operator.itemgetter(index), frozenset([index]))

    def read(self, number: TracedNumber) -> None:
        """Fix the numbers on which one depends: the function has read its value."""
        self.fixed |= number.inputs

    def node(self, number: TracedNumber, dtype: DType, device: Device) -> Node:
        """A constant with the value of a number."""
        node = self._make_node(dtype, device)
        self.nodes.append((node, number))
        return node


class TracedNumber(SymbolicNumber):
    """A number of a traced call, or the result of arithmetic with some.

    Attributes
    ----------
    value : number
        That of the traced call.
    compute : callable
        From the numbers of a call to its value.
    inputs : frozenset of int
        The numbers on which it depends.
    """

    def __init__(self, trace: NumberTrace, value: Number, compute: Compute,
                 inputs: frozenset[int] = frozenset()) -> None:  # fmt: skip
        self.trace, self.value, self.compute, self.inputs = trace, value, compute, inputs
        self.type = type(value)

    def as_node(self, dtype: DType, device: Device) -> Node:
        """See `SymbolicNumber.as_node`."""
        return self.trace.node(self, dtype, device)

    def _read(self) -> Any:
        self.trace.read(self)
        return self.value

    def _apply(self, function: Callable[..., Any], *others: Any) -> Any:
        """Arithmetic of this number and others."""
        operands = [self]
        for other in others:
            if isinstance(other, TracedNumber):
                operands.append(other)
            elif isinstance(other, bool | int | float | complex):
                operands.append(TracedNumber(self.trace, other, _constant(other)))
            else:
                return NotImplemented

        def compute(numbers: Sequence[Any]) -> Any:
            return function(*(operand.compute(numbers) for operand in operands))

        inputs = frozenset().union(*(operand.inputs for operand in operands))
        value = function(*(operand.value for operand in operands))
        return TracedNumber(self.trace, value, compute, inputs)

    def __bool__(self) -> bool:
        return bool(self._read())

    def __float__(self) -> float:
        return float(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __complex__(self) -> complex:
        return complex(self._read())

    def __index__(self) -> int:
        return operator.index(self._read())

    def __hash__(self) -> int:
        return hash(self._read())

    def __repr__(self) -> str:
        return repr(self._read())

    def __format__(self, spec: str) -> str:
        return format(self._read(), spec)


def _constant(value: Number) -> Compute:
    return lambda numbers: value


def _comparison(name: str) -> Callable[[TracedNumber, Any], Any]:
    function = getattr(operator, name)

    def compare(self: TracedNumber, other: Any) -> Any:
        if hasattr(other, "_node"):
            return NotImplemented
        return function(self._read(), other._read() if isinstance(other, TracedNumber) else other)

    return compare


def arithmetic(function: Callable[..., Any], is_reflected: bool) -> Callable[..., Any]:
    """A method that applies an operator, to the operands in reverse order if it is reflected."""

    def apply(self: TracedNumber, *others: Any) -> Any:
        if is_reflected:
            return self._apply(lambda a, b: function(b, a), *others)
        return self._apply(function, *others)

    return apply


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(TracedNumber, f"__{_name}__", _comparison(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _function = getattr(operator, _name)
    setattr(TracedNumber, f"__{_name}__", arithmetic(_function, False))
    setattr(TracedNumber, f"__r{_name}__", arithmetic(_function, True))
for _name in ("neg", "pos", "abs"):
    setattr(TracedNumber, f"__{_name}__", arithmetic(getattr(operator, _name), False))
