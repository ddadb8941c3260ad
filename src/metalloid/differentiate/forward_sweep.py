"""The forward sweep of a program, which records what the reverse sweep needs, as MSL text.

A *recorded* block saves in variables what its reverse needs: values that it overwrites, the branch
that ran, the trip count of a loop. A loop pushes nothing but the variables that an iteration takes
from the one before; its reverse pops them, runs the iteration again as a recorded block, reverses
it. So the memory of nested loops adds up, and is not multiplied: these are the checkpoints of
Griewank and Walther, "Evaluating Derivatives", 2nd edition, chapter 12.

A loop that writes threadgroup memory or waits for other threads cannot be run again for a thread
alone: it pushes all that it overwrites.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection
from contextlib import contextmanager
from typing import Any

from metalloid.differentiate.analysis import activity
from metalloid.differentiate.analysis.common_values import Level
from metalloid.differentiate.analysis.indices import Indices, is_distinct
from metalloid.differentiate.analysis.slopes import Slope, slopes_of
from metalloid.differentiate.program.text import count_name, declaration, text_of
from metalloid.differentiate.program.tree import (
    Assign,
    AtomicAdd,
    Barrier,
    Expression,
    If,
    Loop,
    Program,
    Statement,
    assigned,
    flatten,
)
from metalloid.differentiate.program.types import Type
from metalloid.differentiate.tape import pop_lines, push_lines, words_of
from metalloid.differentiate.writer import ProgramWriter


class ForwardSweep(ProgramWriter):
    """Writes the forward sweep.

    Attributes
    ----------
    declared : list of str
        Declarations of variables that precede the lines.
    has_tape : bool
    consumed : set of str
        Outputs whose adjoints are set to 0 where they have been read.
    shared : dict of Type
        Types of threadgroup variables.
    shared_words : dict of str
        Numbers of words of their adjoints.
    """

    stem = "d"

    def __init__(self, program: Program, wrt: Collection[str], outputs: Collection[str]) -> None:
        super().__init__(program, wrt, outputs)
        self.consumed: set[str] = set()
        self._indices = Indices(program)
        self._counts = activity.assignments_of(program)
        for parameter in program.parameters:  # has a value before
            self._counts[parameter.name] = self._counts.get(parameter.name, 0) + 1
        self._needed: set[str] = set(program.variables)
        self._computed: set[str] | None = None
        self._is_counting = False
        #: Running extremes, and shares of their adjoints, in the loop that is reversed.
        self._shares: dict[str, tuple[str, str]] = {}
        #: Statements instead of those that update running extremes, by name.
        self._ties: dict[str, str] = {}
        self._needed_by_loop: dict[int, set[str]] = {}
        #: The levels of the conditions of the loops that are reversed.
        self._loops: list[Level] = []
        self._slopes = slopes_of(program, self.active)
        self._clear()

    def _clear(self) -> None:
        """Begin with an empty text."""
        self.lines: list[str] = []
        self.declared: list[str] = []
        self.has_tape = False
        self._depth = 0
        self._numbers: dict[int, int] = {}
        self.shared_words: dict[str, str] = {}
        self.shared: dict[str, Type] = {}
        self._taped, self._undone = False, list[Assign]()

    def write_count(self) -> None:
        """Write a run that counts the words of the tape."""
        self._computed = activity.needed_closure(self.program.body, ())
        self.declared += ["uint top = 0;", "uint peak = 0;"]
        self._declare_variables(with_adjoints=False)
        self._is_counting = True
        self.statements(self.program.body)

    def _declare_variables(self, with_adjoints: bool = True) -> None:
        for name, type_ in self.program.variables.items():
            if type_.space == "threadgroup":
                self._declare_shared(name, type_, with_adjoints)
                continue
            if name in (self._needed if self._computed is None else self._computed):
                self.declared.append(f"{declaration(name, type_)} = {{}};")
            if name in self.active and with_adjoints:
                self.declared.append(f"{declaration(self.prefix + name, type_.adjoint)} = {{}};")
        for parameter in self.program.threadgroup_parameters if with_adjoints else ():
            name, type_ = parameter.name, parameter.type
            if name in self._needed:
                self.shared[name] = type_
            if name in self.active:
                self.shared_words[name] = f"{count_name(name)} * {type_.lanes}"

    def _declare_shared(self, name: str, type_: Type, with_adjoints: bool) -> None:
        if name in self._needed:
            self.declared.append(f"threadgroup {declaration(name, type_)};")
            if with_adjoints:  # what a first store overwrites is saved
                self.shared[name] = type_
        if name in self.active and with_adjoints:
            words = type_.lanes * math.prod(type_.extents)
            self.shared_words[name] = str(words)
            self.declared.append(f"threadgroup atomic_uint {self.prefix}{name}[{words}];")

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
                    if target.base.name in self._needed - set(self._shares):
                        self._save(statement)
                        super().assign(statement)
                case If() if (slope := self._slope_of(statement)) is not None:
                    self._record_slope(statement, slope)
                case If(condition=condition, then=then, other=other):
                    taken = self.variable("taken", statement, Type("bool"))
                    self.line(f"{taken} = {text_of(condition)};")
                    self.branches(taken, then, other, self._record)
                    self._push_all(self._state_of(statement))
                case Loop():
                    self._record_loop(statement)
                    self._push_all(self._state_of(statement))
                case Barrier(text=text):
                    self.line(text)

    def _slope_of(self, statement: If) -> Slope | None:
        """The slope of a branch, if the forward sweep computes it."""
        return None if self._taped else self._slopes.get(id(statement))

    def _slope_name(self, statement: If, slope: Slope) -> str:
        return self.variable("slope", statement, self.program.variables[slope.result].adjoint)

    def _record_slope(self, statement: If, slope: Slope) -> None:
        """Run a branch and its reverse, from an adjoint of 1."""
        source, result = (f"{self.prefix}{name}" for name in slope)
        others = {}
        # Those of iterations that have been reversed; without loops they are 0.
        for kind, name in zip(slope._fields, slope, strict=True) if self._loops else ():
            type_ = self.program.variables[name].adjoint
            others[name] = self.variable(f"given_{kind}", statement, type_)
            self.line(f"{others[name]} = {self.prefix}{name};")
            self.line(f"{self.prefix}{name} = 0;")

        def write(branch: list[Statement]) -> None:
            self.statements(branch)
            self.line(f"{result} = 1;")
            before, self._needed = self._needed, self._needed - {slope.result}
            self._reverse(branch)
            self._needed = before

        self.branches(text_of(statement.condition), statement.then, statement.other, write)
        self.line(f"{self._slope_name(statement, slope)} = {source};")
        for name, other in others.items():
            self.line(f"{self.prefix}{name} = {other};")
        if not others:
            self.line(f"{source} = 0;")

    @abstractmethod
    def _reverse(self, statements: list[Statement]) -> None:
        """Write the reverse of statements."""

    # -- loops that other threads see: all that they overwrite is on the tape

    def _save(self, statement: Assign) -> None:
        """Save what a statement overwrites."""
        target = statement.target
        if self._taped:
            if not self._is_undone(statement):
                self._push_all([(text_of(target), target.type.element)])
        elif self._is_saved(statement):
            saved = self.variable("saved", statement, target.type.element)
            self.line(f"{saved} = {text_of(target)};")

    def _restore(self, statement: Assign) -> None:
        target = statement.target
        if self._taped:
            if self._is_undone(statement):
                self._undo_step(statement)
            else:
                self._pop_all([(text_of(target), target.type.element)])
        elif self._is_saved(statement):
            saved = self.variable("saved", statement, target.type.element)
            self.line(f"{text_of(target)} = {saved};")

    def _is_undone(self, statement: Assign) -> bool:
        return any(statement is each for each in self._undone)

    def _state_of(self, statement: If | Loop) -> list[tuple[str, Type]]:
        """The variables that a recorded statement leaves for its reverse, in a taped loop."""
        if not self._taped:
            return []
        if isinstance(statement, If):
            return [(self.variable("taken", statement, Type("bool")), Type("bool"))]
        state = [(self.variable("count", statement, Type("uint")), Type("uint"))]
        if self._commutes(statement):
            state = []
        if not activity.has_shared_effects(statement.body):
            for name, saved in self._saved_at_entry(statement):
                state.append((saved, self.program.variables[name]))
        return state

    def _push_all(self, state: list[tuple[str, Type]]) -> None:
        for text, type_ in state:
            self.has_tape = True
            for line in push_lines(text, type_):
                self.line(line)

    def _pop_all(self, state: list[tuple[str, Type]]) -> None:
        for text, type_ in reversed(state):
            for line in pop_lines(text, type_):
                self.line(line)

    def _count_words(self, state: list[tuple[str, Type]]) -> None:
        words = sum(words_of(type_) for _, type_ in state)
        if words:
            self.line(f"top += {words};")
            self.line("peak = max(peak, top);")

    @contextmanager
    def _on_tape(self, loop: Loop) -> Any:
        before, undone = self._taped, self._undone
        self._taped, self._undone = True, [*undone, *activity.undone(loop)]
        yield
        self._taped, self._undone = before, undone

    def _record_loop(self, loop: Loop) -> None:
        if activity.has_shared_effects(loop.body):
            count = self.variable("count", loop, Type("uint"))
            self.line(f"{count} = 0;")
            with self.block(f"while ({text_of(loop.condition)})"):
                with self._on_tape(loop):
                    self._record([*loop.body, *loop.step])
                self.line(f"{count} += 1;")
            return
        for name, saved in self._saved_at_entry(loop):
            self._copy(saved, name, self.program.variables[name])
        if self._commutes(loop):
            with self.block(f"while ({text_of(loop.condition)})"):
                self.statements([*loop.body, *loop.step])
            return
        count = self.variable("count", loop, Type("uint"))
        self.line(f"{count} = 0;")
        with self.block(f"while ({text_of(loop.condition)})"):
            if self._carried(loop):
                self.has_tape = True
                with self.block(f"if ({count} % tape_stride == 0)"):
                    self._push(loop)
            self.statements([*loop.body, *loop.step])
            self.line(f"{count} += 1;")

    def _needed_in(self, loop: Loop) -> set[str]:
        """The variables that the reverse of an iteration computes."""
        return self._needed_by_loop.get(id(loop), self._needed)

    def _carried(self, loop: Loop) -> list[str]:
        return [] if self._commutes(loop) else activity.carried(loop, self._needed_in(loop))

    @contextmanager
    def _only_needed_in(self, loop: Loop) -> Any:
        before, self._needed = self._needed, self._needed_in(loop)
        yield
        self._needed = before

    def _commutes(self, loop: Loop) -> bool:
        """Whether the iterations of a loop may be reversed in any order."""
        for statement in flatten(loop.body):
            match statement:
                case Assign(target=target) if target.base.name in self.consumed:
                    if not self._is_distinct(target, loop):
                        return False  # the last one of several stores counts
        return activity.commutes(loop, self._needed_in(loop), self.active)

    def _is_distinct(self, target: Expression, loop: Loop) -> bool:
        """Whether each iteration stores another element."""
        if target.op != "element" or len(target.args) != 2:
            return False
        changed = assigned([*loop.body, *loop.step])
        return any(
            is_distinct(self._indices, target.args[1], step.target.name, changed)
            for step in activity.undone(loop)
        )

    def _push(self, loop: Loop) -> None:
        for name in self._carried(loop):
            for line in push_lines(name, self.program.variables[name]):
                self.line(line)

    def _pop(self, loop: Loop) -> None:
        for name in reversed(self._carried(loop)):
            for line in pop_lines(name, self.program.variables[name]):
                self.line(line)

    def _undo(self, loop: Loop, times: str = "") -> None:
        """Undo the steps of an iteration, or of some."""
        for step in reversed(activity.undone(loop)):
            if step.target.name in self._needed:
                self._undo_step(step, times)

    def _undo_step(self, step: Assign, times: str = "") -> None:
        operator = "-" if step.value.name == "+" else "+"
        by = text_of(step.value.args[1])
        by = f"({by}) * {step.target.type.scalar}({times})" if times else by
        self.line(f"{step.target.name} {operator}= {by};")

    # -- statements that are run again later, so that they record nothing

    def assign(self, statement: Assign) -> None:
        """Write an assignment of a variable that is needed."""
        target = statement.target
        if target.is_buffer_element:
            return
        name = target.base.name
        if name in self._ties:
            self.line(self._ties[name])
            return
        if name in (self._needed if self._computed is None else self._computed):
            super().assign(statement)
        is_pushed = self._is_counting and self._taped and name in self._needed
        if is_pushed and not self._is_undone(statement):
            self._count_words([("", target.type.element)])

    def add(self, statement: AtomicAdd) -> None:
        """Leave out additions to memory."""

    def branch(self, statement: If) -> None:
        """Write an if statement."""
        super().branch(statement)
        if self._is_counting:
            self._count_words(self._state_of(statement))

    def loop(self, loop: Loop) -> None:
        """Write a loop."""
        if self._is_counting:
            self._count_loop(loop)
            self._count_words(self._state_of(loop))
        else:
            super().loop(loop)

    def _count_loop(self, loop: Loop) -> None:
        """A loop that counts the words of the tape at each iteration of its reverse.

        Then those of the iteration itself have been popped, and loops within push.
        """
        if activity.has_shared_effects(loop.body):
            with self.block(f"while ({text_of(loop.condition)})"), self._on_tape(loop):
                self.statements([*loop.body, *loop.step])
            return
        names = self._carried(loop)
        words = sum(words_of(self.program.variables[name]) for name in names)
        entry = self.variable("entry", loop, Type("uint"))
        count = self.variable("count", loop, Type("uint"))
        self.line(f"{entry} = top;")
        self.line(f"{count} = 0;")
        with self.block(f"while ({text_of(loop.condition)})"):
            at = f"({count} / tape_stride + {count} % tape_stride)"
            self.line(f"top = {entry} + {at} * {words};")
            self.statements([*loop.body, *loop.step])
            self.line(f"{count} += 1;")
            self.line(f"peak = max(peak, {entry} + ({at} + 1) * {words});")
        self.line(f"top = {entry} + ({count} + tape_stride - 1) / tape_stride * {words};")

    def _is_saved(self, statement: Assign) -> bool:
        """Whether the value that a statement overwrites may be read by what precedes it."""
        return self._counts[statement.target.base.name] > 1

    def _saved_at_entry(self, loop: Loop) -> list[tuple[str, str]]:
        """The variables that a loop changes for good, and what keeps their values before it."""
        names = assigned([*loop.body, *loop.step]) & self._needed & set(self.program.variables)
        names -= {n for n, t in self.program.variables.items() if t.space == "threadgroup"}
        names -= {*self._carried(loop), *loop.own}
        counters = {step.target.name for step in activity.undone(loop)} & self._needed_in(loop)
        if self._commutes(loop):
            names |= counters & self._needed
        else:
            names -= counters
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
