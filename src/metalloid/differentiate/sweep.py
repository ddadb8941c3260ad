"""The reverse sweep of a program, as MSL text.

A *recorded* block saves in variables what its reverse needs: values that it overwrites, the branch
that ran, the trip count of a loop. A loop pushes nothing but the variables that an iteration takes
from the one before; its reverse pops them, runs the iteration again as a recorded block, reverses
it. So the memory of nested loops adds up, and is not multiplied: these are the checkpoints of
Griewank and Walther, "Evaluating Derivatives", 2nd edition, chapter 12, one for each iteration.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import contextmanager
from typing import Any

from metalloid.differentiate import activity
from metalloid.differentiate.expressions import Refused
from metalloid.differentiate.propagate import Propagation
from metalloid.differentiate.tape import pop_lines, push_lines, words_of
from metalloid.differentiate.text import declaration, text_of
from metalloid.differentiate.tree import Assign, AtomicAdd, If, Loop, Program, Statement, assigned
from metalloid.differentiate.types import Type


class Sweep:
    """Writes the reverse sweep.

    Parameters
    ----------
    program : Program
    wrt, outputs : collection of str
        Buffers whose adjoints are computed, and whose adjoints are given.

    Attributes
    ----------
    lines : list of str
    declared : list of str
        Declarations of variables that precede the lines.
    has_tape, uses_lanes : bool
    consumed : set of str
        Outputs whose adjoints are set to 0 where they have been read.
    """

    def __init__(self, program: Program, wrt: Collection[str], outputs: Collection[str]) -> None:
        self.program, self.outputs = program, outputs
        varied, self.active = activity.active_variables(program, wrt, outputs)
        for statement in activity.reads_of_bits(program, varied):
            why = "derivatives do not pass through the bits of integers"
            raise Refused(statement.location, why)
        self.lines: list[str] = []
        self.declared: list[str] = []
        self.has_tape = False
        self.consumed = activity.stored_repeatedly(program) & set(outputs)
        self._depth = 0
        self._numbers: dict[int, int] = {}
        self._counts = activity.assignments_of(program)
        for parameter in program.parameters:  # has a value before
            self._counts[parameter.name] = self._counts.get(parameter.name, 0) + 1
        self._needed: set[str] = set(program.variables)
        self.uses_lanes = False
        self._propagation = Propagation(self)
        self._reverse(program.body)  # finds what it reads
        self._needed = activity.needed_closure(program, self._propagation.read)
        self.lines, self.declared, self._numbers = [], [], {}
        self.has_tape = False
        self._propagation = Propagation(self)

    def write(self) -> None:
        """Write the forward and the reverse sweep."""
        self._declare_variables()
        self._record(self.program.body)
        self._reverse(self.program.body)

    def write_count(self) -> None:
        """Write a run that counts the words of the tape."""
        self.declared += ["uint top = 0;", "uint peak = 0;"]
        self._declare_variables(with_adjoints=False)
        self._plain(self.program.body, counts=True)

    def _declare_variables(self, with_adjoints: bool = True) -> None:
        for name, type_ in self.program.variables.items():
            if name in self._needed:
                self.declared.append(f"{declaration(name, type_)} = {{}};")
            if name in self.active and with_adjoints:
                self.declared.append(f"{declaration('d_' + name, type_.adjoint)} = {{}};")

    @property
    def lane_name(self) -> str:
        """The name of the thread's index in its simdgroup."""
        self.uses_lanes = True
        return "adjoint_lane"

    # -- lines

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("  " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Any:
        """Braces around lines."""
        self.line(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def variable(self, kind: str, statement: Statement, type_: Type) -> str:
        """A variable of the recorded block, for a statement."""
        number = self._numbers.setdefault(id(statement), len(self._numbers) + 1)
        name = f"{kind}_{number}"
        line = f"{declaration(name, type_)};"
        if line not in self.declared:
            self.declared.append(line)
        return name

    # -- forward

    def _record(self, statements: list[Statement]) -> None:
        for statement in statements:
            match statement:
                case Assign(target=target) if not target.is_buffer_element:
                    if target.base.name in self._needed:
                        if self._is_saved(statement):
                            saved = self.variable("saved", statement, target.type.element)
                            self.line(f"{saved} = {text_of(target)};")
                        self._assign(statement)
                case If(condition=condition, then=then, other=other):
                    taken = self.variable("taken", statement, Type("bool"))
                    self.line(f"{taken} = {text_of(condition)};")
                    self._branches(taken, then, other, self._record)
                case Loop():
                    self._record_loop(statement)

    def _record_loop(self, loop: Loop) -> None:
        for name, saved in self._saved_at_entry(loop):
            self._copy(saved, name, self.program.variables[name])
        count = self.variable("count", loop, Type("uint"))
        self.line(f"{count} = 0;")
        with self.block(f"while ({text_of(loop.condition)})"):
            if activity.carried(loop, self._needed):
                self.has_tape = True
                with self.block(f"if ({count} % tape_stride == 0)"):
                    self._push(loop)
            self._plain([*loop.body, *loop.step])
            self.line(f"{count} += 1;")

    def _push(self, loop: Loop) -> None:
        for name in activity.carried(loop, self._needed):
            for line in push_lines(name, self.program.variables[name]):
                self.line(line)

    def _pop(self, loop: Loop) -> None:
        for name in reversed(activity.carried(loop, self._needed)):
            for line in pop_lines(name, self.program.variables[name]):
                self.line(line)

    def _undo(self, loop: Loop, times: str = "") -> None:
        """Undo the steps of an iteration, or of some."""
        for step in reversed(activity.undone(loop)):
            if step.target.name in self._needed:
                operator = "-" if step.value.name == "+" else "+"
                by = text_of(step.value.args[1])
                by = f"({by}) * {step.target.type.scalar}({times})" if times else by
                self.line(f"{step.target.name} {operator}= {by};")

    def _plain(self, statements: list[Statement], counts: bool = False) -> None:
        """Statements that are run again later, so that they record nothing."""
        for statement in statements:
            match statement:
                case Assign(target=target) if not target.is_buffer_element:
                    if target.base.name in self._needed:
                        self._assign(statement)
                case If(condition=condition, then=then, other=other):
                    condition_text = text_of(condition)
                    self._branches(condition_text, then, other, lambda b: self._plain(b, counts))
                case Loop(condition=condition, body=body, step=step):
                    if counts:
                        self._count_loop(statement)
                        continue
                    with self.block(f"while ({text_of(condition)})"):
                        self._plain([*body, *step])

    def _count_loop(self, loop: Loop) -> None:
        """A loop that counts the words of the tape at each iteration of its reverse.

        Then those of the iteration itself have been popped, and loops within push.
        """
        names = activity.carried(loop, self._needed)
        words = sum(words_of(self.program.variables[name]) for name in names)
        entry = self.variable("entry", loop, Type("uint"))
        count = self.variable("count", loop, Type("uint"))
        self.line(f"{entry} = top;")
        self.line(f"{count} = 0;")
        with self.block(f"while ({text_of(loop.condition)})"):
            at = f"({count} / tape_stride + {count} % tape_stride)"
            self.line(f"top = {entry} + {at} * {words};")
            self._plain([*loop.body, *loop.step], counts=True)
            self.line(f"{count} += 1;")
            self.line(f"peak = max(peak, {entry} + ({at} + 1) * {words});")
        self.line(f"top = {entry} + ({count} + tape_stride - 1) / tape_stride * {words};")

    def _branches(self, condition: str, then: Any, other: Any, write: Any) -> None:
        """An if statement whose empty branches are left out."""
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

    def _assign(self, statement: Assign) -> None:
        self.line(f"{text_of(statement.target)} = {text_of(statement.value)};")

    def _is_saved(self, statement: Assign) -> bool:
        """Whether the value that a statement overwrites may be read by what precedes it."""
        return self._counts[statement.target.base.name] > 1

    def _saved_at_entry(self, loop: Loop) -> list[tuple[str, str]]:
        """The variables that a loop changes for good, and what keeps their values before it."""
        names = assigned(loop.body) & self._needed & set(self.program.variables)
        names -= {*activity.carried(loop, self._needed), *loop.own}
        return [
            (name, self.variable(f"entry_{name}", loop, self.program.variables[name]))
            for name in sorted(names)
        ]

    def _copy(self, to: str, source: str, type_: Type) -> None:
        if not type_.extents:
            self.line(f"{to} = {source};")
            return
        index = "".join(f"[i{k}]" for k in range(len(type_.extents)))
        for k, extent in enumerate(type_.extents):
            self.line(f"for (uint i{k} = 0; i{k} < {extent}; ++i{k})")
        self.line(f"  {to}{index} = {source}{index};")

    # -- reverse

    def _reverse(self, statements: list[Statement]) -> None:
        for statement in reversed(statements):
            match statement:
                case Assign(target=target):
                    self._reverse_assign(statement)
                case AtomicAdd(target=target, value=value):
                    self._check_output(statement)
                    if target.base.name in self.active:
                        self._propagation.run(value, self._adjoint(target), statement.location)
                case If(then=then, other=other):
                    taken = self.variable("taken", statement, Type("bool"))
                    self._branches(taken, then, other, self._reverse)
                case Loop():
                    self._reverse_loop(statement)

    def _reverse_loop(self, loop: Loop) -> None:
        if activity.carried(loop, self._needed):
            self._reverse_segments(loop)
        else:
            count = self.variable("count", loop, Type("uint"))
            with self.block(self._iterations(loop, "iteration", count)):
                self._undo(loop)
                self._record(loop.body)
                self._reverse(loop.body)
        for name, saved in self._saved_at_entry(loop):
            self._copy(name, saved, self.program.variables[name])

    def _reverse_segments(self, loop: Loop) -> None:
        """Reverse a loop whose state is on the tape, once for each `tape_stride` iterations."""
        count = self.variable("count", loop, Type("uint"))
        length = self.variable("length", loop, Type("uint"))
        head = f"while ({count} > 0)"
        end = f"({count} - 1) % tape_stride + 1"
        if activity.has_lane_functions(loop.body):
            segment = self.variable("segment", loop, Type("uint"))
            number = f"(simd_max({count}) + tape_stride - 1) / tape_stride"
            head = f"for ({segment} = {number}; {segment} > 0; --{segment})"
            head += f" if ({count} > ({segment} - 1) * tape_stride)"
            end = f"{count} - ({segment} - 1) * tape_stride"
        iteration = self.variable("iteration", loop, Type("uint"))
        with self.block(head):
            self.line(f"{length} = {end};")
            self.line(f"{count} -= {length};")
            self._undo(loop, length)
            self._pop(loop)
            with self.block(f"for ({iteration} = 1; {iteration} < {length}; ++{iteration})"):
                self._push(loop)
                self._plain([*loop.body, *loop.step])
            with self.block(self._iterations(loop, "iteration", length)):
                with self.block(f"if ({iteration} < {length})"):
                    self._undo(loop)
                    self._pop(loop)
                self._record(loop.body)
                self._reverse(loop.body)

    def _iterations(self, loop: Loop, kind: str, count: str) -> str:
        """The head of a loop over iterations from the last one to the first."""
        left = self.variable(kind, loop, Type("uint"))
        if not activity.has_lane_functions(loop.body):
            return f"for ({left} = {count}; {left} > 0; --{left})"
        # All threads of a simdgroup reverse the same iteration at a time.
        return f"for ({left} = simd_max({count}); {left} > 0; --{left}) if ({left} <= {count})"

    def _reverse_assign(self, statement: Assign) -> None:
        target, value = statement.target, statement.value
        if target.is_buffer_element:
            self._check_output(statement)
            if target.base.name in self.active:
                seed = self._adjoint(target)
                if target.base.name in self.consumed:  # a store before it has no effect
                    given, seed = seed, self._propagation.new_seed(target.type.adjoint)
                    self.line(f"const {target.type.element.adjoint.msl} {seed} = {given};")
                    self.line(f"{given} = 0;")
                self._propagation.run(value, seed, statement.location)
            return
        name = target.base.name
        is_active = name in self.active and target.type.is_float
        seed = ""
        if is_active:
            seed = self._propagation.new_seed(target.type.adjoint)
            self.line(f"const {target.type.element.adjoint.msl} {seed} = {self._adjoint(target)};")
            self.line(f"{self._adjoint(target)} = 0;")
        if name in self._needed and self._is_saved(statement):
            saved = self.variable("saved", statement, target.type.element)
            self.line(f"{text_of(target)} = {saved};")
        if is_active:
            self._propagation.run(value, seed, statement.location)

    def _adjoint(self, target: Any) -> str:
        """The adjoint of a target, where it is stored."""
        self._propagation.note_indices(target)
        text, name = text_of(target), target.base.name
        if target.is_buffer_element and not text.startswith(f"{name}["):  # through a reference
            text = f"{name}[0]{text[len(name) :]}"
        return f"d_{text}"

    def _check_output(self, statement: Assign | AtomicAdd) -> None:
        """Refuse stores that are read again, or that overwrite others."""
        name = statement.target.base.name
        reads = {n for value in activity.all_reads(self.program.body) for n in value.variables()}
        if name in reads:
            raise Refused(statement.location, f"{name} is written to and read")
        if (
            name not in self.outputs
            and statement.target.type.is_float
            and float_reads(statement, self.active)
        ):
            raise Refused(
                statement.location, f"{name} depends on the inputs: name it among the outputs"
            )


def float_reads(statement: Assign | AtomicAdd, active: Collection[str]) -> bool:
    """Whether the value of a store has a derivative."""
    return bool(activity.float_variables(statement.value) & set(active))
