"""Instrumentation of a kernel for the sanitizer, and what its reports need to know of the code."""

from __future__ import annotations

from metalloid.backends.cpu.compile.bounds import THREAD_CODE
from metalloid.backends.cpu.compile.compiled_kernel import AccessTable
from metalloid.backends.cpu.compile.memory_model import ALIGNMENT, MemoryModelContext
from metalloid.compiler.bounds.table import shown_name, without_promises
from metalloid.compiler.frontend.source_positions import SourcePositions
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.parser import map_functions
from metalloid.compiler.ir.pass_manager import run_passes
from metalloid.compiler.sanitizer.context import SanitizerContext
from metalloid.compiler.sanitizer.pipeline import INSTRUMENTATION, SHADOW_CHECKS
from metalloid.compiler.sanitizer.runtime_functions import with_declarations
from metalloid.msl.signature import Signature


def with_instrumentation(ir: str, positions: SourcePositions) -> tuple[str, AccessTable]:
    """A module that tells the sanitizer of its accesses.

    Parameters
    ----------
    ir : str
        With debug locations, and the alignments of types.
    positions : SourcePositions
    """
    context = SanitizerContext()
    attributes: set[str] = set()

    def instrument(function: Function) -> None:
        context.is_entry = function.name == ENTRY_SYMBOL
        attributes.update(function.attributes.split())
        context.valid = set()
        run_passes(function, INSTRUMENTATION, context)
        run_passes(function, ALIGNMENT, MemoryModelContext())

    instrumented = map_functions(ir, instrument)
    table = AccessTable(
        tuple(
            {
                "kind": int(site.kind),
                "type": site.type,
                "alignment": site.alignment,
                "variable": shown_name(site.variable) if site.variable else "",
                "position": positions.of(site.debug, ir),
            }
            for site in context.sites
        )
    )
    # The calls write to memory, whatever LLVM has found out about the functions.
    return with_declarations(without_promises(instrumented, " ".join(sorted(attributes)))), table


def with_shadow_checks(ir: str, signature: Signature) -> tuple[str, AccessTable]:
    """A module, with the alignments of types, whose vector form tells the sanitizer of doubts."""
    read_only = {p.position for p in signature.arguments if p.layout.read_only}
    context = SanitizerContext(read_only=read_only)
    attributes: set[str] = set()

    def check(function: Function) -> None:
        context.is_entry = function.name == THREAD_CODE
        attributes.update(function.attributes.split())
        context.valid = set()
        run_passes(function, SHADOW_CHECKS, context)
        run_passes(function, ALIGNMENT, MemoryModelContext())

    checked = map_functions(ir, check)
    # They are defined by the module that the vector engine adds.
    return without_promises(checked, " ".join(sorted(attributes))), AccessTable(unit=context.unit)
