"""The checks of a kernel's accesses that its code has."""

from __future__ import annotations

from metalloid.backends.cpu.compile.compiled_kernel import BoundsRequest
from metalloid.compiler.bounds.objects import box_interface, variable_sizes, vector_interface
from metalloid.compiler.bounds.pipeline import BoundsContext, add_checks
from metalloid.compiler.bounds.table import (
    BoundsTable,
    bounds_table,
    pointer_slots,
    without_promises,
)
from metalloid.compiler.frontend.source_positions import SourcePositions
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.ir.parser import function_names, parse_function, replace_function
from metalloid.compiler.transforms.assertions import OUTSIDE
from metalloid.msl.signature import Signature

#: The function of one thread of the vector engine (vector.py).
THREAD = "mtl_thread"


def with_checks(
    ir: str, request: BoundsRequest, signature: Signature, positions: SourcePositions
) -> tuple[str, BoundsTable]:
    """A module whose kernel has the requested checks."""
    if not request.checks:
        return ir, BoundsTable()
    is_vector = THREAD in function_names(ir)
    count, slots = len(signature.sources), pointer_slots(signature)
    function = parse_function(ir, THREAD if is_vector else ENTRY_SYMBOL, retain_hints=True)
    context = BoundsContext(
        vector_interface(count, slots) if is_vector else box_interface(count, slots),
        variable_sizes(ir),
        {p.position: p.layout.bytes for p in signature.arguments if p.layout.form == "reference"},
        lambda number, provable: request.every or not provable or number in request.sites,
        has_ranges=is_vector,
    )
    add_checks(function, context)
    has_calls = any(i.callee == OUTSIDE for i in function.instructions())
    checked = replace_function(ir, function)
    if has_calls:
        checked = without_promises(checked, function.attributes)
        checked += f"\ndeclare void {OUTSIDE}(i32, i64, i64) cold noreturn\n"
    return checked, bounds_table(context, ir, positions)
