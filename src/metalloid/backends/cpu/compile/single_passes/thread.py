"""Single passes over the code of one thread: ``metalloid passes --device cpu-thread``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metalloid.backends.cpu.compile.convergence_points import ConvergenceContext
from metalloid.backends.cpu.compile.memory_model import MemoryModelContext
from metalloid.backends.cpu.compile.pipeline import PIPELINE
from metalloid.backends.cpu.compile.thread_index import ThreadIndexContext
from metalloid.compiler.counting.count_blocks import CountContext
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.single_passes import parse_input, run_verified

#: Passes over the code of one thread, by stage.
PIPELINES: dict[str, tuple[Pass[Any], ...]] = {
    stage.name: stage.passes for stage in PIPELINE if stage.device == "cpu-thread"
}


def run_single_passes(ir: str, name: str, passes: Sequence[str]) -> str:
    """The function `name` of a module after some passes, as text.

    Raises
    ------
    InvalidInput
        If the text is not a module with that function.
    InvalidIR, KeyError, Unsupported
        As `run_verified` does.
    """
    function = parse_input(ir, name, retain_hints=True)
    for each in passes:
        stage = next(s for s in PIPELINES.values() if each in {known.name for known in s})
        run_verified(function, [each], [stage], _context(stage[0].name, function))
    return function_text(function)


def _context(first: str, function: Function) -> Any:
    """The context of a stage, by its first pass; the thread's index is the parameter ``%index``."""
    if first == "count-blocks":
        return CountContext(function.name)
    if first == "number-convergence-points":
        return ConvergenceContext()
    if first == "narrow-threadgroup-atomics":
        return ThreadIndexContext(
            next((p for p in function.parameters if p.name == "%index"), None)
        )
    return MemoryModelContext()
