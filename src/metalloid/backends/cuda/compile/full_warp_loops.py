"""Loop versioning for full warps (ispc's coherent loops): a copy that runs with all lanes active.

In a divergent loop like ``for (i = t; i < n; i += 256)`` the active threads are not known, so each
simdgroup function in it has to vote in each iteration, and to work with any member mask. This pass
adds a copy of the loop that a warp executes while all of its 32 threads stay in it::

    before:  br loop                       before:  br all active, copy, loop
    loop:    ...; br stay, loop, exit      copy:    ...; br all stay, copy, between
                                           between: br stay, loop, exit
                                           loop:    ...; br stay, loop, exit

LLVM propagates the full mask through the copy, as a branch on the mask (member_masks.py) dominates
it. The copy needs one vote in each iteration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from metalloid.backends.cuda.compile.acyclic_blocks import NAME, operands, split_result
from metalloid.backends.cuda.compile.kernel_text import ACTIVE, LABEL, around_kernel, with_blocks
from metalloid.compiler.ir.cfg import Loop

_VOTE = "@llvm.nvvm.vote.all.sync"
_BRANCH = re.compile(r"  br i1 (%[\w.$-]+), label (%[\w.$-]+), label (%[\w.$-]+)")
_TARGET = re.compile(r"label (%[\w.$-]+)")
_INCOMING = re.compile(r"\[ ([^\[\]]+), (%[\w.$-]+) \]")
#: Longer loops are not copied.
_MAX_LINES = 600


def version_full_warp_loops(ir: str, loops: Iterable[Loop]) -> str:
    """Add a copy for full warps before each of `loops` for which that is supported.

    Parameters
    ----------
    loops : iterable of Loop
        Loops that are not nested.
    """
    before, kernel, after = around_kernel(ir)
    head, *body, end, last = kernel.split("\n")
    for loop in loops:
        versioned = _Versioned(list(with_blocks(body)), loop)
        if versioned.is_supported():
            body = list(versioned.with_copy())
    kernel = "\n".join([head, *body, end, last])
    if _VOTE in kernel and _VOTE not in after:
        after += f"\ndeclare i1 {_VOTE}(i32, i1)\n"
    return before + kernel + after


class _Versioned:
    """A loop in the lines of a function, which come with their blocks."""

    def __init__(self, lines: list[tuple[str, str]], loop: Loop) -> None:
        self._lines, self._loop = lines, loop
        self._inside = [line for block, line in lines if block in loop.blocks]
        self._defined = {split_result(line)[0] for line in self._inside} - {""}
        ends = (line for block, line in lines if block == loop.latch and _BRANCH.match(line))
        self._end = next(ends, "")
        self._before, self._between = f"%before.{loop.header[1:]}", f"%between.{loop.header[1:]}"
        own = self._defined | loop.blocks
        self._copied = {name: f"%together.{name[1:]}" for name in own}

    def is_supported(self) -> bool:
        """Whether only the latch exits, and live-out values are used only by phis."""
        loop, inside = self._loop, self._inside
        exiting = [line for line in inside if not loop.blocks.issuperset(_TARGET.findall(line))]
        return (
            bool(loop.preheader)
            and exiting == [self._end]
            and len(inside) < _MAX_LINES
            and not any(line.startswith(('  %"', '"')) for line in inside)  # quoted names
            and all(
                self._latch_value(line)
                if self._is_live_out_phi(block, line)
                else block in loop.blocks or self._defined.isdisjoint(operands(line))
                for block, line in self._lines
            )
        )

    def _is_live_out_phi(self, block: str, line: str) -> bool:
        """Whether it is a phi with the latch as incoming block."""
        return " = phi " in line and block in (self._loop.header, *self._loop.exits)

    def _latch_value(self, phi: str) -> str:
        """The incoming value of a phi from the latch."""
        incoming = _INCOMING.findall(phi)
        return next((value for value, block in incoming if block == self._loop.latch), "")

    def with_copy(self) -> Iterator[str]:
        """The lines of the function and of the copy."""
        loop = self._loop
        for block, line in self._lines:
            if block == loop.header and LABEL.match(line):
                yield from self._write_copy()
            if self._is_live_out_phi(block, line):
                value = _renamed(self._latch_value(line), self._copied)
                line = f"{line}, [ {value}, {self._between} ]"
            if block == loop.header:
                line = _renamed(line, {loop.preheader: self._before})
            elif block == loop.preheader:
                line = _renamed(line, {loop.header: self._before})
            yield line

    def _write_copy(self) -> Iterator[str]:
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
                yield from self._write_latch()
            else:
                yield _renamed(line, names)

    def _write_latch(self) -> Iterator[str]:
        """The latch of the copy, and the block after it where not all threads stay."""
        between, header, match = self._between, self._loop.header, _BRANCH.match(self._end)
        assert match is not None
        condition, if_true, if_false = match.groups()
        condition, copied_header = self._copied.get(condition, condition), self._copied[header]
        yield f"  {between}.on = xor i1 {condition}, {'false' if if_true == header else 'true'}"
        yield f"  {between}.all = call i1 {_VOTE}(i32 -1, i1 {between}.on)"
        yield f"  br i1 {between}.all, label {copied_header}, label {between}"
        yield f"{between[1:]}:"
        yield f"  br i1 {condition}, label {if_true}, label {if_false}"


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return NAME.sub(lambda match: names.get(match[0], match[0]), text)
