"""The pass as a whole: one thread's function in, a simdgroup's function out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.compiler.llvm.ir import EMPTY_NODE, Function
from metalloid.compiler.llvm.parser import parse_function
from metalloid.compiler.llvm.types import I32
from metalloid.compiler.spmd.atomics import make_private_accesses_plain
from metalloid.compiler.spmd.canonical import make_canonical
from metalloid.compiler.spmd.components import take_apart
from metalloid.compiler.spmd.divergence import analyse
from metalloid.compiler.spmd.expand import expand_copies
from metalloid.compiler.spmd.interleaved import find_groups
from metalloid.compiler.spmd.linearise import Linearised, find_uses
from metalloid.compiler.spmd.matrices import find_products
from metalloid.compiler.spmd.private import interleave
from metalloid.compiler.spmd.recompute import mark_invariant, recompute_behind_barriers
from metalloid.compiler.spmd.regions import HEADER_BYTES, STATE, crossing_slots, split_at_barriers
from metalloid.compiler.spmd.rounds import known_outcome, region_bodies, used_lines
from metalloid.compiler.spmd.shapes import Shape, uniform
from metalloid.compiler.spmd.threadgroup_variables import place_variables
from metalloid.compiler.spmd.whole_matrices import keep_whole
from metalloid.compiler.spmd.writer import VECTOR_ATTRIBUTES, Writer

_ATTRIBUTES = re.compile(r"^attributes (#\d+) = \{([^\n]*)\}", re.M)
_NOT_FOR_VECTORS = re.compile(r'\b(?:noinline|optnone|mustprogress|willreturn)\b|memory\([^"]*?\) ')
_VECTOR_TYPE = re.compile(r"<(\d+) x (.*)>$")

#: Regions share blocks. So many copies of them all are made at most, or so many lines.
_MOST_COPIES, _MOST_LINES = 1.2, 3000

_REGION = "%mtl.region"
_ACTIVE, _SIZE_X, _SIZE_Y = "%mtl.active", "%mtl.size_x", "%mtl.size_y"


@dataclass(frozen=True)
class Form:
    """How the vector code of a function is to look.

    Attributes
    ----------
    name : str
        Of the function to define.
    width : int
        Lanes.
    mask_bits : int
        1 where the processor has mask registers, else the width of integers to keep masks in.
    shapes : dict of Shape
        Of those parameters that are not uniform, by position; the function is called with the
        values of lane 0.
    index : int
        Position of the parameter that is a thread's index in its threadgroup.
    partial : bool
        Whether lanes may be missing.
    has_state : bool
        Whether the simdgroup returns at barriers: then there are the size of the threadgroup in x
        and y, the number of lanes, and the state as well. The number alone if only `partial`.
    computed : tuple of int
        If the simdgroup covers several rows: positions of the parameters that are a thread's place
        in the threadgroup (x, y, z) and in the grid.
    """

    name: str
    width: int
    mask_bits: int
    shapes: dict[int, Shape]
    index: int
    partial: bool = False
    has_state: bool = False
    computed: tuple[int, ...] = ()


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
    """

    text: str
    declarations: dict[str, str]
    state_bytes: int
    outcomes: tuple[int | None, ...]


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


def parse(ir: str, scalar: Scalar) -> Function:
    """The function of one thread in a module without address spaces, ready for `vectorise`.

    Raises
    ------
    Unsupported
        If the function does what has no vector form.
    """
    function = parse_function(ir, scalar.name)
    place_variables(function, scalar.variables, function.parameters[scalar.memory])
    mark_invariant(function, {function.parameters[i].name for i in scalar.read_only})
    make_private_accesses_plain(function)
    expand_copies(function)
    find_products(function)
    take_apart(function)
    split_at_barriers(function)
    return function


def vectorise(function: Function, form: Form) -> Vectorised:
    """The function that does for a simdgroup of threads what `function` does for one.

    Parameters
    ----------
    function : Function
        As `parse` gives it; it is changed, and of no use afterwards.
    form : Form

    Raises
    ------
    Unsupported
        If the function does what has no vector form.
    """
    interleave(function, form.width)
    graph = make_canonical(function)
    uniform_parameters = {
        parameter.name
        for number, parameter in enumerate(function.parameters)
        if number not in form.shapes
    }
    recompute_behind_barriers(function, graph, uniform_parameters)
    shapes = {
        parameter.name: form.shapes.get(place, uniform(form.width))
        for place, parameter in enumerate(function.parameters)
    }
    divergence = analyse(function, graph, form.width, shapes, form.partial)
    if keep_whole(function, divergence, pairs=form.mask_bits == 1):
        divergence = analyse(function, graph, form.width, shapes, form.partial)
    writer = Writer(divergence, form.mask_bits)
    writer.first_index = function.parameters[form.index].name
    prologue = _positions(function, form)
    entry_mask = None
    if form.partial:
        prologue += _existing_lanes(form)
        entry_mask = "%mtl.existing"
    writer.parameter_vectors.update(
        (function.parameters[place].name, f"{function.parameters[place].name}.lanes")
        for place in form.computed
    )
    linearised = Linearised(writer, entry_mask, form.has_state)
    writer.groups.update(find_groups(divergence))
    find_uses(writer, linearised)
    linearised.write()
    names = list(writer.slots)
    kept = crossing_slots(divergence, linearised.order, names) if linearised.regions else set()
    slots, state_bytes = _slots(writer, kept)
    starts = [linearised.label(graph.entry), *linearised.regions]
    definitions = [*slots, *prologue]
    bodies = region_bodies(writer.lines, starts)
    if sum(map(len, bodies)) > max(_MOST_LINES, _MOST_COPIES * len(writer.lines)):
        texts = _one_for_all(
            function, form, [*definitions, *_choice(starts), *writer.lines], len(starts)
        )
    else:
        texts = [
            _define(
                _head(function, form, f".{region}" if form.has_state else ""),
                [*used_lines(definitions, body), f"  br label %{start}", *body],
            )
            for region, (start, body) in enumerate(zip(starts, bodies, strict=True))
        ]
    outcomes = tuple(known_outcome(body) for body in bodies)
    return Vectorised("\n".join(texts), writer.declarations, state_bytes, outcomes)


def _define(head: str, lines: Sequence[str]) -> str:
    return "\n".join((f"define internal {head} {{", "entry:", *lines, "}", ""))


def _choice(starts: list[str]) -> list[str]:
    """Where a function with all regions begins."""
    cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(starts))
    return [
        f"  switch i32 {_REGION}, label %nowhere [ {cases} ]",
        "nowhere:",
        "  unreachable",
    ]


def _one_for_all(function: Function, form: Form, lines: list[str], regions: int) -> list[str]:
    """One function with all regions, for what they share is long, and those that call it."""
    head = _head(function, form, "", (f"i32 {_REGION}",))
    texts = [_define(head.replace("alwaysinline ", ""), lines)]
    call = head.partition(") ")[0] + ")"
    for region in range(regions):
        called = call.replace(f"i32 {_REGION})", f"i32 {region})").replace("noalias ", "")
        texts.append(
            _define(
                _head(function, form, f".{region}"),
                [f"  %mtl.reached = call {called}", "  ret i64 %mtl.reached"],
            )
        )
    return texts


def _head(function: Function, form: Form, suffix: str, more: tuple[str, ...] = ()) -> str:
    """Result, name, parameters and attributes of a function."""
    parameters = [f"{p.type} {p.name}" for p in function.parameters]
    if form.has_state:
        parameters += [f"i32 {_SIZE_X}", f"i32 {_SIZE_Y}"]
    if form.has_state or form.partial:
        parameters.append(f"i32 {_ACTIVE}")
    if form.has_state:
        parameters.append(f"ptr noalias {STATE}")
    parameters += more
    named = f"{'i64' if form.has_state else 'void'} @{form.name}{suffix}"
    inlined = "" if form.partial and not form.computed else "alwaysinline "
    return f"{named}({', '.join(parameters)}) {inlined}{VECTOR_ATTRIBUTES}"


def _existing_lanes(form: Form) -> list[str]:
    """The mask of the lanes that there are."""
    lanes = f"<{form.width} x i32>"
    numbers = ", ".join(f"i32 {lane}" for lane in range(form.width))
    lines = [
        f"  %mtl.a0 = insertelement {lanes} poison, i32 {_ACTIVE}, i64 0",
        f"  %mtl.a1 = shufflevector {lanes} %mtl.a0, {lanes} poison, {lanes} zeroinitializer",
    ]
    compare = f"icmp ult {lanes} <{numbers}>, %mtl.a1"
    if form.mask_bits == 1:
        return [*lines, f"  %mtl.existing = {compare}"]
    wide = f"<{form.width} x i{form.mask_bits}>"
    return [
        *lines,
        f"  %mtl.a2 = {compare}",
        f"  %mtl.existing = sext <{form.width} x i1> %mtl.a2 to {wide}",
    ]


def _positions(function: Function, form: Form) -> list[str]:
    """Positions of threads whose simdgroup covers several rows, from their index."""
    if not form.computed:
        return []
    lanes = f"<{form.width} x {I32}>"
    parameters = function.parameters
    numbers = ", ".join(f"i32 {lane}" for lane in range(form.width))
    lines: list[str] = []

    def splat(name: str, scalar: str) -> str:
        lines.append(f"  {name}.0 = insertelement {lanes} poison, i32 {scalar}, i64 0")
        lines.append(
            f"  {name} = shufflevector {lanes} {name}.0, {lanes} poison, {lanes} zeroinitializer"
        )
        return name

    def define(name: str, text: str) -> str:
        lines.append(f"  {name} = {text}")
        return name

    first = splat("%mtl.first", parameters[form.index].name)
    index = define("%mtl.index", f"add {lanes} {first}, <{numbers}>")
    width = splat("%mtl.width", _SIZE_X)
    height = splat("%mtl.height", _SIZE_Y)
    row = define("%mtl.row", f"udiv {lanes} {index}, {width}")
    x = define("%mtl.x", f"urem {lanes} {index}, {width}")
    y = define("%mtl.y", f"urem {lanes} {row}, {height}")
    z = define("%mtl.z", f"udiv {lanes} {row}, {height}")
    places = form.computed
    for place, vector in zip(places[:3], (x, y, z), strict=True):
        define(f"{parameters[place].name}.lanes", f"add {lanes} {vector}, zeroinitializer")
    for place, own, vector in zip(places[3:], places[:3], (x, y, z), strict=True):
        # The origin of the threadgroup is what lane 0's two positions differ by.
        name = parameters[place].name
        origin = define(f"{name}.origin", f"sub i32 {name}, {parameters[own].name}")
        define(f"{name}.lanes", f"add {lanes} {splat(f'{name}.o', origin)}, {vector}")
    return lines


def _slots(writer: Writer, kept: set[str]) -> tuple[list[str], int]:
    """Lines that make the slots, on the stack or in the state, and the size of the state."""
    lines, offset = [], HEADER_BYTES
    for name, type in writer.slots.items():
        if name not in kept:
            lines.append(f"  {name} = alloca {type}, align 64")
            continue
        lines.append(f"  {name} = getelementptr i8, ptr {STATE}, i64 {offset}")
        offset += -(-_bytes(type) // 64) * 64
    return lines, offset


def _bytes(type: str) -> int:
    """An upper bound of the size of a slot."""
    match = _VECTOR_TYPE.match(type) or re.match(r"\[(\d+) x (.*)\]$", type)
    return int(match[1]) * _bytes(match[2]) if match else 8


def assemble(ir: str, scalar: str, functions: Sequence[Vectorised], rounds: str = "") -> str:
    """The module with the functions added, and the loops over simdgroups."""
    texts = [*(function.text for function in functions), rounds]
    defined = [
        name for text in texts for name in re.findall(r"^define [^@]*@([\w.]+)\(", text, re.M)
    ]
    for name in defined:
        ir = re.sub(rf"^declare [^\n]*@{re.escape(name)}\([^\n]*\n", "", ir, flags=re.M)
    declarations = {k: v for function in functions for k, v in function.declarations.items()}
    known = set(re.findall(r"^declare [^\n]*?(@[\w.$]+)\(", ir, re.M))
    added = [line for name, line in declarations.items() if name not in known]
    groups = re.search(rf"^define [^\n]*@{re.escape(scalar)}\([^\n]*?((?: #\d+)+)", ir, re.M)
    attributes = _vector_attributes(ir, groups[1] if groups else "")
    return "\n".join(
        (
            ir,
            *texts,
            f"attributes {VECTOR_ATTRIBUTES} = {{ {attributes} }}",
            f"{EMPTY_NODE} = !{{}}",
            "",
            *added,
            "",
        )
    )


def _vector_attributes(ir: str, groups: str) -> str:
    """The scalar function's attributes, as far as they hold for vector code."""
    known = dict(_ATTRIBUTES.findall(ir))
    kept = " ".join(_NOT_FOR_VECTORS.sub("", known.get(group, "")) for group in groups.split())
    # Tunings for some processors would split the widest registers.
    return f'{kept} "min-legal-vector-width"="512" "prefer-vector-width"="512"'
