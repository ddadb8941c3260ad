"""Integers of widths that SPIR-V does not have, up to 63 bits, in the next wider type.

LLVM's optimiser makes them of masks: ``x & 7`` as ``trunc i64 %x to i3``. Its back end for SPIR-V
computes with 8 bits instead, in silence. Here a value lies in the low bits of a wider one, whose
other bits are 0.
"""

from __future__ import annotations

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import I1, I64, Integer, Type, Unsupported, Vector

_STANDARD = (1, 8, 16, 32, 64)
_MASKED = ("add", "sub", "mul", "shl")  # their results may need more bits
_EXACT = ("and", "or", "xor", "lshr", "udiv", "urem", "select", "freeze", "phi")


def widen_narrow_integers(function: Function, names: FreshNames) -> None:
    """Replace integers of such widths.

    Raises
    ------
    Unsupported
        For signed operations other than ``sext``.
    """
    for block in function.blocks.values():
        block.phis = [_widened(phi) for phi in block.phis]
        body, block.body = block.body, []
        for i in body:
            _Emitter(block.body, names).add(i)
        if block.end is not None and any(_is_narrow(value.type) for value in block.end.operands):
            raise Unsupported(f"{block.end.op} by an integer of {block.end.operands[0].type}")


def _is_narrow(type: Type) -> bool:
    return isinstance(type, Integer) and type.bits < 64 and type.bits not in _STANDARD


def _wide(type: Type) -> Integer:
    assert isinstance(type, Integer)
    return Integer(next(bits for bits in _STANDARD if bits > type.bits))


def _mask(type: Type) -> int:
    assert isinstance(type, Integer)
    return (1 << type.bits) - 1


def _of(value: Value) -> Value:
    """A value as an operand of the wider type."""
    if not _is_narrow(value.type):
        return value
    number = value.integer
    name = value.name if number is None else str(number & _mask(value.type))
    return Value(_wide(value.type), name)


def _widened(phi: Instruction) -> Instruction:
    phi.operands = [_of(value) for value in phi.operands]
    phi.type = _wide(phi.type) if _is_narrow(phi.type) else phi.type
    return phi


class _Emitter:
    """Adds an instruction to the body of a block."""

    def __init__(self, body: list[Instruction], names: FreshNames) -> None:
        self._body, self._names = body, names

    def _new(self, op: str, *operands: Value, name: str = "") -> Value:
        type = operands[0].type
        name = name or self._names("%mtl.wide")
        self._body.append(Instruction(op, name, type, [*operands]))
        return Value(type, name)

    def add(self, i: Instruction) -> None:
        """The instruction, or what replaces it."""
        operand = next((value for value in i.operands if _is_narrow(value.type)), None)
        if operand is None and not _is_narrow(i.type):
            self._body.append(i)
        elif i.op == "trunc":
            self._truncate(i)
        elif i.op in ("zext", "sext"):
            self._extend(i)
        elif i.op == "bitcast" and isinstance(i.operands[0].type, Vector):
            self._join_bits(i)
        elif i.op in _MASKED:
            operands = [_of(value) for value in i.operands]
            total = self._new(i.op, *operands)
            self._new("and", total, Value(total.type, str(_mask(i.type))), name=i.result)
        elif i.op in _EXACT or (i.op == "icmp" and i.predicate[0] != "s"):
            i.operands = [_of(value) for value in i.operands]
            i.type = _wide(i.type) if _is_narrow(i.type) else i.type
            i.flags = ()
            self._body.append(i)
        else:
            raise Unsupported(f"{i.op} of an integer of {operand.type if operand else i.type}")

    def _join_bits(self, i: Instruction) -> None:
        """An integer of the elements of a vector of bits."""
        (source,) = i.operands
        wide = _wide(i.type)
        total = Value(wide, "0")
        assert isinstance(source.type, Vector)
        for k in range(source.type.lanes):
            name = self._names("%mtl.bit")
            index = Value(I64, str(k))
            self._body.append(Instruction("extractelement", name, I1, [source, index]))
            bit = self._convert(Value(I1, name), wide)
            total = self._new("or", total, self._new("shl", bit, Value(wide, str(k))))
        self._convert(total, wide, i.result)

    def _truncate(self, i: Instruction) -> None:
        (source,) = (_of(value) for value in i.operands)
        if not _is_narrow(i.type):
            self._convert(source, i.type, i.result)
            return
        resized = self._convert(source, _wide(i.type))
        self._new("and", resized, Value(resized.type, str(_mask(i.type))), name=i.result)

    def _extend(self, i: Instruction) -> None:
        narrow, target = i.operands[0], _wide(i.type) if _is_narrow(i.type) else i.type
        value = _of(narrow)
        if i.op == "zext":
            self._convert(value, target, i.result)
            return
        if not _is_narrow(narrow.type):
            raise Unsupported(f"sext of {narrow.type} to {i.type}")
        assert isinstance(narrow.type, Integer)
        assert isinstance(value.type, Integer)
        amount = Value(value.type, str(value.type.bits - narrow.type.bits))
        signed = self._new("ashr", self._new("shl", value, amount), amount)
        if not _is_narrow(i.type):
            self._convert(signed, target, i.result, "sext")
            return
        resized = self._convert(signed, target, extension="sext")
        self._new("and", resized, Value(target, str(_mask(i.type))), name=i.result)

    def _convert(
        self, value: Value, target: Type, name: str = "", extension: str = "zext"
    ) -> Value:
        assert isinstance(value.type, Integer)
        assert isinstance(target, Integer)
        if value.type == target:
            return self._new("or", value, Value(target, "0"), name=name)
        op = "trunc" if target.bits < value.type.bits else extension
        name = name or self._names("%mtl.wide")
        self._body.append(Instruction(op, name, target, [value]))
        return Value(target, name)
