"""The pass as a whole: one thread's function in, a simdgroup's function out."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from metalloid.compiler.analysis.barrier_divergence import must_be_uniform
from metalloid.compiler.analysis.divergence import Divergence, analyse
from metalloid.compiler.analysis.shapes import VARYING, uniform
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.transforms.assertions import lower_assertions
from metalloid.compiler.transforms.callees import (
    NO_CALLEES,
    Callee,
    Callees,
    lower_call_arguments,
    receive,
    vector_places,
    with_units,
)
from metalloid.compiler.transforms.defer_atomics import defer_atomics, deferred_number
from metalloid.compiler.transforms.invariant_loads import mark_invariant_loads
from metalloid.compiler.transforms.legalize_bf16 import legalize_bf16
from metalloid.compiler.transforms.loop_simplify import simplify_loops
from metalloid.compiler.transforms.lower_memcpy import lower_memcpy
from metalloid.compiler.transforms.matrix_forwarding import forward_matrices
from metalloid.compiler.transforms.matrix_products import lower_matrix_products
from metalloid.compiler.transforms.private_atomics import demote_private_atomics
from metalloid.compiler.transforms.rematerialize import rematerialize
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors
from metalloid.compiler.transforms.soa_private import interleave
from metalloid.compiler.transforms.split_at_barriers import split_at_barriers
from metalloid.compiler.transforms.threadgroup_variables import lower_threadgroup_variables
from metalloid.compiler.transforms.version_uniform_loops import version_uniform_loops
from metalloid.compiler.vectorize.atomics.accumulators import Accumulators
from metalloid.compiler.vectorize.builder import Builder, quoted
from metalloid.compiler.vectorize.linearize import Linearizer
from metalloid.compiler.vectorize.memory.interleave_groups import find_groups
from metalloid.compiler.vectorize.memory.non_temporal import streamable
from metalloid.compiler.vectorize.memory.prefetch import computes_much
from metalloid.compiler.vectorize.outline_regions import functions_text
from metalloid.compiler.vectorize.prologue import EXISTING, existing_lanes, positions
from metalloid.compiler.vectorize.region_cfg import Regions
from metalloid.compiler.vectorize.spec import VectorSpec
from metalloid.compiler.vectorize.widening import find_widened_values
from metalloid.compiler.vectorize.workgroup.frame_layout import places
from metalloid.compiler.vectorize.workgroup.live_across_barriers import LiveAcrossBarriers
from metalloid.compiler.vectorize.workgroup.workgroup_uniform import workgroup_uniform_values


@dataclass(frozen=True)
class VectorizedFunction:
    """The result of `vectorize`.

    Attributes
    ----------
    text : str
        The function.
    declarations : dict of str
        Declarations of the functions it calls, by name.
    state_bytes : int
        Size of a simdgroup's state.
    outcomes : tuple of int or None
        What each region's function (``name.0``, ``name.1`` ...) returns, where that is known.
    common : tuple of str
        Types of what all simdgroups of a threadgroup have in common.
    uses, changes : tuple of set of int
        Which of these each region needs, and which of those it changes.
    in_step : bool
        Whether all simdgroups come to the same barriers for certain, with all their lanes.
    streamable : int
        Bytes that each thread could store past the caches.
    accumulators : Collectors or None
        Of atomic updates, if the form has any.
    """

    text: str
    declarations: dict[str, str]
    state_bytes: int
    outcomes: tuple[int | None, ...]
    common: tuple[str, ...]
    uses: tuple[set[int], ...]
    changes: tuple[set[int], ...]
    in_step: bool
    streamable: int
    accumulators: Accumulators | None


@dataclass(frozen=True)
class KernelABI:
    """The function of one thread.

    Attributes
    ----------
    name : str
    read_only : tuple of int
        Positions of parameters that point to memory which nobody writes meanwhile.
    memory : int
        Position of the parameter that points behind the threadgroup variables.
    variables : dict of int
        How far in front of that each of them begins.
    """

    name: str
    read_only: tuple[int, ...]
    memory: int
    variables: dict[str, int]


def parse(ir: str, scalar: KernelABI, callees: Callees = NO_CALLEES) -> Function:
    """The function of one thread in a module without address spaces, ready for `vectorize`.

    Raises
    ------
    Unsupported
        If the function does what has no vector form.
    """
    function = parse_function(ir, scalar.name)
    lower_threadgroup_variables(function, scalar.variables, function.parameters[scalar.memory])
    lower_assertions(function)
    mark_invariant_loads(function, {function.parameters[i].name for i in scalar.read_only})
    _lower(function, callees)
    if not callees:
        defer_atomics(function, function.parameters[scalar.memory])
    split_at_barriers(function)
    return function


def _lower(function: Function, callees: Callees) -> None:
    """The steps that any function needs."""
    lower_call_arguments(function, callees)
    demote_private_atomics(function)
    lower_memcpy(function)
    lower_matrix_products(function)
    scalarize_vectors(function)
    legalize_bf16(function, callees)


def vectorize_callees(
    ir: str, scalar: KernelABI, callees: dict[str, Callee], form: VectorSpec
) -> list[VectorizedFunction]:
    """Vector forms of functions; `callees` learn how their private arrays lie.

    Parameters
    ----------
    ir : str
        The module without address spaces.
    scalar : Scalar
        Their caller.
    callees : dict of Callee
        Each before those that call it.
    form : Form
        That of a caller: lanes and masks are the same.

    Raises
    ------
    Unsupported
        If a function does what has no vector form.
    """
    made = []
    for name, callee in list(callees.items()):
        function = parse_function(ir, name[1:])
        if any(v.name in scalar.variables for i in function.instructions() for v in i.operands):
            raise Unsupported("a threadgroup variable of a function")
        receive(function, callee)
        _lower(function, callees)
        places = vector_places(callee)
        form_of_callee = VectorSpec(
            callee.vector_name, form.width, form.mask_bits, dict.fromkeys(places, VARYING), 0,
            vectors=places, masked=True,
        )  # fmt: skip
        interleave(function, form.width, callees)
        callees[name] = with_units(callee, function)
        made.append(vectorize(function, form_of_callee, callees))
    return made


def vectorize(
    function: Function, form: VectorSpec, callees: Callees = NO_CALLEES
) -> VectorizedFunction:
    """The function that does for a simdgroup of threads what `function` does for one.

    Parameters
    ----------
    function : Function
        As `parse` gives it; it is changed, and of no use afterwards.
    form : Form
    callees : mapping of Callee
        Functions that have a vector form of their own.

    Raises
    ------
    Unsupported
        If the function does what has no vector form.
    """
    if not form.masked:
        interleave(function, form.width, callees)
    if not (form.partial or form.masked):
        version_uniform_loops(function, {function.parameters[place].name for place in form.shapes})
    graph = simplify_loops(function)
    names = [parameter.name for parameter in function.parameters]
    rematerialize(
        function, graph, {name for place, name in enumerate(names) if place not in form.shapes}
    )
    common = None
    if form.has_state:
        common = workgroup_uniform_values(function, graph, {names[place] for place in form.common})
    divergence = _divergence(function, graph, form)
    accumulators = _accumulators(function, form)
    builder = Builder(divergence, form.mask_bits, accumulators, callees)
    builder.first_index = names[form.index]
    builder.looks_ahead = form.streams or (not form.has_state and computes_much(function))
    builder.parameter_vectors.update((names[n], f"{names[n]}.lanes") for n in form.computed)
    builder.parameter_vectors.update((names[n], names[n]) for n in form.vectors)
    some = form.partial or form.masked
    linearizer = Linearizer(builder, EXISTING if some else None, form.has_state)
    builder.groups.update(find_groups(divergence))
    find_widened_values(builder, linearizer)
    streamed, streamed_bytes = streamable(function, graph) if not callees else (set(), 0)
    if form.streams:
        builder.streamed.update(streamed)
    linearizer.write()
    starts = [linearizer.label(graph.entry), *linearizer.regions]
    kept: set[str] = set()
    if linearizer.regions:
        crossing = LiveAcrossBarriers(
            function, graph, linearizer.order, linearizer.set_by, linearizer.straight
        )
        kept = {slot for slot in builder.slots if crossing.is_crossed(slot)}
    slots, state_bytes = places(function, builder, kept, common or (), starts)
    existing = existing_lanes(form) if form.partial else []
    definitions = [*slots, *positions(function, form), *existing]
    regions = Regions(builder.lines, starts)
    in_common = {quoted("s", value.name): number for number, value in enumerate(common or ())}
    return VectorizedFunction(
        functions_text(function, form, definitions, regions),
        builder.declarations,
        state_bytes,
        regions.outcomes(),
        tuple(str(value.type) for value in common or ()),
        regions.uses(in_common),
        regions.changes(in_common),
        common is not None,
        0 if form.has_state else streamed_bytes,
        accumulators,
    )


def _accumulators(function: Function, form: VectorSpec) -> Accumulators | None:
    """Those that the function's updates need, if the form has any."""
    if form.accumulators is None:
        return None
    parameter, word = form.accumulators
    numbers = map(deferred_number, function.instructions())
    # A number may occur twice, in the copy of a loop.
    count = 1 + max((number for number in numbers if number is not None), default=-1)
    return Accumulators(
        function.parameters[parameter].name, word, count, form.width, has_rows=form.has_state
    )


def _divergence(function: Function, graph: Graph, form: VectorSpec) -> Divergence:
    """Where lanes part, after matrices have got the form that they keep."""
    shapes = {
        parameter.name: form.shapes.get(place, uniform(form.width))
        for place, parameter in enumerate(function.parameters)
    }
    forbidden = must_be_uniform(function, graph) if form.is_strict else {}
    find = functools.partial(
        analyse,
        function,
        graph,
        form.width,
        shapes,
        form.partial or form.masked,
        forbidden=forbidden,
    )
    found = find()
    return find() if forward_matrices(function, found, pairs=form.mask_bits == 1) else found
