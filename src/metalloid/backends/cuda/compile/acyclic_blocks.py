"""The basic blocks of a kernel without loops, line by line, for `coarsening`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from metalloid.backends.cuda.compile.kernel_text import FIRST, LABEL

NAME = re.compile(r"%[\w.$-]+")
_RESULT = re.compile(r"  (%[\w.$-]+) = (.*)$")
_BRANCH = re.compile(r"  br (?:i1 (\S+), label %([\w.$-]+), )?label %([\w.$-]+)")
_MAX_BLOCKS = 256


class NotAcyclic(Exception):
    """The kernel has loops, too many blocks, or terminators other than branches and returns."""


@dataclass
class Block:
    """A basic block.

    Attributes
    ----------
    name : str
        Without ``%``.
    lines : list of str
        All but the terminator.
    condition : str
        Of a conditional branch, else empty.
    targets : tuple of str
        Successors: for a true condition, and for a false one; none after a return.
    """

    name: str
    lines: list[str] = field(default_factory=list)
    condition: str = ""
    targets: tuple[str, ...] = ()


def split_result(line: str) -> tuple[str, str]:
    """Name of an instruction's result, if any, and the instruction."""
    found = _RESULT.match(line)
    return (found[1], found[2]) if found else ("", line.strip())


def operands(code: str) -> list[str]:
    """Names in an instruction."""
    return NAME.findall(code)


def blocks_of(kernel: str, simplify: Callable[[dict[str, Block]], None]) -> list[Block]:
    """The reachable blocks in topological order.

    Parameters
    ----------
    simplify : callable
        Takes the blocks by name before they are sorted, and may remove edges.

    Raises
    ------
    NotAcyclic
    """
    blocks = {block.name: block for block in _read(kernel.rstrip().split("\n")[1:-1])}
    if len(blocks) > _MAX_BLOCKS:
        raise NotAcyclic
    simplify(blocks)
    order: list[Block] = []
    is_done: dict[str, bool] = {}

    def visit(name: str) -> None:
        if name not in blocks or is_done.get(name) is False:
            raise NotAcyclic
        if name not in is_done:
            is_done[name] = False
            for target in blocks[name].targets:
                visit(target)
            is_done[name] = True
            order.append(blocks[name])

    visit(FIRST[1:])
    return order[::-1]


def _read(lines: Iterable[str]) -> Iterator[Block]:
    """The blocks that end in a branch or a return."""
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
