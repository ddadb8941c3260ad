"""A simdgroup's function in pieces, from barrier to barrier, and the loops over simdgroups.

A *region* is what runs between two barriers; its number says where it begins (0: the beginning).
Each becomes a function, and each such function stands in a loop over the simdgroups of a
threadgroup: a *round*. So nothing is decided inside the loop, what simdgroups have in common is
computed once, and their instructions overlap.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from metalloid.compiler.spmd.writer import VECTOR_ATTRIBUTES

_TARGET = re.compile(r"label %([\w.]+)")
_LOCAL = re.compile(r'%(?:"[^"]+"|[\w.]+)')


def region_bodies(lines: Sequence[str], starts: Sequence[str]) -> list[list[str]]:
    """The blocks on the paths from each of the labels `starts`, in the order of the text."""
    blocks: dict[str, list[str]] = {}
    for line in lines:
        if line[0] != " ":
            block = blocks[line[:-1]] = []
        block.append(line)
    targets = {name: _TARGET.findall("\n".join(block)) for name, block in blocks.items()}
    bodies = []
    for start in starts:
        found: set[str] = set()
        todo = [start]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += targets[name]
        bodies.append([line for name, block in blocks.items() if name in found for line in block])
    return bodies


def used_lines(definitions: Sequence[str], body: Sequence[str]) -> list[str]:
    """Those of the `definitions` (lines ``%name = ...``) that `body` needs, and that these need."""
    needed = set(_LOCAL.findall("\n".join(body)))
    kept = []
    for line in reversed(definitions):
        name, *rest = _LOCAL.findall(line)
        if name in needed:
            needed.update(rest)
            kept.append(line)
    return kept[::-1]


def known_outcome(body: Sequence[str]) -> int | None:
    """What a region returns, if that is known now."""
    returned = {line.split()[-1] for line in body if line.startswith("  ret ")}
    number = returned.pop() if len(returned) == 1 else ""
    return int(number) if number.isdigit() else None


#: What a round is given: the region, what the kernel's function is given of the launch and the
#: threadgroup, the simdgroups to run, and their states.
_PARAMETERS = (
    "ptr %ids, ptr %words, ptr %memory, i32 %origin_x, i32 %origin_y, i32 %origin_z, "
    "i32 %size_x, i32 %size_y, i32 %threads, i32 %first, i32 %count, ptr %states"
)


def rounds_text(
    whole: str, part: str, outcomes: Sequence[int | None], width: int, state_bytes: int
) -> str:
    """The function ``mtl_round``, which runs a region of simdgroups that lie side by side.

    It returns the region that the first of them has come to in its upper half, and in the lower one
    whether all have, with all their lanes.

    Parameters
    ----------
    whole, part : str
        What the functions for a simdgroup with all lanes, and with some, are called; each may be
        empty if there is only the other.
    outcomes : sequence of int or None
        What the function for all lanes returns in each region, where that is known.
    width : int
        Lanes.
    state_bytes : int
        Distance of the states of two simdgroups.
    """
    numbers = range(len(outcomes))
    texts = [
        _round(whole, part, number, width, state_bytes, None if part else outcome)
        for number, outcome in enumerate(outcomes)
    ]
    cases = " ".join(f"i32 {number}, label %r{number}" for number in numbers)
    dispatch = [
        f"define internal i64 @mtl_round(i32 %region, {_PARAMETERS}) {VECTOR_ATTRIBUTES} {{",
        "entry:",
        f"  switch i32 %region, label %none [ {cases} ]",
    ]
    for number in numbers:
        dispatch += [
            f"r{number}:",
            f"  %reached{number} = call i64 @mtl_round.{number}({_PARAMETERS})",
            f"  ret i64 %reached{number}",
        ]
    dispatch += ["none:", "  unreachable", "}", ""]
    return "\n".join((*texts, *dispatch))


def _round(
    whole: str, part: str, number: int, width: int, state_bytes: int, outcome: int | None
) -> str:
    def call(name: str) -> str:
        return (
            f"call i64 @{name}.{number}(ptr %ids, ptr %words, ptr %memory, i32 %x, i32 %y, i32 %z, "
            "i32 %grid_x, i32 %grid_y, i32 %grid_z, i32 %index, i32 %size_x, i32 %size_y, "
            "i32 %members, ptr %state)"
        )

    if whole and part:
        calls = [
            "  br i1 %fits, label %whole, label %part", "whole:", f"  %of_whole = {call(whole)}",
            "  br label %done", "part:", f"  %of_part = {call(part)}", "  br label %done", "done:",
            "  %reached = phi i64 [ %of_whole, %whole ], [ %of_part, %part ]",
        ]  # fmt: skip
    else:
        calls = [f"  %reached = {call(whole or part)}", "  br label %done", "done:"]
    lines = [
        f"define internal i64 @mtl_round.{number}({_PARAMETERS}) {VECTOR_ATTRIBUTES} {{",
        "entry:",
        "  %end = add i32 %first, %count",
        f"  %first_index = mul nuw nsw i32 %first, {width}",
        *_divided("%first_index", "first_"),
        "  br label %simdgroup",
        "simdgroup:",
        "  %i = phi i32 [ %first, %entry ], [ %next, %done ]",
        *(_WATCHED if outcome is None else ()),
        *(_POSITION if whole else ()),
        f"  %index = mul nuw nsw i32 %i, {width}",
        "  %left = sub i32 %threads, %index",
        f"  %fits = icmp uge i32 %left, {width}",
        f"  %members = select i1 %fits, i32 {width}, i32 %left",
        # Rows end where simdgroups do, unless there are no functions for whole ones.
        *(() if whole else _divided("%index", "")),
        *(f"  %grid_{n} = add i32 %origin_{n}, %{n}" for n in "xyz"),
        "  %far = zext i32 %i to i64",
        f"  %offset = mul nuw nsw i64 %far, {state_bytes}",
        "  %state = getelementptr i8, ptr %states, i64 %offset",
        *calls,
        "  store i64 %reached, ptr %state",
        *(_WATCHING if outcome is None else ()),
        *(
            [f"  %x.sum = add i32 %x, {width}", *_carried("x", "y"), *_carried("y", "z")]
            if whole
            else ()
        ),
        "  %next = add nuw nsw i32 %i, 1",
        "  %is_last = icmp eq i32 %next, %end",
        "  br i1 %is_last, label %return, label %simdgroup",
        "return:",
        *(_REPORTED if outcome is None else [f"  ret i64 {outcome >> 32 << 32 | 1}"]),
        "}",
        "",
    ]
    return "\n".join(lines)


#: Position of a simdgroup's first thread, from simdgroup to simdgroup.
_POSITION = (
    "  %x = phi i32 [ %first_x, %entry ], [ %x.next, %done ]",
    "  %y = phi i32 [ %first_y, %entry ], [ %y.next, %done ]",
    "  %z = phi i32 [ %first_z, %entry ], [ %z.sum, %done ]",
)
#: Lines of a round in which simdgroups may come to different places.
_WATCHED = (
    "  %leader = phi i64 [ 0, %entry ], [ %leader.next, %done ]",
    "  %together = phi i1 [ true, %entry ], [ %together.next, %done ]",
)
_WATCHING = (
    "  %is_first = icmp eq i32 %i, %first",
    "  %leader.next = select i1 %is_first, i64 %reached, i64 %leader",
    "  %region = lshr i64 %reached, 32",
    "  %region_of_leader = lshr i64 %leader.next, 32",
    "  %is_same = icmp eq i64 %region, %region_of_leader",
    "  %arrived = trunc i64 %reached to i32",
    "  %missing = sub i32 32, %members",
    "  %all = lshr i32 -1, %missing",
    "  %is_complete = icmp eq i32 %arrived, %all",
    "  %has_ended = icmp eq i64 %region, 0",
    "  %is_fine = or i1 %is_complete, %has_ended",
    "  %is_both = and i1 %is_same, %is_fine",
    "  %together.next = and i1 %together, %is_both",
)
_REPORTED = (
    "  %where = and i64 %leader.next, -4294967296",
    "  %ok = zext i1 %together.next to i64",
    "  %result = or i64 %where, %ok",
    "  ret i64 %result",
)


def _divided(index: str, prefix: str) -> list[str]:
    """Position of the thread `index` of the threadgroup."""
    return [
        f"  %{prefix}x = urem i32 {index}, %size_x",
        f"  %{prefix}row = udiv i32 {index}, %size_x",
        f"  %{prefix}y = urem i32 %{prefix}row, %size_y",
        f"  %{prefix}z = udiv i32 %{prefix}row, %size_y",
    ]


def _carried(axis: str, higher: str) -> list[str]:
    """From one row, or layer, to the next."""
    return [
        f"  %{axis}.over = icmp uge i32 %{axis}.sum, %size_{axis}",
        f"  %{axis}.next = select i1 %{axis}.over, i32 0, i32 %{axis}.sum",
        f"  %{higher}.one = zext i1 %{axis}.over to i32",
        f"  %{higher}.sum = add i32 %{higher}, %{higher}.one",
    ]
