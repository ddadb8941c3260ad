"""Where slots lie: on the stack, or in a simdgroup's state if they are needed behind a barrier.

In the state a variable of a loop may have one place with what it becomes in the next round. It need
not be copied then: a sum that waits at barriers stays where it is. Two slots may share a place if
neither is written while the other is still to be read (Chaitin et al., Register allocation via
coloring, 1981), which is asked of the finished lines.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence, Set

from metalloid.compiler.ir.function import Function, Value
from metalloid.compiler.vectorize.builder import SCALAR_BYTES, Builder, quoted
from metalloid.compiler.vectorize.region_cfg import blocks_of, targets_of
from metalloid.compiler.vectorize.workgroup.live_across_barriers import COMMON, HEADER_BYTES, STATE

_BITS = {"i1": 1, "i8": 8, "i16": 16, "half": 16, "bfloat": 16, "i32": 32, "float": 32}
_SEVERAL = re.compile(r"[<\[](\d+) x (.*)[>\]]$")
_SLOT = re.compile(r'%"[^"]*"')
_ACCESS = re.compile(r'  (?:%\S+ = (load) |(store) )[^"]*, ptr (%"[^"]*"), align \d+$')
_REGION = re.compile(r"  (?:ret i64|%\S+ = or i64 %\S+,) (\d+)$")

Accesses = list[tuple[str, bool]]  # slots in order, and whether they are written


def places(
    function: Function,
    builder: Builder,
    kept: Set[str],
    common: Sequence[Value],
    starts: Sequence[str],
) -> tuple[list[str], int]:
    """Lines that make the slots, and the size of the state.

    Parameters
    ----------
    function : Function
        Of one thread.
    builder : Writer
        What has been written of the simdgroup, and its slots.
    kept : set of str
        Slots that are needed behind a barrier.
    common : sequence of Value
        What all simdgroups of a threadgroup have in common, in its place.
    starts : sequence of str
        Label of each region's first block.
    """
    lines, offset = [], HEADER_BYTES
    place_in_common = {quoted("s", value.name): n for n, value in enumerate(common)}
    own = {
        name: type for name, type in builder.slots.items() if name in kept - set(place_in_common)
    }
    shared = shared_places(function, own, builder.lines, starts)
    for name, type in builder.slots.items():
        if name not in kept:
            lines.append(f"  {name} = alloca {type}, align 64")
        elif name in place_in_common:
            place = place_in_common[name] * SCALAR_BYTES
            lines.append(f"  {name} = getelementptr i8, ptr {COMMON}, i64 {place}")
        elif name not in shared:
            lines.append(f"  {name} = getelementptr i8, ptr {STATE}, i64 {offset}")
            offset += -(-slot_bytes(type) // 64) * 64
    lines += [f"  {name} = getelementptr i8, ptr {other}, i64 0" for name, other in shared.items()]
    return lines, offset


def shared_places(
    function: Function, slots: Mapping[str, str], lines: Sequence[str], starts: Sequence[str]
) -> dict[str, str]:
    """Which of `slots` lie in the place of another.

    Parameters
    ----------
    function : Function
        Of one thread.
    slots : mapping of str
        Types of those in the state, by name.
    lines : sequence of str
        All blocks of the simdgroup.
    starts : sequence of str
        Label of each region's first block.
    """
    pairs = [pair for pair in _pairs(function, slots) if slots[pair[0]] == slots[pair[1]]]
    if not pairs:
        return {}
    groups = {name: [name] for name in itertools.chain(*pairs)}
    conflicts = _conflicts(lines, starts, groups.keys())
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
    return {name: group[0] for name, group in groups.items() if group[0] != name}


def _pairs(function: Function, slots: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Slots of the same value at two places: of a phi, and of what it is made of."""
    for block in function.blocks.values():
        for phi in block.phis:
            for kind in ("s", "v"):
                own = quoted(kind, phi.result)
                incoming = quoted("phi" if kind == "s" else "phiv", phi.result)
                given = [quoted(kind, v.name) for v in phi.operands if not v.is_constant]
                present = [name for name in (own, incoming, *given) if name in slots]
                yield from itertools.combinations(present, 2)


def _conflicts(
    lines: Sequence[str], starts: Sequence[str], candidates: Set[str]
) -> dict[str, set[str]]:
    """Of each slot those that are still to be read where it is written."""
    blocks = blocks_of(lines)
    following = {name: _following(block, starts) for name, block in blocks.items()}
    accesses: dict[str, Accesses] = {}
    unclear: set[str] = set()
    for name, block in blocks.items():
        accesses[name], others = _accesses(block, candidates)
        unclear |= others
    written = {name: {slot for slot, writes in those if writes} for name, those in accesses.items()}
    read_first = {name: _needed_before(those, set()) for name, those in accesses.items()}
    needed = {name: set(slots) for name, slots in read_first.items()}  # at a block's beginning
    changed = True
    while changed:
        changed = False
        for name in reversed(blocks):
            before = len(needed[name])
            for other in following[name]:
                needed[name] |= needed[other] - written[name]
            changed |= before != len(needed[name])
    found = {name: set(candidates if name in unclear else unclear) for name in candidates}
    for name, those in accesses.items():
        behind: set[str] = set().union(*(needed[other] for other in following[name]))
        _needed_before(those, behind, found)
    return found


def _needed_before(
    accesses: Accesses, needed: set[str], conflicts: dict[str, set[str]] | None = None
) -> set[str]:
    """What is needed before some accesses if `needed` is behind them; notes what meets there."""
    for slot, is_write in reversed(accesses):
        if not is_write:
            needed.add(slot)
            continue
        needed.discard(slot)
        if conflicts is not None:
            conflicts[slot] |= needed
    return needed


def _accesses(block: Sequence[str], candidates: Set[str]) -> tuple[Accesses, set[str]]:
    """Reads and writes of whole slots, in order; and slots that are used in another way."""
    found: Accesses = []
    unclear: set[str] = set()
    for line in block:
        named = candidates & set(_SLOT.findall(line)) if '%"' in line else set()
        if named:
            access = _ACCESS.match(line)
            if access is None:
                unclear |= named
            else:
                found.append((access[3], access[2] is not None))
    return found, unclear


def _following(block: Sequence[str], starts: Sequence[str]) -> list[str]:
    """Labels of the blocks that come next, be it behind a barrier."""
    if not block[-1].startswith("  ret "):
        return targets_of(block)
    number = _REGION.match(block[-1]) or _REGION.match(block[-2])
    region = int(number[1]) >> 32 if number else 0
    return [starts[region]] if region else []


def slot_bytes(type: str) -> int:
    """An upper bound of the size of a slot."""
    return -(-_bits(type) // 8)


def _bits(type: str) -> int:
    """Of arrays, such as the rows of a matrix, those of all elements."""
    match = _SEVERAL.match(type)
    return int(match[1]) * _bits(match[2]) if match else _BITS.get(type, 8 * SCALAR_BYTES)
