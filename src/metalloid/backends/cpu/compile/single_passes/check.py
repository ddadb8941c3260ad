"""Single passes of checked kernels on textual IR: ``metalloid passes --device cpu-check``."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.backends.cpu.compile.pipeline import PIPELINE
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.single_passes import parse_input, run_verified
from metalloid.compiler.sanitizer.context import SanitizerContext

#: Passes over a checked kernel, by stage.
PIPELINES: dict[str, tuple[Pass[SanitizerContext], ...]] = {
    stage.name: stage.passes for stage in PIPELINE if stage.device == "cpu-check"
}


def run_single_passes(ir: str, name: str, passes: Sequence[str]) -> str:
    """The function `name` of a module after some passes, as text, and its sites as comments.

    Raises
    ------
    InvalidInput
        If the text is not a module with that function.
    InvalidIR, KeyError, Unsupported
        As `run_verified` does.
    """
    function = parse_input(ir, name, retain_hints=True)
    context = SanitizerContext(is_entry=False)
    run_verified(function, passes, PIPELINES.values(), context)
    sites = (
        f"; site {number}: {site.kind.name or 'CALL'} {site.type} {site.variable}".rstrip()
        for number, site in enumerate(context.sites)
    )
    return "\n".join((function_text(function), *sites))
