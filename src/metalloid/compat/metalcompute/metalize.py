"""Python functions of numbers as kernels, as metalcompute's example `metalize` makes them.

``from metalloid.compat.metalcompute.metalize import metalize`` in place of ``from metalize import
metalize``. A function is called once, with values that write down what is done to them.
"""

from __future__ import annotations

import functools
import inspect
import math
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid.compat.metalcompute.device import Device

_FUNCTIONS = ("sin", "cos", "sqrt", "log", "log2")
_HEADER = "#include <metal_stdlib>\nusing namespace metal;\n\n"


class Value:
    """A number of the traced function; what is done to it becomes a line of the kernel."""

    __slots__ = ("_lines", "_text")

    def __init__(self, lines: list[str], text: str) -> None:
        self._lines, self._text = lines, text

    def _line(self, expression: str) -> Value:
        name = f"r{len(self._lines)}"
        self._lines.append(f"    float {name} = {expression};\n")
        return Value(self._lines, name)

    def _of_two(self, operator: str, other: Any) -> Value:
        return self._line(f"{self} {operator} {_text(other)}")

    def __add__(self, other: Any) -> Value:
        return self._of_two("+", other)

    def __sub__(self, other: Any) -> Value:
        return self._of_two("-", other)

    def __mul__(self, other: Any) -> Value:
        return self._of_two("*", other)

    def __truediv__(self, other: Any) -> Value:
        return self._of_two("/", other)

    def __gt__(self, other: Any) -> Value:
        return self._of_two(">", other)

    def __lt__(self, other: Any) -> Value:
        return self._of_two("<", other)

    def __radd__(self, other: Any) -> Value:
        return self._line(f"{_text(other)} + {self}")

    def __rsub__(self, other: Any) -> Value:
        return self._line(f"{_text(other)} - {self}")

    def __rmul__(self, other: Any) -> Value:
        return self._line(f"{_text(other)} * {self}")

    def __rtruediv__(self, other: Any) -> Value:
        return self._line(f"{_text(other)} / {self}")

    def __getattr__(self, name: str) -> Value:
        if name not in _FUNCTIONS:
            raise Exception(f"Unknown operation '{name}'")
        return self._line(f"{name}({self})")

    def __str__(self) -> str:
        return self._text


def _text(value: Any) -> str:
    if isinstance(value, Value):
        return str(value)
    number = float(value)
    if math.isfinite(number):
        return f"{number!r}f"
    return "NAN" if math.isnan(number) else f"{'-' * (number < 0)}INFINITY"


def metalize(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a kernel of the default device.

    Parameters
    ----------
    function : callable
        Of numbers, with ``+ - * / < >``, and ``x.sin``, ``x.cos``, ``x.sqrt``, ``x.log``,
        ``x.log2``. It returns a number or a tuple of them. Loops are unrolled; nothing can be
        decided by a value.

    Returns
    -------
    callable
        It takes arrays or lists of one shape, which are copied as float32, and returns memoryviews
        of floats of that shape.

    Examples
    --------
    >>> @metalize
    ... def hypotenuse(a, b):
    ...     return (a * a + b * b).sqrt
    >>> hypotenuse([3, 5], [4, 12]).tolist()
    [5.0, 13.0]
    """
    return metalize_wth_device(get_default_device())(function)


def metalize_wth_device(device: Device) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`metalize` for another device; the name is the original's."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        count = len(inspect.getfullargspec(function).args)
        source, results = _traced(function, count)
        kernel = device.kernel(source).function("metalized")

        @functools.wraps(function)
        def run(*arguments: Any) -> Any:
            if len(arguments) != count:
                raise Exception(f"Expected {count} arguments. Received {len(arguments)}")
            floats, shape = _floats(arguments)
            size = math.prod(shape)
            outputs = [device.buffer(4 * size) for _ in range(results)]
            kernel(size, *(device.buffer(values) for values in floats), *outputs)
            views = tuple(memoryview(output).cast("B").cast("f", shape) for output in outputs)
            return views[0] if len(views) == 1 else views

        return run

    return decorate


def _traced(function: Callable[..., Any], count: int) -> tuple[str, int]:
    """The text of the kernel, and how many results it has."""
    lines: list[str] = []
    result = function(*(Value(lines, f"in{index}[id]") for index in range(count)))
    results = result if isinstance(result, tuple) else (result,)
    parameters = [f"device const float *in{n} [[buffer({n})]]" for n in range(count)]
    parameters += [f"device float *out{n} [[buffer({count + n})]]" for n in range(len(results))]
    parameters.append("uint id [[thread_position_in_grid]]")
    stores = [f"    out{n}[id] = {_text(result)};\n" for n, result in enumerate(results)]
    head = f"kernel void metalized({', '.join(parameters)}) {{\n"
    return "".join([_HEADER, head, *lines, *stores, "}\n"]), len(results)


def _floats(arguments: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...]]:
    """The arguments as float32, and their shape."""
    shape, floats = None, []
    for argument in arguments:
        is_array = hasattr(argument, "shape")
        own = tuple(argument.shape) if is_array else (len(argument),)
        if shape is None:
            shape = own
        if is_array and own != shape:
            raise Exception(f"Expected all args to have shape {shape}")
        if math.prod(own) != math.prod(shape):
            raise Exception(f"Expected all args to have {math.prod(shape)} items")
        floats.append(np.ascontiguousarray(argument, "f") if is_array else array("f", argument))
    return floats, shape or ()


@functools.cache
def get_default_device() -> Device:
    """The device that `metalize` uses."""
    return Device()
