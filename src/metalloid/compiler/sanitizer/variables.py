"""Flags of private variables: whether a thread has given them a value.

A variable or array gets a byte for each scalar, which is 0 at the beginning of its lifetime and 1
from a store on. Loads pass the byte to the runtime::

    %flag = load i8, ptr %x.has_value
    call void @mtl_sanitizer_variable(i8 %flag, i32 0)
    %value = load float, ptr %x

LLVM knows most flags, and `prepare.finish` removes the calls with those that are 1. The last
operand is for the number of the site. Variables whose address leaves the function have no flags.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.types import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Array,
    Float,
    Integer,
    Pointer,
    Type,
)  # fmt: skip
from metalloid.compiler.sanitizer.components import with_debug
from metalloid.compiler.sanitizer.runtime_functions import VARIABLE

_LIFETIME = "@llvm.lifetime."
_START = "@llvm.lifetime.start."
_COPIES = ("@llvm.memcpy.", "@llvm.memmove.", "@llvm.memset.")
_SET = "@llvm.memset.p0.i64"


def flag_variables(function: Function) -> bool:
    """Add flags to the variables of a function, and calls before loads; whether there are any."""
    return _Flags(function).run()


def _scalar(type_: Type) -> Type:
    """The type of the elements of nested arrays."""
    while isinstance(type_, Array):
        type_ = type_.element
    return type_


def _flags_type(type_: Type) -> Type:
    """The type of the flags of a variable."""
    if isinstance(type_, Array):
        return Array(type_.count, _flags_type(type_.element))
    return I8


def _is_plain(use: Instruction, position: int, scalar: Type) -> bool:
    """Whether an instruction only accesses memory at its operand of that position."""
    match use.op:
        case "load":
            return use.type == scalar and not use.ordering
        case "store":
            return position == 1 and use.operands[0].type == scalar and not use.ordering
        case "call":
            return use.callee.startswith((_LIFETIME, *_COPIES)) and position < 2
    return False


class _FlagAddress(NamedTuple):
    """Where the flag of an element is, and all flags of its variable."""

    address: str
    variable: str


class _Flags:
    def __init__(self, function: Function) -> None:
        self._function, self._names = function, FreshNames(function)
        self._flags: dict[str, _FlagAddress] = {}  # by address of the element
        self._counts: dict[str, int] = {}  # of the flags of a variable

    def run(self) -> bool:
        """Add the flags."""
        variables = self._variables()
        if variables:
            for block in self._function.blocks.values():
                block.body = list(self._rewritten(block, variables))
        return bool(variables)

    def _variables(self) -> set[str]:
        """Variables that are only loaded, stored, indexed, copied and filled."""
        started = {
            i.operands[-1].name
            for i in self._function.instructions() if i.callee.startswith(_START)
        }  # fmt: skip
        scalars = {
            i.result: _scalar(i.source) for i in self._function.entry.body
            if i.op == "alloca" and i.result in started and not i.operands
            and isinstance(_scalar(i.source), Integer | Float | Pointer)
        }  # fmt: skip
        variable_of = {name: name for name in scalars}
        for use in self._function.instructions():
            for position, value in enumerate(use.operands):
                variable = variable_of.get(value.name)
                if variable is None:
                    continue
                is_element = use.op == "getelementptr" and position == 0
                if is_element:
                    variable_of[use.result] = variable
                    is_plain = _scalar(use.source) == scalars.get(variable)
                else:
                    is_plain = _is_plain(use, position, scalars.get(variable, VOID))
                if not is_plain:
                    scalars.pop(variable, None)
        return set(scalars)

    def _rewritten(self, block: Block, variables: set[str]) -> Iterator[Instruction]:
        for i in block.body:
            flag = self._flag_of(i)
            if flag is not None and i.op == "load":
                yield from self._look(i, flag.address)
            yield i
            if i.op == "alloca" and i.result in variables:
                flags = self._names(f"{i.result}.has_value")
                yield Instruction("alloca", flags, POINTER, source=_flags_type(i.source), align=1)
                self._flags[i.result] = _FlagAddress(flags, flags)
                self._counts[flags] = i.source.size // _scalar(i.source).size
            elif flag is None:
                continue
            elif i.op == "getelementptr":
                address = self._names(f"{i.result}.has_value")
                operands = [Value(POINTER, flag.address), *i.operands[1:]]
                source = _flags_type(i.source)
                yield Instruction("getelementptr", address, POINTER, operands, source=source)
                self._flags[i.result] = _FlagAddress(address, flag.variable)
            elif i.op == "store":
                operands = [Value(I8, "1"), Value(POINTER, flag.address)]
                yield Instruction("store", operands=operands, align=1)
            elif i.callee.startswith(_START):
                yield self._filled(flag.variable, 0)
            elif i.callee.startswith(_COPIES):
                yield self._filled(flag.variable, 1)

    def _flag_of(self, instruction: Instruction) -> _FlagAddress | None:
        """The flag of the memory that an instruction indexes, loads or writes to."""
        operands = instruction.operands
        if not operands:
            return None
        is_last = instruction.op == "store" or instruction.callee.startswith(_LIFETIME)
        return self._flags.get(operands[-1 if is_last else 0].name)

    def _look(self, load: Instruction, address: str) -> Iterator[Instruction]:
        name = self._names("%mtl.has_value")
        flag = Instruction("load", name, I8, [Value(POINTER, address)], align=1)
        yield flag
        operands = [flag.value, Value(I32, "0")]
        yield with_debug(Instruction("call", operands=operands, callee=VARIABLE), load.debug)

    def _filled(self, flags: str, value: int) -> Instruction:
        count = Value(I64, str(self._counts[flags]))
        operands = [Value(POINTER, flags), Value(I8, str(value)), count, Value(I1, "false")]
        return Instruction("call", operands=operands, callee=_SET)
