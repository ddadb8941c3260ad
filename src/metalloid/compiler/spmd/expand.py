"""Copies and fills of memory as instructions that the other passes understand.

Small ones become loads and stores. What is larger than a gather takes at a time stays one ``copy``,
unless it is to or from a private array: those may become registers.
"""

from __future__ import annotations

from metalloid.compiler.llvm.ir import Function, Instruction, Value
from metalloid.compiler.llvm.types import I8, I32, I64, POINTER, Array, Unsupported

_MOST_BYTES = 1024
_LARGE = (16, 32, 64)
_COPIES = ("@llvm.memcpy.", "@llvm.memmove.")
_FILL = "@llvm.memset."


def expand_copies(function: Function) -> None:
    """Replace ``memcpy``, ``memmove`` and ``memset`` of a small constant size.

    Raises
    ------
    Unsupported
        If the size is large or not constant.
    """
    count = 0
    computed_by = {i.result: i for i in function.instructions() if i.result}
    for block in function.blocks.values():
        body: list[Instruction] = []
        for instruction in block.body:
            callee = instruction.detail if instruction.op == "call" else ""
            if callee.startswith(_COPIES) and _stays_whole(instruction, computed_by):
                target, source, size = instruction.operands[:3]
                body.append(
                    Instruction(
                        "copy", operands=[source, target], source=Array(size.integer or 0, I8)
                    )
                )
            elif callee.startswith((*_COPIES, _FILL)):
                count += 1
                body += _expanded(instruction, f"%mtl.copy{count}")
            else:
                body.append(instruction)
        block.body = body


def _stays_whole(call: Instruction, computed_by: dict[str, Instruction]) -> bool:
    target, source, size = call.operands[:3]
    is_private = _is_private(target, computed_by) or _is_private(source, computed_by)
    return size.integer in _LARGE and not is_private


def _is_private(address: Value, computed_by: dict[str, Instruction]) -> bool:
    """Whether it is known to point into a private array."""
    origin = computed_by.get(address.name)
    while origin is not None and origin.op in ("getelementptr", "bitcast"):
        origin = computed_by.get(origin.operands[0].name)
    return origin is not None and origin.op == "alloca"


def _expanded(call: Instruction, stem: str) -> list[Instruction]:
    target, source, size = call.operands[:3]
    nbytes = size.integer
    if nbytes is None or nbytes > _MOST_BYTES:
        raise Unsupported(f"a call of {call.detail}")
    unit = I32 if nbytes % 4 == 0 else I8
    is_fill = call.detail.startswith(_FILL)
    if is_fill and source.integer is None:
        raise Unsupported("memory filled with a value known only when it runs")
    loads: list[Instruction] = []
    stores: list[Instruction] = []
    for number, offset in enumerate(range(0, nbytes, unit.size)):
        if is_fill:
            byte = (source.integer or 0) & 0xFF
            value = Value(unit, str(int.from_bytes(bytes([byte]) * unit.size, "little")))
        else:
            origin = _at(source, offset, f"{stem}.from{number}", loads)
            load = Instruction("load", f"{stem}.{number}", unit, [origin], align=1)
            loads.append(load)
            value = load.value
        place = _at(target, offset, f"{stem}.to{number}", stores)
        stores.append(Instruction("store", operands=[value, place], align=1))
    return loads + stores


def _at(address: Value, offset: int, name: str, into: list[Instruction]) -> Value:
    if not offset:
        return address
    step = Instruction(
        "getelementptr", name, POINTER, [address, Value(I64, str(offset))], source=I8
    )
    into.append(step)
    return step.value
