"""Conversions of bfloats in integer arithmetic, after `legalize_bf16`: SPIR-V has no bfloat."""

from __future__ import annotations

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import BFLOAT, FLOAT, I1, I16, I32, Type

_BITS = 16


def lower_bf16(function: Function, names: FreshNames) -> None:
    """Let no value of `function` be a bfloat."""
    bits: dict[str, Value] = {}  # of values of type bfloat
    for block in function.blocks.values():
        body, block.body = block.body, []
        for i in body:
            emit = _Emitter(block.body, names)
            source = i.operands[0] if i.operands else None
            if i.op == "bitcast" and i.type == BFLOAT:
                assert source is not None
                bits[i.result] = source
            elif i.op == "fptrunc" and i.type == BFLOAT:
                assert source is not None
                bits[i.result] = emit.rounded(source)
            elif source is None or source.type != BFLOAT:
                block.body.append(i)
            elif i.op == "bitcast":
                given = bits[source.name]
                block.body.append(Instruction("or", i.result, I16, [given, Value(I16, "0")]))
            else:  # fpext
                emit.extended(bits[source.name], i)


class _Emitter:
    """Adds instructions to the body of a block."""

    def __init__(self, body: list[Instruction], names: FreshNames) -> None:
        self._body, self._names = body, names

    def _new(self, op: str, type: Type, *operands: Value, **more: str) -> Value:
        name = self._names("%mtl.float")
        self._body.append(Instruction(op, name, type, [*operands], **more))  # type: ignore[arg-type]
        return Value(type, name)

    def extended(self, bits: Value, result: Instruction) -> None:
        """The float of a bfloat's bits, as `result`, which is an ``fpext``."""
        wide = self._new("zext", I32, bits)
        upper = self._new("shl", I32, wide, _number(_BITS))
        if result.type == FLOAT:
            self._body.append(Instruction("bitcast", result.result, FLOAT, [upper]))
            return
        as_float = self._new("bitcast", FLOAT, upper)
        self._body.append(Instruction("fpext", result.result, result.type, [as_float]))

    def rounded(self, value: Value) -> Value:
        """Bits of the nearest bfloat, of two the even one; a NaN becomes a quiet one."""
        if value.type != FLOAT:
            value = self._new("fptrunc", FLOAT, value)
        number = self._new("bitcast", I32, value)
        upper = self._new("lshr", I32, number, _number(_BITS))
        odd = self._new("and", I32, upper, _number(1))
        biased = self._new("add", I32, number, _number(0x7FFF))
        raised = self._new("add", I32, biased, odd)
        nearest = self._new("lshr", I32, raised, _number(_BITS))
        quiet = self._new("or", I32, upper, _number(0x40))
        is_nan = self._new("fcmp", I1, value, value, predicate="uno")
        chosen = self._new("select", I32, is_nan, quiet, nearest)
        return self._new("trunc", I16, chosen)


def _number(value: int) -> Value:
    return Value(I32, str(value))
