"""Which variables derivatives flow through, and which values the reverse sweep reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from metalloid.differentiate.lane_rules import is_lane_function
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
from metalloid.differentiate.rules import CONSTANT

#: Sums of floats with these are integers.
_ROUNDING = (2.0**23, 1.5 * 2.0**23)


def float_variables(value: Expression) -> set[str]:
    """The variables that a small change of would change a value, if their types are floating."""
    if not value.type.is_float and value.op != "pointer":
        return set()
    if value.op == "variable":
        return {value.name}
    if (value.op == "call" and value.name in CONSTANT) or _is_rounded(value):
        return set()
    if value.op in ("element", "member"):
        return {value.base.name}
    args: Iterable[Expression] = value.args
    if value.op == "select":
        args = value.args[1:]
    texture = {value.base.name} if value.op == "method" else set()
    return texture.union(*map(float_variables, args))


def _is_rounded(value: Expression) -> bool:
    """Whether a value is the sum of a number and 2^23 or 1.5 * 2^23, which rounds it."""
    if value.op == "binary" and value.name in ("+", "-"):
        terms = value.args
    elif value.op == "call" and value.name in ("fma", "mad"):
        terms = value.args[2:]
    else:
        return False
    return any(
        term.op == "constant" and term.type.is_float and _number_of(term.name) in _ROUNDING
        for term in terms
    )


def _number_of(text: str) -> float:
    """The value of a literal; NaN of other constants."""
    digits = text.rstrip("fFhHlL") if not text.startswith("0x") else text.rstrip("fF")
    try:
        return float.fromhex(digits) if digits.startswith("0x") else float(digits)
    except ValueError:
        return math.nan


def active_variables(
    program: Program, wrt: Collection[str], outputs: Collection[str]
) -> tuple[set[str], set[str]]:
    """The variables and buffers that depend on inputs, and those of them that outputs depend on."""
    stores = [s for s in flatten(program.body) if isinstance(s, Assign | AtomicAdd)]
    stores = [s for s in stores if s.target.type.is_float]
    varied, useful = set(wrt), set(outputs)
    changed = True
    while changed:
        before = len(varied) + len(useful)
        for store in stores:
            read, base = float_variables(store.value), store.target.base.name
            if read & varied:
                varied.add(base)
            if base in useful:
                useful |= read
        changed = len(varied) + len(useful) != before
    return varied, varied & useful


def reads_of_bits(program: Program, names: Collection[str]) -> Iterator[Assign | AtomicAdd]:
    """Statements that read the bits of floating-point variables as integers."""
    for statement in flatten(program.body):
        if isinstance(statement, Assign | AtomicAdd):
            for each in statement.value.walk():
                is_bits = each.op == "call" and each.name == "as_type" and not each.type.is_float
                if is_bits and float_variables(each.args[0]) & set(names):
                    yield statement


def has_shared_effects(statements: list[Statement]) -> bool:
    """Whether statements write threadgroup memory, or wait for other threads."""
    return any(
        isinstance(statement, Barrier)
        or (isinstance(statement, Assign) and statement.target.is_shared)
        for statement in flatten(statements)
    )


def has_lane_functions(statements: list[Statement]) -> bool:
    """Whether statements call simd or quad functions."""
    return any(
        each.op == "call" and is_lane_function(each.name)
        for value in all_reads(statements)
        for each in value.walk()
    )


def all_reads(statements: list[Statement]) -> Iterator[Expression]:
    """The values, indices and conditions of statements."""
    for statement in flatten(statements):
        match statement:
            case Assign(target=target, value=value) | AtomicAdd(target=target, value=value):
                yield value
                yield from indices_of(target)
            case If(condition=condition) | Loop(condition=condition):
                yield condition


def indices_of(target: Expression) -> Iterator[Expression]:
    """The indices of a target."""
    while target.op in ("element", "component", "member", "texel"):
        yield from target.args[1:]
        target = target.args[0]


def needed_closure(statements: list[Statement], values: Iterable[str]) -> set[str]:
    """The variables that statements must compute again for some values.

    Those are the variables that they depend on, and all that conditions and indices read.
    """
    needed = set(values)
    for statement in flatten(statements):
        match statement:
            case If(condition=condition) | Loop(condition=condition):
                needed |= condition.variables()
            case Assign(target=target) | AtomicAdd(target=target):
                for index in indices_of(target):
                    needed |= index.variables()
    changed = True
    while changed:
        before = len(needed)
        for statement in flatten(statements):
            if isinstance(statement, Assign) and statement.target.base.name in needed:
                needed |= statement.value.variables()
        changed = len(needed) != before
    return needed


def live_in(statements: list[Statement], names: Collection[str]) -> set[str]:
    """Variables, of those named, that statements may read before they assign them."""
    names_read: set[str] = set()

    def visit(block: list[Statement], known: set[str]) -> set[str]:
        for statement in block:
            match statement:
                case Assign(target=target, value=value):
                    read(value, known)
                    for index in indices_of(target):
                        read(index, known)
                    if target.op == "variable":
                        known = known | {target.name}
                    elif target.base.name not in known:
                        names_read.add(target.base.name)
                case AtomicAdd(target=target, value=value):
                    read(value, known)
                    read(target, known)
                case If(condition=condition, then=then, other=other):
                    read(condition, known)
                    known = visit(then, known) & visit(other, known)
                case Loop(condition=condition, body=body, step=step):
                    read(condition, known)
                    visit([*body, *step], known)
        return known

    def read(value: Expression, known: set[str]) -> None:
        names_read.update(value.variables() - known)

    visit(statements, set())
    return names_read & set(names)


def assignments_of(program: Program) -> dict[str, int]:
    """The number of statements that assign each variable."""
    counts: dict[str, int] = {}
    for statement in flatten(program.body):
        if isinstance(statement, Assign):
            name = statement.target.base.name
            counts[name] = counts.get(name, 0) + 1
    return counts


def stored_repeatedly(
    program: Program, is_distinct: Callable[[Expression, Loop], bool]
) -> set[str]:
    """The buffers of which a thread may store an element more than once, or add to and store.

    Parameters
    ----------
    is_distinct : callable
        Whether each iteration of a loop stores another element.
    """
    names: list[str] = []
    added: set[str] = set()

    def visit(block: list[Statement], loops: Sequence[Loop]) -> None:
        for statement in block:
            match statement:
                case AtomicAdd(target=target):
                    added.add(target.base.name)
                case Assign(target=target) if target.is_buffer_element:
                    is_repeated = len(loops) > 1 or not all(is_distinct(target, x) for x in loops)
                    names.extend([target.base.name] * (1 + is_repeated))
                case If(then=then, other=other):
                    visit(then, loops)
                    visit(other, loops)
                case Loop(body=body):
                    visit(body, [*loops, statement])

    visit(program.body, [])
    return {name for name in names if names.count(name) > 1 or name in added}


def carried(loop: Loop, needed: Collection[str]) -> list[str]:
    """The variables whose values an iteration takes from the one before, and that are not undone.

    Those that `undone` returns are not among them.
    """
    steps = {step.target.name for step in undone(loop)}
    names = live_in(loop.body, assigned(loop.body) & set(needed))
    return sorted(names - steps)


def added_value(statement: Assign) -> tuple[Expression, str] | None:
    """The value that a statement only adds to its target, and ``"+"`` or ``"-"``."""
    target, value = statement.target, statement.value
    if value.op != "binary" or value.name not in ("+", "-") or not target.type.is_float:
        return None
    left, right = value.args
    if left != target and value.name == "+":
        left, right = right, left
    if left != target or right.type.element != target.type.element:
        return None
    return None if target.base.name in right.variables() else (right, value.name)


def running_extreme(statement: Statement, loop: Loop) -> Expression | None:
    """The value that a statement of a loop takes into a running maximum or minimum.

    It is one that is computed again exactly: a number in memory, or of a variable.
    """
    if not isinstance(statement, Assign) or statement.target.op != "variable":
        return None
    target, value = statement.target, statement.value
    is_extreme = value.op == "call" and value.name in ("max", "min", "fmax", "fmin")
    if not is_extreme or target not in value.args or target.type.lanes > 1 or target.is_shared:
        return None
    other = value.args[1] if value.args[0] == target else value.args[0]
    changed = assigned([*loop.body, *loop.step])
    indices = {name for each in _objects(other) for index in indices_of(each)
               for name in index.variables()}  # fmt: skip
    is_exact = all(
        each.op in ("element", "member", "component", "variable", "cast", "constant")
        for each in _without_indices(other)
    )
    if not is_exact or (other.variables() - indices) & changed or not target.type.is_float:
        return None
    stores = [s for s in flatten(loop.body) if isinstance(s, Assign)]
    if sum(store.target.base.name == target.name for store in stores) != 1:
        return None
    return other


def _objects(value: Expression) -> Iterator[Expression]:
    return (each for each in value.walk() if each.op in ("element", "member"))


def _without_indices(value: Expression) -> Iterator[Expression]:
    yield value
    for arg in value.args[:1] if value.op in ("element", "member") else value.args:
        yield from _without_indices(arg)


def running_extremes(loop: Loop) -> dict[str, Expression]:
    """The running maxima and minima of a loop, with the values that they take in.

    Nothing else in the loop reads them.
    """
    values = {}
    for statement in flatten(loop.body):
        other = running_extreme(statement, loop)
        if other is not None and isinstance(statement, Assign):
            values[statement.target.name] = other
    reads = [name for value in all_reads(loop.body) for name in _names_in(value)]
    outside = loop.condition.variables() | {n for v in all_reads(loop.step) for n in v.variables()}
    return {
        name: other
        for name, other in values.items()
        if reads.count(name) == 1 and name not in outside
    }


def _names_in(value: Expression) -> Iterator[str]:
    return (each.name for each in value.walk() if each.op == "variable")


def elementwise_arrays(loop: Loop) -> set[str]:
    """The arrays of a thread of which each iteration of a loop uses another element only."""
    counters = {
        step.target.name
        for step in loop.step
        if isinstance(step, Assign) and step.value.args[1].op == "constant"
    } - assigned(loop.body)
    elements: dict[str, set[Expression]] = {}
    uses: dict[str, int] = {}

    def visit(value: Expression) -> None:
        if value.op == "element" and value.args[0].op == "variable":
            elements.setdefault(value.base.name, set()).add(value)
            for index in value.args[1:]:
                visit(index)
            return
        if value.op == "variable":
            uses[value.name] = uses.get(value.name, 0) + 1
        for arg in value.args:
            visit(arg)

    for value in all_reads(loop.body):
        visit(value)
    for statement in flatten(loop.body):
        if isinstance(statement, Assign | AtomicAdd):
            visit(statement.target)
    return {
        name
        for name, each in elements.items()
        if name not in uses and len(each) == 1
        for element in each
        if len(element.args) == 2 and element.args[1].op == "variable"
        if element.args[1].name in counters and not element.base.type.space
    }


def commutes(loop: Loop, needed: Collection[str], active: Collection[str]) -> bool:
    """Whether the iterations of a loop may be reversed in any order.

    Then each takes from the one before only counters, and sums to which it adds.
    """
    block = [*loop.body, *loop.step]
    counters = {step.target.name for step in undone(loop)}
    arrays = elementwise_arrays(loop)
    extremes = running_extremes(loop)
    if has_shared_effects(block) or set(carried(loop, needed)) - arrays - set(extremes):
        return False
    if loop.condition.variables() & (assigned(block) - counters):
        return False
    sums: set[str] = set()
    others: set[str] = set()
    for statement in flatten(block):
        if isinstance(statement, Assign) and not statement.target.is_buffer_element:
            name = statement.target.base.name
            if name in active and name not in extremes:
                (others if added_value(statement) is None else sums).add(name)
    sums -= others | arrays
    others -= arrays
    if not others <= loop.own:
        return False  # the last value is read after the loop
    reads = {name for value in _values_of(block) for name in value.variables()} - set(extremes)
    return not (reads & sums or live_in(block, others))


def _values_of(statements: list[Statement]) -> Iterator[Expression]:
    """Yield the values that statements read, apart from sums that they add to."""
    for statement in flatten(statements):
        match statement:
            case Assign(target=target, value=value):
                added = added_value(statement)
                yield added[0] if added else value
                yield from indices_of(target)
            case AtomicAdd(target=target, value=value):
                yield value
                yield from indices_of(target)
            case If(condition=condition) | Loop(condition=condition):
                yield condition


def undone(loop: Loop) -> list[Assign]:
    """The statements that add to integers, once in each iteration, what the loop does not change.

    They are undone by a subtraction, and need no tape.
    """
    body = [s for s in loop.body if isinstance(s, Assign) and is_step(s, loop)]
    return [*body, *(step for step in loop.step if isinstance(step, Assign))]


def is_step(statement: Assign, loop: Loop) -> bool:
    """Whether a statement of the body of a loop changes an integer by what does not change."""
    target, value = statement.target, statement.value
    if target.op != "variable" or target.type.is_float or value.op != "binary":
        return False
    targets = [
        s.target.base.name for s in flatten([*loop.body, *loop.step]) if isinstance(s, Assign)
    ]
    return (
        value.name in "+-" and value.args[0] == target and targets.count(target.name) == 1
        and not value.args[1].variables() & set(targets)
        and all(each.op in ("variable", "constant", "binary", "cast") for each in value.walk())
    )  # fmt: skip
