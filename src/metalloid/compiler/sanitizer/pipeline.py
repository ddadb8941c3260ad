"""The passes over a kernel that the sanitizer checks, and why each is there.

`prepare` runs `PREPARATION` before LLVM optimises, and `INSTRUMENTATION` follows afterwards.
"""

from __future__ import annotations

from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.sanitizer.context import SanitizerContext
from metalloid.compiler.sanitizer.conversions import check_conversions
from metalloid.compiler.sanitizer.instrument import instrument_accesses
from metalloid.compiler.sanitizer.operations import check_operations
from metalloid.compiler.sanitizer.suspicious import check_shifts, check_texels
from metalloid.compiler.sanitizer.variables import flag_variables
from metalloid.compiler.sanitizer.vector_form import insert_shadow_checks


def _check_conversions(function: Function, context: SanitizerContext) -> bool:
    return check_conversions(function, context.is_checked)


def _check_operations(function: Function, context: SanitizerContext) -> bool:
    return check_operations(function, context.is_checked)


def _check_shifts(function: Function, context: SanitizerContext) -> bool:
    return check_shifts(function, context.is_checked)


def _check_texels(function: Function, context: SanitizerContext) -> bool:
    return check_texels(function)


def _flag_variables(function: Function, context: SanitizerContext) -> bool:
    return context.has_flags and flag_variables(function)


#: On functions as clang writes them, before LLVM removes what it checks.
PREPARATION: tuple[Pass[SanitizerContext], ...] = (
    Pass(
        "check-conversions", _check_conversions,
        "the sanitizer's runtime sees numbers that become integers, before LLVM discards results",
    ),
    Pass(
        "check-operations", _check_operations,
        "the sanitizer's runtime sees operands and results of what may make NaN, before LLVM "
        "inlines functions",
    ),
    Pass(
        "check-shifts", _check_shifts,
        "the sanitizer's runtime sees the amounts of shifts, before their low bits are taken",
    ),
    Pass(
        "check-texels", _check_texels,
        "the sanitizer's runtime sees whether a texture has the texels that are asked for",
    ),
    Pass(
        "flag-variables", _flag_variables,
        "private variables have flags that tell whether they have a value",
    ),
)  # fmt: skip

#: On functions that LLVM has optimised.
INSTRUMENTATION: tuple[Pass[SanitizerContext], ...] = (
    Pass(
        "instrument-accesses", instrument_accesses,
        "the sanitizer's runtime sees each access of device and threadgroup memory, each fence and "
        "each shuffle",
    ),
)  # fmt: skip

#: The pipeline of their vector form.
SHADOW_CHECKS: tuple[Pass[SanitizerContext], ...] = (
    Pass(
        "insert-shadow-checks", insert_shadow_checks,
        "the vector form tells of accesses that may race, and of what else may be a defect",
    ),
)  # fmt: skip
