"""Extents as variables of a trace: a program for other sizes does not run the function again.

A function is traced with arrays whose extents are `Extent`. Arithmetic with them is repeated for
other sizes. Whatever depends on the size itself is recorded as a `Guard`: sizes for which a guard
does not hold would have made another program.
"""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from metalloid.arrays.ir.dtypes import DType
from metalloid.arrays.ir.extents import SymbolicExtent, open_traces
from metalloid.arrays.ir.node import Node
from metalloid.errors import TraceError
from metalloid.runtime.devices.device import Device
from metalloid.transforms import numbers
from metalloid.transforms.numbers import Compute, NumberTrace, TracedNumber, arithmetic

_PACKAGE, _NUMPY = str(Path(__file__).parents[1]), str(Path(np.__file__).parent)


@dataclass(frozen=True)
class Guard:
    """A fact on the sizes of a trace, on which its program depends.

    Attributes
    ----------
    compute : callable
        From the numbers and extents of a call to a value.
    expected : object
        Its value in the trace.
    is_read : bool
        Whether the function needs one value, or compares sizes itself. Otherwise a function of the
        library chooses between cases.
    text, line : str
        The fact, and the user's file and line.
    """

    compute: Compute
    expected: Any
    is_read: bool
    text: str
    line: str

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether it is true for the numbers and extents of a call."""
        try:
            return bool(self.compute(values) == self.expected)
        except ArithmeticError:
            return False


class ExtentTrace(NumberTrace):
    """The numbers and extents of a traced call.

    Attributes
    ----------
    guards : list of Guard
    first : int
        Index of the first extent; numbers have smaller ones.
    """

    def __init__(self, make_node: Callable[[DType, Device], Node], first: int) -> None:
        super().__init__(make_node)
        self.guards: list[Guard] = []
        self.first = first
        open_traces.add(self)
        self._count = first
        self._thread = threading.get_ident()
        self._known: dict[Any, tuple[Any, ...]] = {}  # with the operands, whose ids are in the key

    def extents(self, shape: Sequence[int]) -> tuple[Any, ...]:
        """The extents of the next array."""
        start, self._count = self._count, self._count + len(shape)
        return tuple(
            Extent(self, n, operator.itemgetter(k), frozenset([k]))
            for k, n in enumerate(shape, start)
        )

    def end(self) -> None:
        """The function has returned: its sizes are no longer read."""
        open_traces.discard(self)

    @property
    def is_current(self) -> bool:
        """Whether the function runs, in this thread."""
        return self in open_traces and threading.get_ident() == self._thread

    def read(self, number: TracedNumber) -> None:
        """See `NumberTrace.read`."""
        if not self.is_current:
            raise TraceError(
                "[compile] the size of a traced array is read after its trace has ended. Arrays of "
                "a compiled function, and their shapes, must not be kept outside of it."
            )
        self.fixed |= {k for k in number.inputs if k < self.first}
        if any(k >= self.first for k in number.inputs):
            text = f"a size is {number.value!r}"
            self.guard(number.compute, number.value, True, text, (id(number),), number)

    def guard(self, compute: Compute, expected: Any, is_read: bool, text: str,
              key: Any, *operands: Any) -> None:  # fmt: skip
        """Record a fact."""
        if key not in self._known:
            self._known[key] = operands
            is_of_library, line = _caller()
            self.guards.append(Guard(compute, expected, is_read or not is_of_library, text, line))


def _caller() -> tuple[bool, str]:
    """Whether a function of the library uses an extent, and the user's file and line."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in (__file__, numbers.__file__):
        frame = frame.f_back
    is_of_library = frame is not None and frame.f_code.co_filename.startswith(_PACKAGE)
    while frame is not None and frame.f_code.co_filename.startswith((_PACKAGE, _NUMPY)):
        frame = frame.f_back
    line = "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return is_of_library, line


class Extent(TracedNumber, SymbolicExtent):
    """An extent of a traced array, or the result of arithmetic with some. It stands for an int."""

    trace: ExtentTrace
    __class__ = property(lambda self: self.type)  # for `isinstance`

    def _apply(self, function: Callable[..., Any], *others: Any) -> Any:
        result = super()._apply(function, *others)
        if result is NotImplemented or any(type(other) is TracedNumber for other in others):
            return result  # with numbers of the call: shapes do not depend on them unless read
        return Extent(self.trace, result.value, result.compute, result.inputs)

    def __bool__(self) -> bool:
        return bool(operator.ne(self, 0))

    def __hash__(self) -> int:
        return hash(self._read() if self.trace.is_current else self.value)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._read(), dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._read(), name)


def _comparison(name: str, symbol: str) -> Callable[[Extent, Any], Any]:
    function = getattr(operator, name)

    def compare(self: Extent, other: Any) -> Any:
        value: Any
        of_call: Compute
        if self is other:
            return bool(function(0, 0))
        if isinstance(other, Extent):
            value, of_call = other.value, other.compute
        elif isinstance(other, TracedNumber):
            value, of_call = other._read(), other.compute
        elif isinstance(other, int | float | np.integer | np.floating):
            value, of_call = other, lambda values: other
        else:
            return NotImplemented
        others_trace = other.trace if isinstance(other, Extent) else self.trace
        if not self.trace.is_current or others_trace is not self.trace:
            if _caller()[0]:  # a cache of the library, which holds an extent of another trace
                return NotImplemented
            self._read()
        result = bool(function(self.value, value))
        own, key = self.compute, id(other) if isinstance(other, TracedNumber) else (value,)
        self.trace.guard(
            lambda values: function(own(values), of_call(values)), result, False,
            f"{self.value!r} {symbol} {value!r} is {result}",
            (id(self), name, key), self, other,
        )  # fmt: skip
        return result

    return compare


_SYMBOLS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
for _name in ("and", "or", "xor", "lshift", "rshift"):
    _function = getattr(operator, f"__{_name}__")
    setattr(Extent, f"__{_name}__", arithmetic(_function, False))
    setattr(Extent, f"__r{_name}__", arithmetic(_function, True))
for _name, _symbol in _SYMBOLS.items():
    setattr(Extent, f"__{_name}__", _comparison(_name, _symbol))
