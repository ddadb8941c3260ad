"""The blocks of a kernel without loops, line by line, for `several`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from metalloid.backends.cuda.compile.kernel_text import FIRST, LABEL

NAME = re.compile(r"%[\w.$-]+")
_RESULT = re.compile(r"  (%[\w.$-]+) = (.*)$")
_BRANCH = re.compile(r"  br (?:i1 (\S+), label %([\w.$-]+), )?label %([\w.$-]+)")
_MOST = 256  # blocks


class Loop(Exception):
    """The kernel has loops, more blocks than are looked at, or other ends than branches."""


@dataclass
class Block:
    """A block.

    Attributes
    ----------
    name : str
        Without the sign.
    lines : list of str
        All but how it ends.
    condition : str
        If it branches.
    targets : tuple of str
        Blocks to go on with: where the condition holds, and where it does not; one without
        condition; none at the end of the function.
    """

    name: str
    lines: list[str] = field(default_factory=list)
    condition: str = ""
    targets: tuple[str, ...] = ()


def parts(line: str) -> tuple[str, str]:
    """Name of what an instruction computes, and the instruction."""
    found = _RESULT.match(line)
    return (found[1], found[2]) if found else ("", line.strip())


def operands(code: str) -> list[str]:
    """Names in an instruction."""
    return NAME.findall(code)


def blocks_of(kernel: str, simplify: Callable[[dict[str, Block]], None]) -> list[Block]:
    """The blocks that can be reached, each behind all that lead to it.

    Parameters
    ----------
    simplify : callable
        Takes the blocks by name before ways are followed, and may take some away.

    Raises
    ------
    Loop
    """
    blocks = {block.name: block for block in _read(kernel.rstrip().split("\n")[1:-1])}
    if len(blocks) > _MOST:
        raise Loop
    simplify(blocks)
    order: list[Block] = []
    is_done: dict[str, bool] = {}

    def visit(name: str) -> None:
        if name not in blocks or is_done.get(name) is False:
            raise Loop
        if name not in is_done:
            is_done[name] = False
            for target in blocks[name].targets:
                visit(target)
            is_done[name] = True
            order.append(blocks[name])

    visit(FIRST[1:])
    return order[::-1]


def _read(lines: Iterable[str]) -> Iterator[Block]:
    """The blocks that end by a branch or a return."""
    block = Block(FIRST[1:])
    for line in lines:
        if label := LABEL.match(line):
            block = Block(label[1])
        elif branch := _BRANCH.match(line):
            condition, if_true, otherwise = branch.groups()
            block.condition = condition or ""
            block.targets = (if_true, otherwise) if condition else (otherwise,)
            yield block
        elif line.startswith("  ret void"):
            yield block
        elif line.strip():
            block.lines.append(line)
