"""Addresses that lanes use one after the other.

Taking 64-bit addresses out of a vector costs more than most that is done with them. Where they are
a common base and an index that was widened, the narrow indices are taken out instead, eight bytes
at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from metalloid.compiler.analysis.addresses import decompose_address
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I64, Integer
from metalloid.compiler.vectorize.builder import Builder

_WORD = 64


def lane_by_lane(builder: Builder, address: Value) -> Callable[[int], str]:
    """A function that emits the address of a lane."""
    offsets = builder.shape(address).offsets
    if offsets is not None:
        base = builder.scalar(address)
        return lambda lane: builder.new(f"getelementptr i8, ptr {base}, i64 {offsets[lane]}")
    indexed = _Indexed.of(builder, address)
    if indexed is not None:
        return indexed.lanes(builder)
    return lambda lane: builder.lane(address, lane)


def widened_index(builder: Builder, address: Value) -> tuple[Value, int, Instruction, int] | None:
    """An address as a uniform base and an index that the current block widens to 64 bits.

    Returns
    -------
    base : Value
    distance : int
        Bytes that are added to the base.
    widening : Instruction
        A ``zext`` or ``sext`` of the index.
    size : int
        Bytes that the index is multiplied by.
    """
    decomposed = decompose_address(address, builder.instruction_here, builder.is_uniform)
    if decomposed is None or len(decomposed[2]) != 1:
        return None
    base, distance, [(index, size)] = decomposed
    widening = builder.instruction_here(index)
    if widening is None or widening.op not in ("zext", "sext") or widening.type != I64:
        return None
    return base, distance, widening, size


@dataclass(frozen=True)
class _Indexed:
    """A uniform base, and a distance from it that is a widened integer times a size."""

    base: Value
    distance: int
    widening: Instruction
    size: int

    @staticmethod
    def of(builder: Builder, address: Value) -> _Indexed | None:
        """The base and indices of `address`, if it is of this kind, in the current block."""
        terms = widened_index(builder, address)
        if terms is None:
            return None
        base, distance, widening, size = terms
        type = widening.operands[0].type
        assert isinstance(type, Integer)
        if type.bits not in (8, 16, 32) or type.bits * builder.width % _WORD:
            return None
        return _Indexed(base, distance, widening, size)

    def lanes(self, builder: Builder) -> Callable[[int], str]:
        """A function that emits the address of a lane."""
        [narrow] = self.widening.operands
        assert isinstance(narrow.type, Integer)
        bits = narrow.type.bits
        count = bits * builder.width // _WORD
        given = f"{builder.wide(narrow.type)} {builder.vector(narrow)}"
        words = builder.new(f"bitcast {given} to <{count} x {I64}>")
        base = builder.new(
            f"getelementptr i8, ptr {builder.scalar(self.base)}, i64 {self.distance}"
        )

        @functools.cache
        def word(number: int) -> str:
            taken = builder.new(f"extractelement <{count} x {I64}> {words}, i64 {number}")
            # Or else LLVM would take each part out of the vector by itself.
            return builder.new(f'call {I64} asm "", "=r,0"({I64} {taken})')

        def lane_address(lane: int) -> str:
            number, first_bit = divmod(lane * bits, _WORD)
            lowest = builder.new(f"lshr {I64} {word(number)}, {first_bit}")
            index = builder.new(f"trunc {I64} {lowest} to {narrow.type}")
            far = builder.new(f"{self.widening.op} {narrow.type} {index} to {I64}")
            return builder.new(f"getelementptr [{self.size} x i8], ptr {base}, {I64} {far}")

        return lane_address
