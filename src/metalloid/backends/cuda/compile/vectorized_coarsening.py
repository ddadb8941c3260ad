"""Threads beside each other in one of CUDA, for kernels whose elements are small.

A warp of threads that read a byte each asks for 32 bytes at a time, which memory is not quick at,
however many such loads are under way. Where neighbours in x read and write neighbours in memory,
`several` takes threads that follow each other, instead of the same thread of threadgroups that do,
and LLVM makes 16-byte accesses of theirs. Those want addresses that are multiples of 16, and
threadgroups whose extent in x is a multiple of the number of threads: a launch looks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from metalloid.backends.cuda.compile.acyclic_blocks import Block, operands, parts

#: The call that gives what neighbours differ in.
THREAD_INDEX = "@llvm.nvvm.read.ptx.sreg.tid.x("
_WIDE = 16  # bytes of an access
_LARGE = 4  # bytes of an element from which single accesses are quick

_PLACE = re.compile(
    r"getelementptr (?:inbounds |nuw |nusw )*(\w+), ptr(?: addrspace\(\d\))? (%\S+), i64 (\S+)$"
)
_INCOMING = re.compile(r"\[ ([^\[\]]+), %([\w.$-]+) \]")
_ACCESS = re.compile(
    r"(?:load|store) (<[^>]*>|\w+)(?: [^,]+)?, ptr(?: addrspace\(\d\))? (%[\w.$-]+)(?=,|$)"
)
_SAME = re.compile(
    r"(?:zext|freeze|insertelement <\d x i32> poison, .*, i64 0$|extractelement .*, i64 0$|"
    r"shufflevector .*, <\d x i32> <i32 0,)"
)
_OTHER_AXIS = re.compile(r"extractelement .*, i64 [12]$")
_OTHER_PLACE = re.compile(r"insertelement <\d x i32> %\S+, i32 \S+, i64 [12]$")
_LANES = re.compile(r"@mtl_|laneid|activemask")
_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


def neighbours_in_one(
    blocks: list[Block], varying: set[str], extent_offset: int
) -> tuple[int, set[str]]:
    """How many neighbours an access of 16 bytes serves, and pointers to the element of each.

    The number is 1 if that is not known to work or to pay.

    Parameters
    ----------
    varying : set of str
        Names of what differs among them.
    extent_offset : int
        Of the threadgroup's extent in x in launch_data.
    """
    known = _Known(blocks, varying)
    least = _WIDE
    for block in blocks:
        for result, code in map(parts, block.lines):
            if _LANES.search(code):
                return 1, set()
            if code.startswith(("load ", "store ")):
                access = _ACCESS.match(code)
                if access and not known.differs(access[2]):
                    known.take(result, access[1], access[2], extent_offset)
                    continue
                size = _BYTES.get(access[1], 0) if access else 0
                if access is None or not size or known.places.get(access[2]) != size:
                    return 1, set()
                least = min(least, size)
            else:
                known.look(result, code)
    return (_WIDE // least if least < _LARGE else 1), set(known.places)


class _Known:
    """What is known of values. Of vectors it is said of the first component, the one in x.

    Attributes
    ----------
    along : set of str
        What is one more for the next thread, from a multiple of their number on.
    multiples : set of str
        What is the same for all, and such a multiple.
    places : dict of int
        Pointers to neighbouring elements, with their bytes.
    bases : set of str
        Pointers that the launch brings.
    """

    def __init__(self, blocks: list[Block], varying: set[str]) -> None:
        self._blocks = {block.name for block in blocks}
        self._varying, self._common = varying, set[str]()
        self.along, self.multiples, self.bases = set[str](), set[str](), set[str]()
        self._launch = {"%0": 0}  # pointers into launch_data, with their offsets
        self.places: dict[str, int] = {}

    def differs(self, name: str) -> bool:
        """Whether it is not the same for all."""
        return name in self._varying and name not in self._common

    def take(self, result: str, type_: str, place: str, extent_offset: int) -> None:
        """Learn from a load that is the same for all."""
        offset = self._launch.get(place)
        if type_ == "ptr" and offset is not None:
            self.bases.add(result)
        elif type_ == "i32" and offset == extent_offset:
            self.multiples.add(result)

    def look(self, result: str, code: str) -> None:
        """Learn from an instruction that is no access."""
        used = operands(code)
        if place := _PLACE.match(code):
            if place[2] == "%0" and place[1] == "i8" and place[3].isdigit():
                self._launch[result] = int(place[3])
            if place[3] in self.along and place[2] in self.bases:
                self.places[result] = _BYTES.get(place[1], 0)
        elif code.startswith("addrspacecast ") and used[0] in self.bases:
            self.bases.add(result)
        elif THREAD_INDEX in code or self._is(self.along, code, used):
            self.along.add(result)
        elif not any(map(self.differs, used)) or (
            _OTHER_AXIS.match(code) and used[0] in self.along
        ):
            self._common.add(result)
            if self._is(self.multiples, code, used):
                self.multiples.add(result)

    def _is(self, kind: set[str], code: str, used: list[str]) -> bool:
        if _OTHER_PLACE.match(code):
            return used[0] in kind
        if code.startswith("phi "):
            values = [value for value, origin in _INCOMING.findall(code) if origin in self._blocks]
            return bool(values) and kind.issuperset(values)
        if code.startswith("add "):  # of two names: a number may be anything
            return len(used) == 2 and any(
                one in kind and other in self.multiples for one, other in (used, used[::-1])
            )
        if code.startswith("mul "):
            return kind is self.multiples and not kind.isdisjoint(used)
        return bool(_SAME.match(code)) and used[:1] != [] and used[0] in kind


def is_aligned(words: Sequence[int]) -> bool:
    """Whether accesses of 16 bytes may begin where these words point to."""
    together = 0
    for word in words:
        together |= word
    return together % _WIDE == 0
