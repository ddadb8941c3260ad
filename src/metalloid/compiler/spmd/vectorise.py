"""The pass as a whole: one thread's function in, a simdgroup's function out."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from metalloid.compiler.llvm.cfg import Graph
from metalloid.compiler.llvm.ir import Function
from metalloid.compiler.llvm.parser import parse_function
from metalloid.compiler.llvm.types import Unsupported
from metalloid.compiler.spmd.assertions import make_assertions
from metalloid.compiler.spmd.bfloats import keep_as_bits
from metalloid.compiler.spmd.callees import (
    NO_CALLEES,
    Callee,
    Callees,
    pass_through_memory,
    receive,
    vector_places,
    with_units,
)
from metalloid.compiler.spmd.canonical import make_canonical
from metalloid.compiler.spmd.collected import mark_collected, number_of
from metalloid.compiler.spmd.collectors import Collectors
from metalloid.compiler.spmd.common import common_values
from metalloid.compiler.spmd.components import take_apart
from metalloid.compiler.spmd.divergence import Divergence, analyse
from metalloid.compiler.spmd.expand import expand_copies
from metalloid.compiler.spmd.find_products import find_products
from metalloid.compiler.spmd.form import Form
from metalloid.compiler.spmd.functions import functions_text
from metalloid.compiler.spmd.interleaved import find_groups
from metalloid.compiler.spmd.invariant_loads import mark_unchanging
from metalloid.compiler.spmd.linearise import Linearised
from metalloid.compiler.spmd.partings import forbidden_partings
from metalloid.compiler.spmd.plain_accesses import make_private_accesses_plain
from metalloid.compiler.spmd.prefetch import computes_much
from metalloid.compiler.spmd.private import interleave
from metalloid.compiler.spmd.prologue import EXISTING, existing_lanes, positions
from metalloid.compiler.spmd.recompute import recompute_behind_barriers
from metalloid.compiler.spmd.region_lines import Regions
from metalloid.compiler.spmd.regions import Crossing
from metalloid.compiler.spmd.shapes import VARYING, uniform
from metalloid.compiler.spmd.slots import places
from metalloid.compiler.spmd.split_at_barriers import split_at_barriers
from metalloid.compiler.spmd.streaming import streamable
from metalloid.compiler.spmd.threadgroup_variables import place_variables
from metalloid.compiler.spmd.together import keep_lanes_together
from metalloid.compiler.spmd.uses import find_uses
from metalloid.compiler.spmd.whole_matrices import keep_whole
from metalloid.compiler.spmd.writer import Writer, quoted


@dataclass(frozen=True)
class Vectorised:
    """The result of `vectorise`.

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
    collectors : Collectors or None
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
    collectors: Collectors | None


@dataclass(frozen=True)
class Scalar:
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


def parse(ir: str, scalar: Scalar, callees: Callees = NO_CALLEES) -> Function:
    """The function of one thread in a module without address spaces, ready for `vectorise`.

    Raises
    ------
    Unsupported
        If the function does what has no vector form.
    """
    function = parse_function(ir, scalar.name)
    place_variables(function, scalar.variables, function.parameters[scalar.memory])
    make_assertions(function)
    mark_unchanging(function, {function.parameters[i].name for i in scalar.read_only})
    _lower(function, callees)
    if not callees:
        mark_collected(function, function.parameters[scalar.memory])
    split_at_barriers(function)
    return function


def _lower(function: Function, callees: Callees) -> None:
    """The steps that any function needs."""
    pass_through_memory(function, callees)
    make_private_accesses_plain(function)
    expand_copies(function)
    find_products(function)
    take_apart(function)
    keep_as_bits(function, callees)


def vectorise_callees(
    ir: str, scalar: Scalar, callees: dict[str, Callee], form: Form
) -> list[Vectorised]:
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
        form_of_callee = Form(
            callee.vector_name, form.width, form.mask_bits, dict.fromkeys(places, VARYING), 0,
            vectors=places, masked=True,
        )  # fmt: skip
        interleave(function, form.width, callees)
        callees[name] = with_units(callee, function)
        made.append(vectorise(function, form_of_callee, callees))
    return made


def vectorise(function: Function, form: Form, callees: Callees = NO_CALLEES) -> Vectorised:
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
        keep_lanes_together(function, {function.parameters[place].name for place in form.shapes})
    graph = make_canonical(function)
    names = [parameter.name for parameter in function.parameters]
    recompute_behind_barriers(
        function, graph, {name for place, name in enumerate(names) if place not in form.shapes}
    )
    common = None
    if form.has_state:
        common = common_values(function, graph, {names[place] for place in form.common})
    divergence = _divergence(function, graph, form)
    collectors = _collectors(function, form)
    writer = Writer(divergence, form.mask_bits, collectors, callees)
    writer.first_index = names[form.index]
    writer.looks_ahead = form.streams or (not form.has_state and computes_much(function))
    writer.parameter_vectors.update((names[n], f"{names[n]}.lanes") for n in form.computed)
    writer.parameter_vectors.update((names[n], names[n]) for n in form.vectors)
    some = form.partial or form.masked
    linearised = Linearised(writer, EXISTING if some else None, form.has_state)
    writer.groups.update(find_groups(divergence))
    find_uses(writer, linearised)
    streamed, streamed_bytes = streamable(function, graph) if not callees else (set(), 0)
    if form.streams:
        writer.streamed.update(streamed)
    linearised.write()
    starts = [linearised.label(graph.entry), *linearised.regions]
    kept: set[str] = set()
    if linearised.regions:
        crossing = Crossing(
            function, graph, linearised.order, linearised.set_by, linearised.straight
        )
        kept = {slot for slot in writer.slots if crossing.is_crossed(slot)}
    slots, state_bytes = places(function, writer, kept, common or (), starts)
    existing = existing_lanes(form) if form.partial else []
    definitions = [*slots, *positions(function, form), *existing]
    regions = Regions(writer.lines, starts)
    in_common = {quoted("s", value.name): number for number, value in enumerate(common or ())}
    return Vectorised(
        functions_text(function, form, definitions, regions),
        writer.declarations,
        state_bytes,
        regions.outcomes(),
        tuple(str(value.type) for value in common or ()),
        regions.uses(in_common),
        regions.changes(in_common),
        common is not None,
        0 if form.has_state else streamed_bytes,
        collectors,
    )


def _collectors(function: Function, form: Form) -> Collectors | None:
    """Those that the function's updates need, if the form has any."""
    if form.collectors is None:
        return None
    parameter, word = form.collectors
    numbers = map(number_of, function.instructions())
    # A number may occur twice, in the copy of a loop.
    count = 1 + max((number for number in numbers if number is not None), default=-1)
    return Collectors(
        function.parameters[parameter].name, word, count, form.width, has_rows=form.has_state
    )


def _divergence(function: Function, graph: Graph, form: Form) -> Divergence:
    """Where lanes part, after matrices have got the form that they keep."""
    shapes = {
        parameter.name: form.shapes.get(place, uniform(form.width))
        for place, parameter in enumerate(function.parameters)
    }
    forbidden = forbidden_partings(function, graph) if form.is_strict else {}
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
    return find() if keep_whole(function, found, pairs=form.mask_bits == 1) else found
