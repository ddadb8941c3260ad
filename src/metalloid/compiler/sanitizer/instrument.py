"""Insert calls that tell the sanitizer's runtime of accesses of memory, fences and shuffles.

Each access of device and threadgroup memory gets a call before it, with its address, its size, the
number of its *site* and its kind; the runtime (sanitizer.c) knows the thread. Barriers are calls of
the runtime already::

    call void @mtl_sanitizer_access(ptr %address, i64 4, i32 7, i32 2)
    store float %x, ptr %address
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from metalloid.compiler.analysis.addresses import underlying_object
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.lexer import variable_of
from metalloid.compiler.ir.types import I1, I32, I64, POINTER, Pointer, Type, Vector, bits_of
from metalloid.compiler.sanitizer.context import AccessSite, Kind, SanitizerContext
from metalloid.compiler.sanitizer.operations import OPERANDS
from metalloid.compiler.sanitizer.runtime_functions import (
    ACCESS,
    CONVERSION,
    FENCE,
    OPERATION,
    SHIFT,
    SHUFFLE,
    TEXEL,
    VARIABLE,
)

#: Simdgroup functions that read from other lanes.
SHUFFLES = re.compile(r"@__msl_(?:simd|quad)_(?:shuffle|broadcast)_")
#: The runtime keeps 16 bits of their numbers.
MAX_SITES = 65535
#: Of the binary logarithm of the alignment, in the kind that the runtime gets.
ALIGNMENT_SHIFT = 8
_MAX_ALIGNMENT = 16
_COPIES = ("@llvm.memcpy.", "@llvm.memmove.")
_FILL = "@llvm.memset."
_RELEASES = ("release", "acq_rel", "seq_cst")
_ACQUIRES = ("acquire", "acq_rel", "seq_cst")


def instrument_accesses(function: Function, context: SanitizerContext) -> None:
    """Insert the calls of a function."""
    _Instrumentation(function, context).run()


class _Instrumentation:
    def __init__(self, function: Function, context: SanitizerContext) -> None:
        self._function, self._context = function, context
        self._names = FreshNames(function)
        self._computed_by = {i.result: i for i in function.instructions() if i.result}

    def run(self) -> None:
        for block in self._function.blocks.values():
            body: list[Instruction] = []
            for instruction in block.body:
                if instruction.op == "fence":
                    body.append(_fence(instruction))
                elif SHUFFLES.match(instruction.callee):
                    number = self._number(AccessSite(Kind(0), "", "", instruction.debug))
                    body.append(Instruction("call", operands=[number], callee=SHUFFLE))
                elif instruction.callee == VARIABLE:
                    number = self._number(AccessSite(Kind.READ, "", "", instruction.debug))
                    instruction.operands[-1] = number
                elif instruction.callee == CONVERSION:
                    type_ = str(instruction.operands[0].type)
                    number = self._number(AccessSite(Kind(0), type_, "", instruction.debug))
                    instruction.operands[-1] = number
                elif instruction.callee in (SHIFT, TEXEL):
                    number = self._number(AccessSite(Kind(0), "i64", "", instruction.debug))
                    instruction.operands[-1] = number
                elif instruction.callee == OPERATION:
                    type_ = OPERANDS[(instruction.operands[-2].integer or 1) - 1]
                    number = self._number(AccessSite(Kind(0), type_, "", instruction.debug))
                    instruction.operands[-1] = number
                for address, size, kind, type_ in accesses_of(instruction):
                    if self._is_of_the_text(address):
                        variable = self._variable(address)
                        site = AccessSite(
                            kind, type_, variable, instruction.debug, alignment_of(instruction)
                        )
                        body += self._call(address, size, site, instruction)
                body.append(instruction)
            block.body = body

    def _root(self, address: Value) -> Value | None:
        """The value that an address is computed from; None if it is one of several."""
        seen = address
        while True:
            name = underlying_object(seen, self._computed_by)
            if name is None:
                return None
            step = self._computed_by.get(name)
            if step is None or step.op != "addrspacecast":
                return Value(POINTER, name)
            seen = step.operands[0]

    def _is_of_the_text(self, address: Value) -> bool:
        """Whether the memory may be shared: neither private nor that of the launch itself."""
        root = self._root(address)
        if root is None:
            return True
        step = self._computed_by.get(root.name)
        if step is None:
            is_launch = root.name.startswith("%") and self._context.is_entry
            return not is_launch and variable_of(root.name)[0] not in self._function.tables
        if step.op != "load" or not self._context.is_entry:
            return step.op != "alloca"
        base = self._root(step.operands[0])
        return base is None or base.name != self._function.parameters[0].name  # the words (abi.h)

    def _variable(self, address: Value) -> str:
        root = self._root(address)
        if root is None or not root.name.startswith("@"):
            return ""
        return variable_of(root.name)[0]

    @staticmethod
    def _kind(kind: Kind, site: AccessSite) -> Value:
        return Value(I32, str(int(kind) | (site.alignment.bit_length() - 1) << ALIGNMENT_SHIFT))

    def _number(self, site: AccessSite) -> Value:
        """The number of a site, which is added to the others."""
        self._context.sites.append(site)
        return Value(I32, str(min(len(self._context.sites) - 1, MAX_SITES)))

    def _call(
        self, address: Value, size: Value, site: AccessSite, access: Instruction
    ) -> Iterator[Instruction]:
        pointer = address
        if isinstance(address.type, Pointer) and address.type.space:
            name = self._names("%mtl.accessed")
            cast = Instruction("addrspacecast", name, POINTER, [address])
            yield cast
            pointer = cast.value
        if size.type != I64:
            wide = Instruction("zext", self._names("%mtl.size"), I64, [size])
            yield wide
            size = wide.value
        kind = self._kind(site.kind, site)
        if access.op == "cmpxchg":  # which writes only what has the value that it expects
            expected = access.operands[1]
            before = Instruction(
                "load", self._names("%mtl.before"), expected.type, [address],
                align=expected.type.size,
            )  # fmt: skip
            compared = [before.value, expected]
            same = Instruction("icmp", self._names("%mtl.same"), I1, compared, predicate="eq")
            kinds = [same.value, kind, self._kind(site.kind & ~Kind.WRITE, site)]
            chosen = Instruction("select", self._names("%mtl.kind"), I32, kinds)
            yield from (before, same, chosen)
            kind = chosen.value
        operands = [pointer, size, self._number(site), kind]
        yield Instruction("call", operands=operands, callee=ACCESS)


def _fence(instruction: Instruction) -> Instruction:
    order = instruction.ordering.split()[-1]
    words = [Value(I32, str(int(order in orders))) for orders in (_RELEASES, _ACQUIRES)]
    return Instruction("call", operands=words, callee=FENCE)


def accesses_of(instruction: Instruction) -> Iterator[tuple[Value, Value, Kind, str]]:
    """Address, number of bytes, kind and type of each access of an instruction."""
    operands = instruction.operands
    atomic = Kind.ATOMIC if instruction.ordering else Kind(0)
    match instruction.op:
        case "load":
            type_ = instruction.type
            yield operands[0], _size(type_), Kind.READ | atomic, str(type_)
        case "store":
            type_ = operands[0].type
            yield operands[1], _size(type_), Kind.WRITE | atomic, str(type_)
        case "atomicrmw" | "cmpxchg":
            type_ = operands[1].type
            yield operands[0], _size(type_), Kind.READ | Kind.WRITE | atomic, str(type_)
        case "call" if instruction.callee.startswith(_COPIES):
            yield operands[1], operands[2], Kind.READ | Kind.COPY, ""
            yield operands[0], operands[2], Kind.WRITE | Kind.COPY, ""
        case "call" if instruction.callee.startswith(_FILL):
            yield operands[0], operands[2], Kind.WRITE | Kind.COPY, ""


def alignment_of(instruction: Instruction) -> int:
    """The alignment of the address of an access.

    16 at most: more is promised for long4, for example, but neither arrays nor GPUs need it.
    """
    match instruction.op:
        case "load" | "store":
            return max(1, min(instruction.align, _MAX_ALIGNMENT))
        case "atomicrmw" | "cmpxchg":
            return instruction.operands[1].type.size
    return 1


def _size(type_: Type) -> Value:
    """Bytes that an access touches: a vector of three elements has no padding."""
    size = type_.size
    if isinstance(type_, Vector):
        size = -(-type_.lanes * bits_of(type_.element) // 8)
    return Value(I64, str(size))
