"""The reverse sweep of a program, as MSL text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from metalloid.differentiate.analysis import activity
from metalloid.differentiate.analysis.common_values import CommonValues, Level
from metalloid.differentiate.analysis.coverage import (
    Context,
    Guard,
    Iteration,
    Store,
    store_of,
)
from metalloid.differentiate.analysis.ownership import accesses_of, own_elements
from metalloid.differentiate.analysis.shared_reads import shared_reads
from metalloid.differentiate.analysis.slopes import Slope
from metalloid.differentiate.forward_sweep import ForwardSweep
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.program.text import text_of, without_unused
from metalloid.differentiate.program.tree import (
    Assign,
    AtomicAdd,
    Barrier,
    Expression,
    If,
    Loop,
    Program,
    Statement,
    flatten,
)
from metalloid.differentiate.program.types import Type
from metalloid.differentiate.propagate import Propagation, shared_adjoints
from metalloid.differentiate.rules import COSTLY


def _asked(level: Level) -> Level:
    return min(level, Level.PERHAPS)


class Sweep(ForwardSweep):
    """Writes the forward and the reverse sweep.

    Parameters
    ----------
    program : Program
    wrt, outputs : collection of str
        Buffers whose adjoints are computed, and whose adjoints are given.
    deterministic : bool
        Whether to refuse sums whose order differs between runs.
    shared : collection of str
        Buffers of which several threads may read the same element.
    guarded : collection of str
        Buffers that the kernel may read where they have no element, and discard the value.
    sums_rows : bool
        Whether simdgroups have the same position along all axes but the first, so that they may add
        sums to the elements that these determine.
    stored : collection of str
        Buffers in `wrt` whose adjoints are stored, each element once, and not added to.

    Attributes
    ----------
    owned : dict of Accesses
        The buffers in `wrt` of which each thread may read elements of its own.
    bounded : dict of Accesses
        Others in `wrt`, of which all reads are taken to be of their elements.
    uses_lanes : bool
        Whether the text reads the thread's index in its simdgroup.
    common_axes : frozenset of str
        The axes along which the text takes the threads of a simdgroup to have the same position.
    asks_simdgroups : bool
        Whether the text asks if the threads of a simdgroup have the same index.
    stores : dict of list
        Those of adjoints of buffers in `wrt`, if it is known which threads run them.
    counted : set of str
        The parameters that the size of the tape depends on, but for positions of threads.
    """

    def __init__(
        self,
        program: Program,
        wrt: Collection[str],
        outputs: Collection[str],
        deterministic: bool = False,
        shared: Collection[str] = (),
        guarded: Collection[str] = (),
        sums_rows: bool = False,
        stored: Collection[str] = (),
    ) -> None:
        super().__init__(program, wrt, outputs)
        self.stored = stored
        self._contexts: list[Context] = []
        self._stores: dict[str, list[Store | None]] = {}
        self._common, self._sums_rows = CommonValues(program), sums_rows
        self.common_axes: frozenset[str] = frozenset()
        self.asks_simdgroups = False
        self.uses_lanes = False
        self.counted: set[str] = set()
        self.deterministic = deterministic
        accesses = accesses_of(program, wrt)
        unshared = {name: each for name, each in accesses.items() if name not in shared}
        self.owned = own_elements(program, unshared)
        aggregates = [p.name for p in program.parameters if p.type.is_aggregate]
        refused = {*self.owned, *guarded, *aggregates}
        self.bounded = {name: each for name, each in accesses.items() if name not in refused}
        self.consumed = activity.stored_repeatedly(program, self._is_distinct) & set(outputs)
        self._propagation = Propagation(self)
        self._reads_of_loops: dict[int, set[str]] = {}
        self._reverse(program.body)  # finds what it reads
        self._needed = activity.needed_closure(program.body, self._propagation.read)
        self._needed_by_loop = {
            id(loop): loop.condition.variables()
            | activity.needed_closure([*loop.body, *loop.step], self._reads_of_loops[id(loop)])
            for loop in flatten(program.body)
            if isinstance(loop, Loop)
        }
        self._clear()
        self._propagation = Propagation(self)

    def write(self) -> None:
        """Write the forward and the reverse sweep."""
        self._stores = {}
        self._declare_variables()
        self._record(self.program.body)
        self._reverse(self.program.body)
        self.lines = without_unused(self.lines)

    @property
    def stores(self) -> dict[str, list[Store]]:
        """The stores of adjoints of buffers, if it is known which threads run them."""
        types = {p.name: p.type for p in self.program.parameters}
        return {
            name: [each for each in stores if each is not None]
            for name, stores in self._stores.items()
            if None not in stores and types[name].stride == types[name].lanes  # no padding
        }

    def note_store(self, element: Expression) -> None:
        """Note that an addition to the adjoint of an element may be a store."""
        store = None
        if element.op == "element" and len(element.args) == 2:
            store = store_of(self._indices, element.args[1], self._contexts)
        self._stores.setdefault(element.base.name, []).append(store)

    @contextmanager
    def within(self, context: Context) -> Iterator[None]:
        """Lines that not all threads run once."""
        self._contexts.append(context)
        yield
        self._contexts.pop()

    @property
    def lane_name(self) -> str:
        """The name of the thread's index in its simdgroup."""
        self.uses_lanes = True
        return "adjoint_lane"

    def level_of(self, element: Expression) -> Level:
        """The level of the index of an element whose adjoint the threads of a simdgroup add to."""
        if element.op != "element" or element.base.type.is_aggregate or len(element.args) != 2:
            return Level.VARYING
        common = self._common.of(element.args[1])
        # Threads that run loops of different lengths may reverse different iterations at a time.
        level = max(common.level, *map(_asked, self._loops), Level.COMMON)
        if level == Level.COMMON:
            if not self._sums_rows:
                return Level.VARYING
            self.common_axes |= common.axes
        elif level == Level.PERHAPS:
            self.asks_simdgroups = True
        return level

    # -- reverse

    def _reverse(self, statements: list[Statement]) -> None:
        groups = [
            group
            for group in shared_reads(statements, self.active - set(self.outputs))
            if group.element not in self._propagation.sums
        ]
        for number in reversed(range(len(statements))):
            for group in groups:
                if group.last == number:
                    self._propagation.begin_sum(group.element)
            self._reverse_statement(statements[number], statements[:number])
            for group in groups:
                if group.first == number:
                    self._propagation.end_sum(group.element, group.location)

    def _reverse_statement(self, statement: Statement, before: Sequence[Statement]) -> None:
        match statement:
            case Assign(target=target):
                self._reverse_assign(statement)
            case AtomicAdd(target=target, value=value):
                self.check_output(statement)
                if target.base.name in self.active:
                    self._propagation.run(value, self._adjoint(target), statement.location)
            case If() if (slope := self._slope_of(statement)) is not None:
                self._reverse_slope(statement, slope)
            case If(condition=condition, then=then, other=other):
                self._pop_all(self._state_of(statement))
                taken = self.variable("taken", statement, Type("bool"))

                def reverse(branch: list[Statement]) -> None:
                    with self.within(Guard(condition, branch is then)):
                        self._reverse(branch)

                self.branches(taken, then, other, reverse)
            case Loop():
                self._pop_all(self._state_of(statement))
                with self.within(Iteration(statement, before)):
                    self._reverse_loop(statement)
            case Barrier(text=text):
                self.line(text)

    def _reverse_slope(self, statement: If, slope: Slope) -> None:
        """The reverse of a branch whose derivative is known."""
        lines = len(self.lines)
        for branch in (statement.then, statement.other):  # finds what it reads
            self._reverse(branch)
        del self.lines[lines:]
        source, result = (f"{self.prefix}{name}" for name in slope)
        self.line(f"{source} += {result} * {self._slope_name(statement, slope)};")
        self.line(f"{result} = 0;")

    def _reverse_loop(self, loop: Loop) -> None:
        before, self._propagation.read = self._propagation.read, set()
        self._loops.append(self._common.of(loop.condition).level)
        self._reverse_iterations(loop)
        self._loops.pop()
        self._reads_of_loops[id(loop)] = self._propagation.read
        self._propagation.read = before | self._propagation.read

    def _reverse_iterations(self, loop: Loop) -> None:
        if activity.has_shared_effects(loop.body):
            count = self.variable("count", loop, Type("uint"))
            with self.block(self._iterations(loop, "iteration", count)), self._on_tape(loop):
                self._reverse([*loop.body, *loop.step])
            return
        extremes = self._extremes(loop)
        shares = self._count_ties(loop, extremes)
        if self._commutes(loop):
            for name, saved in self._saved_at_entry(loop):
                self._copy(name, saved, self.program.variables[name])
        with self._only_needed_in(loop):
            if self._commutes(loop):
                self._reverse_in_order(loop, shares)
            elif self._carried(loop):
                self._reverse_segments(loop)
            else:
                count = self.variable("count", loop, Type("uint"))
                with self.block(self._iterations(loop, "iteration", count)):
                    self._undo(loop)
                    self._record(loop.body)
                    self._reverse(loop.body)
        for name, saved in self._saved_at_entry(loop):
            self._copy(name, saved, self.program.variables[name])
        for name, (extreme, share) in shares.items():
            self.line(f"{self.prefix}{name} = {name} == {extreme} ? {share} : 0;")

    def _extremes(self, loop: Loop) -> dict[str, Expression]:
        """The running maxima and minima of a loop that are not saved in each iteration."""
        if not self._commutes(loop):
            return {}
        extremes = activity.running_extremes(loop)
        return {
            name: value
            for name, value in extremes.items()
            if name in self.active and name not in self._shares  # of a loop around this one
        }

    def _count_ties(
        self, loop: Loop, extremes: dict[str, Expression]
    ) -> dict[str, tuple[str, str]]:
        """Running extremes, and the shares of their adjoints for the values that are equal."""
        if not extremes:
            return {}
        self._propagation.read |= {name for v in extremes.values() for name in v.variables()}
        self._propagation.read |= set(extremes)
        shares = {}
        for name in extremes:
            type_ = self.program.variables[name]
            extreme, share = (self.variable(f"{kind}_{name}", loop, t) for kind, t in (
                ("extreme", type_), ("share", type_.adjoint)))  # fmt: skip
            self.line(f"{extreme} = {name};")
            shares[name] = extreme, share
        saved_at_entry = self._saved_at_entry(loop)
        for name, saved in saved_at_entry:
            self._copy(name, saved, self.program.variables[name])
        for name, (extreme, share) in shares.items():
            self.line(f"{share} = float({name} == {extreme});")
            value = text_of(extremes[name])
            self._ties[name] = f"{share} += float({value} == {extreme});"
        with self._only_needed_in(loop), self.block(f"while ({text_of(loop.condition)})"):
            self.statements([*loop.body, *loop.step])
        self._ties = {}
        for name, (_, share) in shares.items():
            adjoint = f"{self.prefix}{name}"
            self.line(f"{share} = {share} > 0 ? {adjoint} / {share} : 0;")  # NaN has no ties
        return shares

    def _reverse_in_order(self, loop: Loop, shares: dict[str, tuple[str, str]]) -> None:
        """Reverse iterations in the order of the kernel, from which compilers know the bounds."""
        before, self._shares = self._shares, {**self._shares, **shares}
        with self.block(f"while ({text_of(loop.condition)})"):
            self._record(loop.body)
            self._reverse(loop.body)
            self.statements([*activity.undone(loop)])
        self._shares = before

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
                self.statements([*loop.body, *loop.step])
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
            self.check_output(statement)
            if target.base.name in self.active:
                seed = self._adjoint(target)
                if target.base.name in self.consumed:  # a store before it has no effect
                    given, seed = seed, self._propagation.new_seed(target.type.adjoint)
                    self.line(f"const {target.type.element.adjoint.msl} {seed} = {given};")
                    self.line(
                        f"adjoint_store({self.prefix}{target.base.name}, {self.texel(target)}, "
                        f"{target.type.element.adjoint.msl}(0));"
                        if target.op == "texel"
                        else f"{given} = 0;"
                    )
                self._propagation.run(value, seed, statement.location)
            return
        name = target.base.name
        if name in self._shares:
            extreme, share = self._shares[name]
            other = next(arg for arg in value.args if arg != target)
            seed = f"({text_of(other)} == {extreme} ? {share} : 0)"
            self._propagation.run(other, seed, statement.location)
            return
        is_active = name in self.active and target.type.is_float
        seed = ""
        added = activity.added_value(statement)
        if is_active and added is not None and not target.is_shared:
            if name in self._needed:
                self._restore(statement)
            sign = "-" if added[1] == "-" else ""
            self._propagation.run(added[0], f"{sign}{self._adjoint(target)}", statement.location)
            return
        if is_active:
            seed = self._take_adjoint(target)
        if name in self._needed:
            self._restore(statement)
        if is_active:
            result = target if self._holds_result(statement) else None
            self._propagation.run(value, seed, statement.location, result)

    def _holds_result(self, statement: Assign) -> bool:
        """Whether the result of a function is in a variable when the statement is reversed."""
        target, value = statement.target, statement.value
        is_own = target.op == "variable" and not target.type.space and not self._taped
        is_costly = value.op == "call" and value.name in COSTLY
        return is_own and is_costly and self._counts[target.name] == 1

    def _take_adjoint(self, target: Expression) -> str:
        """The name of the adjoint of a target, which is set to 0 where it is stored."""
        seed = self._propagation.new_seed(target.type.adjoint)
        type_ = target.type.element.adjoint.msl
        if not target.is_shared:
            self.line(f"const {type_} {seed} = {self._adjoint(target)};")
            self.line(f"{self._adjoint(target)} = 0;")
            return seed
        self._propagation.note_indices(target)
        words = shared_adjoints(target, self.prefix)
        parts = [
            f"as_type<float>(atomic_load_explicit(&{word}, memory_order_relaxed))" for word in words
        ]
        self.line(f"const {type_} {seed} = {type_}({', '.join(parts)});")
        for word in words:
            self.line(f"atomic_store_explicit(&{word}, 0u, memory_order_relaxed);")
        return seed

    def _adjoint(self, target: Expression) -> str:
        """The adjoint of a target, where it is stored."""
        self._propagation.note_indices(target)
        return self.derivative(target)

    def check_output(self, statement: Assign | AtomicAdd) -> None:
        """Refuse stores that are read again, or that overwrite others."""
        name = statement.target.base.name
        reads = {n for value in activity.all_reads(self.program.body) for n in value.variables()}
        if name in reads:
            raise Refused(statement.location, f"{name} is written to and read")
        super().check_output(statement)
