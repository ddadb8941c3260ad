"""Layout of slots: on the stack, or in a simdgroup's context frame if they live across a barrier.

In the frame a loop-carried value may share its address with its value of the next iteration. It
need not be copied then: a sum in a loop with barriers is updated in place. Slots may share an
address if neither is stored while the other is live (Chaitin et al., Register allocation via
coloring, 1981).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence, Set

from metalloid.compiler.ir.function import Function, Value
from metalloid.compiler.vectorize.builder import SCALAR_BYTES, Builder
from metalloid.compiler.vectorize.emitted_code import EmittedBlock, SlotAccess
from metalloid.compiler.vectorize.slots import Slot, SlotKind
from metalloid.compiler.vectorize.workgroup.live_across_barriers import (
    FRAME,
    HEADER_BYTES,
    UNIFORM_FRAME,
)

_BITS = {"i1": 1, "i8": 8, "i16": 16, "half": 16, "bfloat": 16, "i32": 32, "float": 32}
_AGGREGATE = re.compile(r"[<\[](\d+) x (.*)[>\]]$")


def lay_out_slots(
    function: Function,
    builder: Builder,
    retained: Set[Slot],
    common: Sequence[Value],
    starts: Sequence[str],
) -> tuple[list[str], int]:
    """Lines that make the slots, and the size of the state.

    Parameters
    ----------
    function : Function
        Of one thread.
    builder : Builder
        What has been emitted for the simdgroup, and its slots.
    retained : set of Slot
        Slots that are needed after a barrier.
    common : sequence of Value
        Workgroup-uniform values, in the order of their slots.
    starts : sequence of str
        Label of each region's first block.
    """
    lines, offset = [], HEADER_BYTES
    number_in_common = {
        Slot.of(SlotKind.SCALAR, value.name): number for number, value in enumerate(common)
    }
    in_state = retained - number_in_common.keys()
    own = {slot: type for slot, type in builder.slots.items() if slot in in_state}
    shared = shared_slots(function, own, builder.blocks, starts)
    for slot, type in builder.slots.items():
        if slot not in retained:
            lines.append(f"  {slot} = alloca {type}, align 64")
        elif slot in number_in_common:
            start = number_in_common[slot] * SCALAR_BYTES
            lines.append(f"  {slot} = getelementptr i8, ptr {UNIFORM_FRAME}, i64 {start}")
        elif slot not in shared:
            lines.append(f"  {slot} = getelementptr i8, ptr {FRAME}, i64 {offset}")
            offset += -(-slot_bytes(type) // 64) * 64
    lines += [f"  {slot} = getelementptr i8, ptr {other}, i64 0" for slot, other in shared.items()]
    return lines, offset


def shared_slots(
    function: Function,
    slots: Mapping[Slot, str],
    blocks: Sequence[EmittedBlock],
    starts: Sequence[str],
) -> dict[Slot, Slot]:
    """Which of `slots` lie where another does.

    Parameters
    ----------
    function : Function
        Of one thread.
    slots : mapping of str
        Types of those in the state.
    blocks : sequence of EmittedBlock
        All blocks of the simdgroup.
    starts : sequence of str
        Label of each region's first block.
    """
    pairs = [pair for pair in _pairs(function, slots) if slots[pair[0]] == slots[pair[1]]]
    if not pairs:
        return {}
    groups = {slot: [slot] for slot in itertools.chain(*pairs)}
    conflicts = _conflicts(blocks, starts, groups.keys())
    for one, other in pairs:
        mine, others = groups[one], groups[other]
        if mine is others or any(
            not conflicts[a].isdisjoint(b) for a, b in ((one, others), (other, mine))
        ):
            continue
        for member in others:
            conflicts[one] |= conflicts[member]
        mine += others
        groups.update(dict.fromkeys(others, mine))
        conflicts.update(dict.fromkeys(mine, conflicts[one]))
    return {slot: group[0] for slot, group in groups.items() if group[0] != slot}


def _pairs(function: Function, slots: Mapping[Slot, str]) -> Iterator[tuple[Slot, Slot]]:
    """Slots of a phi: of its value, of what edges carry to it, and of its operands."""
    kinds = ((SlotKind.SCALAR, SlotKind.PHI), (SlotKind.VECTOR, SlotKind.PHI_VECTOR))
    for block in function.blocks.values():
        for phi in block.phis:
            for kind, carried in kinds:
                candidates = [
                    Slot.of(kind, phi.result),
                    Slot.of(carried, phi.result),
                    *(Slot.of(kind, v.name) for v in phi.operands if not v.is_constant),
                ]
                yield from itertools.combinations(filter(slots.__contains__, candidates), 2)


def _conflicts(
    blocks: Sequence[EmittedBlock], starts: Sequence[str], candidates: Set[Slot]
) -> dict[Slot, set[Slot]]:
    """For each slot, the slots that are live where it is stored."""
    successors = {block.label: _successors(block, starts) for block in blocks}
    accesses = {
        block.label: [access for access in block.accesses if access.slot in candidates]
        for block in blocks
    }
    unclear = candidates & set[Slot]().union(*(block.escaping for block in blocks))
    stored = {label: {a.slot for a in own if a.is_store} for label, own in accesses.items()}
    live_in = {label: _live_before(own, set()) for label, own in accesses.items()}
    changed = True
    while changed:
        changed = False
        for label in reversed(accesses):
            before = len(live_in[label])
            for other in successors[label]:
                live_in[label] |= live_in[other] - stored[label]
            changed |= before != len(live_in[label])
    overlaps = {slot: set(candidates if slot in unclear else unclear) for slot in candidates}
    for label, own in accesses.items():
        live_out = set[Slot]().union(*(live_in[other] for other in successors[label]))
        _live_before(own, live_out, overlaps)
    return overlaps


def _live_before(
    accesses: Sequence[SlotAccess],
    live: set[Slot],
    conflicts: dict[Slot, set[Slot]] | None = None,
) -> set[Slot]:
    """The slots live before some accesses, if `live` is live after them; records conflicts."""
    for slot, is_store in reversed(accesses):
        if not is_store:
            live.add(slot)
            continue
        live.discard(slot)
        if conflicts is not None:
            conflicts[slot] |= live
    return live


def _successors(block: EmittedBlock, starts: Sequence[str]) -> list[str]:
    """Labels of the blocks that run next, be it after a barrier."""
    if block.returned is None:
        return block.successors
    return [starts[block.returned.region]] if block.returned.region else []


def slot_bytes(type: str) -> int:
    """An upper bound of the size of a slot."""
    return -(-_bits(type) // 8)


def _bits(type: str) -> int:
    """Bits of a type; of arrays, such as the rows of a matrix, those of all elements."""
    match = _AGGREGATE.match(type)
    return int(match[1]) * _bits(match[2]) if match else _BITS.get(type, 8 * SCALAR_BYTES)
