"""Tables of builtin functions that work component by component, and the sheets they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from judges import Bound
from msl_types import parse, vector
from sheets import Row, Sheet

OPERANDS = "abcd"
MAX_BUFFERS = 31  # of a kernel


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


class Part:
    """The forms of one function for one element type, as a part of a sheet.

    Parameters
    ----------
    builtin : Builtin
    type_ : str
    widths : sequence of int
        Numbers of lanes of the forms, as far as the function has them; a row each.
    data : callable
        From a number of operands, a type and a generator to the operands.
    bound_of : callable
        From the table's bound and the type to the bound.
    """

    def __init__(self, builtin, type_, widths, data, bound_of):
        self.builtin, self.type, self._data = builtin, type_, builtin.data or data
        self._bound = bound_of(builtin.bound, type_)
        self._operands = OPERANDS[: operand_count(builtin.oracle)]
        self.inputs: dict[str, str] = {}
        self.rows = [self._row(lanes) for lanes in widths if lanes in builtin.lanes]

    def _row(self, lanes):
        builtin, arguments = self.builtin, []
        aliases = f"using T = {vector(self.type, lanes)}; using I = {vector('int', lanes)}; "
        for name in self._operands:
            element = builtin.operands.get(name, self.type)
            width = 1 if element.endswith("*") else lanes
            operand = vector(element.rstrip("*") or self.type, width)
            argument = f"{name}{width}_{self.type}"
            self.inputs[argument] = operand
            arguments.append(argument)
            aliases += f"{operand} {name} = {argument}; "
        result = builtin.result
        if not isinstance(result, str):
            result = result.get(self.type, self.type)
        statements = builtin.text if ";" in builtin.text else f"y = {builtin.text};"
        bound = self._bound
        return Row(
            vector(result, lanes),
            aliases + statements,
            _on(arguments, lanes, builtin.oracle),
            _on(arguments, lanes, bound) if callable(bound) else bound,
        )

    @property
    def buffers(self):
        """The number of a launch's arguments that it takes."""
        return len(self.inputs) + len(self.rows)

    def data(self, rng):
        operands = self._data(len(self._operands), self.type, rng)
        values = dict(zip(self._operands, operands, strict=True))
        return {
            name: windows(values[name[0]], parse(type_).lanes)
            for name, type_ in self.inputs.items()
        }


def joined(parts: Sequence[Part], math_mode: str = "safe") -> Sheet:
    """A sheet of several parts; those with less data repeat it."""

    def data(rng):
        values = {name: v for part in parts for name, v in part.data(rng).items()}
        size = max(map(len, values.values()))
        return {name: np.resize(v, (size, *v.shape[1:])) for name, v in values.items()}

    return Sheet(
        f"{parts[0].builtin}-{'-'.join(part.type for part in parts)}",
        {name: type_ for part in parts for name, type_ in part.inputs.items()},
        data,
        [row for part in parts for row in part.rows],
        math_mode,
    )


def operand_count(oracle: Callable) -> int:
    """The number of operands of an oracle: its own attribute, or NumPy's."""
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


def same(bound: Bound, type_: str) -> Bound:
    """The table's bound for every type."""
    return bound


def sheets_of(
    table: Sequence[Builtin], data: Callable, bound_of: Callable = same, turns: int = 1
) -> list[Sheet]:
    """The sheets of a table: every type as a scalar, and as a vector of 2, 3 or 4 in turn.

    As many types share a kernel as its arguments allow, since kernels are what costs time. With
    two `turns` a function has every second type: signed and unsigned ones, narrow and wide ones.
    """
    sheets = []
    for row, builtin in enumerate(table):
        parts = [
            Part(builtin, type_, (1, 2 + (row + column) % 3), data, bound_of)
            for column, type_ in enumerate(builtin.types)
            if (column + column // 2 - row) % turns == 0
        ]
        each = max(part.buffers for part in parts)
        sheets += [joined(chunk) for chunk in even_chunks(parts, MAX_BUFFERS // each)]
    return sheets


def sheets_of_all_widths(
    table: Sequence[Builtin], data: Callable, bound_of: Callable = same
) -> list[Sheet]:
    """The sheets of a table with every type in every width."""
    return [
        joined([Part(b, type_, (1, 2, 3, 4), data, bound_of)]) for b in table for type_ in b.types
    ]


def even_chunks(items: Sequence, max_size: int) -> list[Sequence]:
    """`items` in as few chunks as possible, of about equal size."""
    count = -(-len(items) // max_size)
    size = -(-len(items) // count)
    return [items[start : start + size] for start in range(0, len(items), size)]
