"""Instructions that work on a whole register, for a simdgroup of any width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metalloid.compiler.ir.types import Type
from metalloid.compiler.vectorize.builder import Builder


def by_registers(
    builder: Builder,
    vectors: Sequence[str],
    type: Type,
    lanes: int,
    compute: Callable[[list[str]], str],
) -> str:
    """Apply `compute` to chunks of `lanes` lanes of each vector: two registers, or fewer.

    Where the simdgroup is narrower than the register, the lanes above it are anything.
    """
    width = builder.width
    results = [
        compute(
            [_picked(builder, width, (v, "poison"), type, range(i, i + lanes)) for v in vectors]
        )
        for i in range(0, width, lanes)
    ]
    return _picked(builder, lanes, (results[0], results[-1]), type, range(width))


def _picked(builder: Builder, width: int, pair: tuple[str, str], type: Type, indices: range) -> str:
    """A vector of elements of two vectors, which are numbered consecutively."""
    if len(indices) == width:
        return pair[0]
    wide = f"<{width} x {type}>"
    mask = ", ".join(f"i32 {n if n < 2 * width else 'poison'}" for n in indices)
    types = f"{wide} {pair[0]}, {wide} {pair[1]}, <{len(indices)} x i32>"
    return builder.new(f"shufflevector {types} <{mask}>")
