"""Loops that threads leave one by one, once more for as long as whole warps go on.

In a loop like ``for (i = t; i < n; i += 256)`` nobody knows who still is there, so each simdgroup
function in it has to ask, in each round, and to be ready for any answer. So a copy of the loop
stands in front of it, which a warp stays in while all of its 32 threads go on::

    before:  br loop                       before:  br all are here, copy, loop
    loop:    ...; br pass, loop, behind    copy:    ...; br all pass, copy, between
                                           between: br pass, loop, behind
                                           loop:    ...; br pass, loop, behind

That all are here in the copy LLVM sees by itself: behind a branch that compares the mask
(member_masks.py) with all ones it is all ones. The vote is the one question of a round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from metalloid.backends.cuda.compile.acyclic_blocks import NAME, operands, parts
from metalloid.backends.cuda.compile.kernel_text import ACTIVE, LABEL, around_kernel, with_blocks
from metalloid.compiler.llvm.cfg import Loop

_VOTE = "@llvm.nvvm.vote.all.sync"
_BRANCH = re.compile(r"  br i1 (%[\w.$-]+), label (%[\w.$-]+), label (%[\w.$-]+)")
_TARGET = re.compile(r"label (%[\w.$-]+)")
_ORIGIN = re.compile(r"\[ ([^\[\]]+), (%[\w.$-]+) \]")
#: Lines of a loop that is not copied for its length.
_LONG = 600


def keep_warps_together(ir: str, loops: Iterable[Loop]) -> str:
    """Put such a copy in front of each of `loops` that has the form for it.

    Parameters
    ----------
    loops : iterable of Loop
        None inside another.
    """
    before, kernel, behind = around_kernel(ir)
    head, *body, end, last = kernel.split("\n")
    for loop in loops:
        counting = _Counting(list(with_blocks(body)), loop)
        if counting.has_form():
            body = list(counting.with_copy())
    kernel = "\n".join([head, *body, end, last])
    if _VOTE in kernel and _VOTE not in behind:
        behind += f"\ndeclare i1 {_VOTE}(i32, i1)\n"
    return before + kernel + behind


class _Counting:
    """A loop in the lines of a function, each of which comes with its block."""

    def __init__(self, lines: list[tuple[str, str]], loop: Loop) -> None:
        self._lines, self._loop = lines, loop
        self._inside = [line for block, line in lines if block in loop.blocks]
        self._results = {parts(line)[0] for line in self._inside} - {""}
        ends = (line for block, line in lines if block == loop.latch and _BRANCH.match(line))
        self._end = next(ends, "")
        self._before, self._between = f"%before.{loop.header[1:]}", f"%between.{loop.header[1:]}"
        own = self._results | loop.blocks
        self._copied = {name: f"%together.{name[1:]}" for name in own}

    def has_form(self) -> bool:
        """Whether it ends at the latch alone, and its values are used behind it by phis."""
        loop, inside = self._loop, self._inside
        leaving = [line for line in inside if not loop.blocks.issuperset(_TARGET.findall(line))]
        return (
            bool(loop.preheader)
            and leaving == [self._end]
            and len(inside) < _LONG
            and not any(line.startswith(('  %"', '"')) for line in inside)  # names in quotes
            and all(
                self._last(line)
                if self._is_fed(block, line)
                else block in loop.blocks or self._results.isdisjoint(operands(line))
                for block, line in self._lines
            )
        )

    def _is_fed(self, block: str, line: str) -> bool:
        """Whether it is a phi that takes what comes from the latch."""
        return " = phi " in line and block in (self._loop.header, *self._loop.exits)

    def _last(self, phi: str) -> str:
        """What that is."""
        return next(
            (what for what, whence in _ORIGIN.findall(phi) if whence == self._loop.latch), ""
        )

    def with_copy(self) -> Iterator[str]:
        """The function's lines with those of the copy."""
        loop = self._loop
        for block, line in self._lines:
            if block == loop.header and LABEL.match(line):
                yield from self._copy()
            if self._is_fed(block, line):
                line = f"{line}, [ {_renamed(self._last(line), self._copied)}, {self._between} ]"
            if block == loop.header:
                line = _renamed(line, {loop.preheader: self._before})
            elif block == loop.preheader:
                line = _renamed(line, {loop.header: self._before})
            yield line

    def _copy(self) -> Iterator[str]:
        before, loop = self._before, self._loop
        names = {**self._copied, loop.preheader: before}
        yield f"{before[1:]}:"
        yield f"  {before}.members = call i32 {ACTIVE}()"
        yield f"  {before}.all = icmp eq i32 {before}.members, -1"
        yield f"  br i1 {before}.all, label {names[loop.header]}, label {loop.header}"
        for line in self._inside:
            if label := LABEL.match(line):
                yield f"together.{label[1]}:"
            elif line == self._end:
                yield from self._parting()
            else:
                yield _renamed(line, names)

    def _parting(self) -> Iterator[str]:
        """The end of the copy, and what follows where not all go on."""
        between, header, match = self._between, self._loop.header, _BRANCH.match(self._end)
        assert match is not None
        condition, if_true, if_false = match.groups()
        condition, again = self._copied.get(condition, condition), self._copied[header]
        yield f"  {between}.on = xor i1 {condition}, {'false' if if_true == header else 'true'}"
        yield f"  {between}.all = call i1 {_VOTE}(i32 -1, i1 {between}.on)"
        yield f"  br i1 {between}.all, label {again}, label {between}"
        yield f"{between[1:]}:"
        yield f"  br i1 {condition}, label {if_true}, label {if_false}"


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return NAME.sub(lambda match: names.get(match[0], match[0]), text)
