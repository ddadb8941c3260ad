"""The reference engine: a kernel as a plain loop over threads, or one fibre per thread.

Slow by design where threads synchronise, and simple: it defines what a kernel means on this device.
A kernel without barriers and simdgroup functions is a loop that clang may vectorise.
"""

from __future__ import annotations

from metalloid.backends.cpu.compile.compiled_kernel import Sanitizer
from metalloid.backends.cpu.compile.convergence_points import number_convergence_points
from metalloid.backends.cpu.compile.kernel_ir import KernelIR, Lowered
from metalloid.backends.cpu.compile.texture_specialization import definitions as textures
from metalloid.backends.cpu.compile.variants import Variant
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL

#: From IR to code. The runtime supplies the addresses of threadgroup variables (variables.c).
#: LLVM's vectorisers are off: LLVM 22 moves the masked loads that they create past aliasing stores
#: (llvm/llvm-project#215453), and this engine defines what kernels do.
CODE_COMMAND = (
    "clang", "-x", "ir", "-O2", "-fPIC", "-femulated-tls", "-fno-vectorize", "-fno-slp-vectorize",
    "-w",
)  # fmt: skip

#: LLVM has optimised the IR before it was instrumented. The calls leave nothing else to optimise,
#: and to find that out takes four times as long as the code.
NO_PASSES = ("-Xclang", "-disable-llvm-passes")


def functions(reports: bool, variant: Variant | None, parameters: int) -> str:
    """C++ of the entry: a loop over a box of threads."""
    return (
        f"{textures(are_known=False, by_lane=False)}"
        f'extern "C" [[clang::sycl_external]] void {ENTRY_SYMBOL}'
        "(const mtl_launch* launch, mtl_range* range)"
        f" {{ metalloid::run_box<mtl_entry_type, {str(reports).lower()}>(launch, range); }}"
    )


def lower(kernel: KernelIR, variant: Variant | None) -> Lowered:
    """IR ready for code generation; there is one variant.

    Threadgroup variables are those of the system's threads (variables.c).
    """
    more = NO_PASSES if kernel.sanitize is Sanitizer.EXACT else ()
    mode = "one fibre per thread" if kernel.synchronises else "a loop over threads"
    ir = number_convergence_points(kernel.ir, ENTRY_SYMBOL)
    return Lowered(
        ir=ir,
        code_command=(*CODE_COMMAND, *more),
        engine=f"reference: {mode}",
        fibres=kernel.synchronises,
    )
