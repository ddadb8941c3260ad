"""The blocks that each region of a simdgroup's function runs.

A *region* is what runs between two barriers; its number says where it begins (0: the beginning).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from metalloid.compiler.vectorize.emitted_code import EmittedBlock
from metalloid.compiler.vectorize.slots import Slot

_LOCAL = re.compile(r'%(?:"[^"]+"|[\w.]+)')


class Regions:
    """The regions of a function: the blocks on the paths from each start, up to barriers.

    Parameters
    ----------
    blocks : sequence of EmittedBlock
        All blocks, in order.
    starts : sequence of str
        Label of each region's first block.
    """

    def __init__(self, blocks: Sequence[EmittedBlock], starts: Sequence[str]) -> None:
        self.blocks, self.starts = blocks, starts
        number = {block.label: number for number, block in enumerate(blocks)}
        self._regions: list[list[EmittedBlock]] = []
        for start in starts:
            reached: set[str] = set()
            todo = [start]
            while todo:
                label = todo.pop()
                if label not in reached:
                    reached.add(label)
                    todo += blocks[number[label]].successors
            self._regions.append([blocks[n] for n in sorted(map(number.__getitem__, reached))])

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def length(self) -> int:
        """Lines of all regions; those of a block that several run count for each."""
        return sum(1 + len(block.lines) for region in self._regions for block in region)

    def bodies(self) -> Iterator[list[str]]:
        """The lines of each region, in order."""
        for region in self._regions:
            yield [line for block in region for line in block.text()]

    def successors(self) -> tuple[int | None, ...]:
        """The value that each region returns, if known at compile time."""
        values = [{b.returned.value for b in region if b.returned} for region in self._regions]
        return tuple(each.pop() if len(each) == 1 else None for each in values)

    def live_in(self, numbers: Mapping[Slot, int]) -> tuple[set[int], ...]:
        """Which of the slots in `numbers` each region accesses."""
        return self._lines_in(lambda block: [slot for slot, _ in block.accesses], numbers)

    def defs(self, numbers: Mapping[Slot, int]) -> tuple[set[int], ...]:
        """Which of the slots in `numbers` each region stores."""
        return self._lines_in(
            lambda block: [slot for slot, is_store in block.accesses if is_store], numbers
        )

    def _lines_in(
        self, slots: Callable[[EmittedBlock], Iterable[Slot]], numbers: Mapping[Slot, int]
    ) -> tuple[set[int], ...]:
        return tuple(
            {numbers[slot] for block in region for slot in slots(block) if slot in numbers}
            for region in self._regions
        )


class Definitions:
    """Lines ``%name = ...``, of which each body gets those that it needs, and that these need."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._names = [_LOCAL.findall(line) for line in lines]
        self._position = {name: position for position, (name, *_) in enumerate(self._names)}

    def of(self, body: Sequence[str]) -> list[str]:
        """The declarations that `body` needs."""
        todo = _LOCAL.findall("\n".join(body))
        reached: set[int] = set()
        while todo:
            position = self._position.get(todo.pop())
            if position is not None and position not in reached:
                reached.add(position)
                todo += self._names[position]
        return [self._lines[position] for position in sorted(reached)]
