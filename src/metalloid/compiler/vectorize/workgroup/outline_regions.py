"""The text of a simdgroup's functions: one, or one for each region between two barriers."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.compiler.ir.function import Function
from metalloid.compiler.vectorize.builder import VECTOR_ATTRIBUTES
from metalloid.compiler.vectorize.control_flow.prologue import (
    ENTRY_MASK,
    LANE_COUNT,
    SIZE_X,
    SIZE_Y,
)
from metalloid.compiler.vectorize.spec import VectorSpec
from metalloid.compiler.vectorize.workgroup.live_across_barriers import FRAME, UNIFORM_FRAME
from metalloid.compiler.vectorize.workgroup.region_cfg import Definitions, Regions

#: Regions share blocks. So many copies of them all are made at most, or so many lines.
_MAX_GROWTH, _MAX_LINES = 1.2, 3000

_REGION = "%mtl.region"


def functions_text(
    function: Function,
    form: VectorSpec,
    definitions: Sequence[str],
    regions: Regions,
) -> str:
    """The functions.

    Parameters
    ----------
    function : Function
        Of one thread.
    form : Form
    definitions : sequence of str
        Lines for the beginning of each function, as far as it needs them.
    regions : Regions
        What has been written.
    """
    lines = [line for block in regions.blocks for line in block.text()]
    if regions.length > max(_MAX_LINES, _MAX_GROWTH * len(lines)):
        every = [*definitions, *_choice(regions.starts), *lines]
        return "\n".join(_one_for_all(function, form, every, len(regions)))
    parameters = _parameters(function, form)
    used = Definitions(definitions)
    return "\n".join(
        _define(
            _head(form, f".{region}" if form.has_frame else "", parameters, _inlining(form)),
            [*used.of(body), f"  br label %{start}", *body],
        )
        for region, (start, body) in enumerate(zip(regions.starts, regions.bodies(), strict=True))
    )


def _define(head: str, lines: Sequence[str]) -> str:
    return "\n".join((f"define internal {head} {{", "entry:", *lines, "}", ""))


def _choice(starts: Sequence[str]) -> list[str]:
    """Where a function with all regions begins."""
    cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(starts))
    return [
        f"  switch i32 {_REGION}, label %nowhere [ {cases} ]",
        "nowhere:",
        "  unreachable",
    ]


def _one_for_all(function: Function, form: VectorSpec, lines: list[str], regions: int) -> list[str]:
    """One function with all regions, for what they share is long, and those that call it."""
    parameters = _parameters(function, form)
    texts = [_define(_head(form, "", [*parameters, f"i32 {_REGION}"]), lines)]
    arguments = [parameter.replace("noalias ", "") for parameter in parameters]
    for region in range(regions):
        given = ", ".join([*arguments, f"i32 {region}"])
        call = f"  %mtl.reached = call i64 @{form.name}({given})"
        head = _head(form, f".{region}", parameters, _inlining(form))
        texts.append(_define(head, [call, "  ret i64 %mtl.reached"]))
    return texts


def _parameters(function: Function, form: VectorSpec) -> list[str]:
    parameters = [
        f"<{form.width} x {p.type}> {p.name}" if position in form.vectors else f"{p.type} {p.name}"
        for position, p in enumerate(function.parameters)
    ]
    if form.masked:
        parameters.append(f"<{form.width} x i{form.mask_bits}> {ENTRY_MASK}")
    if form.has_frame:
        parameters += [f"i32 {SIZE_X}", f"i32 {SIZE_Y}"]
    if form.has_frame or form.partial:
        parameters.append(f"i32 {LANE_COUNT}")
    if form.has_frame:
        parameters += [f"ptr noalias {FRAME}", f"ptr noalias {UNIFORM_FRAME}"]
    return parameters


def _inlining(form: VectorSpec) -> str:
    """Whether a function is part of those that call it."""
    if form.masked:
        return "noinline "
    return "" if form.partial and not form.computed else "alwaysinline "


def _head(form: VectorSpec, suffix: str, parameters: Sequence[str], inlining: str = "") -> str:
    """Result, name, parameters and attributes of a function."""
    named = f"{'i64' if form.has_frame else 'void'} @{form.name}{suffix}"
    return f"{named}({', '.join(parameters)}) {inlining}{VECTOR_ATTRIBUTES}"
