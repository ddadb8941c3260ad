"""Sums of the products of two members, ``a.x * b.x + a.y * b.y`` of short2s.

Processors have an instruction for it, by which two products of 16 bits in each lane become one sum
of 32 bits: x86's pmaddwd. LLVM finds it where factors in the order of memory are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator

from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I16, I32
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.memory.aos_arithmetic import interleaved_arithmetic
from metalloid.compiler.vectorize.memory.interleave_groups import loaded_in_order
from metalloid.compiler.vectorize.permute import shuffled


def sum_of_pairs(builder: Builder, instruction: Instruction) -> str | None:
    """Write an addition of two products of members; None if it is not one.

    One of them may have been added to another value.
    """
    if instruction.op != "add" or instruction.type != I32:
        return None
    for first, second, rest in _terms(builder, instruction):
        products = [
            interleaved_arithmetic(builder, members, lambda loads: loaded_in_order(builder, loads))
            for members in zip(first.operands, second.operands, strict=True)
        ]
        if None in products:
            continue
        count = 2 * builder.width
        wide = f"<{count} x {I32}>"
        everything = builder.new(f"mul {wide} {products[0]}, {products[1]}")
        even, odd = (
            shuffled(builder, wide, everything, "poison", range(member, count, 2))
            for member in (0, 1)
        )
        total = builder.new(f"add {builder.wide(I32)} {even}, {odd}")
        if rest is None:
            return total
        return builder.new(f"add {builder.wide(I32)} {builder.vector(rest)}, {total}")
    return None


def _terms(
    builder: Builder, instruction: Instruction
) -> Iterator[tuple[Instruction, Instruction, Value | None]]:
    """Two products, in either order, and the value that is added to them."""
    for value, other in (instruction.operands, instruction.operands[::-1]):
        product = _product(builder, value)
        if product is None:
            continue
        if (second := _product(builder, other)) is not None:
            yield product, second, None
            continue
        inner = builder.instruction_here(other)
        if inner is None or inner.op != "add" or builder.uses[inner.result] > 1:
            continue
        for operand, rest in (inner.operands, inner.operands[::-1]):
            if (second := _product(builder, operand)) is not None:
                yield product, second, rest
                yield second, product, rest


def _product(builder: Builder, value: Value) -> Instruction | None:
    """The product of integers of 16 bits that a value is."""
    product = builder.instruction_here(value)
    if product is None or product.op != "mul" or builder.is_uniform(value):
        return None
    factors = [builder.instruction_here(operand) for operand in product.operands]
    is_narrow = all(
        factor is not None and factor.op in ("sext", "zext") and factor.operands[0].type == I16
        for factor in factors
    )
    return product if is_narrow else None
