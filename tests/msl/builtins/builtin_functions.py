"""Tables of builtin functions that work component by component, and the sheets they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from judges import Bound
from msl_types import vector
from sheets import Row, Sheet

OPERANDS = "abcd"


@dataclass(frozen=True)
class Builtin:
    """One function.

    Attributes
    ----------
    text : str
        A call with operands ``a``, ``b``, ``c``, ``d``. ``T`` is the operands' type, a scalar or vector;
        `others` names more types. Statements that set ``y`` do too.
    oracle : callable
        From the operands, as NumPy arrays, to the exact value.
    types : sequence of str
        Element types.
    bound : Bound
        Of float; `bound_of` makes those of the other types.
    result : mapping or str
        Element type of the value; by element type of the operands, or the same for all. The
        default is the operands' own.
    operands : mapping
        Element type of the operands that do not have the type ``T``; with a ``*`` after it they
        are scalars in the vector forms too. A mere ``*`` is a scalar of the same element type.
    data : callable, optional
        From a type and a generator to the operands, in place of the chapter's own.
    lanes : sequence of int
        Of the forms it has.
    """

    text: str
    oracle: Callable
    types: Sequence[str]
    bound: Bound = None
    result: Mapping[str, str] | str = field(default_factory=dict)
    operands: Mapping[str, str] = field(default_factory=dict)
    data: Callable | None = None
    lanes: Sequence[int] = (1, 2, 3, 4)
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.text.split("(")[0].removeprefix("metal::")


def windows(values: np.ndarray, lanes: int) -> np.ndarray:
    """Vectors of neighbouring values, one for each value: every value visits every lane."""
    if lanes == 1:
        return values
    return np.stack([np.roll(values, -lane) for lane in range(lanes)], axis=-1)


def sheet_of(
    builtin: Builtin,
    type_: str,
    data: Callable,
    bound_of: Callable = lambda bound, type_: bound,
    math_mode: str = "safe",
    widths: Sequence[int] = (1, 2, 3, 4),
) -> Sheet:
    """The sheet of one function for one element type, with a row for each of `widths` it has.

    `data` makes the operands from a number of them, a type and a generator.
    """
    widths = [lanes for lanes in widths if lanes in builtin.lanes]
    result = builtin.result if isinstance(builtin.result, str) else builtin.result.get(type_, type_)
    names = OPERANDS[: operand_count(builtin.oracle)]
    bound = bound_of(builtin.bound, type_)
    inputs, rows = {}, []
    for lanes in widths:
        T = vector(type_, lanes)
        aliases = f"using T = {T}; using I = {vector('int', lanes)}; "
        arguments = []
        for name in names:
            other = builtin.operands.get(name, type_)
            width = 1 if other.endswith("*") else lanes
            argument = f"{name}{width}"
            operand = vector(other.rstrip("*") or type_, width)
            inputs[argument] = operand
            aliases += f"{operand} {name} = {argument}; "
            arguments.append(argument)
        statements = builtin.text if ";" in builtin.text else f"y = {builtin.text};"
        rows.append(
            Row(
                vector(result, lanes),
                aliases + statements,
                _on(arguments, lanes, builtin.oracle),
                _on(arguments, lanes, bound) if callable(bound) else bound,
            )
        )

    def make(rng):
        operands = (builtin.data or data)(len(names), type_, rng)
        return {
            f"{name}{lanes}": windows(values, lanes)
            for name, values in zip(names, operands, strict=True)
            for lanes in {1, *widths}
            if f"{name}{lanes}" in inputs
        }

    return Sheet(f"{builtin}-{type_}", inputs, make, rows, math_mode)


def operand_count(oracle: Callable) -> int:
    """How many operands an oracle takes: what it says itself, or what NumPy does."""
    for attribute in ("operands", "nin"):
        if hasattr(oracle, attribute):
            return getattr(oracle, attribute)
    return oracle.__code__.co_argcount


class _on:
    """`oracle` as a function of a sheet's inputs; a scalar among vectors meets all lanes."""

    def __init__(self, names, lanes, oracle):
        self.names, self._lanes, self._oracle = names, lanes, oracle

    def __call__(self, *values):
        if self._lanes > 1:
            values = [v[:, None] if v.ndim == 1 else v for v in values]
        return self._oracle(*values)


def sheets_of(table: Sequence[Builtin], data: Callable, **options) -> list[Sheet]:
    """The sheets of a table: every type as a scalar, and as a vector of 2, 3 or 4 in turn."""
    return [
        sheet_of(builtin, type_, data, widths=(1, 2 + (row + column) % 3), **options)
        for row, builtin in enumerate(table)
        for column, type_ in enumerate(builtin.types)
    ]


def sheets_of_all_widths(table: Sequence[Builtin], data: Callable, **options) -> list[Sheet]:
    """The sheets of a table with every type in every width."""
    return [sheet_of(b, type_, data, **options) for b in table for type_ in b.types]
