"""Arithmetic of a simdgroup: once for what is uniform or indexed, lane by lane for the rest."""

from __future__ import annotations

from metalloid.compiler.analysis import target_builtins
from metalloid.compiler.analysis.libcalls import is_libcall
from metalloid.compiler.analysis.simdgroup_functions import ALL_PASS, NONE_PASSES
from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import BFLOAT, FLOAT, I16, Unsupported
from metalloid.compiler.transforms.callees import VARYING, Callee
from metalloid.compiler.vectorize import bf16, elementwise, reports, shadow
from metalloid.compiler.vectorize.atomics.private_sums import add_plainly
from metalloid.compiler.vectorize.builder import Builder, fast_math
from metalloid.compiler.vectorize.control_flow.lane_votes import all_lanes_pass
from metalloid.compiler.vectorize.divisions import DIVISIONS, divide
from metalloid.compiler.vectorize.elementwise import count_of_values, text_of
from metalloid.compiler.vectorize.memory import accesses
from metalloid.compiler.vectorize.memory.pair_products import sum_of_pairs
from metalloid.compiler.vectorize.memory.prefetch import PREFETCH
from metalloid.compiler.vectorize.register_chunks import by_registers
from metalloid.compiler.vectorize.scalar_calls import call_by_lane, is_by_lane
from metalloid.compiler.vectorize.simdgroup import collectives, matrices


def write(builder: Builder, instruction: Instruction) -> None:
    """Write one instruction of the current block for all lanes.

    Raises
    ------
    Unsupported
        If it has no vector form.
    """
    builder.locate(instruction.debug)
    try:
        _write(builder, instruction)
    except Unsupported as error:
        raise error.at(instruction.debug) from None


def _write(builder: Builder, instruction: Instruction) -> None:
    op = instruction.op
    if op == "atomicrmw" and add_plainly(builder, instruction):
        return
    if op in accesses.HANDLERS:
        accesses.HANDLERS[op](builder, instruction)
    elif op in matrices.HANDLERS:
        matrices.HANDLERS[op](builder, instruction)
    elif op == "call":
        _call(builder, instruction)
    elif op in ("assert", "assert_not", "assert_inside"):
        reports.write_assertion(builder, instruction)
    elif op == "getelementptr":
        _address(builder, instruction)
    elif op == "bitcast" and instruction.type == instruction.operands[0].type:
        _same(builder, instruction)
    else:
        _compute(builder, instruction)


def _compute(builder: Builder, instruction: Instruction) -> None:
    shape = builder.own_shape(instruction.value)
    if shape.is_uniform:
        # Promises of the operands' lanes need not hold for a base, see `_base`.
        promised = all(map(builder.is_uniform, instruction.operands))
        builder.set(instruction, scalar=_plain(builder, instruction, flags=promised))
    elif shape.offsets is not None:
        base = _base(builder, instruction)
        is_required = instruction.result in builder.required_vectors
        builder.set(instruction, base, _lanes(builder, instruction) if is_required else "")
    else:
        builder.set(instruction, vector=_lanes(builder, instruction))


def _base(builder: Builder, instruction: Instruction) -> str:
    """Lane 0 of an indexed value.

    Without promises such as nsw: lane 0 may be inactive, and what is poison for it would spread. A
    widening goes by the highest lane, from which the others are reached by stepping back: a lane
    below it that had wrapped would not, and a lane that is past the end of the type is past every
    buffer.
    """
    shape = builder.own_shape(instruction.value)
    operand = instruction.operands[0]
    if instruction.op not in ("zext", "sext") or shape.exact:
        return _plain(builder, instruction, flags=False)
    assert shape.offsets is not None
    max_offset = max(shape.offsets)
    top = builder.new(f"add {operand.type} {builder.scalar(operand)}, {max_offset}")
    wide = builder.new(f"{instruction.op} {operand.type} {top} to {instruction.type}")
    return builder.new(f"sub {instruction.type} {wide}, {max_offset}")


def _plain(builder: Builder, instruction: Instruction, flags: bool) -> str:
    text = "".join(f"{flag} " for flag in instruction.flags) if flags else fast_math(instruction)
    return builder.new(
        text_of(instruction, text, [*map(builder.scalar, instruction.operands)], str)
    )


def _lanes(builder: Builder, instruction: Instruction) -> str:
    if instruction.op in DIVISIONS:
        return divide(builder, instruction)
    if instruction.op == "select" and builder.is_uniform(instruction.operands[0]):
        condition, yes, no = instruction.operands
        wide = builder.wide(instruction.type)
        chosen = f"select i1 {builder.scalar(condition)}, "
        return builder.new(f"{chosen}{wide} {builder.vector(yes)}, {wide} {builder.vector(no)}")
    if instruction.op in ("fpext", "fptrunc"):
        [operand] = instruction.operands
        vector, pair = builder.vector(operand), (operand.type, instruction.type)
        if pair == (BFLOAT, FLOAT):
            given = builder.new(f"bitcast {builder.wide(BFLOAT)} {vector} to {builder.wide(I16)}")
            return bf16.extended(builder, given, builder.width)
        if pair == (FLOAT, BFLOAT):
            bits = bf16.rounded(builder, vector)
            return builder.new(f"bitcast {builder.wide(I16)} {bits} to {builder.wide(BFLOAT)}")
    return _each_lane(builder, instruction)


def _each_lane(builder: Builder, instruction: Instruction) -> str:
    if (pairs := sum_of_pairs(builder, instruction)) is not None:
        return pairs
    vectors = [builder.vector(value) for value in instruction.operands]
    return elementwise.write(builder, instruction, vectors, builder.width)


def _same(builder: Builder, instruction: Instruction) -> None:
    """A cast that changes nothing."""
    [operand] = instruction.operands
    shape = builder.own_shape(instruction.value)
    scalar = "" if shape.is_varying else builder.scalar(operand)
    is_required = shape.is_varying or instruction.result in builder.required_vectors
    builder.set(instruction, scalar, builder.vector(operand) if is_required else "")


def _address(builder: Builder, instruction: Instruction) -> None:
    shape = builder.own_shape(instruction.value)
    scalar = vector = ""
    if shape.offsets is not None:
        given = ", ".join(f"{v.type} {builder.scalar(v)}" for v in instruction.operands)
        scalar = builder.new(f"getelementptr {instruction.source}, {given}")
    if shape.is_varying or instruction.result in builder.required_vectors:
        operands = [
            f"{v.type} {builder.scalar(v)}"
            if builder.is_uniform(v)
            else f"{builder.wide(v.type)} {builder.vector(v)}"
            for v in instruction.operands
        ]
        vector = builder.new(f"getelementptr {instruction.source}, {', '.join(operands)}")
    builder.set(instruction, scalar, vector)


def _call(builder: Builder, instruction: Instruction) -> None:
    handlers = collectives.write, reports.write_call, shadow.write
    if any(handler(builder, instruction) for handler in handlers):
        return
    if instruction.callee in (ALL_PASS, NONE_PASSES):
        [condition] = instruction.operands
        holds = instruction.callee == ALL_PASS
        builder.set(instruction, scalar=all_lanes_pass(builder, condition, holds))
        return
    if instruction.callee == PREFETCH:
        _prefetch(builder, instruction)
        return
    callee = builder.callees.get(instruction.callee)
    if callee is not None:
        _call_vector_form(builder, instruction, callee)
        return
    if is_by_lane(instruction.callee):
        call_by_lane(builder, instruction)
        return
    by_lane = is_libcall(instruction.callee)
    of_processor = target_builtins.is_instruction(instruction.callee)
    if not (by_lane or of_processor or count_of_values(instruction.callee)):
        raise Unsupported(f"a call of {instruction.callee}")
    flags, type = fast_math(instruction), instruction.type
    if builder.own_shape(instruction.value).is_uniform:
        given = [(str(v.type), builder.scalar(v)) for v in instruction.operands]
        scalar = builder.call(f"{flags}{type}", instruction.callee, given)
        builder.set(instruction, scalar=scalar)
        return
    if by_lane:
        _call_by_lane(builder, instruction)
        return
    if of_processor:
        _call_of_processor(builder, instruction)
        return
    builder.set(instruction, vector=_each_lane(builder, instruction))


def _prefetch(builder: Builder, instruction: Instruction) -> None:
    """A kernel's own prefetch, if all lanes ask for one cache line; others are no use."""
    address, *options = instruction.operands
    if builder.is_uniform(address):
        given = [("ptr", builder.scalar(address)), *(("i32", option.name) for option in options)]
        builder.call("void", PREFETCH, given)


def _call_vector_form(builder: Builder, instruction: Instruction, callee: Callee) -> None:
    given = []
    for value, kind, unit in zip(instruction.operands, callee.kinds, callee.units, strict=True):
        if kind == VARYING:
            given.append(f"{builder.wide(value.type)} {builder.vector(value)}")
            continue
        if unit and builder.shape(value).stride != unit:
            raise Unsupported("an address of private memory that differs between lanes")
        given.append(f"{value.type} {builder.scalar(value)}")
    given.append(f"{builder.wide(builder.mask_type)} {builder.mask or builder.all_lanes}")
    builder.emit(f"call void @{callee.vector_name}({', '.join(given)})")


def _call_by_lane(builder: Builder, instruction: Instruction) -> None:
    type, flags = instruction.type, fast_math(instruction)
    wide, result = builder.wide(type), "poison"
    vectors = [(v.type, builder.wide(v.type), builder.vector(v)) for v in instruction.operands]
    for lane in range(builder.width):
        given = [
            (str(of), builder.new(f"extractelement {wide_of} {vector}, i32 {lane}"))
            for of, wide_of, vector in vectors
        ]
        called = builder.call(f"{flags}{type}", instruction.callee, given)
        result = builder.new(f"insertelement {wide} {result}, {type} {called}, i32 {lane}")
    builder.set(instruction, vector=result)


def _call_of_processor(builder: Builder, instruction: Instruction) -> None:
    """As many registers as there are, or a part of one."""
    lanes = min(max(builder.width, 4), target_builtins.MAX_LANES)
    vectors = [builder.vector(operand) for operand in instruction.operands]

    wide = f"<{lanes} x float>"

    def computed(chunks: list[str]) -> str:
        for index, chunk in enumerate(chunks):
            type_ = target_builtins.operand_type(instruction.callee, index, lanes)
            if type_ != wide:
                chunks[index] = builder.new(f"bitcast {wide} {chunk} to {type_}")
        callee, given = target_builtins.vector_call(instruction.callee, lanes, chunks)
        return builder.call(wide, callee, given)

    builder.set(instruction, vector=by_registers(builder, vectors, FLOAT, lanes, computed))
