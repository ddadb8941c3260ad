"""The text of a simdgroup's functions: one, or one for each region between two barriers."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.compiler.llvm.ir import Function
from metalloid.compiler.spmd.form import Form
from metalloid.compiler.spmd.prologue import LANE_COUNT, SIZE_X, SIZE_Y
from metalloid.compiler.spmd.regions import COMMON, STATE
from metalloid.compiler.spmd.rounds import used_lines
from metalloid.compiler.spmd.writer import VECTOR_ATTRIBUTES

#: Regions share blocks. So many copies of them all are made at most, or so many lines.
_MOST_COPIES, _MOST_LINES = 1.2, 3000

_REGION = "%mtl.region"


def functions_text(
    function: Function,
    form: Form,
    definitions: Sequence[str],
    lines: Sequence[str],
    starts: Sequence[str],
    bodies: Sequence[Sequence[str]],
) -> str:
    """The functions.

    Parameters
    ----------
    function : Function
        Of one thread.
    form : Form
    definitions : sequence of str
        Lines for the beginning of each function, as far as it needs them.
    lines : sequence of str
        All blocks.
    starts : sequence of str
        Label of each region's first block.
    bodies : sequence of sequence of str
        The blocks of each region.
    """
    if sum(map(len, bodies)) > max(_MOST_LINES, _MOST_COPIES * len(lines)):
        every = [*definitions, *_choice(starts), *lines]
        return "\n".join(_one_for_all(function, form, every, len(starts)))
    return "\n".join(
        _define(
            _head(function, form, f".{region}" if form.has_state else ""),
            [*used_lines(definitions, body), f"  br label %{start}", *body],
        )
        for region, (start, body) in enumerate(zip(starts, bodies, strict=True))
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
        parameters += [f"i32 {SIZE_X}", f"i32 {SIZE_Y}"]
    if form.has_state or form.partial:
        parameters.append(f"i32 {LANE_COUNT}")
    if form.has_state:
        parameters += [f"ptr noalias {STATE}", f"ptr noalias {COMMON}"]
    parameters += more
    named = f"{'i64' if form.has_state else 'void'} @{form.name}{suffix}"
    inlined = "" if form.partial and not form.computed else "alwaysinline "
    return f"{named}({', '.join(parameters)}) {inlined}{VECTOR_ATTRIBUTES}"
