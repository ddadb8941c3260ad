"""Copies and fills of memory as instructions that the other passes understand.

Small ones become loads and stores. One that is larger than an element of a gather stays a ``copy``
or ``fill``, unless it is to or from a private array, which may become registers. So does a large
one, and one of a size known only at run time.

The operands of a ``copy`` are the source, the number of bytes, and the target; those of a ``fill``
have a byte instead of the source.
"""

from __future__ import annotations

from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import (
    I8,
    I32,
    I64,
    POINTER,
    Array,
    Float,
    Integer,
    Struct,
    Type,
    Vector,
)

_MAX_BYTES = 1024
_MAX_PIECES = 256
_LARGE = (16, 32, 64)
_COPIES = ("@llvm.memcpy.", "@llvm.memmove.")
_FILL = "@llvm.memset."


def lower_memcpy(function: Function) -> None:
    """Replace ``memcpy``, ``memmove`` and ``memset``."""
    count = 0
    computed_by = {i.result: i for i in function.instructions() if i.result}
    for block in function.blocks.values():
        body: list[Instruction] = []
        for instruction in block.body:
            callee = instruction.callee if instruction.op == "call" else ""
            if not callee.startswith((*_COPIES, _FILL)):
                body.append(instruction)
            elif _is_aggregate_copy(instruction, computed_by):
                target, source, size = instruction.operands[:3]
                op = "fill" if callee.startswith(_FILL) else "copy"
                body.append(Instruction(op, operands=[source, size, target]))
            else:
                count += 1
                unit = _unit(instruction, computed_by)
                body += _expanded(instruction, f"%mtl.copy{count}", unit)
        block.body = body


def _is_aggregate_copy(call: Instruction, computed_by: dict[str, Instruction]) -> bool:
    target, source, size = call.operands[:3]
    if size.integer is None or size.integer > _MAX_BYTES:
        return True
    if call.callee.startswith(_FILL):
        return source.integer is None
    private = (_private_array(address, computed_by) for address in (target, source))
    return size.integer in _LARGE and not any(private)


def _private_array(address: Value, computed_by: dict[str, Instruction]) -> Instruction | None:
    """The private array that it is known to point into."""
    base = computed_by.get(address.name)
    while base is not None and base.op in ("getelementptr", "bitcast"):
        base = computed_by.get(base.operands[0].name)
    return base if base is not None and base.op == "alloca" else None


def _unit(call: Instruction, computed_by: dict[str, Instruction]) -> Integer:
    """The type to copy by: elements of a private array, so that all its accesses agree."""
    size = call.operands[2].integer or 0
    addresses = call.operands[:1] if call.callee.startswith(_FILL) else call.operands[:2]
    for address in addresses:
        array = _private_array(address, computed_by)
        if array is not None:
            element = _only_element(array.source)
            is_scalar = isinstance(element, Integer | Float)
            if is_scalar and size % element.size == 0 and size <= _MAX_PIECES * element.size:
                return Integer(8 * element.size)
    return I32 if size % 4 == 0 else I8


def _only_element(type: Type) -> Type:
    """The scalar that an array, a vector or a struct consists of, if there is only one kind."""
    while isinstance(type, Array | Vector):
        type = type.element
    if isinstance(type, Struct):
        elements = {_only_element(member) for member in type.members}
        return elements.pop() if len(elements) == 1 else type
    return type


def _expanded(call: Instruction, stem: str, unit: Integer) -> list[Instruction]:
    target, source, size = call.operands[:3]
    nbytes, is_fill = size.integer or 0, call.callee.startswith(_FILL)
    loads: list[Instruction] = []
    stores: list[Instruction] = []
    for number, offset in enumerate(range(0, nbytes, unit.size)):
        if is_fill:
            byte = (source.integer or 0) & 0xFF
            value = Value(unit, str(int.from_bytes(bytes([byte]) * unit.size, "little")))
        else:
            source_address = _at(source, offset, f"{stem}.from{number}", loads)
            load = Instruction("load", f"{stem}.{number}", unit, [source_address], align=1)
            loads.append(load)
            value = load.value
        target_address = _at(target, offset, f"{stem}.to{number}", stores)
        stores.append(Instruction("store", operands=[value, target_address], align=1))
    return loads + stores


def _at(address: Value, offset: int, name: str, into: list[Instruction]) -> Value:
    if not offset:
        return address
    step = Instruction(
        "getelementptr", name, POINTER, [address, Value(I64, str(offset))], source=I8
    )
    into.append(step)
    return step.value
