"""The checks of a kernel's accesses that its code has."""

from __future__ import annotations

from metalloid.backends.cpu.compile.compiled_kernel import BoundsRequest
from metalloid.compiler.bounds.callees import called_functions
from metalloid.compiler.bounds.interface import box_interface, vector_interface
from metalloid.compiler.bounds.objects import OBJECT_EXTENT, OFFSET_IN_OBJECT, variable_sizes
from metalloid.compiler.bounds.pipeline import BoundsContext, add_checks
from metalloid.compiler.bounds.table import (
    BoundsTable,
    bounds_table,
    pointer_slots,
    texture_words,
    without_promises,
)
from metalloid.compiler.frontend.source_positions import SourcePositions
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.ir.parser import function_names, parse_function, replace_function
from metalloid.compiler.transforms.assertions import OUTSIDE
from metalloid.msl.signature import Signature

#: The function of one thread of the vector engine (vector.py), and which parameter is its index.
THREAD_CODE, INDEX_PARAMETER = "mtl_thread", 9


def with_checks(
    ir: str, request: BoundsRequest, signature: Signature, positions: SourcePositions
) -> tuple[str, BoundsTable]:
    """A module whose kernel has the requested checks."""
    if not request.checks:
        return ir, BoundsTable()
    is_vector = THREAD_CODE in function_names(ir)
    count, slots = len(signature.sources), pointer_slots(signature)
    function = parse_function(ir, THREAD_CODE if is_vector else ENTRY_SYMBOL, retain_hints=True)
    interface = vector_interface if is_vector else box_interface
    context = BoundsContext(
        interface(count, slots, texture_words(signature)),
        variable_sizes(ir),
        {p.position: p.layout.bytes for p in signature.arguments if p.layout.form == "reference"},
        lambda number, provable: request.every or not provable or number in request.sites,
        has_ranges=is_vector,
        called=called_functions(ir, function.name),
        thread=function.parameters[INDEX_PARAMETER] if is_vector else None,
    )
    add_checks(function, context)
    functions = [each.function for each in context.functions]
    has_calls = any(i.callee == OUTSIDE for each in functions for i in each.instructions())
    checked = ir
    for each in functions:
        checked = replace_function(checked, each)
    if any(each.addresses.looked_up for each in context.functions):
        checked += "".join(
            f"\ndeclare i64 {name}(i64, i64) nounwind willreturn memory(read)"
            for name in (OFFSET_IN_OBJECT, OBJECT_EXTENT)
        )
    if has_calls:
        for each in functions:
            checked = without_promises(checked, each.attributes)
        checked += f"\ndeclare void {OUTSIDE}(i32, i64, i64) cold noreturn\n"
    return checked, bounds_table(context, ir, positions)
