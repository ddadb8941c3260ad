"""The pipeline of kernels for CPUs: all passes in order, in stages, and when each stage runs.

A stage is a tuple of passes that share a context. LLVM optimises between some of them, and a kernel
goes through those whose condition holds. The passes of a stage, with what each needs, gives and
invalidates, stand where its context is: sanitizer/pipeline.py, bounds/pipeline.py and
vectorize/pipeline.py. The pipeline for NVIDIA GPUs is backends/cuda/compile/pipeline.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    is_of_sanitizer : bool
        Whether only kernels that the sanitizer checks go through it.
    """

    name: str
    when: str
    passes: tuple[Pass[Any], ...]
    is_of_sanitizer: bool = False


PIPELINE: tuple[Stage, ...] = (
    Stage(
        "preparation of checked kernels",
        "if the sanitizer checks the kernel, before LLVM optimises",
        PREPARATION, is_of_sanitizer=True,
    ),
    Stage(
        "instrumentation of checked kernels",
        "if the sanitizer checks the kernel, after LLVM; the scalar engine compiles the result",
        INSTRUMENTATION, is_of_sanitizer=True,
    ),
    Stage(
        "checks of the vector form of checked kernels",
        "if launches are to be checked by vector code, after LLVM and the checks of accesses",
        SHADOW_CHECKS, is_of_sanitizer=True,
    ),
    Stage(
        "checks of accesses",
        "if bounds are checked, after LLVM, for both engines",
        CHECKS,
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
