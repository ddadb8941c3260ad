"""The pipeline of kernels for CPUs: all passes in order, in stages, and when each stage runs.

A stage is a tuple of passes that share a context. LLVM optimises between some of them, and a kernel
goes through those whose condition holds. The passes of a stage, with what each needs, gives and
invalidates, stand where its context is: memory_model.py, convergence_points.py, counters.py and
thread_index.py here, and pipeline.py in sanitizer, bounds and vectorize of `metalloid.compiler`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metalloid.backends.cpu.compile.convergence_points import CONVERGENCE_POINTS
from metalloid.backends.cpu.compile.counters import COUNTERS
from metalloid.backends.cpu.compile.memory_model import ALIGNMENT, MEMORY_MODEL
from metalloid.backends.cpu.compile.thread_index import THREAD_INDEX
from metalloid.compiler.bounds.pipeline import CHECKS
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.sanitizer.pipeline import INSTRUMENTATION, PREPARATION, SHADOW_CHECKS
from metalloid.compiler.vectorize.pipeline import (
    COARSENING,
    LAYOUT_OF_CALLEES,
    LOWERING,
    LOWERING_OF_CALLEES,
    VECTORIZATION,
)


@dataclass(frozen=True)
class Stage:
    """A part of the pipeline.

    Attributes
    ----------
    name : str
    when : str
        The condition under which a kernel goes through it, and how often.
    passes : tuple of Pass
    device : str
        By which ``metalloid passes --device`` runs its passes.
    """

    name: str
    when: str
    passes: tuple[Pass[Any], ...]
    device: str = "cpu"


PIPELINE: tuple[Stage, ...] = (
    Stage(
        "preparation of checked kernels",
        "if the sanitizer checks the kernel, before LLVM optimises",
        PREPARATION, device="cpu-check",
    ),
    Stage(
        "memory model of CPUs",
        "on every function, after LLVM",
        MEMORY_MODEL, device="cpu-thread",
    ),
    Stage(
        "checks of accesses",
        "if bounds are checked, after LLVM, for both engines",
        CHECKS,
    ),
    Stage(
        "instrumentation of checked kernels",
        "if the sanitizer checks the kernel, after LLVM; the scalar engine compiles the result",
        INSTRUMENTATION, device="cpu-check",
    ),
    Stage(
        "checks of the vector form of checked kernels",
        "if launches are to be checked by vector code, after LLVM and the checks of accesses",
        SHADOW_CHECKS, device="cpu-check",
    ),
    Stage(
        "alignment of checked kernels",
        "after both, as they need the alignment of types",
        ALIGNMENT, device="cpu-thread",
    ),
    Stage(
        "counters of profiles",
        "if a profile counts a launch, after LLVM; the scalar engine compiles the result",
        COUNTERS, device="cpu-thread",
    ),
    Stage(
        "convergence points",
        "for the scalar engine, on kernels whose threads wait for each other",
        CONVERGENCE_POINTS, device="cpu-thread",
    ),
    Stage(
        "thread index",
        "for vector code, while functions have address spaces",
        THREAD_INDEX, device="cpu-thread",
    ),
    Stage(
        "lowering of a function that kernels call",
        "for vector code, before the kernels that call it",
        LOWERING_OF_CALLEES,
    ),
    Stage(
        "layout of a function that kernels call",
        "for vector code, after its lowering",
        LAYOUT_OF_CALLEES,
    ),
    Stage(
        "lowering of a kernel",
        "for vector code, once",
        LOWERING,
    ),
    Stage(
        "coarsening",
        "on a copy of a lowered kernel without barriers, which runs whole rows of threads",
        COARSENING,
    ),
    Stage(
        "vectorization",
        "for each variant of a lowered kernel and of the functions that it calls",
        VECTORIZATION,
    ),
)  # fmt: skip
