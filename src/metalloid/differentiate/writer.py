"""A program as lines of MSL, next to which derivatives are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from metalloid.differentiate.analysis import activity
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.program.text import text_of
from metalloid.differentiate.program.tree import (
    Assign,
    AtomicAdd,
    Barrier,
    Expression,
    If,
    Loop,
    Program,
    Statement,
)
from metalloid.differentiate.textures import texel_number, unknown_settings


class ProgramWriter(ABC):
    """Writes statements.

    Parameters
    ----------
    program : Program
    wrt, outputs : collection of str
        Buffers with derivatives that the kernel reads, and that it writes.

    Attributes
    ----------
    lines : list of str
    active : set of str
        Variables that have derivatives.
    prefix : str
        Of names of derivatives: `stem`, which has a number if names of parameters begin so.
    samplers : dict of str
        Names of the settings of samplers that the lines read.
    """

    stem: str

    def __init__(self, program: Program, wrt: Collection[str], outputs: Collection[str]) -> None:
        self.program, self.wrt, self.outputs = program, wrt, outputs
        self.prefix, number = f"{self.stem}_", 1
        while any(parameter.name.startswith(self.prefix) for parameter in program.parameters):
            number += 1
            self.prefix = f"{self.stem}{number}_"
        varied, self.active = activity.active_variables(program, wrt, outputs)
        for statement in activity.reads_of_bits(program, varied):
            why = "derivatives do not pass through the bits of integers"
            raise Refused(statement.location, why)
        self._references = {p.name for p in program.parameters if "&" in p.declaration}
        self.lines: list[str] = []
        self.samplers: dict[str, str] = {}
        self._depth = 0

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("  " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Braces around lines."""
        self.line(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    # -- statements

    def statements(self, statements: list[Statement]) -> None:
        """Write statements in their order."""
        for statement in statements:
            match statement:
                case Assign():
                    self.assign(statement)
                case AtomicAdd():
                    self.add(statement)
                case If():
                    self.branch(statement)
                case Loop():
                    self.loop(statement)
                case Barrier(text=text):
                    self.line(text)

    def assign(self, statement: Assign) -> None:
        """Write an assignment."""
        target, value = statement.target, text_of(statement.value)
        if target.op == "texel":
            given = ", ".join([value, *map(text_of, target.args[1:])])
            self.line(f"{target.base.name}.write({given});")
        else:
            self.line(f"{text_of(target)} = {value};")

    @abstractmethod
    def add(self, statement: AtomicAdd) -> None:
        """Write an addition to memory."""

    def branch(self, statement: If) -> None:
        """Write an if statement."""
        self.branches(
            text_of(statement.condition), statement.then, statement.other, self.statements
        )

    def loop(self, loop: Loop) -> None:
        """Write a loop."""
        with self.block(f"while ({text_of(loop.condition)})"):
            self.statements([*loop.body, *loop.step])

    def branches(
        self, condition: str, then: list[Any], other: list[Any],
        write: Callable[[list[Any]], None],
    ) -> None:  # fmt: skip
        """Write an if statement without its empty branches."""
        before = len(self.lines)
        with self.block(f"if ({condition})"):
            write(then)
        is_empty = len(self.lines) == before + 2
        if other:
            start = len(self.lines)
            with self.block("else"):
                write(other)
            if len(self.lines) == start + 2:
                del self.lines[start:]
            elif is_empty:
                self.lines[before : start + 1] = ["  " * self._depth + f"if (!({condition})) {{"]
                is_empty = False
            else:
                self.lines[start - 1 : start + 1] = ["  " * self._depth + "} else {"]
                is_empty = False
        if is_empty:
            del self.lines[before:]

    # -- derivatives

    def derivative(self, target: Expression) -> str:
        """The derivative of a target, where it is stored; the value of that of a texel."""
        name = target.base.name
        if target.op == "texel":
            return f"adjoint_load({self.prefix}{name}, {self.texel(target)})"
        text = text_of(target)
        if name in self._references:
            text = f"{name}[0]{text[len(name) :]}"
        return f"{self.prefix}{text}"

    def texel(self, target: Expression) -> str:
        """The number of a texel that is written."""
        return texel_number(target.base, target.args[1:])

    def sampler(self, name: str, location: Any) -> str:
        """The name of the settings of a sampler."""
        unknown = unknown_settings(self.program.samplers[name].settings or {})
        if unknown:
            raise Refused(location, f"samples with {' and '.join(unknown)} have no derivative here")
        self.samplers[name] = f"{self.prefix}{name.replace('::', '_')}"
        return self.samplers[name]

    def check_output(self, statement: Assign | AtomicAdd) -> None:
        """Refuse stores of what depends on inputs to memory without a derivative."""
        target = statement.target
        if not target.is_buffer_element or target.base.name in self.outputs:
            return
        if target.type.is_float and activity.float_variables(statement.value) & self.active:
            why = f"{target.base.name} depends on the inputs: name it among the outputs"
            raise Refused(statement.location, why)
