"""The passes over a kernel that the sanitizer checks, and why each is there."""

from __future__ import annotations

from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.sanitizer.instrument import InstrumentationContext, instrument_accesses
from metalloid.compiler.sanitizer.vector_form import ShadowContext, insert_shadow_checks

#: The pipeline of checked kernels.
INSTRUMENTATION: tuple[Pass[InstrumentationContext], ...] = (
    Pass(
        "instrument-accesses", instrument_accesses,
        "the sanitizer's runtime sees each access of device and threadgroup memory, each fence and "
        "each shuffle",
    ),
)  # fmt: skip

#: The pipeline of their vector form.
SHADOW_CHECKS: tuple[Pass[ShadowContext], ...] = (
    Pass(
        "insert-shadow-checks", insert_shadow_checks,
        "the vector form tells of accesses that may race, and of what else may be a defect",
    ),
)  # fmt: skip
