"""Atomic operations of a simdgroup: one lane after the other, or all at once where it is the same.

Lanes take their turn in order, as if they were threads that happen to run so.
"""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.analysis.atomicrmw_ops import BOTH, PLAIN, computed
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I1, Integer, Struct, Type, Unsupported
from metalloid.compiler.transforms.private_atomics import is_private
from metalloid.compiler.vectorize.atomics import packed
from metalloid.compiler.vectorize.atomics.privatized import accumulate
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.memory.lane_addresses import lane_by_lane
from metalloid.compiler.vectorize.slots import SlotKind


def _update(builder: Builder, instruction: Instruction) -> None:
    address, value = instruction.operands
    operation, ordering = instruction.operation, instruction.ordering
    private = is_private(instruction) and (operation in PLAIN or operation == "xchg")

    def one(given: list[str]) -> str:
        if private:
            return _update_plainly(builder, operation, given, value.type)
        return builder.new(
            f"atomicrmw {operation} ptr {given[0]}, {value.type} {given[1]} {ordering}"
        )

    combined = operation in BOTH and isinstance(value.type, Integer)
    unused = not builder.uses[instruction.result]
    accumulators = builder.accumulators
    number = instruction.accumulator if accumulators else None
    if combined and builder.is_uniform(address) and unused:
        given = builder.scalar(address), _fold(builder, operation, value)
        if accumulators and number is not None:
            accumulate(builder, accumulators, number, operation, value.type, given, is_row=False)
        else:
            one([*given])
    elif unused and not private and _goes_by_rows(builder, operation, ordering, address, value):
        given = builder.scalar(address), builder.vector(value)
        if accumulators and accumulators.has_rows and number is not None:
            accumulate(builder, accumulators, number, operation, value.type, given, is_row=True)
        else:
            packed.update(builder, PLAIN[operation], value.type, given)
    elif unused and builder.mask is None:
        addresses, same = lane_by_lane(builder, address), builder.is_uniform(value)
        for lane in range(builder.width):
            own = builder.scalar(value) if same else builder.lane(value, lane)
            one([addresses(lane), own])
    else:
        builder.set(instruction, vector=in_turn(builder, instruction.operands, value.type, one))


def _goes_by_rows(
    builder: Builder, operation: str, ordering: str, address: Value, value: Value
) -> bool:
    is_known = operation in PLAIN and PLAIN[operation][0] != "@"
    relaxed = ordering.startswith("monotonic")
    return is_known and relaxed and packed.are_contiguous(builder, address, value.type)


def _update_plainly(builder: Builder, operation: str, given: list[str], type: Type) -> str:
    address, value = given
    old = builder.new(f"load {type}, ptr {address}")
    new = value
    if operation != "xchg":
        new = builder.new(computed(builder.declarations, PLAIN[operation], str(type), old, value))
    builder.emit(f"store {type} {new}, ptr {address}")
    return old


def _fold(builder: Builder, operation: str, value: Value) -> str:
    """The values of all active lanes as one operand."""
    type = value.type
    assert isinstance(type, Integer)
    minimum, maximum = -(1 << type.bits - 1), (1 << type.bits - 1) - 1
    neutral = {"and": -1, "min": maximum, "max": minimum, "umin": -1}.get(operation, 0)
    vector, wide = builder.vector(value), builder.wide(type)
    bits = builder.mask_as_bits()
    if bits is not None:
        vector = builder.blend(bits, vector, f"splat ({type} {neutral})", type)
    callee = f"@llvm.vector.reduce.{BOTH[operation].removeprefix('@llvm.')}.v{builder.width}{type}"
    return builder.call(str(type), callee, [(wide, vector)])


def in_turn(
    builder: Builder,
    operands: list[Value],
    type: Type,
    one: Callable[[list[str]], str],
) -> str:
    """Do `one` for each active lane; the vector of what it gives."""
    width, wide = builder.width, builder.wide(type)
    vectors = [(builder.wide(v.type), builder.vector(v)) for v in operands]
    bits = builder.mask_as_bits()
    number = "-1" if bits is None else builder.bits_as_integer(bits)
    name = builder.fresh_label("lanes")
    left = builder.address_of(builder.slot(SlotKind.PENDING, f"%{name}", f"i{width}"))
    results = builder.address_of(builder.slot(SlotKind.RESULTS, f"%{name}", wide))
    builder.emit(f"store i{width} {number}, ptr {left}")
    builder.emit(f"store {wide} zeroinitializer, ptr {results}, align 64")
    builder.br(f"{name}.next")
    builder.label(f"{name}.next")
    remaining = builder.new(f"load i{width}, ptr {left}")
    done = builder.new(f"icmp eq i{width} {remaining}, 0")
    builder.cond_br(done, f"{name}.done", f"{name}.body")
    builder.label(f"{name}.body")
    lane = builder.call(
        f"i{width}", f"@llvm.cttz.i{width}", [(f"i{width}", remaining), ("i1", "true")]
    )
    given = [builder.new(f"extractelement {t} {v}, i{width} {lane}") for t, v in vectors]
    result = one(given)
    old = builder.new(f"load {wide}, ptr {results}, align 64")
    new = builder.new(f"insertelement {wide} {old}, {type} {result}, i{width} {lane}")
    builder.emit(f"store {wide} {new}, ptr {results}, align 64")
    lower = builder.new(f"sub i{width} {remaining}, 1")
    rest = builder.new(f"and i{width} {remaining}, {lower}")
    builder.emit(f"store i{width} {rest}, ptr {left}")
    builder.br(f"{name}.next")
    builder.label(f"{name}.done")
    return builder.new(f"load {wide}, ptr {results}, align 64")


def load(builder: Builder, instruction: Instruction) -> None:
    """An atomic load."""
    [address] = instruction.operands
    align = instruction.align or instruction.type.size

    def one(given: list[str]) -> str:
        return builder.new(
            f"load atomic {instruction.type}, ptr {given[0]} {instruction.ordering}, align {align}"
        )

    builder.set(instruction, vector=in_turn(builder, [address], instruction.type, one))


def store(builder: Builder, instruction: Instruction) -> None:
    """An atomic store."""
    value, address = instruction.operands
    align = instruction.align or value.type.size

    def one(given: list[str]) -> str:
        builder.emit(
            f"store atomic {value.type} {given[0]}, ptr {given[1]} {instruction.ordering}, "
            f"align {align}"
        )
        return "true"

    in_turn(builder, [value, address], I1, one)


def _exchange(builder: Builder, instruction: Instruction) -> None:
    """Compare and exchange: what was there, and whether it was exchanged, as two vectors."""
    expected = instruction.operands[1]
    assert isinstance(instruction.type, Struct)
    type = expected.type
    # Never weak: then what was found says whether it was exchanged.

    def one(given: list[str]) -> str:
        both = builder.new(
            f"cmpxchg ptr {given[0]}, {type} {given[1]}, {type} {given[2]} {instruction.ordering}"
        )
        return builder.new(f"extractvalue {{ {type}, i1 }} {both}, 0")

    previous = in_turn(builder, instruction.operands, type, one)
    same = builder.new(f"icmp eq {builder.wide(type)} {previous}, {builder.vector(expected)}")
    builder.pairs[instruction.result] = (previous, same)


def _member(builder: Builder, instruction: Instruction) -> None:
    """Extract a member of the result of `_exchange`."""
    [pair] = instruction.operands
    if pair.name not in builder.pairs:
        raise Unsupported("the result of a compare-exchange in another block")
    builder.set(instruction, vector=builder.pairs[pair.name][instruction.indices[0]])


def _fence(builder: Builder, instruction: Instruction) -> None:
    builder.emit(f"fence {instruction.ordering}")


#: By opcode.
HANDLERS: dict[str, Callable[[Builder, Instruction], None]] = {
    "atomicrmw": _update,
    "cmpxchg": _exchange,
    "extractvalue": _member,
    "fence": _fence,
}
