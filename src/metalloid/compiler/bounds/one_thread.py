"""Evaluation of a kernel for one thread, as far as the sizes and numbers of a launch determine it.

It follows the thread from the entry to the first branch that depends on anything else, such as
the contents of memory. The thread makes each access up to there, on every device. So an access
outside of its memory refutes the launch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metalloid.compiler.bounds.deferred_reads import DeferredReads
from metalloid.compiler.bounds.range_program import Variable
from metalloid.compiler.bounds.sites import accessed
from metalloid.compiler.bounds.value_ranges import FIRST_POSITION, IDS, POSITIONS, element_bits
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Block, Function, Instruction, Value, gep_terms
from metalloid.compiler.ir.types import Integer, Unsupported

#: Instructions of a thread after which the evaluation ends.
_MAX_STEPS = 1000
#: Threads of a launch that are evaluated.
_MAX_THREADS = 64
_WORD_BYTES = 8
_IDS_PARAMETER, _WORDS_PARAMETER = 0, 1
#: Functions of the runtime return to the thread, after messages and barriers too.
_RETURNING = ("@llvm.", "@__msl_")
_CASTS = ("bitcast", "addrspacecast")
_MINIMA = ("@llvm.umin.", "@llvm.umax.", "@llvm.smin.", "@llvm.smax.")


class _Pointer(NamedTuple):
    """An address: a parameter of the function by its position, or a word, and a distance."""

    parameter: int
    word: int
    distance: int


#: An integer modulo 2^bits or an address; None if it is unknown.
_Known = int | _Pointer | None


@dataclass(frozen=True)
class ThreadAccess:
    """An access of one thread.

    Attributes
    ----------
    word : int
        Position of the kernel's parameter that points to the memory.
    start, nbytes : int
        Offset in the memory, and size.
    writes : bool
    debug : str
        Its ``!dbg`` attachment.
    """

    word: int
    start: int
    nbytes: int
    writes: bool
    debug: str


class OneThread:
    """Evaluates the function of one thread (rows.h).

    Parameters
    ----------
    function : Function
    words : int
        Number of the kernel's parameters.
    """

    def __init__(self, function: Function, words: int) -> None:
        self._function, self._words = function, words
        reads = DeferredReads(function, Graph(function))
        #: Reads whose values may go unused; outside they fail where their values are used.
        self._deferred = {
            instruction
            for block in function.blocks.values() for instruction in block.body
            if instruction.op == "load" and reads.find(instruction, block.name) is not None
        }  # fmt: skip
        self._parameters = {p.name: n for n, p in enumerate(function.parameters)}

    def accesses(
        self,
        variables: Mapping[int, int],
        read: Callable[[int, int, int], int | None],
    ) -> Iterator[ThreadAccess]:
        """The accesses that the thread makes for sure, in order.

        Parameters
        ----------
        variables : mapping
            Values of `Variable`, and of the axes that follow; those left out are unknown.
        read : callable
            The number of a constant argument, from its word, an offset there and a size in bytes;
            None if it is unknown.
        """
        return _Evaluation(self, variables, read).run()


class _Evaluation:
    """One evaluation; the parameters are those of `OneThread.accesses`."""

    def __init__(
        self,
        thread: OneThread,
        variables: Mapping[int, int],
        read: Callable[[int, int, int], int | None],
    ) -> None:
        self._thread, self._variables, self._read = thread, variables, read
        self._values: dict[str, _Known] = {}
        for name, position in thread._parameters.items():
            variable = position - FIRST_POSITION
            if 0 <= variable < POSITIONS:
                self._values[name] = variables.get(variable)
            else:
                self._values[name] = _Pointer(position, -1, 0)

    def run(self) -> Iterator[ThreadAccess]:
        function, before, steps = self._thread._function, "", 0
        block: Block | None = function.entry
        while block is not None:
            incoming = {
                phi.result: self._value(phi.operands[phi.labels.index(before)])
                for phi in block.phis
            }
            self._values |= incoming
            for instruction in block.body:
                steps += 1
                if steps > _MAX_STEPS or _may_not_return(instruction):
                    return
                if instruction not in self._thread._deferred:
                    yield from self._accesses_of(instruction)
                if instruction.result:
                    self._values[instruction.result] = self._computed(instruction)
            steps += 1
            label = self._target(block.end)
            before, block = block.name, function.blocks.get(label)

    def _accesses_of(self, instruction: Instruction) -> Iterator[ThreadAccess]:
        for address, size, writes in accessed(instruction):
            at = self._value(address)
            nbytes = self._integer(size) if isinstance(size, Value) else size
            if isinstance(at, _Pointer) and at.word >= 0 and nbytes:
                yield ThreadAccess(at.word, at.distance, nbytes, writes, instruction.debug)

    def _target(self, end: Instruction) -> str:
        """The label of the next block; empty if there is none, or it is unknown."""
        if end.op not in ("br", "switch"):
            return ""
        if len(end.labels) == 1:
            return end.labels[0]
        chosen = self._integer(end.operands[0])
        if chosen is None:
            return ""
        if end.op == "br":
            return end.labels[0 if chosen else 1]
        bits = element_bits(end.operands[0])
        for case, label in zip(end.cases, end.labels[1:], strict=True):
            if case % (1 << bits) == chosen:
                return label
        return end.labels[0]

    # -- values

    def _value(self, value: Value) -> _Known:
        if value.name[0] == "%":
            return self._values.get(value.name)
        number = value.integer if isinstance(value.type, Integer) else None
        return None if number is None else number % (1 << value.type.bits)  # type: ignore[attr-defined]

    def _integer(self, value: Value) -> int | None:
        known = self._value(value)
        return known if isinstance(known, int) else None

    def _computed(self, step: Instruction) -> _Known:
        """The result of an instruction; None also for poison."""
        if step.op == "load":
            return self._loaded(step)
        if step.op == "getelementptr":
            return self._moved(step)
        if step.op in _CASTS or step.op == "freeze":
            return self._value(step.operands[0])
        if step.op == "select":
            chosen = self._integer(step.operands[0])
            return None if chosen is None else self._value(step.operands[1 if chosen else 2])
        if not isinstance(step.type, Integer):
            return None
        if step.op == "call" and not step.callee.startswith(_MINIMA):
            return None
        numbers = [self._integer(operand) for operand in step.operands]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers) or not known:
            return None
        before = element_bits(step.operands[0])
        if step.op in ("zext", "sext", "trunc"):
            return _converted(step, known[0], before, step.type.bits)
        if step.op == "icmp" and before:
            return _compared(step, known[0], known[1], before)
        if step.op == "call":
            is_signed = step.callee.startswith("@llvm.s")
            order = {n: _signed(n, before) if is_signed else n for n in known}
            extreme = min if ".umin." in step.callee or ".smin." in step.callee else max
            return extreme(known, key=order.__getitem__)
        return _combined(step, known[0], known[1], before) if len(known) == 2 else None

    def _loaded(self, load: Instruction) -> _Known:
        at = self._value(load.operands[0])
        if not isinstance(at, _Pointer) or at.distance < 0 or load.ordering:
            return None
        if at.word >= 0:
            if "invariant" not in load.flags or not isinstance(load.type, Integer):
                return None
            number = self._read(at.word, at.distance, load.type.size)
            return None if number is None else number % (1 << load.type.bits)
        if at.parameter == _WORDS_PARAMETER and load.type.size == _WORD_BYTES:
            word, rest = divmod(at.distance, _WORD_BYTES)
            is_word = not rest and word < self._thread._words
            return _Pointer(-1, word, 0) if is_word else None
        if at.parameter == _IDS_PARAMETER and load.type.size == 4 and at.distance % 4 == 0:
            for start, variable in IDS.items():
                axis = (at.distance - start) // 4
                if 0 <= axis < 3:
                    return self._variables.get(variable + axis)
        return None

    def _moved(self, step: Instruction) -> _Known:
        base = self._value(step.operands[0])
        if not isinstance(base, _Pointer):
            return None
        try:
            distance, terms = gep_terms(step)
        except Unsupported:
            return None
        for index, size in terms:
            number = self._integer(index)
            if number is None:
                return None
            distance += _signed(number, element_bits(index)) * size
        total = base.distance + distance
        return base._replace(distance=total) if -(2**63) <= total < 2**63 else None


def _may_not_return(instruction: Instruction) -> bool:
    return instruction.op == "call" and not instruction.callee.startswith(_RETURNING)


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number


def _converted(step: Instruction, number: int, before: int, after: int) -> int | None:
    is_negative = before and number >> (before - 1)
    if step.op == "zext":
        return None if is_negative and "nneg" in step.flags else number
    if step.op == "sext":
        return _signed(number, before) % (1 << after)
    result = number % (1 << after)
    if "nuw" in step.flags and result != number:
        return None
    if "nsw" in step.flags and _signed(result, after) != _signed(number, before):
        return None
    return result


def _compared(step: Instruction, left: int, right: int, bits: int) -> int | None:
    if "samesign" in step.flags and (left ^ right) >> (bits - 1):
        return None
    predicate = step.predicate
    if predicate[0] == "s":
        left, right = _signed(left, bits), _signed(right, bits)
    match predicate[-2:]:
        case "eq":
            return int(left == right)
        case "ne":
            return int(left != right)
        case "lt":
            return int(left < right)
        case "le":
            return int(left <= right)
        case "gt":
            return int(left > right)
        case _:
            return int(left >= right)


def _combined(step: Instruction, left: int, right: int, bits: int) -> int | None:
    """The result of an operation; None if it has no meaning, as after an overflow."""
    signed = (_signed(left, bits), _signed(right, bits))
    for operands, flag in (((left, right), "nuw"), (signed, "nsw")):
        exact = _exact(step.op, operands, bits)
        if flag in step.flags and exact is not None:
            lowest = -(1 << (bits - 1)) if flag == "nsw" else 0
            if not lowest <= exact < lowest + (1 << bits):
                return None
    exact = _exact(step.op, (left, right), bits)
    if exact is not None:
        return exact % (1 << bits)
    if step.op in ("udiv", "urem"):
        return _divided(step, left, right)
    if step.op in ("sdiv", "srem"):
        quotient = _divided(step, *map(abs, signed))
        if quotient is None:
            return None
        is_negative = signed[0] < 0 if step.op == "srem" else (signed[0] < 0) != (signed[1] < 0)
        return (-quotient if is_negative else quotient) % (1 << bits)
    if step.op in ("lshr", "ashr") and right < bits:
        number = signed[0] if step.op == "ashr" else left
        return None if _loses(step, left, 1 << right) else (number >> right) % (1 << bits)
    if step.op == "or" and "disjoint" in step.flags and left & right:
        return None
    return {"and": left & right, "or": left | right, "xor": left ^ right}.get(step.op)


def _exact(op: str, operands: Sequence[int], bits: int) -> int | None:
    """A sum, difference or product without overflow; None of other operations."""
    left, right = operands
    if op == "shl":
        return left << right if 0 <= right < bits else None
    return {"add": left + right, "sub": left - right, "mul": left * right}.get(op)


def _divided(step: Instruction, left: int, right: int) -> int | None:
    if not right or _loses(step, left, right):
        return None
    return left // right if step.op.endswith("div") else left % right


def _loses(step: Instruction, number: int, divisor: int) -> bool:
    """Whether a division that must be exact is not."""
    return "exact" in step.flags and number % divisor != 0


def corner_threads(
    grid: tuple[int, int, int], group: tuple[int, int, int], limits: Iterable[int] = ()
) -> Iterator[dict[int, int]]:
    """Variables of the threads where indices are likely to be the lowest or highest.

    They are the first and last thread of the grid, the last one of the first threadgroup, and those
    before some limits, such as numbers that positions are compared with, along each axis.
    """
    ends = [
        sorted({0, size - 1, *(min(size, limit) - 1 for limit in (each, *limits) if limit > 0)})
        for size, each in zip(grid, group, strict=True)
    ]
    threads = ((x, y, z) for z in ends[2] for y in ends[1] for x in ends[0])
    for thread in itertools.islice(threads, _MAX_THREADS):
        yield variables_of(thread, grid, group)


def variables_of(
    thread: tuple[int, int, int], grid: tuple[int, int, int], group: tuple[int, int, int]
) -> dict[int, int]:
    """The values of `Variable` for a thread, by its position in the grid."""
    variables: dict[int, int] = {}
    sizes = []
    for axis, (at, size, each) in enumerate(zip(thread, grid, group, strict=True)):
        position = at // each
        sizes.append(min(each, size - position * each))
        for variable, number in (
            (Variable.POSITION, at % each),
            (Variable.GRID_POSITION, at),
            (Variable.GROUP, position),
            (Variable.GROUP_SIZE, sizes[axis]),
            (Variable.DISPATCHED_SIZE, each),
            (Variable.GRID, size),
            (Variable.GROUPS, -(-size // each)),
        ):
            variables[variable + axis] = number
    if tuple(sizes[:2]) == group[:2]:  # in others, devices may count differently
        x, y, z = (variables[Variable.POSITION + axis] for axis in range(3))
        variables[Variable.INDEX] = x + group[0] * (y + group[1] * z)
    return variables
