"""Put every threadgroup barrier at the end of its block."""

from __future__ import annotations

from metalloid.compiler.analysis.barriers import is_barrier
from metalloid.compiler.ir.function import Function
from metalloid.compiler.transforms.loop_simplify import split_block

_AFTER = "%mtl.after"


def split_at_barriers(function: Function) -> int:
    """Let every barrier stand at the end of its block; how many there are."""
    # Blocks of an earlier run, if the function was printed and read again, stay as they are.
    count = sum(name.startswith(_AFTER) for name in function.blocks)
    for block in list(function.blocks.values()):
        body = block.body
        if any(label.startswith(_AFTER) for label in block.end.labels):
            body = body[:-1]
        positions = [i for i, inst in enumerate(body) if is_barrier(inst)]
        for number, position in reversed(list(enumerate(positions, count + 1))):
            split_block(function, block, position, f"{_AFTER}{number}")
        count += len(positions)
    return count
