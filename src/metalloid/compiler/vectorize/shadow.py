"""Calls of the sanitizer's shadow memory for all lanes: see `sanitizer.vector_form`.

Accesses are passed on by how the addresses of the lanes lie: as one address, as one address and a
stride, or in an array.
"""

from __future__ import annotations

from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I1, POINTER, Unsupported
from metalloid.compiler.sanitizer.vector_form import (
    ACCESS,
    ALARM_IF,
    BARRIER,
    ENTER,
    SHUFFLE,
    SIMDGROUP_BARRIER,
)
from metalloid.compiler.vectorize.builder import Builder

_ROW, _UNIFORM, _GATHER, _ALARM = (
    f"@mtl_shadow_{name}" for name in ("row", "uniform", "gather", "alarm_lanes")
)
#: The array of addresses: a member of mtl_shadow_state (abi.h).
_ADDRESSES = "@mtl_shadow_addresses"


def write(builder: Builder, instruction: Instruction) -> bool:
    """Write a call of one of these functions; False if it is none."""
    callee, operands = instruction.callee, instruction.operands
    if callee == ACCESS:
        _access(builder, operands)
    elif callee == ALARM_IF:
        bits = builder.vector(operands[0])
        if builder.mask_as_bits() is not None:
            bits = builder.new(
                f"select {builder.wide(I1)} {builder.active()}, {builder.wide(I1)} {bits}, "
                f"{builder.wide(I1)} zeroinitializer"
            )
        builder.call("void", _ALARM, [("i32", _number(builder, bits))])
    elif callee == BARRIER:
        given = [("i32", builder.scalar(operands[0])), ("i32", builder.first_index)]
        builder.call("void", f"{BARRIER}_lanes", [*given, _active(builder)])
    elif callee == ENTER:
        given = [("i32", builder.scalar(operands[0])), _active(builder)]
        builder.call("void", f"{ENTER}_lanes", given)
    elif callee == SHUFFLE:
        builder.call("void", f"{SHUFFLE}_lanes", [_active(builder)])
    elif callee == SIMDGROUP_BARRIER:
        given = [("i32", builder.scalar(operands[0])), _active(builder)]
        builder.call("void", f"{SIMDGROUP_BARRIER}_lanes", given)
    else:
        return False
    return True


def _number(builder: Builder, bits: str) -> str:
    """Bits of the lanes as an ``i32``."""
    number = builder.bits_as_integer(bits)
    if builder.width == 32:
        return number
    return builder.new(f"zext i{builder.width} {number} to i32")


def _active(builder: Builder) -> tuple[str, str]:
    bits = builder.mask_as_bits()
    if bits is None:
        return "i32", str((1 << builder.width) - 1)
    return "i32", _number(builder, bits)


def _access(builder: Builder, operands: list[Value]) -> None:
    address, size, mode = operands
    if not builder.is_uniform(size):
        raise Unsupported("a copy whose size differs between lanes")
    given = [("i64", builder.scalar(size)), ("i32", mode.name), _active(builder)]
    shape = builder.shape(address)
    if shape.is_uniform:
        builder.call("void", _UNIFORM, [("ptr", builder.scalar(address)), *given])
    elif shape.stride is not None:
        given.insert(1, ("i64", str(shape.stride)))
        builder.call("void", _ROW, [("ptr", builder.scalar(address)), *given])
    else:
        vector = builder.vector(address)
        builder.emit(f"store {builder.wide(POINTER)} {vector}, ptr {_ADDRESSES}, align 8")
        builder.call("void", _GATHER, given)
