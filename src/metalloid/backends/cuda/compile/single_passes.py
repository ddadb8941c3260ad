"""Single passes over kernels for NVIDIA GPUs on textual IR: ``metalloid passes --device cuda``.

The first parameter of the function is the pointer to launch_data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from metalloid.backends.cuda.compile.coarsening import pure_functions
from metalloid.backends.cuda.compile.context import KernelContext
from metalloid.backends.cuda.compile.launch_data import LaunchLayout
from metalloid.backends.cuda.compile.pipeline import COARSENING, FAULT_RECORDS, KERNEL
from metalloid.backends.cuda.compile.reconvergence import BranchEdge, LoopIteration
from metalloid.backends.cuda.compile.warp_divergence import NO_DIVERGENCE, WarpDivergence
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.single_passes import InvalidInput, parse_input, run_verified

#: All passes over a kernel, by pipeline.
PIPELINES: dict[str, tuple[Pass[KernelContext], ...]] = {
    "kernels for NVIDIA GPUs": KERNEL,
    "records of faults for NVIDIA GPUs": FAULT_RECORDS,
    "coarsening for NVIDIA GPUs": COARSENING,
}


def run_single_passes(ir: str, name: str, passes: Sequence[str], target: LaunchLayout) -> str:
    """The function `name` of a module after some passes, as text.

    Passes that give what a pass needs run before it.

    Parameters
    ----------
    passes : sequence of str
        Names, in order.
    target : LaunchLayout

    Raises
    ------
    InvalidInput
        If the text is not a module with that function.
    InvalidIR, KeyError, Unsupported
        As `run_verified` does.
    """
    function = parse_input(ir, name, retain_hints=True)
    if not function.parameters:
        raise InvalidInput(f"@{name} has no parameters: the first must point to launch_data")
    context = KernelContext(target, FreshNames(function), pure_functions(ir))
    run_verified(function, passes, PIPELINES.values(), context)
    return "\n".join((function_text(function), *_facts(function, context)))


def _facts(function: Function, context: KernelContext) -> Iterator[str]:
    """The results of analyses, as comments."""
    if "warp divergence" in context.valid:
        yield from _divergence_facts(function, context.divergence)
    if context.coarsening is not None:
        adjacent = ", adjacent in x" * context.coarsening.is_vectorized
        yield f"; one thread runs {context.coarsening.factor} threads{adjacent}"


def _divergence_facts(function: Function, known: WarpDivergence | None) -> Iterator[str]:
    if known is None:
        yield "; the analysis does not support this kernel"
    elif known == NO_DIVERGENCE:
        yield "; no divergence"
    else:
        for title, names in (
            ("blocks that not all threads of a warp execute", known.masked),
            ("blocks for which other threads of the warp wait", known.stalled),
            ("divergent branches to a return", known.returning),
            ("divergent loops", (loop.header for loop in known.loops)),
        ):
            # The analysis adds blocks to a copy of the function.
            if listed := " ".join(sorted(function.blocks.keys() & set(names))):
                yield f"; {title}: {listed}"
        for block, members in known.members.items():
            if block in function.blocks:
                yield f"; threads of {block}: {_shown(members)}"


def _shown(members: BranchEdge | LoopIteration) -> str:
    if isinstance(members, BranchEdge):
        return f"those for which the branch of {members.block} is {str(members.is_taken).lower()}"
    return f"those in the same iteration of {members.header}"
