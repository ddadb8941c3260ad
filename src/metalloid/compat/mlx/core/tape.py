"""A record of the operations that a function calls, for `export_function`.

Operations are recorded as they were called, with shapes and other parameters as constants, so that
a record of one shape also runs for others, where its operations allow that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import metalloid as mtl
from metalloid.arrays.ir.node import TRACED
from metalloid.compat.mlx.core.array import array, wrap
from metalloid.compat.mlx.core.dtypes import Dtype, dtype_of
from metalloid.transforms.tracing import Trace

#: Operations by their names in records.
OPERATIONS: dict[str, Callable[..., Any]] = {}


class Step(NamedTuple):
    """A call of an operation; arrays are references to values by number."""

    operation: str
    args: list[Any]
    named: dict[str, Any]
    results: list[int]


class Tape:
    """A record.

    Attributes
    ----------
    steps : list of Step
    constants : dict of int to array
        Arrays that were created by something else, by number.
    """

    def __init__(self, inputs: Sequence[array]) -> None:
        self.steps: list[Step] = []
        self.constants: dict[int, array] = {}
        self._numbers: dict[int, int] = {}
        self._nodes: list[Any] = []  # referenced, so that no other node has their ids
        self._depth = 0
        for value in inputs:
            self._add(value)

    def _add(self, value: array) -> int:
        number = len(self._nodes)
        node = value._a._node
        self._nodes.append(node)
        self._numbers[id(node)] = number
        return number

    def number_of(self, value: array) -> int:
        """The number of a value; an unknown one is a constant."""
        node = value._a._node
        number = self._numbers.get(id(node))
        if number is None:
            if node.flags & TRACED:
                raise NotRecorded(
                    "[export_function] the function uses a transform, such as grad or vmap, whose "
                    "results cannot be recorded."
                )
            number = self._add(value)
            self.constants[number] = wrap(value._a)
        return number

    @property
    def is_inside(self) -> bool:
        """Whether an operation is being called."""
        return self._depth > 0

    def call(self, operation: str, function: Callable[..., Any], args: Any, named: Any) -> Any:
        """Call and record an operation, unless another operation calls it."""
        if self._depth:
            return function(*args, **named)
        given = self.encoded(list(args)), self.encoded(named)
        self._depth += 1
        try:
            result = function(*args, **named)
        finally:
            self._depth -= 1
        self.record(operation, *given, result)
        return result

    def record(self, operation: str, args: list[Any], named: dict[str, Any], result: Any) -> None:
        """Record a call that has been made."""
        values = [result] if isinstance(result, array) else list(result)
        numbers = []
        for value in values:
            known = self._numbers.get(id(value._a._node))
            numbers.append(self._add(value) if known is None else known)
        self.steps.append(Step(operation, args, named, numbers))

    def encoded(self, value: Any) -> Any:
        """A parameter as JSON has it."""
        if isinstance(value, array):
            return {"array": self.number_of(value)}
        if isinstance(value, np.ndarray | mtl.Array):
            return {"array": self.number_of(array(value))}
        if isinstance(value, Dtype):
            return {"dtype": value._name}
        if isinstance(value, list):
            return [self.encoded(item) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.encoded(item) for item in value]}
        if isinstance(value, dict):
            return {str(key): self.encoded(item) for key, item in value.items()}
        if isinstance(value, slice):
            return {"slice": [self.encoded(v) for v in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"ellipsis": True}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, np.generic):
            return self.encoded(value.item())
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if hasattr(value, "__mlx_array__"):
            return self.encoded(value.__mlx_array__())
        raise ValueError(f"[export_function] cannot save a parameter {value!r:.60}.")


class NotRecorded(ValueError):
    """A function has results that do not come from recorded operations."""


class Recording(NamedTuple):
    """Operations that compute the results of a function.

    Attributes
    ----------
    steps : list of Step
    constants : dict of int to array
    outputs : list of int
        Numbers of the results.
    """

    steps: list[Step]
    constants: dict[int, array]
    outputs: list[int]

    def run(self, inputs: Sequence[array]) -> list[array]:
        """Compute the results for arguments, which may have other shapes."""
        values = dict(enumerate(inputs)) | self.constants
        for operation, args, options, numbers in self.steps:
            result = OPERATIONS[operation](*decoded(args, values), **decoded(options, values))
            items = [result] if isinstance(result, array) else list(result)
            values.update(zip(numbers, items, strict=True))
        return [values[number] for number in self.outputs]


def recorded(transform: str, call: Callable[[list[array]], Sequence[array]],
             inputs: Sequence[array], reads_values: bool) -> Recording:  # fmt: skip
    """Record what a function computes.

    Parameters
    ----------
    transform : str
        Name for messages.
    reads_values : bool
        Whether the function may read values of its arguments.
    """
    trace = Trace(transform)
    nodes = [trace.tracer(value._a._node, reads_values) for value in inputs]
    tracers = [wrap(mtl.Array(node)) for node in nodes]
    tape = Tape(tracers)
    before, current.tape = current.tape, tape
    try:
        outputs = call(tracers)
        numbers = [tape.number_of(output) for output in outputs]
    finally:
        current.tape = before
        trace.end([])
    return Recording(tape.steps, tape.constants, numbers)


def dtype_named(name: str) -> Dtype:
    """The type of a name."""
    return dtype_of(mtl.bfloat16 if name == "bfloat16" else np.dtype(name))


def decoded(value: Any, values: dict[int, array]) -> Any:
    """A parameter from its form in JSON."""
    if isinstance(value, list):
        return [decoded(item, values) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((kind, content),) = value.items()
        if kind == "array":
            return values[content]
        if kind == "dtype":
            return dtype_named(content)
        if kind == "tuple":
            return tuple(decoded(item, values) for item in content)
        if kind == "slice":
            return slice(*(decoded(item, values) for item in content))
        if kind == "ellipsis":
            return Ellipsis
        if kind == "complex":
            return complex(*content)
    return {key: decoded(item, values) for key, item in value.items()}


class _Current(threading.local):
    tape: Tape | None = None


current = _Current()
