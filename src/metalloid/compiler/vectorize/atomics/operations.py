"""Atomic operations of a simdgroup: one lane after the other, or all at once where it is the same.

Lanes take their turn in order, as if they were threads that happen to run so.
"""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.analysis.atomicrmw_ops import BOTH, PLAIN, computed
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I1, Integer, Struct, Type, Unsupported
from metalloid.compiler.transforms.defer_atomics import deferred_number
from metalloid.compiler.transforms.private_atomics import is_private
from metalloid.compiler.vectorize.atomics import packed
from metalloid.compiler.vectorize.atomics.privatized import accumulate
from metalloid.compiler.vectorize.builder import Writer, quoted
from metalloid.compiler.vectorize.memory.lane_addresses import lane_by_lane


def _update(writer: Writer, instruction: Instruction) -> None:
    address, value = instruction.operands
    operation, ordering = instruction.detail.split(" ", 1)
    private = is_private(instruction) and (operation in PLAIN or operation == "xchg")

    def one(given: list[str]) -> str:
        if private:
            return _update_plainly(writer, operation, given, value.type)
        return writer.new(
            f"atomicrmw {operation} ptr {given[0]}, {value.type} {given[1]} {ordering}"
        )

    combined = operation in BOTH and isinstance(value.type, Integer)
    unused = not writer.uses[instruction.result]
    accumulators = writer.accumulators
    number = deferred_number(instruction) if accumulators else None
    if combined and writer.is_uniform(address) and unused:
        given = writer.scalar(address), _fold(writer, operation, value)
        if accumulators and number is not None:
            accumulate(writer, accumulators, number, operation, value.type, given, is_row=False)
        else:
            one([*given])
    elif unused and not private and _goes_by_rows(writer, operation, ordering, address, value):
        given = writer.scalar(address), writer.vector(value)
        if accumulators and accumulators.has_rows and number is not None:
            accumulate(writer, accumulators, number, operation, value.type, given, is_row=True)
        else:
            packed.update(writer, PLAIN[operation], value.type, given)
    elif unused and writer.mask is None:
        addresses, same = lane_by_lane(writer, address), writer.is_uniform(value)
        for lane in range(writer.width):
            own = writer.scalar(value) if same else writer.lane(value, lane)
            one([addresses(lane), own])
    else:
        writer.set(instruction, vector=in_turn(writer, instruction.operands, value.type, one))


def _goes_by_rows(
    writer: Writer, operation: str, ordering: str, address: Value, value: Value
) -> bool:
    is_known = operation in PLAIN and PLAIN[operation][0] != "@"
    relaxed = ordering.startswith("monotonic")
    return is_known and relaxed and packed.are_side_by_side(writer, address, value.type)


def _update_plainly(writer: Writer, operation: str, given: list[str], type: Type) -> str:
    address, value = given
    old = writer.new(f"load {type}, ptr {address}")
    new = value
    if operation != "xchg":
        new = writer.new(computed(writer.declarations, PLAIN[operation], str(type), old, value))
    writer.emit(f"store {type} {new}, ptr {address}")
    return old


def _fold(writer: Writer, operation: str, value: Value) -> str:
    """The values of all active lanes as one operand."""
    type = value.type
    assert isinstance(type, Integer)
    least, most = -(1 << type.bits - 1), (1 << type.bits - 1) - 1
    neutral = {"and": -1, "min": most, "max": least, "umin": -1}.get(operation, 0)
    vector, wide = writer.vector(value), writer.wide(type)
    bits = writer.mask_as_bits()
    if bits is not None:
        vector = writer.blend(bits, vector, f"splat ({type} {neutral})", type)
    callee = f"@llvm.vector.reduce.{BOTH[operation].removeprefix('@llvm.')}.v{writer.width}{type}"
    return writer.call(str(type), callee, [(wide, vector)])


def in_turn(
    writer: Writer,
    operands: list[Value],
    type: Type,
    one: Callable[[list[str]], str],
) -> str:
    """Do `one` for each active lane; the vector of what it gives."""
    width, wide = writer.width, writer.wide(type)
    vectors = [(writer.wide(v.type), writer.vector(v)) for v in operands]
    bits = writer.mask_as_bits()
    number = "-1" if bits is None else writer.bits_as_integer(bits)
    name = writer.fresh_label("turn")
    left, results = quoted("left", f"%{name}"), quoted("results", f"%{name}")
    writer.slot(left, f"i{width}")
    writer.slot(results, wide)
    writer.emit(f"store i{width} {number}, ptr {left}")
    writer.emit(f"store {wide} zeroinitializer, ptr {results}, align 64")
    writer.emit(f"br label %{name}.next")
    writer.label(f"{name}.next")
    remaining = writer.new(f"load i{width}, ptr {left}")
    done = writer.new(f"icmp eq i{width} {remaining}, 0")
    writer.emit(f"br i1 {done}, label %{name}.done, label %{name}.do")
    writer.label(f"{name}.do")
    lane = writer.call(
        f"i{width}", f"@llvm.cttz.i{width}", [(f"i{width}", remaining), ("i1", "true")]
    )
    given = [writer.new(f"extractelement {t} {v}, i{width} {lane}") for t, v in vectors]
    result = one(given)
    old = writer.new(f"load {wide}, ptr {results}, align 64")
    new = writer.new(f"insertelement {wide} {old}, {type} {result}, i{width} {lane}")
    writer.emit(f"store {wide} {new}, ptr {results}, align 64")
    lower = writer.new(f"sub i{width} {remaining}, 1")
    rest = writer.new(f"and i{width} {remaining}, {lower}")
    writer.emit(f"store i{width} {rest}, ptr {left}")
    writer.emit(f"br label %{name}.next")
    writer.label(f"{name}.done")
    return writer.new(f"load {wide}, ptr {results}, align 64")


def load(writer: Writer, instruction: Instruction) -> None:
    """An atomic load."""
    [address] = instruction.operands
    align = instruction.align or instruction.type.size

    def one(given: list[str]) -> str:
        return writer.new(
            f"load atomic {instruction.type}, ptr {given[0]} {instruction.detail}, align {align}"
        )

    writer.set(instruction, vector=in_turn(writer, [address], instruction.type, one))


def store(writer: Writer, instruction: Instruction) -> None:
    """An atomic store."""
    value, address = instruction.operands
    align = instruction.align or value.type.size

    def one(given: list[str]) -> str:
        writer.emit(
            f"store atomic {value.type} {given[0]}, ptr {given[1]} {instruction.detail}, "
            f"align {align}"
        )
        return "true"

    in_turn(writer, [value, address], I1, one)


def _exchange(writer: Writer, instruction: Instruction) -> None:
    """Compare and exchange: what was there, and whether it was exchanged, as two vectors."""
    expected = instruction.operands[1]
    assert isinstance(instruction.type, Struct)
    type = expected.type
    # Never weak: then what was found says whether it was exchanged.

    def one(given: list[str]) -> str:
        both = writer.new(
            f"cmpxchg ptr {given[0]}, {type} {given[1]}, {type} {given[2]} {instruction.detail}"
        )
        return writer.new(f"extractvalue {{ {type}, i1 }} {both}, 0")

    found = in_turn(writer, instruction.operands, type, one)
    same = writer.new(f"icmp eq {writer.wide(type)} {found}, {writer.vector(expected)}")
    writer.pairs[instruction.result] = (found, same)


def _part(writer: Writer, instruction: Instruction) -> None:
    """A part of what `_exchange` gave."""
    [pair] = instruction.operands
    if pair.name not in writer.pairs:
        raise Unsupported("the result of a compare-exchange in another block")
    writer.set(instruction, vector=writer.pairs[pair.name][int(instruction.detail)])


def _fence(writer: Writer, instruction: Instruction) -> None:
    writer.emit(f"fence {instruction.detail}")


#: By opcode.
HANDLERS: dict[str, Callable[[Writer, Instruction], None]] = {
    "atomicrmw": _update,
    "cmpxchg": _exchange,
    "extractvalue": _part,
    "fence": _fence,
}
