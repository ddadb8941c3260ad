"""Counters in a kernel's code, and what its blocks cost by line of the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metalloid.backends.cpu.compile.compiled_kernel import CounterTable
from metalloid.compiler.bounds.table import without_promises
from metalloid.compiler.counting.count_blocks import Cost, CountContext, count_blocks
from metalloid.compiler.frontend.source_positions import SourcePositions, is_user_file
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.frontend.translate import ENTRY_FILE
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.parser import map_functions
from metalloid.compiler.ir.pass_manager import Pass, run_passes

#: The line of functions of the standard library that are not inlined.
STANDARD_LIBRARY = "metal_stdlib", 0, "(functions of the Metal standard library)"
#: The pipeline of kernels that count.
COUNTERS: tuple[Pass[CountContext], ...] = (
    Pass(
        "count-blocks", count_blocks,
        "a launch for a profile counts how often each block runs",
    ),
)  # fmt: skip


def with_block_counts(ir: str, positions: SourcePositions) -> tuple[str, CounterTable]:
    """A module whose blocks call a function to be counted.

    Parameters
    ----------
    ir : str
        With debug locations.
    positions : SourcePositions
    """
    context = CountContext(ENTRY_SYMBOL)
    attributes: set[str] = set()

    def count(function: Function) -> None:
        attributes.update(function.attributes.split())
        run_passes(function, COUNTERS, context)

    counted = map_functions(ir, count)
    blocks: list[dict[str, list[list[Any]]]] = []
    for costs in context.blocks:
        by_line: dict[tuple[str, int, str], Cost] = {}
        for debug, cost in costs.lines.items():
            position = positions.of(debug, ir)
            if position is None:
                line = ("", 0, "")
            elif position[0] == ENTRY_FILE:  # the loops over threads are not the kernel's code
                continue
            elif not is_user_file(Path(position[0])):
                line = STANDARD_LIBRARY
            else:
                line = (position[0], position[1], position[3])
            by_line[line] = by_line.get(line, Cost()).plus(cost)
        blocks.append(
            {
                "lines": [[*line, *cost] for line, cost in by_line.items()],
                "traffic": [[*each] for each in costs.traffic],
            }
        )
    # The counters are memory, whatever LLVM has found out about the functions.
    counted = without_promises(counted, " ".join(sorted(attributes)))
    return f"{counted}\ndeclare void @mtl_count(i32)\n", CounterTable(tuple(blocks))
