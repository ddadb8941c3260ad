"""Passes over the code of one thread that is called with the thread's index."""

from __future__ import annotations

from dataclasses import dataclass, field

from metalloid.backends.cpu.compile.memory_model import narrow_threadgroup_atomics
from metalloid.compiler.analysis.simdgroup_functions import WIDTH
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.transforms.assertions import pass_thread_index

SIMDGROUP_INDEX = "@__msl_simdgroup_index"


@dataclass
class ThreadIndexContext:
    """The state of these passes.

    Attributes
    ----------
    index : Value or None
        The index of the thread in its threadgroup; None in functions that do not get it.
    """

    index: Value | None = None
    valid: set[str] = field(default_factory=set)


def compute_simdgroup_index(function: Function, index: Value) -> None:
    """Compute the index of a thread's simdgroup from the index of the thread."""
    bits = Value(index.type, str(WIDTH.bit_length() - 1))
    for block in function.blocks.values():
        block.body = [
            Instruction("lshr", i.result, i.type, [index, bits])
            if i.op == "call" and i.callee == SIMDGROUP_INDEX else i
            for i in block.body
        ]  # fmt: skip


def _narrow_threadgroup_atomics(function: Function, context: ThreadIndexContext) -> None:
    narrow_threadgroup_atomics(function)


def _compute_simdgroup_index(function: Function, context: ThreadIndexContext) -> None:
    if context.index is not None:
        compute_simdgroup_index(function, context.index)


def _pass_thread_index(function: Function, context: ThreadIndexContext) -> None:
    if context.index is not None:
        pass_thread_index(function, context.index)


#: Before a function is vectorised, while it has address spaces.
THREAD_INDEX: tuple[Pass[ThreadIndexContext], ...] = (
    Pass(
        "narrow-threadgroup-atomics", _narrow_threadgroup_atomics,
        "one thread of the system runs a threadgroup: its atomics need no bus locks",
    ),
    Pass(
        "compute-simdgroup-index", _compute_simdgroup_index,
        "the index of a simdgroup is a shift of the thread's index instead of a call",
    ),
    Pass(
        "pass-thread-index", _pass_thread_index,
        "reports and failed checks name the thread",
    ),
)  # fmt: skip
