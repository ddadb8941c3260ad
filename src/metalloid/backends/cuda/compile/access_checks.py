"""Checks of a kernel's accesses, in kernels that are compiled with ``bounds="checked"``.

They are those of the CPU (`compiler.bounds`). A thread whose access is outside of its object
records it (record_fault of entry.h) and ends, as after a failed assertion; the others go on.
They come after the passes that depend on the control flow of a warp: a check that fails ends a
thread, for which CUDA's barriers and simdgroup functions do not wait.
"""

from __future__ import annotations

from metalloid.compiler.bounds.interface import simt_interface
from metalloid.compiler.bounds.objects import variable_sizes
from metalloid.compiler.bounds.pipeline import BoundsContext, add_checks
from metalloid.compiler.bounds.table import (
    BoundsTable,
    bounds_table,
    pointer_slots,
    words_of,
)
from metalloid.compiler.frontend.source_positions import SourcePositions
from metalloid.compiler.ir.function import Block, Function, Instruction
from metalloid.compiler.transforms.assertions import OUTSIDE
from metalloid.msl.signature import Signature

#: C++ of the function that records an access, for launches with so many words.
RECORD_TEXT = (
    'extern "C" [[clang::sycl_external]] __attribute__((always_inline)) void mtl_outside('
    "unsigned site, long offset, unsigned long extent, const metalloid::launch_data<{0}>* launch)"
    " {{ metalloid::record_fault(site, offset, extent, *launch); }}"
)
_RECORD = "@mtl_outside"
_THREADGROUP_MEMORY = "@mtl_threadgroup_memory"


def checked_words(signature: Signature) -> int:
    """Words of a launch: those of the CPU (`words_of`), and the address of the record."""
    return words_of(signature) + 1


def add_access_checks(
    ir: str, function: Function, signature: Signature, positions: SourcePositions
) -> BoundsTable:
    """Check the accesses of a kernel; the table of the checks.

    Parameters
    ----------
    ir : str
        The module.
    function : Function
        The kernel, after `materialize_member_masks`.
    """
    interface = simt_interface(
        _THREADGROUP_MEMORY, len(signature.sources), pointer_slots(signature)
    )
    least = {
        p.position: p.layout.bytes for p in signature.arguments if p.layout.form == "reference"
    }
    context = BoundsContext(interface, variable_sizes(ir), least, has_ranges=False)
    add_checks(function, context)
    return bounds_table(context, ir, positions)


def record_faults(function: Function) -> bool:
    """Let a thread whose access fails record it and leave the kernel; whether any may.

    The module has the function of `RECORD_TEXT`.
    """
    failing = [
        block for block in function.blocks.values()
        if block.body and block.body[-1].op == "call" and block.body[-1].callee == OUTSIDE
    ]  # fmt: skip
    if failing:
        leave = next(block for block in function.blocks.values() if _exits(block))
    for block in failing:
        block.body[-1].callee = _RECORD
        block.body[-1].operands.append(function.parameters[0])
        block.end = Instruction("br", labels=[leave.name])
    return bool(failing)


def _exits(block: Block) -> bool:
    """Whether threads leave the kernel there (member_masks.py)."""
    return block.end.op == "unreachable" and bool(block.body) and '"exit;"' in block.body[-1].callee
