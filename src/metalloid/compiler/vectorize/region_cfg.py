"""The finished lines of a simdgroup's function, by block, and those that each region runs.

A *region* is what runs between two barriers; its number says where it begins (0: the beginning).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

_TARGET = re.compile(r"label %([\w.]+)")
_LOCAL = re.compile(r'%(?:"[^"]+"|[\w.]+)')
_STORED = re.compile(r"  store .*, ptr (\S+|%\"[^\"]*\"), align \d+$")


def blocks_of(lines: Sequence[str]) -> dict[str, list[str]]:
    """The blocks by label, each with the line of its label."""
    blocks: dict[str, list[str]] = {}
    for line in lines:
        if line[0] != " ":
            block = blocks[line[:-1]] = []
        block.append(line)
    return blocks


def targets_of(block: Sequence[str]) -> list[str]:
    """Labels of the blocks that come next in the same region."""
    return _TARGET.findall("\n".join(block))


class Regions:
    """The regions of a function: the blocks on the paths from each start, up to barriers.

    Parameters
    ----------
    lines : sequence of str
        All blocks.
    starts : sequence of str
        Label of each region's first block.
    """

    def __init__(self, lines: Sequence[str], starts: Sequence[str]) -> None:
        self.lines, self.starts = lines, starts
        self._blocks = blocks_of(lines)
        targets = {name: targets_of(block) for name, block in self._blocks.items()}
        place = {name: place for place, name in enumerate(self._blocks)}
        self._names: list[list[str]] = []
        for start in starts:
            found: set[str] = set()
            todo = [start]
            while todo:
                name = todo.pop()
                if name not in found:
                    found.add(name)
                    todo += targets[name]
            self._names.append(sorted(found, key=place.__getitem__))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def length(self) -> int:
        """Lines of all regions, those that several have counted for each."""
        lengths = {name: len(block) for name, block in self._blocks.items()}
        return sum(lengths[name] for names in self._names for name in names)

    def bodies(self) -> Iterator[list[str]]:
        """The lines of each region, in the order of the text."""
        for names in self._names:
            yield [line for name in names for line in self._blocks[name]]

    def outcomes(self) -> tuple[int | None, ...]:
        """What each region returns, where that is known now."""
        last = {name: block[-1] for name, block in self._blocks.items()}
        returned = {n: line.split()[-1] for n, line in last.items() if line.startswith("  ret ")}
        found = [{returned[name] for name in names if name in returned} for names in self._names]
        known = [min(each) if len(each) == 1 else "" for each in found]
        return tuple(int(number) if number.isdigit() else None for number in known)

    def uses(self, numbers: Mapping[str, int]) -> tuple[set[int], ...]:
        """Which of the slots in `numbers` each region names."""
        return self._found_in(lambda block: _LOCAL.findall("\n".join(block)), numbers)

    def changes(self, numbers: Mapping[str, int]) -> tuple[set[int], ...]:
        """Which of the slots in `numbers` each region stores."""
        return self._found_in(
            lambda block: [match[1] for line in block if (match := _STORED.match(line))], numbers
        )

    def _found_in(
        self, named: Callable[[Sequence[str]], list[str]], numbers: Mapping[str, int]
    ) -> tuple[set[int], ...]:
        if not numbers:
            return (set(),) * len(self)
        of_block = {
            name: {numbers[slot] for slot in named(block) if slot in numbers}
            for name, block in self._blocks.items()
        }
        return tuple(set().union(*(of_block[name] for name in names)) for names in self._names)


class Definitions:
    """Lines ``%name = ...``, of which each body gets those that it needs, and that these need."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._names = [_LOCAL.findall(line) for line in lines]
        self._place = {name: place for place, (name, *_) in enumerate(self._names)}

    def of(self, body: Sequence[str]) -> list[str]:
        """Those that `body` needs."""
        todo = _LOCAL.findall("\n".join(body))
        found: set[int] = set()
        while todo:
            place = self._place.get(todo.pop())
            if place is not None and place not in found:
                found.add(place)
                todo += self._names[place]
        return [self._lines[place] for place in sorted(found)]
