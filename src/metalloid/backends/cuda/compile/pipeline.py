"""The passes over a kernel for NVIDIA GPUs, in order, and why each is there.

`run_pipeline` runs `KERNEL` on the kernel's function, which clang has optimised but not unrolled,
and then either what checks its accesses, or `COARSENING` on a copy. Edits of the module besides it
are text (module_edits.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from metalloid.backends.cuda.compile.coarsening import (
    assume_uniform_grid,
    coarsen_threads,
    pure_functions,
)
from metalloid.backends.cuda.compile.context import KernelContext
from metalloid.backends.cuda.compile.full_warp_loops import version_full_warp_loops
from metalloid.backends.cuda.compile.launch_data import constant_pointers, layout_of
from metalloid.backends.cuda.compile.member_masks import materialize_member_masks
from metalloid.backends.cuda.compile.module_edits import declare_intrinsics, prepare_module
from metalloid.backends.cuda.compile.reduction_coarsening import (
    coarsen_reductions,
    interleave_iterations,
)
from metalloid.backends.cuda.compile.tensor_cores import has_matrix_functions, use_tensor_cores
from metalloid.backends.cuda.compile.warp_divergence import analyse_warp
from metalloid.compiler.analysis.written_parameters import parameters_written
from metalloid.compiler.bounds.interface import simt_interface
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
from metalloid.compiler.ir.function import Block, Function, Instruction
from metalloid.compiler.ir.name_values import NAME_VALUES
from metalloid.compiler.ir.parser import definition, parse_function, replace_function
from metalloid.compiler.ir.pass_manager import Pass, run_passes
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.transforms.invariant_loads import mark_invariant_loads
from metalloid.compiler.transforms.shift_amounts import MASK_SHIFT_AMOUNTS
from metalloid.msl.signature import Signature

_THREADGROUP_MEMORY = "@mtl_threadgroup_memory"

# ---- passes that need the context ----------------------------------------------------------------


def _mark_invariant_loads(function: Function, context: KernelContext) -> None:
    constant = constant_pointers(function, context.layout)
    mark_invariant_loads(function, constant, "invariant", any_offset=True)


def _warp_divergence(function: Function, context: KernelContext) -> None:
    try:
        context.divergence = analyse_warp(function)
    except Unsupported:
        context.divergence = None


def _full_warp_loops(function: Function, context: KernelContext) -> bool:
    loops = context.divergence.loops if context.divergence else ()
    return version_full_warp_loops(function, loops, context.names)


def _member_masks(function: Function, context: KernelContext) -> None:
    materialize_member_masks(function, context.divergence, context.names)


def _assume_uniform_grid(function: Function, context: KernelContext) -> bool:
    return assume_uniform_grid(function, context.layout)


def _coarsen_threads(function: Function, context: KernelContext) -> bool:
    context.coarsening = coarsen_threads(
        function, context.layout, context.pure_functions, context.names
    )
    return context.coarsening is not None


def _coarsen_reductions(function: Function, context: KernelContext) -> bool:
    if context.coarsening is not None:
        return False
    context.coarsening = coarsen_reductions(function, context.pure_functions, context.names)
    return context.coarsening is not None


def _interleave_iterations(function: Function, context: KernelContext) -> bool:
    return interleave_iterations(function, context.pure_functions, context.names)


def _tensor_cores(function: Function, context: KernelContext) -> bool:
    return use_tensor_cores(function, context.names)


def _record_faults(function: Function, context: KernelContext) -> bool:
    return record_faults(function, _leave)


def _leave(function: Function) -> Instruction:
    """The jump to where threads leave the kernel (member_masks.py)."""
    block = next(block for block in function.blocks.values() if _exits(block))
    return Instruction("br", labels=[block.name])


def _exits(block: Block) -> bool:
    return block.end.op == "unreachable" and bool(block.body) and '"exit;"' in block.body[-1].callee


# ---- the pipeline --------------------------------------------------------------------------------

KERNEL: tuple[Pass[KernelContext], ...] = (
    NAME_VALUES,
    MASK_SHIFT_AMOUNTS,
    Pass(
        "mark-invariant-loads", _mark_invariant_loads,
        "LLVM hoists loads of constant memory out of loops with stores, and uses the read-only "
        "cache (ld.global.nc)", optional=True,
    ),
    Pass(
        "warp-divergence", _warp_divergence,
        "which blocks not all threads of a warp execute, and which threads do",
        gives=("warp divergence",),
    ),
    Pass(
        "full-warp-loops", _full_warp_loops,
        "a copy of a loop with simdgroup functions runs while all 32 lanes stay: no votes",
        needs=("names", "warp divergence"), invalidates=("warp divergence",), optional=True,
    ),
    Pass(
        "warp-divergence", _warp_divergence, "again if loops were copied",
        gives=("warp divergence",),
    ),
    Pass(
        "member-masks", _member_masks,
        "simdgroup functions get a mask of their threads, and barriers may be in divergent code",
        needs=("names", "warp divergence"), invalidates=("warp divergence",),
    ),
    Pass(
        "tensor-cores", _tensor_cores,
        "products of simdgroup matrices become mma instructions", needs=("names",),
    ),
)  # fmt: skip


#: After `CHECKS` of compiler/bounds/pipeline.py, if the kernel's accesses are checked.
FAULT_RECORDS: tuple[Pass[KernelContext], ...] = (
    Pass(
        "record-faults", _record_faults,
        "a thread whose access fails writes it to the launch's record and ends; others go on",
    ),
)  # fmt: skip


#: What makes a copy of the kernel the coarsened kernel, which runs uniform grids only.
COARSENING: tuple[Pass[KernelContext], ...] = (
    Pass(
        "assume-uniform-grid", _assume_uniform_grid,
        "threadgroups at the edges of a grid of threads have code of their own",
    ),
    Pass(
        "coarsen-threads", _coarsen_threads,
        "a thread with several independent loads hides the latency of memory",
        needs=("names",), optional=True,
    ),
    Pass(
        "coarsen-reductions", _coarsen_reductions,
        "a thread adds the sum of what the threads of several rows add to an element",
        needs=("names",), optional=True,
    ),
    Pass(
        "interleave-iterations", _interleave_iterations,
        "iterations of loops that add to memory do not wait for each other's sums over lanes",
        needs=("names",), optional=True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Module:
    """The result of the pipeline.

    Attributes
    ----------
    ir : str
    lanes_in_order : bool
        Whether thread i of a threadgroup is lane i % 32 of its warp.
    coarsening : int
        Metal threads per CUDA thread of the coarsened kernel; 1 if there is none.
    is_vectorized : bool
        Whether these threads are adjacent in x.
    axis : int
        The axis along which the threadgroups of these threads are adjacent.
    bounds : BoundsTable
        Of the checks of its accesses.
    written : frozenset of int
        See `parameters_written`.
    """

    ir: str
    lanes_in_order: bool
    coarsening: int = 1
    is_vectorized: bool = False
    axis: int = 0
    bounds: BoundsTable = NO_CHECKS
    written: frozenset[int] = frozenset()


def run_pipeline(
    ir: str, signature: Signature, words: int, positions: SourcePositions | None = None
) -> Module:
    """Run the passes over a module with a kernel.

    Parameters
    ----------
    words : int
        Words of a launch.
    positions : SourcePositions or None
        Of the text, if the kernel's accesses are to be checked. It is not coarsened then.

    Raises
    ------
    Unsupported
        If the kernel contains what no kernel was seen to contain.
    """
    lanes_in_order = not has_matrix_functions(definition(ir, ENTRY_SYMBOL))
    ir = prepare_module(ir, "plain" if lanes_in_order else "matrix")
    kernel = parse_function(ir, ENTRY_SYMBOL, retain_hints=True)
    written = parameters_written(kernel)
    context = KernelContext(layout_of(signature, words), FreshNames(kernel), pure_functions(ir))
    run_passes(kernel, KERNEL, context)
    if positions is not None:
        slots = pointer_slots(signature)
        interface = simt_interface(_THREADGROUP_MEMORY, len(signature.sources), slots)
        table = add_access_checks(ir, kernel, signature, positions, interface)
        run_passes(kernel, FAULT_RECORDS, context)
        ir = without_promises(ir, kernel.attributes) if table.sites else ir
        ir = declare_intrinsics(replace_function(ir, kernel), [kernel])
        return Module(ir, lanes_in_order, bounds=table, written=written)
    ir = declare_intrinsics(replace_function(ir, kernel), [kernel])
    if not lanes_in_order:
        return Module(ir, lanes_in_order, written=written)
    coarsened = kernel.copy()
    run_passes(coarsened, COARSENING, context)
    if context.coarsening is None:
        return Module(ir, lanes_in_order, written=written)
    text = function_text(kernel)
    ir = ir.replace(text, f"{text}\n\n{function_text(coarsened)}")
    threads = context.coarsening
    return Module(
        ir, lanes_in_order, threads.factor, threads.is_vectorized, threads.axis, written=written
    )
