"""Insert the checks of the sanitizer's vector form, which finds no defects but tells of doubts.

The vector engine vectorises the calls (`vectorize.shadow`); shadow.h of the CPU's runtime defines
them. An access gets a call with its address, size and mode, and what a thread may not do a call
with a condition::

    call void @mtl_shadow_access(ptr %address, i64 4, i32 1)
    %x = load float, ptr %address
    call void @mtl_shadow_alarm_if(i1 %does_not_fit)
    %i = fptosi float %x to i32

Reads of memory that no argument of a launch writes to get none: they take part in no race.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from metalloid.compiler.analysis.barriers import is_barrier
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms
from metalloid.compiler.ir.lexer import variable_of
from metalloid.compiler.ir.types import DOUBLE, I1, I8, I32, I64, POINTER, Pointer, Unsupported
from metalloid.compiler.sanitizer.context import Kind, SanitizerContext
from metalloid.compiler.sanitizer.instrument import SHUFFLES, accesses_of, alignment_of
from metalloid.compiler.sanitizer.runtime_functions import (
    CONVERSION,
    OPERATION,
    SHIFT,
    TEXEL,
    VARIABLE,
)

_PREFIX = "@mtl_shadow_"
ACCESS, ALARM_IF, BARRIER, ENTER, SHUFFLE, SIMDGROUP_BARRIER = (
    f"{_PREFIX}{name}"
    for name in ("access", "alarm_if", "barrier", "enter", "shuffle", "simdgroup_barrier")
)
#: Modes of accesses, as shadow.h has them.
READ, ATOMIC, USES_VALUE = 1, 2, 4
_SIMDGROUP_BARRIER = "@__msl_simdgroup_barrier"
#: It reads the first of the lanes that take part.
_BROADCAST_FIRST = "broadcast_first"
_DEVICE = 5  # address space
#: A double is no less than the least integer of so many bits if it is more than that less one.
_EXACT_BITS = 53


def insert_shadow_checks(function: Function, context: SanitizerContext) -> None:
    """Insert the calls of a function."""
    _ShadowChecks(function, context).run()


class _ShadowChecks:
    def __init__(self, function: Function, context: SanitizerContext) -> None:
        self._function, self._context = function, context
        self._names = FreshNames(function)
        self._computed_by = {i.result: i for i in function.instructions() if i.result}

    def run(self) -> None:
        for block in self._function.blocks.values():
            block.body = [new for old in block.body for new in self._with_checks(old)]
        if self._context.is_entry:
            body = self._function.entry.body
            first = next((n for n, i in enumerate(body) if i.op != "alloca"), len(body))
            index = self._function.parameters[self._context.index]
            body.insert(first, Instruction("call", operands=[index], callee=ENTER))

    def _with_checks(self, instruction: Instruction) -> Iterator[Instruction]:
        callee = instruction.callee
        if callee == VARIABLE:
            yield from self._alarm_of_variable(instruction.operands[0])
            return
        if callee == CONVERSION:
            yield from self._alarm_of_conversion(instruction.operands)
            return
        if callee == SHIFT:
            yield from self._alarm_of_shift(instruction.operands)
            return
        if callee in (OPERATION, TEXEL):  # kernels with textures have no vector form
            return
        if SHUFFLES.match(callee) and _BROADCAST_FIRST not in callee:
            yield Instruction("call", callee=SHUFFLE)
        for address, size, kind, _ in accesses_of(instruction):
            yield from self._call(address, size, kind)
            yield from self._alarm_of_alignment(address, alignment_of(instruction))
        yield instruction
        if is_barrier(instruction) or callee == _SIMDGROUP_BARRIER:
            own = BARRIER if is_barrier(instruction) else SIMDGROUP_BARRIER
            yield Instruction("call", operands=instruction.operands[:1], callee=own)

    # -- accesses

    def _roots(self, address: Value) -> Iterator[Value]:
        """The pointers that an address may be computed from."""
        todo, seen = [address], set()
        while todo:
            value = todo.pop()
            step = self._computed_by.get(value.name)
            if value.name in seen:
                continue
            seen.add(value.name)
            if step is None:
                yield value
            elif step.op in ("getelementptr", "bitcast", "addrspacecast"):
                todo.append(step.operands[0])
            elif step.op == "phi":
                todo += step.operands
            elif step.op == "select":
                todo += step.operands[1:]
            else:
                yield value

    def _is_checked(self, root: Value, kind: Kind) -> bool:
        """Whether an access of the memory of a pointer may race, or read what has no value."""
        context, step = self._context, self._computed_by.get(root.name)
        if step is None:
            if not context.is_entry or not root.name.startswith("%"):
                return variable_of(root.name)[0] not in self._function.tables
            return root.name == self._function.parameters[context.memory].name
        if step.op == "alloca":
            return False
        return bool(kind & (Kind.WRITE | Kind.ATOMIC)) or self._word(step) not in context.read_only

    def _word(self, load: Instruction) -> int:
        """The number of the launch's word that an instruction loads; -1 if it loads none."""
        if load.op != "load" or not self._context.is_entry:
            return -1
        address, words = load.operands[0], self._function.parameters[self._context.words].name
        if address.name == words:
            return 0
        step = self._computed_by.get(address.name)
        if step is None or step.op != "getelementptr" or step.operands[0].name != words:
            return -1
        distance = step.operands[1].integer if len(step.operands) == 2 else None
        return -1 if distance is None else distance * step.source.size // POINTER.size

    def _call(self, address: Value, size: Value, kind: Kind) -> Iterator[Instruction]:
        if not any(self._is_checked(root, kind) for root in self._roots(address)):
            return
        context = self._context
        space = address.type.space if isinstance(address.type, Pointer) else 0
        if space != _DEVICE and size.integer:
            while context.unit > 1 and size.integer % context.unit:
                context.unit //= 2
        pointer = address
        if space:
            cast = Instruction("addrspacecast", self._names("%mtl.accessed"), POINTER, [address])
            yield cast
            pointer = cast.value
        if size.type != I64:
            wide = Instruction("zext", self._names("%mtl.size"), I64, [size])
            yield wide
            size = wide.value
        mode = ATOMIC if kind & Kind.ATOMIC else READ if not kind & Kind.WRITE else 0
        if kind & Kind.READ and not kind & Kind.COPY:
            mode |= USES_VALUE
        yield Instruction("call", operands=[pointer, size, Value(I32, str(mode))], callee=ACCESS)

    # -- conditions

    def _alarm(self, condition: Value) -> Instruction:
        return Instruction("call", operands=[condition], callee=ALARM_IF)

    def _alarm_of_alignment(self, address: Value, alignment: int) -> Iterator[Instruction]:
        """Tell of an address that is not aligned, unless all indices are multiples of that."""
        if alignment == 1 or self._has_aligned_steps(address, alignment):
            return
        number = Instruction("ptrtoint", self._names("%mtl.address"), I64, [address])
        mask = Value(I64, str(alignment - 1))
        low = Instruction("and", self._names("%mtl.low"), I64, [number.value, mask])
        test = Instruction(
            "icmp", self._names("%mtl.misaligned"), I1, [low.value, Value(I64, "0")], predicate="ne"
        )
        yield from (number, low, test, self._alarm(test.value))

    def _has_aligned_steps(self, address: Value, alignment: int) -> bool:
        """Whether an address is a multiple of the alignment from where the memory begins."""
        while True:
            step = self._computed_by.get(address.name)
            if step is None or step.op == "alloca" or self._word(step) >= 0:
                return True
            if step.op == "getelementptr":
                try:
                    distance, terms = gep_terms(step)
                except Unsupported:
                    return False
                if any(each % alignment for each in (distance, *(size for _, size in terms))):
                    return False
            elif step.op not in ("bitcast", "addrspacecast"):
                return False
            address = step.operands[0]

    def _alarm_of_variable(self, flag: Value) -> Iterator[Instruction]:
        test = Instruction(
            "icmp", self._names("%mtl.no_value"), I1, [flag, Value(I8, "0")], predicate="eq"
        )
        yield test
        yield self._alarm(test.value)

    def _alarm_of_conversion(self, operands: list[Value]) -> Iterator[Instruction]:
        """Tell of a number that is not in the range of an integer, or is none."""
        value, bits, is_signed = operands[0], operands[1].integer or 0, operands[2].integer
        limit = float(1 << bits - 1)
        least, end, above = -1.0, 2 * limit, "ogt"
        if is_signed:
            least, end = -limit - 1, limit
            if bits > _EXACT_BITS:
                least, above = -limit, "oge"
        tests = [
            Instruction("fcmp", self._names("%mtl.fits"), I1, [value, _double(bound)], predicate=by)
            for bound, by in ((least, above), (end, "olt"))
        ]
        fits = Instruction("and", self._names("%mtl.fits"), I1, [test.value for test in tests])
        bad = Instruction("xor", self._names("%mtl.bad"), I1, [fits.value, Value(I1, "true")])
        yield from (*tests, fits, bad, self._alarm(bad.value))

    def _alarm_of_shift(self, operands: list[Value]) -> Iterator[Instruction]:
        """Tell of a shift by the width of the type or more."""
        amount, bits = operands[0], Value(I64, str(operands[1].integer))
        test = Instruction("icmp", self._names("%mtl.wide"), I1, [amount, bits], predicate="uge")
        yield test
        yield self._alarm(test.value)


def _double(number: float) -> Value:
    return Value(DOUBLE, f"0x{struct.pack('>d', number).hex().upper()}")
