"""Loads and stores of a simdgroup, by how the addresses of its lanes lie.

- the same address: one scalar access; of several lanes that store, the last active one wins
- side by side: one vector access
- at a small distance, and the gaps are accessed as well (components of a float4, members of a
  struct): one wide access and shuffles (`interleaved`)
- in a small table of constants: a permutation (`tables`)
- else: gather and scatter
"""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.analysis.shapes import Shape
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I1, I8, Float, Integer, Pointer, Type, Unsupported
from metalloid.compiler.transforms.callees import PARAMETER
from metalloid.compiler.vectorize import table_lookup
from metalloid.compiler.vectorize.atomics import operations
from metalloid.compiler.vectorize.builder import VECTOR_ATTRIBUTES, Builder
from metalloid.compiler.vectorize.memory import (
    copies,
    interleave_groups,
    non_temporal,
    prefetch,
    word_gathers,
)
from metalloid.compiler.vectorize.permute import shuffled
from metalloid.compiler.vectorize.slots import SlotKind

#: The least that processors gather and scatter.
_GATHERED_BYTES = 4


def _load(builder: Builder, instruction: Instruction) -> None:
    _refuse_volatile(instruction)
    if instruction.ordering:
        operations.load(builder, instruction)
        return
    [address] = instruction.operands
    type, align = instruction.type, instruction.align or instruction.type.size
    shape = builder.shape(address)
    if shape.is_uniform:
        # Loads of what does not change may leave loops.
        how = ", !invariant.load !{}" if "invariant" in instruction.flags else ""
        scalar = builder.new(f"load {type}, ptr {builder.scalar(address)}, align {align}{how}")
        builder.set(instruction, scalar=scalar)
    elif interleave_groups.load(builder, instruction):
        return
    elif shape.stride == type.size and type != I1:
        prefetch.look_ahead(builder, address, builder.width * type.size)
        builder.set(instruction, vector=_load_row(builder, type, builder.scalar(address), align))
    elif (window := _window(builder, shape, type)) is not None:
        builder.set(instruction, vector=_load_window(builder, type, address, align, window))
    elif not table_lookup.look_up(builder, instruction):
        vector = word_gathers.gather(builder, instruction)
        if vector is None:
            vector = _gather(builder, type, builder.vector(address), align)
        builder.set(instruction, vector=vector)


def _load_row(builder: Builder, type: Type, address: str, align: int) -> str:
    wide, bits = builder.wide(type), builder.mask_as_bits()
    if bits is None and not builder.in_halves:
        return builder.new(f"load {wide}, ptr {address}, align {align}")
    if bits is None or builder.first_lanes:
        return _load_chunks(builder, type, address, align)
    loaded = builder.call(
        wide,
        f"@llvm.masked.load.v{builder.width}{suffix(type)}.p0",
        [(f"ptr align {align}", address), (builder.wide(I1), bits), (wide, "poison")],
    )
    # LLVM 22 makes one load of a masked load and a select with its mask, where the select is: after
    # stores between them (llvm/llvm-project#215453). A freeze in between keeps them apart.
    return builder.new(f"freeze {wide} {loaded}")


def _window(builder: Builder, shape: Shape, type: Type) -> list[int] | None:
    """The elements that lanes read of a small array all of which is read; None if they do not.

    So do lanes that have positions in a matrix, as ``index / 4`` and ``index % 4``.
    """
    if shape.offsets is None or builder.mask_as_bits() is not None or type == I1:
        return None
    first = min(shape.offsets)
    elements = [(offset - first) // type.size for offset in shape.offsets]
    count = max(elements) + 1
    is_dense = len(set(elements)) == count and count & (count - 1) == 0
    is_dense &= all((offset - first) % type.size == 0 for offset in shape.offsets)
    return elements if is_dense else None


def _load_window(
    builder: Builder, type: Type, address: Value, align: int, elements: list[int]
) -> str:
    """A load of adjacent elements, and a permutation of them."""
    offsets = builder.shape(address).offsets
    assert offsets is not None
    first = builder.scalar(address)
    if lowest := min(offsets):
        first = builder.new(f"getelementptr i8, ptr {first}, i64 {lowest}")
    wide = f"<{max(elements) + 1} x {type}>"
    loaded = builder.new(f"load {wide}, ptr {first}, align {min(align, type.size)}")
    return shuffled(builder, wide, loaded, "poison", elements)


def _load_chunks(builder: Builder, type: Type, address: str, align: int) -> str:
    """The row that the active lanes load, as one, or two halves of what all load.

    In a tree of operations each step stores two halves, of which the next loads each, and LLVM sees
    that it loads what was just stored. A processor would wait, unless it loads a part of one store,
    without masks.
    """
    lanes = builder.first_lanes or builder.width // 2
    chunk = f"<{lanes} x {type}>"
    first = builder.new(f"load {chunk}, ptr {address}, align {align}")
    second, active = "poison", lanes
    if not builder.first_lanes:
        end = builder.new(f"getelementptr i8, ptr {address}, i64 {lanes * type.size}")
        second = builder.new(f"load {chunk}, ptr {end}, align {min(align, type.size)}")
        active = builder.width
    indices = ", ".join(f"i32 {n}" if n < active else "i32 poison" for n in range(builder.width))
    return builder.new(
        f"shufflevector {chunk} {first}, {chunk} {second}, <{builder.width} x i32> <{indices}>"
    )


def _store_halves(builder: Builder, vector: str, type: Type, address: str, align: int) -> None:
    wide, lanes = builder.wide(type), builder.first_lanes or builder.width
    step = max(lanes // 2, 1)
    for first in range(0, lanes, step):
        indices = ", ".join(f"i32 {first + n}" for n in range(step))
        mask = f"<{step} x i32> <{indices}>"
        half = builder.new(f"shufflevector {wide} {vector}, {wide} poison, {mask}")
        end = builder.new(f"getelementptr i8, ptr {address}, i64 {first * type.size}")
        builder.emit(f"store <{step} x {type}> {half}, ptr {end}, align {min(align, type.size)}")


def _gather(builder: Builder, type: Type, addresses: str, align: int) -> str:
    wide, pointers, bits = builder.wide(type), f"<{builder.width} x ptr>", builder.wide(I1)
    active = (bits, builder.active())
    intrinsic = f"@llvm.masked.gather.v{builder.width}{suffix(type)}.v{builder.width}p0"
    if type.size < _GATHERED_BYTES:
        callee = f"@mtl.gather.{suffix(type)}"
        gathered = builder.call(wide, callee, [(pointers, addresses), active])
        builder.declarations[callee] = _function_around(
            callee, wide, f"{pointers} %from, {bits} %active", intrinsic,
            f"{pointers}, {bits}, {wide}",
            f"{pointers} align 1 %from, {bits} %active, {wide} poison",
        )  # fmt: skip
        return gathered
    given = [(f"{pointers} align {align}", addresses), active, (wide, "poison")]
    return builder.call(wide, intrinsic, given)


def _function_around(name: str, result: str, parameters: str, intrinsic: str, types: str,
                     given: str) -> str:  # fmt: skip
    """A function that only calls an intrinsic.

    No processor gathers or scatters less than 32 bits; what stands for it is long, so it stands
    once.
    """
    has_result = result != "void"
    return "\n".join(
        (
            f"declare {result} {intrinsic}({types})",
            f"define internal {result} {name}({parameters}) noinline {VECTOR_ATTRIBUTES} {{",
            f"  {'%all = ' if has_result else ''}call {result} {intrinsic}({given})",
            f"  ret {result}{' %all' if has_result else ''}",
            "}",
        )
    )


def _store(builder: Builder, instruction: Instruction) -> None:
    _refuse_volatile(instruction)
    if instruction.ordering:
        operations.store(builder, instruction)
        return
    value, address = instruction.operands
    type, align = value.type, instruction.align or value.type.size
    shape = builder.shape(address)
    if shape.is_uniform:
        scalar = last_active(builder, value)
        builder.emit(f"store {type} {scalar}, ptr {builder.scalar(address)}, align {align}")
    elif interleave_groups.store(builder, instruction):
        return
    elif shape.stride == type.size and type != I1:
        _store_row(builder, instruction, builder.scalar(address), align)
    else:
        _scatter(builder, value, address, align)


def _scatter(builder: Builder, value: Value, address: Value, align: int) -> None:
    wide, pointers, bits = builder.wide(value.type), f"<{builder.width} x ptr>", builder.wide(I1)
    given, to = (wide, builder.vector(value)), builder.vector(address)
    active, kind = (bits, builder.active()), suffix(value.type)
    intrinsic = f"@llvm.masked.scatter.v{builder.width}{kind}.v{builder.width}p0"
    if value.type.size < _GATHERED_BYTES:
        callee = f"@mtl.scatter.{kind}"
        builder.call("void", callee, [given, (pointers, to), active])
        builder.declarations[callee] = _function_around(
            callee, "void", f"{wide} %all, {pointers} %to, {bits} %active", intrinsic,
            f"{wide}, {pointers}, {bits}", f"{wide} %all, {pointers} align 1 %to, {bits} %active",
        )  # fmt: skip
        return
    builder.call("void", intrinsic, [given, (f"{pointers} align {align}", to), active])


def _store_row(builder: Builder, instruction: Instruction, address: str, align: int) -> None:
    value = instruction.operands[0]
    wide, bits, vector = builder.wide(value.type), builder.mask_as_bits(), builder.vector(value)
    if bits is None and instruction in builder.streamed:
        non_temporal.store(builder, vector, builder.width, value.type, address, align)
        return
    if bits is None and not builder.in_halves:
        builder.emit(f"store {wide} {vector}, ptr {address}, align {align}")
        return
    if bits is None or builder.first_lanes:
        _store_halves(builder, vector, value.type, address, align)
        return
    builder.call(
        "void",
        f"@llvm.masked.store.v{builder.width}{suffix(value.type)}.p0",
        [(wide, vector), (f"ptr align {align}", address), (builder.wide(I1), bits)],
    )


def last_active(builder: Builder, value: Value) -> str:
    """The value of the last active lane, as if the threads ran in order."""
    if builder.is_uniform(value):
        return builder.scalar(value)
    bits, lanes = builder.mask_as_bits(), builder.width
    wide, vector = builder.wide(value.type), builder.vector(value)
    if bits is None:
        return builder.new(f"extractelement {wide} {vector}, i64 {lanes - 1}")
    number = builder.bits_as_integer(bits)
    leading = builder.call(
        f"i{lanes}", f"@llvm.ctlz.i{lanes}", [(f"i{lanes}", number), ("i1", "false")]
    )
    last = builder.new(f"sub i{lanes} {lanes - 1}, {leading}")
    return builder.new(f"extractelement {wide} {vector}, i{lanes} {last}")


def _alloca(builder: Builder, instruction: Instruction) -> None:
    """A private array of each lane; `private` says how they lie."""
    if PARAMETER in instruction.flags:
        builder.set(instruction, scalar=builder.scalar(instruction.operands[0]))
        return
    size = instruction.source.size
    arrays = f"[{builder.width * size} x {I8}]"
    slot = builder.slot(SlotKind.PRIVATE, instruction.result, arrays)
    builder.set(instruction, scalar=builder.address_of(slot))


def _refuse_volatile(instruction: Instruction) -> None:
    if "volatile" in instruction.flags:
        raise Unsupported("a volatile access")


def suffix(type: Type) -> str:
    """The suffix of an intrinsic's name for vectors of `type`."""
    if isinstance(type, Float):
        return "bf16" if type.name == "bfloat" else f"f{type.bits}"
    if isinstance(type, Pointer):
        return "p0"
    assert isinstance(type, Integer)
    return f"i{type.bits}"


#: By opcode; what is missing here is arithmetic.
HANDLERS: dict[str, Callable[[Builder, Instruction], None]] = {
    "load": _load,
    "store": _store,
    "alloca": _alloca,
    **operations.HANDLERS,
    **copies.HANDLERS,
}
