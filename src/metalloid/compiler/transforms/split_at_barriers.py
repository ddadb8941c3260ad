"""Put every threadgroup barrier at the end of its block."""

from __future__ import annotations

from metalloid.compiler.analysis.barriers import is_barrier
from metalloid.compiler.ir.function import Function
from metalloid.compiler.transforms.loop_simplify import split_block


def split_at_barriers(function: Function) -> int:
    """Let every barrier stand at the end of its block; how many there are."""
    count = 0
    for block in list(function.blocks.values()):
        positions = [i for i, inst in enumerate(block.body) if is_barrier(inst)]
        for number, position in reversed(list(enumerate(positions, count + 1))):
            split_block(function, block, position, f"%mtl.behind{number}")
        count += len(positions)
    return count
