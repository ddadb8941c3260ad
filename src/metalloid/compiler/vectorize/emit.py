"""The last pass: from a function and the analyses of it to the text of its vector code."""

from __future__ import annotations

from metalloid.compiler.ir.function import Function
from metalloid.compiler.vectorize.atomics.accumulators import Accumulators
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.context import Context, VectorizedFunction
from metalloid.compiler.vectorize.control_flow.linearize import Linearizer
from metalloid.compiler.vectorize.control_flow.prologue import ENTRY_MASK, existing_lanes, positions
from metalloid.compiler.vectorize.memory.non_temporal import streamable
from metalloid.compiler.vectorize.memory.prefetch import looks_ahead
from metalloid.compiler.vectorize.slots import Slot, SlotKind
from metalloid.compiler.vectorize.spec import VectorSpec
from metalloid.compiler.vectorize.widening import find_widened_values
from metalloid.compiler.vectorize.workgroup.frame_layout import lay_out_slots
from metalloid.compiler.vectorize.workgroup.live_across_barriers import LiveAcrossBarriers
from metalloid.compiler.vectorize.workgroup.outline_regions import functions_text
from metalloid.compiler.vectorize.workgroup.region_cfg import Regions


def linearize(function: Function, context: Context) -> None:
    """Write the vector code, which is text: the function is of no use afterwards."""
    form, graph, callees = context.form, context.graph, context.callees
    names = [parameter.name for parameter in function.parameters]
    accumulators = _accumulators(function, form)
    builder = Builder(context.divergence, form.mask_bits, accumulators, callees)
    builder.first_index = names[form.index]
    builder.prefetches_in_loops = form.prefetches_in_loops
    builder.looks_ahead = form.streams or (not form.has_frame and looks_ahead(function))
    builder.parameter_vectors.update((names[n], f"{names[n]}.lanes") for n in form.computed)
    builder.parameter_vectors.update((names[n], names[n]) for n in form.vectors)
    some = form.partial or form.masked
    linearizer = Linearizer(builder, ENTRY_MASK if some else None, form.has_frame)
    builder.groups.update({**context.groups, **context.sums})
    find_widened_values(builder, linearizer)
    streamed, streamed_bytes = streamable(function, graph) if not callees else (set(), 0)
    if form.streams:
        builder.streamed.update(streamed)
    linearizer.write()
    starts = [linearizer.label(graph.entry), *linearizer.regions]
    retained: set[Slot] = set()
    if linearizer.regions:
        crossing = LiveAcrossBarriers(
            function, graph, linearizer.order, linearizer.set_by, linearizer.straight
        )
        retained = {slot for slot in builder.slots if crossing.is_crossed(slot)}
    common = context.common
    slots, frame_bytes = lay_out_slots(function, builder, retained, common or (), starts)
    existing = existing_lanes(form) if form.partial else []
    definitions = [*slots, *positions(function, form), *existing]
    regions = Regions(builder.blocks, starts)
    uniform = {
        Slot.of(SlotKind.SCALAR, value.name): number for number, value in enumerate(common or ())
    }
    context.result = VectorizedFunction(
        text=functions_text(function, form, definitions, regions),
        declarations=builder.declarations,
        frame_bytes=frame_bytes,
        successors=regions.successors(),
        common=tuple(str(value.type) for value in common or ()),
        live_in=regions.live_in(uniform),
        defs=regions.defs(uniform),
        is_uniform=common is not None,
        streamable=0 if form.has_frame else streamed_bytes,
        accumulators=accumulators,
    )


def _accumulators(function: Function, form: VectorSpec) -> Accumulators | None:
    """The accumulators that the function's updates need, if the form has any."""
    if form.accumulators is None:
        return None
    parameter, word = form.accumulators
    numbers = (i.accumulator for i in function.instructions() if i.accumulator is not None)
    # A number may occur twice, in the copy of a loop.
    count = 1 + max(numbers, default=-1)
    return Accumulators(
        function.parameters[parameter].name, word, count, form.width, has_rows=form.has_frame
    )
