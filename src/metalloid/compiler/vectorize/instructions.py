"""Arithmetic of a simdgroup: once for what is uniform or indexed, lane by lane for the rest."""

from __future__ import annotations

from metalloid.compiler.analysis import target_builtins
from metalloid.compiler.analysis.libcalls import is_of_the_c_library
from metalloid.compiler.analysis.simdgroup_functions import ALL_PASS, NONE_PASSES
from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import BFLOAT, DOUBLE, FLOAT, I1, I16, Integer, Unsupported
from metalloid.compiler.transforms.callees import VARYING, Callee
from metalloid.compiler.vectorize import bf16, elementwise, reports
from metalloid.compiler.vectorize.builder import Writer, fast_math
from metalloid.compiler.vectorize.elementwise import count_of_values, text_of
from metalloid.compiler.vectorize.lane_votes import all_lanes_pass
from metalloid.compiler.vectorize.memory import accesses
from metalloid.compiler.vectorize.register_chunks import by_registers
from metalloid.compiler.vectorize.scalar_calls import call_by_lane, is_by_lane
from metalloid.compiler.vectorize.simdgroup import collectives, matrices

_DIVISIONS = ("udiv", "sdiv", "urem", "srem")


def write(writer: Writer, instruction: Instruction) -> None:
    """Write one instruction of the current block for all lanes.

    Raises
    ------
    Unsupported
        If there is no way to.
    """
    op = instruction.op
    if op in accesses.HANDLERS:
        accesses.HANDLERS[op](writer, instruction)
    elif op in matrices.HANDLERS:
        matrices.HANDLERS[op](writer, instruction)
    elif op == "call":
        _call(writer, instruction)
    elif op == "assert":
        reports.write_assertion(writer, instruction)
    elif op == "getelementptr":
        _address(writer, instruction)
    elif op == "bitcast" and instruction.type == instruction.operands[0].type:
        _same(writer, instruction)
    else:
        _compute(writer, instruction)


def _compute(writer: Writer, instruction: Instruction) -> None:
    shape = writer.own_shape(instruction.value)
    if shape.is_uniform:
        # Promises of the operands' lanes need not hold for a base, see `_base`.
        promised = all(map(writer.is_uniform, instruction.operands))
        writer.set(instruction, scalar=_plain(writer, instruction, flags=promised))
    elif shape.offsets is not None:
        base = _base(writer, instruction)
        wanted = instruction.result in writer.vectors_wanted
        writer.set(instruction, base, _lanes(writer, instruction) if wanted else "")
    else:
        writer.set(instruction, vector=_lanes(writer, instruction))


def _base(writer: Writer, instruction: Instruction) -> str:
    """Lane 0 of an indexed value.

    Without promises such as nsw: lane 0 may be inactive, and what is poison for it would spread. A
    widening goes by the highest lane, from which the others are reached by stepping back: a lane
    below it that had wrapped would not, and a lane that is past the end of the type is past every
    buffer.
    """
    shape = writer.own_shape(instruction.value)
    operand = instruction.operands[0]
    if instruction.op not in ("zext", "sext") or shape.exact:
        return _plain(writer, instruction, flags=False)
    assert shape.offsets is not None
    most = max(shape.offsets)
    top = writer.new(f"add {operand.type} {writer.scalar(operand)}, {most}")
    wide = writer.new(f"{instruction.op} {operand.type} {top} to {instruction.type}")
    return writer.new(f"sub {instruction.type} {wide}, {most}")


def _plain(writer: Writer, instruction: Instruction, flags: bool) -> str:
    kept = "".join(f"{flag} " for flag in instruction.flags) if flags else fast_math(instruction)
    return writer.new(text_of(instruction, kept, [*map(writer.scalar, instruction.operands)], str))


def _lanes(writer: Writer, instruction: Instruction) -> str:
    if instruction.op in _DIVISIONS:
        return _divide(writer, instruction)
    if instruction.op == "select" and writer.is_uniform(instruction.operands[0]):
        condition, yes, no = instruction.operands
        wide = writer.wide(instruction.type)
        chosen = f"select i1 {writer.scalar(condition)}, "
        return writer.new(f"{chosen}{wide} {writer.vector(yes)}, {wide} {writer.vector(no)}")
    if instruction.op in ("fpext", "fptrunc"):
        [operand] = instruction.operands
        vector, pair = writer.vector(operand), (operand.type, instruction.type)
        if pair == (BFLOAT, FLOAT):
            given = writer.new(f"bitcast {writer.wide(BFLOAT)} {vector} to {writer.wide(I16)}")
            return bf16.extended(writer, given, writer.width)
        if pair == (FLOAT, BFLOAT):
            bits = bf16.rounded(writer, vector)
            return writer.new(f"bitcast {writer.wide(I16)} {bits} to {writer.wide(BFLOAT)}")
    return _each_lane(writer, instruction)


def _each_lane(writer: Writer, instruction: Instruction) -> str:
    vectors = [writer.vector(value) for value in instruction.operands]
    return elementwise.write(writer, instruction, vectors, writer.width)


def _divide(writer: Writer, instruction: Instruction) -> str:
    """Integer division, which must not fail for a lane that is not active."""
    op, type = instruction.op, instruction.type
    dividend, divisor = instruction.operands
    assert isinstance(type, Integer)
    left, right = writer.vector(dividend), writer.vector(divisor)
    wide = writer.wide(type)
    if divisor.integer not in (None, 0, -1):
        return writer.new(f"{op} {wide} {left}, {right}")  # becomes a multiplication
    bits = writer.mask_as_bits()
    if bits is not None:
        right = writer.blend(bits, right, f"splat ({type} 1)", type)
    if type.bits > 32:
        return writer.new(f"{op} {wide} {left}, {right}")  # the processor's own, lane by lane
    _refuse_bad_divisors(writer, op, type, left, right)
    return _divide_as_doubles(writer, op, type, left, right)


def _refuse_bad_divisors(writer: Writer, op: str, type: Integer, left: str, right: str) -> None:
    """Fail where the processor's own division would."""
    wide, bits = writer.wide(type), writer.wide(I1)
    bad = writer.new(f"icmp eq {wide} {right}, zeroinitializer")
    if op in ("sdiv", "srem"):
        least = writer.new(f"icmp eq {wide} {left}, splat ({type} {-(1 << type.bits - 1)})")
        by_minus_one = writer.new(f"icmp eq {wide} {right}, splat ({type} -1)")
        overflow = writer.new(f"and {bits} {least}, {by_minus_one}")
        bad = writer.new(f"or {bits} {bad}, {overflow}")
    number = writer.bits_as_integer(bad)
    none = writer.new(f"icmp eq i{writer.width} {number}, 0")
    fine, failed = writer.fresh_label("divisible"), writer.fresh_label("divided_by_zero")
    writer.emit(f"br i1 {none}, label %{fine}, label %{failed}")
    writer.label(failed)
    writer.call("void", "@__msl_divided_by_zero", [])
    writer.emit("unreachable")
    writer.label(fine)


def _divide_as_doubles(writer: Writer, op: str, type: Integer, left: str, right: str) -> str:
    """A quotient of doubles, which hold 53 bits: cut off, it is exact."""
    wide, double = writer.wide(type), writer.wide(DOUBLE)
    sign = "u" if op[0] == "u" else "s"
    a = writer.new(f"{sign}itofp {wide} {left} to {double}")
    b = writer.new(f"{sign}itofp {wide} {right} to {double}")
    quotient = writer.new(f"fdiv {double} {a}, {b}")
    whole = writer.new(f"fpto{sign}i {double} {quotient} to {wide}")
    if op.endswith("div"):
        return whole
    back = writer.new(f"mul {wide} {whole}, {right}")
    return writer.new(f"sub {wide} {left}, {back}")


def _same(writer: Writer, instruction: Instruction) -> None:
    """A cast that changes nothing."""
    [operand] = instruction.operands
    shape = writer.own_shape(instruction.value)
    scalar = "" if shape.is_varying else writer.scalar(operand)
    wanted = shape.is_varying or instruction.result in writer.vectors_wanted
    writer.set(instruction, scalar, writer.vector(operand) if wanted else "")


def _address(writer: Writer, instruction: Instruction) -> None:
    shape = writer.own_shape(instruction.value)
    scalar = vector = ""
    if shape.offsets is not None:
        given = ", ".join(f"{v.type} {writer.scalar(v)}" for v in instruction.operands)
        scalar = writer.new(f"getelementptr {instruction.source}, {given}")
    if shape.is_varying or instruction.result in writer.vectors_wanted:
        parts = [
            f"{v.type} {writer.scalar(v)}"
            if writer.is_uniform(v)
            else f"{writer.wide(v.type)} {writer.vector(v)}"
            for v in instruction.operands
        ]
        vector = writer.new(f"getelementptr {instruction.source}, {', '.join(parts)}")
    writer.set(instruction, scalar, vector)


def _call(writer: Writer, instruction: Instruction) -> None:
    if collectives.write(writer, instruction) or reports.write_call(writer, instruction):
        return
    if instruction.detail in (ALL_PASS, NONE_PASSES):
        [condition] = instruction.operands
        holds = instruction.detail == ALL_PASS
        writer.set(instruction, scalar=all_lanes_pass(writer, condition, holds))
        return
    callee = writer.callees.get(instruction.detail)
    if callee is not None:
        _call_vector_form(writer, instruction, callee)
        return
    if is_by_lane(instruction.detail):
        call_by_lane(writer, instruction)
        return
    by_lane = is_of_the_c_library(instruction.detail)
    of_processor = target_builtins.is_instruction(instruction.detail)
    if not (by_lane or of_processor or count_of_values(instruction.detail)):
        raise Unsupported(f"a call of {instruction.detail}")
    flags, type = fast_math(instruction), instruction.type
    if writer.own_shape(instruction.value).is_uniform:
        given = [(str(v.type), writer.scalar(v)) for v in instruction.operands]
        scalar = writer.call(f"{flags}{type}", instruction.detail, given)
        writer.set(instruction, scalar=scalar)
        return
    if by_lane:
        _call_by_lane(writer, instruction)
        return
    if of_processor:
        _call_of_processor(writer, instruction)
        return
    writer.set(instruction, vector=_each_lane(writer, instruction))


def _call_vector_form(writer: Writer, instruction: Instruction, callee: Callee) -> None:
    given = []
    for value, kind, unit in zip(instruction.operands, callee.kinds, callee.units, strict=True):
        if kind == VARYING:
            given.append(f"{writer.wide(value.type)} {writer.vector(value)}")
            continue
        if unit and writer.shape(value).stride != unit:
            raise Unsupported("an address of private memory that differs between lanes")
        given.append(f"{value.type} {writer.scalar(value)}")
    given.append(f"{writer.wide(writer.mask_type)} {writer.mask or writer.all_lanes}")
    writer.emit(f"call void @{callee.vector_name}({', '.join(given)})")


def _call_by_lane(writer: Writer, instruction: Instruction) -> None:
    type, flags = instruction.type, fast_math(instruction)
    wide, result = writer.wide(type), "poison"
    vectors = [(v.type, writer.wide(v.type), writer.vector(v)) for v in instruction.operands]
    for lane in range(writer.width):
        given = [
            (str(of), writer.new(f"extractelement {wide_of} {vector}, i32 {lane}"))
            for of, wide_of, vector in vectors
        ]
        found = writer.call(f"{flags}{type}", instruction.detail, given)
        result = writer.new(f"insertelement {wide} {result}, {type} {found}, i32 {lane}")
    writer.set(instruction, vector=result)


def _call_of_processor(writer: Writer, instruction: Instruction) -> None:
    """As many registers as there are, or a part of one."""
    lanes = min(max(writer.width, 4), target_builtins.MOST_LANES)
    vectors = [writer.vector(operand) for operand in instruction.operands]

    def computed(parts: list[str]) -> str:
        callee, given = target_builtins.vector_call(instruction.detail, lanes, parts)
        return writer.call(f"<{lanes} x float>", callee, given)

    writer.set(instruction, vector=by_registers(writer, vectors, FLOAT, lanes, computed))
