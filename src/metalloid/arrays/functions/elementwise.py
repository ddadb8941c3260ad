"""Elementwise functions of the array API: one per row of the table of operations.

Type checkers and editors read ``elementwise.pyi``; a test generates it from these functions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir import native
from metalloid.arrays.ir.operands import binary, native_operation, unary
from metalloid.arrays.ir.ops import OPS, Op


def _unary(name: str) -> Callable[[Any], Array]:
    row = OPS[name]
    operation = native_operation(row)

    def function(x: Any, /) -> Array:
        result: Array | None = native.elementwise(operation, x)
        return Array(unary(row, x)) if result is None else result

    return _documented(function, row)


def _binary(name: str) -> Callable[[Any, Any], Array]:
    row = OPS[name]
    operation = native_operation(row)

    def function(x1: Any, x2: Any, /) -> Array:
        result: Array | None = native.elementwise(operation, x1, x2)
        return Array(binary(row, x1, x2)) if result is None else result

    return _documented(function, row)


def _documented(function: Callable[..., Array], row: Op) -> Callable[..., Array]:
    """Set a function's name and docstring from its row of the table."""
    function.__name__ = function.__qualname__ = row.name
    parameters = list(inspect.signature(function).parameters)
    names, text = ", ".join(parameters), row.text
    for position, name in enumerate(parameters):
        text = text.replace(f"{{{position}}}", name)
    kinds = {"b": "bool", "i": "integers", "f": "floats", "c": "complex numbers"}
    types = ", ".join(word for letter, word in kinds.items() if letter in row.dtype_kinds)
    accuracy = f"At most {row.max_ulp} ULP from the exact result in float32." if row.max_ulp else (
        "Exact, or rounded once.")  # fmt: skip
    if row.complex_max_ulp:
        accuracy += f" Parts of complex64: {row.complex_max_ulp} ULP of the modulus."
    derivative = _derivative(row, parameters)
    function.__doc__ = f"""{row.summary}, element-wise.

    Parameters
    ----------
    {names} : Array or number
        Supports {types}. Shapes broadcast and types are promoted. Integers are converted to
        float32 by functions that are defined for floats only.

    Raises
    ------
    TypeError
        If the type is not supported.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    {accuracy} In MSL: ``{text}``.{derivative}
    """
    return function


def _derivative(row: Op, parameters: list[str]) -> str:
    """A sentence with the derivatives of a row; none if its results are not numbers."""
    names = dict(zip("xyz", parameters, strict=False)) | {"out": "result"}

    def listed(expressions: tuple[str, ...]) -> str:
        texts = [re.sub(r"\w+", lambda m: names.get(m[0], m[0]), text) for text in expressions]
        return ", ".join(f"``{text}``" for text in texts)

    if not row.tangents:
        return ""
    text = f" Derivative along a tangent t: {listed(row.tangents)}"
    if row.complex_tangents:
        text += f"; of complex numbers: {listed(row.complex_tangents)}"
    return text + "."


globals().update(
    {name: _unary(name) if row.operands == 1 else _binary(name) for name, row in OPS.items()}
)
