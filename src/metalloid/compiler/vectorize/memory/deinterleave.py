"""Members of elements taken out of registers, and put in again, by permutations of two at a time.

Four registers with the x, y, z and w of sixteen lanes become one of each in two steps, of four
instructions each: neighbours give x and y of eight lanes, and z and w; then these give the members.
LLVM, which looks at one result at a time, would take three for each. Nor does it see through two
steps, as it does through one to compute squares before anything is moved, and then to move these as
well.
"""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.compiler.ir.types import I1, Float, Integer
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.permute import shuffled

_REGISTER = 64  # bytes


def lanes_at_once(builder: Builder, count: int, member: Integer | Float) -> int:
    """Lanes of a register, if `count` members should be moved so; else 0.

    The processor has to permute two registers by one instruction, as AVX-512 does.
    """
    lanes = _REGISTER // member.size
    is_possible = builder.mask_type == I1 and builder.width % lanes == 0
    return lanes if is_possible and count in (4, 8) else 0


def deinterleave_members(builder: Builder, registers: Sequence[str], member: Integer) -> list[str]:
    """A register of each member, from as many registers with all of them, lane after lane."""
    count, lanes = len(registers), _REGISTER // member.size
    rows, held = [[register] for register in registers], count
    while held > 1:  # members in each register of a row, which has all
        sources = _sources(lanes, held, held == count)
        rows = [
            [
                shuffled(builder, f"<{lanes} x {member}>", *pair, half)
                for pair in zip(first, second, strict=True)
                for half in (sources[:lanes], sources[lanes:])
            ]
            for first, second in zip(rows[::2], rows[1::2], strict=True)
        ]
        held //= 2
    return rows[0]


def interleave_members(
    builder: Builder, members: Sequence[str], member: Integer | Float
) -> list[str]:
    """The opposite."""
    count, lanes = len(members), _REGISTER // member.size
    rows, held = [list(members)], 1
    while held < count:
        held *= 2
        sources = _sources(lanes, held, held == count)
        back = sorted(range(2 * lanes), key=sources.__getitem__)
        rows = [
            [
                shuffled(builder, f"<{lanes} x {member}>", *pair, half)
                for pair in zip(row[::2], row[1::2], strict=True)
            ]
            for row in rows
            for half in (back[:lanes], back[lanes:])
        ]
    return [register for row in rows for register in row]


def _sources(lanes: int, held: int, in_order: bool) -> list[int]:
    """Where two registers with `held` members each have those of the first half, then the others.

    Lane after lane if `in_order`, else member after member.
    """
    own = lanes // held
    return [
        register * lanes + (lane * held + member if in_order else member * own + lane)
        for member in range(held)
        for register in (0, 1)
        for lane in range(own)
    ]
