"""Sheets: a kernel that evaluates MSL expressions, each with its oracle.

A sheet names its inputs and lists rows; a row is an MSL expression of the inputs, the type of its
value, a NumPy function of the same inputs and the error allowed. All rows of a sheet are one kernel
with an output buffer per row, which keeps compilation cheap.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from judges import Bound, wrong_elements
from msl_types import from_memory, memory_of, memory_type, parse, to_memory

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"


@dataclass(frozen=True)
class Row:
    """One expression.

    Attributes
    ----------
    type : str
        MSL type of the value.
    text : str
        The expression; or statements, ended by semicolons, that set ``y``.
    oracle : callable
        From the inputs, by name, to the exact values. It takes those inputs that it names.
    bound : Bound
        What may be between the two; the default is nothing.
    """

    type: str
    text: str
    oracle: Callable
    bound: Bound = None

    def block(self, output: str) -> str:
        """The statements that evaluate the row and store its value."""
        statements = self.text if ";" in self.text else f"y = {self.text};"
        return f"{{ {self.type} y; {statements} {output}[i] = {memory_of(self.type, 'y')}; }}"


@dataclass(frozen=True, eq=False)
class Sheet:
    """Rows with the same inputs.

    Attributes
    ----------
    name : str
        Of the test and, made an identifier, of the kernel.
    inputs : mapping
        MSL type of each input by name.
    data : callable
        From a random generator to the arrays, one element per thread, by name.
    rows : sequence of Row
    math_mode : str
        Of the library.
    declarations : str
        MSL source that the rows use.
    group_sizes : sequence of int
        Threads of a threadgroup, a launch each. Groups of 64 run as vectors of threads on a CPU,
        those of 3 one thread after the other: two paths through the compiler.
    """

    name: str
    inputs: Mapping[str, str]
    data: Callable[[np.random.Generator], Mapping[str, np.ndarray]]
    rows: Sequence[Row]
    math_mode: str = "safe"
    declarations: str = ""
    group_sizes: Sequence[int] = (64, 3)

    def __str__(self) -> str:
        return self.name

    @property
    def kernel_name(self) -> str:
        return "k_" + re.sub(r"\W+", "_", self.name)

    @property
    def source(self) -> str:
        """The kernel's text."""
        inputs = [
            f"device const {memory_type(type_)}* {name}_in" for name, type_ in self.inputs.items()
        ]
        outputs = [f"device {memory_type(row.type)}* y{j}" for j, row in enumerate(self.rows)]
        loads = "".join(
            f"    {type_} {name} = {from_memory(type_, f'{name}_in[i]')};\n"
            for name, type_ in self.inputs.items()
        )
        blocks = "".join(f"    {row.block(f'y{j}')}\n" for j, row in enumerate(self.rows))
        parameters = ",\n    ".join([*inputs, *outputs, "uint i [[thread_position_in_grid]]"])
        return f"kernel void {self.kernel_name}(\n    {parameters}) {{\n{loads}{blocks}}}\n"

    def check(self, kernel) -> None:
        """Run the kernel and compare each row with its oracle."""
        with np.errstate(all="ignore"):
            data = dict(self.data(np.random.default_rng(20261121)))
        stored = [to_memory(type_, data[name]) for name, type_ in self.inputs.items()]
        threads = len(stored[0])
        reports = []
        for group_size in self.group_sizes:
            outputs = [parse(row.type).empty(threads) for row in self.rows]
            kernel(*stored, *outputs, threads=threads, group_size=group_size)
            values = (
                parse(row.type).read(output) for row, output in zip(self.rows, outputs, strict=True)
            )
            reports += [
                _report(row, actual, data) for row, actual in zip(self.rows, values, strict=True)
            ]
        reports = list(filter(None, reports))
        assert not reports, "\n".join([*reports, "", self.source])


def _named(function: Callable, data: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """The inputs that `function` names."""
    return tuple(data[name] for name in _names(function))


def _names(function: Callable) -> Sequence[str]:
    """The inputs that `function` names: by its attribute `names`, or by its parameters."""
    names = getattr(function, "names", None)
    if names is None:
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.default is p.empty]
    return names


def _report(row: Row, actual: np.ndarray, data: Mapping[str, np.ndarray]) -> str:
    """The error of a row; empty if there is none."""
    with np.errstate(all="ignore"):
        expected = np.asarray(row.oracle(*_named(row.oracle, data)))
        expected = np.broadcast_to(expected, actual.shape)
        bound = row.bound(*_named(row.bound, data)) if callable(row.bound) else row.bound
        wrong = wrong_elements(actual, expected, bound)
    if not wrong.any():
        return ""
    index = tuple(np.argwhere(wrong)[0])
    inputs = ", ".join(f"{name}={data[name][index[0]]!r}" for name in _names(row.oracle))
    return (
        f"{row.type} {row.text}: {wrong.sum()} of {wrong.size} wrong; first at {index}: "
        f"{actual[index]!r}, expected {expected[index]!r}\n    of {inputs}"
    )
