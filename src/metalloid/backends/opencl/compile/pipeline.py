"""The passes over a kernel for SPIR-V, in order, and why each is there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from metalloid.backends.opencl.compile.early_returns import let_returned_threads_reach_barriers
from metalloid.backends.opencl.compile.execution_barriers import lower_execution_barriers
from metalloid.backends.opencl.compile.lower_bf16 import lower_bf16
from metalloid.backends.opencl.compile.module_edits import (
    define_functions,
    prepare_module,
    replace_bf16,
    require_subgroup_size,
)
from metalloid.backends.opencl.compile.narrow_integers import widen_narrow_integers
from metalloid.backends.opencl.compile.split_integers import split_integers
from metalloid.compiler.analysis.written_parameters import parameters_written
from metalloid.compiler.bounds.interface import Interface
from metalloid.compiler.bounds.recorded_faults import add_access_checks, record_faults
from metalloid.compiler.bounds.table import (
    NO_CHECKS,
    BoundsTable,
    pointer_slots,
    without_promises,
)
from metalloid.compiler.frontend.source_positions import SourcePositions
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction
from metalloid.compiler.ir.name_values import NAME_VALUES
from metalloid.compiler.ir.parser import definition, parse_function, replace_function
from metalloid.compiler.ir.pass_manager import Pass, run_passes
from metalloid.compiler.ir.types import Type, Unsupported, Vector, bits_of
from metalloid.compiler.transforms.legalize_bf16 import legalize_bf16
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors
from metalloid.compiler.transforms.shift_amounts import MASK_SHIFT_AMOUNTS
from metalloid.msl.signature import Signature

#: Ends the thread that calls it (report_spirv.h).
_END_THREAD = "@mtl_end_thread"


@dataclass
class KernelContext:
    """State that the passes over a kernel share, besides its function.

    Attributes
    ----------
    names : FreshNames
        For what passes add.
    valid : set of str
        The analyses and properties that hold for the function now.
    """

    names: FreshNames
    valid: set[str] = field(default_factory=set)


def _legalize_bf16(function: Function, context: KernelContext) -> bool:
    if not any(_mentions_bf16(i) for i in function.instructions()):
        return False
    scalarize_vectors(function)
    legalize_bf16(function)
    lower_bf16(function, context.names)
    return True


def _split_integers(function: Function, context: KernelContext) -> bool:
    if any(_has_wide_elements(i.type) for i in function.instructions()):
        scalarize_vectors(function)
    return split_integers(function, context.names)


def _has_wide_elements(type: Type) -> bool:
    return isinstance(type, Vector) and bits_of(type.element) > 64


def _widen_narrow_integers(function: Function, context: KernelContext) -> bool:
    widen_narrow_integers(function, context.names)
    return True


def _mentions_bf16(i: Instruction) -> bool:
    return any("bfloat" in str(type) for type in (i.type, *(value.type for value in i.operands)))


def _lower_execution_barriers(function: Function, context: KernelContext) -> bool:
    return lower_execution_barriers(function)


def _return_at_end_of_thread(function: Function, context: KernelContext) -> None:
    for block in function.blocks.values():
        for index, i in enumerate(block.body):
            if i.op == "call" and i.callee == _END_THREAD:
                del block.body[index:]
                block.end = Instruction("ret")
                break


def _reach_barriers(function: Function, context: KernelContext) -> bool:
    return let_returned_threads_reach_barriers(function, context.names)


KERNEL: tuple[Pass[KernelContext], ...] = (
    NAME_VALUES,
    Pass(
        "lower-execution-barriers", _lower_execution_barriers,
        "OpenCL wants all threads at a barrier, also at those that order no memory",
        needs=("names",),
    ),
    MASK_SHIFT_AMOUNTS,
    Pass(
        "legalize-bf16", _legalize_bf16,
        "SPIR-V has no bfloat: values are their bits, computed with as floats", needs=("names",),
    ),
    Pass(
        "split-integers", _split_integers,
        "SPIR-V has integers of 8, 16, 32 and 64 bits", needs=("names",),
    ),
    Pass(
        "return-at-end-of-thread", _return_at_end_of_thread,
        "a thread whose assertion fails ends: SPIR-V has no other way than the kernel's return",
    ),
    Pass(
        "reach-barriers", _reach_barriers,
        "OpenCL wants threads at a barrier that have returned before it", needs=("names",),
    ),
)  # fmt: skip


#: What the optimiser makes that SPIR-V does not have.
OPTIMIZED: tuple[Pass[KernelContext], ...] = (
    NAME_VALUES,
    Pass(
        "widen-narrow-integers", _widen_narrow_integers,
        "LLVM's back end computes with wider integers instead, in silence", needs=("names",),
    ),
    Pass(
        "split-integers", _split_integers,
        "SPIR-V has integers of 8, 16, 32 and 64 bits", needs=("names",),
    ),
)  # fmt: skip
_INTEGER_TYPE = re.compile(r"(?<![\w.%@\"-])i(?!(?:1|8|16|32|64)\b)\d+\b")


def legalize_integers(ir: str) -> str:
    """The optimised module of a kernel with the integers that SPIR-V has.

    Raises
    ------
    Unsupported
        If it contains others that cannot be replaced.
    """
    if not _INTEGER_TYPE.search(definition(ir, ENTRY_SYMBOL)):
        return ir
    kernel = parse_function(ir, ENTRY_SYMBOL, retain_hints=True)
    run_passes(kernel, OPTIMIZED, KernelContext(FreshNames(kernel)))
    ir = replace_function(ir, kernel)
    if rest := _INTEGER_TYPE.search(definition(ir, ENTRY_SYMBOL)):
        raise Unsupported(f"a value of {rest[0]}")
    return ir


class Module(NamedTuple):
    """The result of the pipeline.

    Attributes
    ----------
    ir : str
    bounds : BoundsTable
        Of the checks of its accesses.
    written : frozenset of int
        See `parameters_written`.
    """

    ir: str
    bounds: BoundsTable
    written: frozenset[int]


def run_pipeline(
    ir: str, signature: Signature, subgroup: int, positions: SourcePositions | None = None
) -> Module:
    """Run the passes over a module with a kernel.

    Parameters
    ----------
    subgroup : int
        Threads of a subgroup.
    positions : SourcePositions or None
        Of the text, if the kernel's accesses are to be checked.

    Raises
    ------
    Unsupported
        If the kernel contains what no kernel was seen to contain.
    """
    ir, table = prepare_module(ir), NO_CHECKS
    kernel = parse_function(ir, ENTRY_SYMBOL, retain_hints=True)
    written = parameters_written(kernel)
    run_passes(kernel, KERNEL, KernelContext(FreshNames(kernel)))
    if positions is not None:
        words = Interface((0, -1), (1, -1), len(signature.sources), pointer_slots(signature))
        table = add_access_checks(ir, kernel, signature, positions, words)
        record_faults(kernel, lambda function: Instruction("ret"), ("spir_func",))
        ir = without_promises(ir, kernel.attributes) if table.sites else ir
    ir = define_functions(replace_bf16(replace_function(ir, kernel)))
    return Module(require_subgroup_size(ir, subgroup), table, written)
