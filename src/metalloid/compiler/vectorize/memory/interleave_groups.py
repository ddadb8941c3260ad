"""Interleave groups: accesses to adjacent members of each lane's element, as one wide access.

A kernel that reads the x, y, z and w of a float4 has four loads, each with a distance of 16 bytes
from lane to lane. Together they read contiguous memory: one wide load and four shuffles
replace four gathers. Stores are done likewise: shuffles, then one wide store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from metalloid.compiler.analysis.addresses import Root, root_of, underlying_object
from metalloid.compiler.analysis.divergence import Divergence
from metalloid.compiler.analysis.target_builtins import is_lanewise
from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1, Float, Integer, Type
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.memory import non_temporal
from metalloid.compiler.vectorize.memory.aos_arithmetic import interleaved_arithmetic
from metalloid.compiler.vectorize.memory.deinterleave import (
    deinterleave_members,
    interleave_members,
    lanes_at_once,
)
from metalloid.compiler.vectorize.memory.prefetch import is_in_buffer
from metalloid.compiler.vectorize.permute import cut, joined, shuffled

#: Members an element may have; and with fewer than half of them used, when most of what is read
#: would be thrown away.
_MAX_MEMBERS, _MAX_MEMBERS_IF_SPARSE = 16, 8
#: And if only one of them is used.
_MAX_MEMBERS_FOR_ONE = 4


@dataclass(eq=False)
class Group:
    """Accesses to the members of one array of elements.

    Attributes
    ----------
    size : int
        Bytes of a member.
    count : int
        Members of an element, used or not.
    start : int
        Offset of the first access found, from which members are counted.
    members : dict of list
        Accesses by the index of their member.
    order : list of Instruction
        Accesses as they stand in the block.
    """

    size: int
    count: int
    start: int
    members: dict[int, list[Instruction]] = field(default_factory=dict)
    order: list[Instruction] = field(default_factory=list)

    @property
    def lowest(self) -> Instruction:
        """An access to the member with the lowest address."""
        return self.members[min(self.members)][0]


def find_groups(divergence: Divergence) -> dict[Instruction, tuple[Group, int]]:
    """The group and the member's number of each access."""
    groups: dict[Instruction, tuple[Group, int]] = {}
    computed_by = {i.result: i for i in divergence.function.instructions() if i.result}
    for block in divergence.function.blocks.values():
        for group in _groups_of(block.body, block.name, divergence, computed_by):
            lowest = min(group.members)
            for index, accesses in group.members.items():
                for access in accesses:
                    groups[access] = group, index - lowest
    return groups


def _groups_of(
    body: Iterable[Instruction],
    block: str,
    divergence: Divergence,
    computed_by: dict[str, Instruction],
) -> list[Group]:
    finished: list[Group] = []
    open_: dict[tuple[str, Root, int, int], Group] = {}

    def close(op: str = "") -> None:
        for key in [key for key in open_ if not op or key[0] == op]:
            finished.append(open_.pop(key))

    for instruction in body:
        op = instruction.op
        if op not in ("load", "store"):
            if op in ("atomicrmw", "cmpxchg", "fence", "copy", "fill") or (
                op == "call" and not is_lanewise(instruction.callee)
            ):
                close()
            continue
        if _is_interleaved_array(instruction, computed_by):
            continue  # which no other address leads to
        key = _key(instruction, block, divergence, computed_by)
        if op == "load":
            close("store")  # the stores before it must be seen
        else:
            close("load")
            for other in [k for k in open_ if k[0] == "store" and (key is None or k != key[0])]:
                finished.append(open_.pop(other))
        if key is None:
            continue
        name, offset = key
        size, stride = name[2], name[3]
        group = open_.get(name)
        index = None if group is None else (offset - group.start) // size
        if group is None or index is None or not _fits(group, index):
            if group is not None:
                finished.append(open_.pop(name))
            group = open_[name] = Group(size, stride // size, offset)
            index = 0
        group.members.setdefault(index, []).append(instruction)
        group.order.append(instruction)
    close()
    return [group for group in finished if _is_worthwhile(group)]


def _is_interleaved_array(access: Instruction, computed_by: dict[str, Instruction]) -> bool:
    """Whether it is to a private array that `private` has interleaved."""
    inst = computed_by.get(underlying_object(access.operands[-1], computed_by) or "")
    return inst is not None and inst.op == "alloca" and bool(inst.lane_step)


def _fits(group: Group, index: int) -> bool:
    """Whether a member at `index` belongs to the same elements, and a store's is a new one."""
    offsets = [*group.members, index]
    once = group.order[0].op == "load" or index not in group.members
    return once and max(offsets) - min(offsets) < group.count


def _is_worthwhile(group: Group) -> bool:
    if group.order[0].op == "store":
        return len(group.members) == group.count  # gaps may belong to other threads
    if len(group.members) == 1:
        return group.count <= _MAX_MEMBERS_FOR_ONE
    return group.count <= _MAX_MEMBERS_IF_SPARSE or 2 * len(group.members) >= group.count


def _key(
    access: Instruction, block: str, divergence: Divergence, computed_by: dict[str, Instruction]
) -> tuple[tuple[str, Root, int, int], int] | None:
    """The base that accesses of a group share, and the offset from it."""
    type = access.type if access.op == "load" else access.operands[0].type
    address = access.operands[-1]
    stride, size = divergence.shape(address, block).stride, type.size
    if "volatile" in access.flags or access.ordering or type == I1 or not stride or stride % size:
        return None
    if not 2 <= stride // size <= _MAX_MEMBERS:
        return None
    root, offset = root_of(address, computed_by)
    if offset % size and size > 1:
        return None
    return (access.op, root, size, stride), offset


# ---- writing -------------------------------------------------------------------------------------


def load(builder: Builder, instruction: Instruction) -> bool:
    """Write a load as a part of its group; False if it has none."""
    known = builder.groups.get(instruction)
    if known is None:
        return False
    group, index = known
    assert isinstance(group, Group)
    member = Integer(8 * group.size)
    everything = builder.remembered(group)
    if everything is None:
        everything = _load_all(builder, group, member)
        builder.remember(group, everything)
    vector = _members_of(builder, group, everything, member)[index]
    builder.set(instruction, vector=_as(builder, vector, member, instruction.type))
    return True


def _members_of(builder: Builder, group: Group, everything: str, member: Integer) -> list[str]:
    """The vector of each member; LLVM removes unused ones."""
    vectors: list[str] | None = builder.remembered((group, "members"))
    if vectors is None:
        count, total = group.count, group.count * builder.width
        lanes = lanes_at_once(builder, count, member)
        if lanes:
            registers = cut(builder, everything, total, lanes, member)
            blocks = [
                deinterleave_members(builder, registers[first : first + count], member)
                for first in range(0, len(registers), count)
            ]
            vectors = [joined(builder, row, lanes, member) for row in zip(*blocks, strict=True)]
        else:
            wide = f"<{total} x {member}>"
            vectors = [
                shuffled(builder, wide, everything, "poison", range(index, total, count))
                for index in range(count)
            ]
        builder.remember((group, "members"), vectors)
    return vectors


def _load_all(builder: Builder, group: Group, member: Integer) -> str:
    # By the address of the first access: that of another may be computed further on.
    first, lowest = group.order[0], min(group.members)
    [index] = [index for index, accesses in group.members.items() if first in accesses]
    address = builder.scalar(first.operands[0])
    if index != lowest:
        back = (lowest - index) * group.size
        address = builder.new(f"getelementptr i8, ptr {address}, i64 {back}")
    align = group.lowest.align or group.size
    span = max(group.members) - min(group.members) + 1
    bits, count = builder.mask_as_bits(), group.count * builder.width
    wide = f"<{count} x {member}>"
    if bits is None and span == group.count:
        if lanes := lanes_at_once(builder, group.count, member):
            return _load_in_order(builder, group, address, lanes, align)
        return builder.new(f"load {wide}, ptr {address}, align {align}")
    return builder.call(
        wide,
        f"@llvm.masked.load.v{count}{member}.p0",
        [
            (f"ptr align {align}", address),
            (f"<{count} x i1>", member_mask(builder, group.count, span, bits)),
            (wide, "poison"),
        ],
    )


def _load_in_order(builder: Builder, group: Group, address: str, lanes: int, align: int) -> str:
    """One register after the other, with so many members each.

    A processor that is to guess what comes next wants to see the order of memory: float4s that are
    asked for in another take up to 1.6 times as long. LLVM keeps it where loads are volatile.
    """
    member = Integer(8 * group.size)
    volatile = "volatile " if is_in_buffer(builder, group.lowest.operands[0]) else ""
    loaded = []
    for index in range(0, group.count * builder.width * group.size, lanes * group.size):
        pointer = builder.new(f"getelementptr i8, ptr {address}, i64 {index}")
        wide = f"<{lanes} x {member}>"
        loaded.append(builder.new(f"load {volatile}{wide}, ptr {pointer}, align {min(align, 64)}"))
    return joined(builder, loaded, lanes, member)


def _store_in_order(
    builder: Builder, everything: str, group: Group, address: str, lanes: int, align: int
) -> None:
    """The same for stores, of which LLVM keeps the order anyway."""
    member = Integer(8 * group.size)
    registers = cut(builder, everything, group.count * builder.width, lanes, member)
    for number, register in enumerate(registers):
        pointer = builder.new(f"getelementptr i8, ptr {address}, i64 {number * lanes * group.size}")
        builder.emit(
            f"store <{lanes} x {member}> {register}, ptr {pointer}, align {min(align, 64)}"
        )


def member_mask(builder: Builder, count: int, span: int, bits: str | None) -> str:
    """A bit for each member of each lane; none beyond the last member that is used."""
    lanes = builder.width
    if bits is None:
        flags = ", ".join(
            f"i1 {str(lane < lanes - 1 or index < span).lower()}"
            for lane in range(lanes)
            for index in range(count)
        )
        return f"<{flags}>"
    source = [lane if index < span else lanes for lane in range(lanes) for index in range(count)]
    mask = ", ".join(f"i32 {lane}" for lane in source)
    wide = builder.wide(I1)
    return builder.new(
        f"shufflevector {wide} {bits}, {wide} zeroinitializer, <{lanes * count} x i32> <{mask}>"
    )


def store(builder: Builder, instruction: Instruction) -> bool:
    """Write a store as a part of its group, with the last of which all is written."""
    known = builder.groups.get(instruction)
    if known is None:
        return False
    group, _ = known
    assert isinstance(group, Group)
    if instruction is not group.order[-1]:
        return True
    member = Integer(8 * group.size)
    offsets = sorted(group.members)
    values = [group.members[index][0].operands[0] for index in offsets]
    count = group.count * builder.width
    wide = f"<{count} x {member}>"
    everything = interleaved_arithmetic(
        builder, values, lambda loads: loaded_in_order(builder, loads)
    )
    if everything is None:
        vectors = [_as(builder, builder.vector(value), value.type, member) for value in values]
        everything = interleave(builder, vectors, member)
    elif values[0].type != member:
        everything = builder.new(f"bitcast <{count} x {values[0].type}> {everything} to {wide}")
    lowest = group.lowest
    address, align = builder.scalar(lowest.operands[1]), lowest.align or group.size
    bits = builder.mask_as_bits()
    if bits is None:
        if instruction in builder.streamed:
            non_temporal.store(builder, everything, count, member, address, align)
        elif lanes := lanes_at_once(builder, group.count, member):
            _store_in_order(builder, everything, group, address, lanes, align)
        else:
            builder.emit(f"store {wide} {everything}, ptr {address}, align {align}")
        return True
    builder.call(
        "void",
        f"@llvm.masked.store.v{count}{member}.p0",
        [
            (wide, everything),
            (f"ptr align {align}", address),
            (f"<{count} x i1>", member_mask(builder, group.count, group.count, bits)),
        ],
    )
    return True


def loaded_in_order(builder: Builder, loads: Sequence[Instruction]) -> str | None:
    """The wide vector of the loads, one of each member; None if they are not of one group."""
    groups = [builder.groups.get(load) for load in loads]
    group = groups[0][0] if groups[0] else None
    is_complete = isinstance(group, Group) and group.count == len(loads)
    if not is_complete or groups != [(group, index) for index in range(len(loads))]:
        return None
    everything: str | None = builder.remembered(group)
    return everything


def interleave(builder: Builder, vectors: Sequence[str], member: Integer | Float) -> str:
    """One vector with the first lane of each vector, then the second, and so on."""
    width, count = builder.width, len(vectors)
    if lanes := lanes_at_once(builder, count, member):
        rows = zip(*(cut(builder, vector, width, lanes, member) for vector in vectors), strict=True)
        registers = [one for row in rows for one in interleave_members(builder, row, member)]
        return joined(builder, registers, lanes, member)
    everything, length = vectors[0], width
    for vector in vectors[1:]:  # concatenate, then shuffle
        grown = length + width
        narrow, wide = f"<{width} x {member}>", f"<{length} x {member}>"
        widened = vector
        if length > width:
            padding = [*range(width), *["poison"] * (length - width)]
            widened = shuffled(builder, narrow, vector, "poison", padding)
        everything = shuffled(builder, wide, everything, widened, range(grown))
        length = grown
    offsets = [index * width + lane for lane in range(width) for index in range(count)]
    return shuffled(builder, f"<{length} x {member}>", everything, "poison", offsets)


def _as(builder: Builder, vector: str, given: Type, required: Type) -> str:
    """The same bits as another type."""
    if given == required:
        return vector
    if str(required) == "ptr":
        return builder.new(f"inttoptr {builder.wide(given)} {vector} to {builder.wide(required)}")
    if str(given) == "ptr":
        return builder.new(f"ptrtoint {builder.wide(given)} {vector} to {builder.wide(required)}")
    return builder.new(f"bitcast {builder.wide(given)} {vector} to {builder.wide(required)}")
