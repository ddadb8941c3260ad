"""Checks of a kernel's accesses on GPUs, in kernels that are compiled with ``bounds="checked"``.

They are those of the CPU. A thread whose access is outside of its object records it
(record_fault of entry.h) and ends, as after a failed assertion; the others go on. They come after
the passes that depend on the control flow of a warp: a check that fails ends a thread, for which
CUDA's barriers and simdgroup functions do not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metalloid.compiler.bounds.interface import Interface
from metalloid.compiler.bounds.objects import variable_sizes
from metalloid.compiler.bounds.pipeline import BoundsContext, add_checks
from metalloid.compiler.bounds.table import (
    BoundsTable,
    bounds_table,
    words_of,
)
from metalloid.compiler.frontend.source_positions import SourcePositions
from metalloid.compiler.ir.function import CallAttributes, Function, Instruction
from metalloid.compiler.transforms.assertions import OUTSIDE
from metalloid.msl.signature import Signature

#: C++ of the function that records an access, for launches with so many words. They are in memory
#: of the thread.
RECORD_TEXT = (
    'extern "C" [[clang::sycl_external]] __attribute__((always_inline)) void mtl_outside('
    "unsigned site, long offset, unsigned long extent,"
    " const __attribute__((opencl_private)) metalloid::launch_data<{0}>* launch)"
    " {{ metalloid::record_fault("
    "site, offset, extent, *(const metalloid::launch_data<{0}>*)launch); }}"
)
_RECORD = "@mtl_outside"
#: Variables have their names, for messages.
NAMES = "-fno-discard-value-names"


def checked_words(signature: Signature) -> int:
    """Words of a launch: those of the CPU (`words_of`), and the address of the record."""
    return words_of(signature) + 1


def add_access_checks(
    ir: str,
    function: Function,
    signature: Signature,
    positions: SourcePositions,
    interface: Interface,
) -> BoundsTable:
    """Check the accesses of a kernel; the table of the checks.

    Parameters
    ----------
    ir : str
        The module.
    function : Function
        The kernel, after the passes that depend on its control flow.
    """
    least = {
        p.position: p.layout.bytes for p in signature.arguments if p.layout.form == "reference"
    }
    context = BoundsContext(interface, variable_sizes(ir), least, has_ranges=False)
    add_checks(function, context)
    return bounds_table(context, ir, positions)


def record_faults(
    function: Function, leave: Callable[[Function], Instruction], convention: Sequence[str] = ()
) -> bool:
    """Let a thread whose access fails record it and leave the kernel; whether any may.

    The module has the function of `RECORD_TEXT`.

    Parameters
    ----------
    leave : callable
        The instruction that ends a block of the function so that the thread leaves it.
    convention : sequence of str
        The calling convention of functions.
    """
    failing = [
        block for block in function.blocks.values()
        if block.body and block.body[-1].op == "call" and block.body[-1].callee == OUTSIDE
    ]  # fmt: skip
    for block in failing:
        call = block.body[-1]
        call.callee = _RECORD
        call.operands.append(function.parameters[0])
        call.attributes = CallAttributes(tuple(convention), ((),) * len(call.operands), ())
        block.end = leave(function)
    return bool(failing)
