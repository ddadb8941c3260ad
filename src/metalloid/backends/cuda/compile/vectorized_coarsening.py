"""Coarsening along x with 16-byte vector accesses, for kernels with small elements.

A warp whose threads load a byte each requests 32 bytes at a time, and such loads do not saturate
memory however many are in flight. Where adjacent threads in x access contiguous elements,
`coarsening` merges adjacent threads, instead of the same thread of adjacent threadgroups, and
their accesses become 16-byte vectors. Vector accesses require addresses that are multiples of 16,
and threadgroups whose extent in x is a multiple of the factor: each launch checks that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from metalloid.backends.cuda.compile.acyclic_blocks import Block, operands, split_result

#: The call whose result distinguishes adjacent threads.
THREAD_INDEX = "@llvm.nvvm.read.ptx.sreg.tid.x("
_ACCESS_BYTES = 16
_MIN_SCALAR_BYTES = 4  # elements of this size need no vector accesses

_ELEMENT = re.compile(
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
_OTHER_COMPONENT = re.compile(r"insertelement <\d x i32> %\S+, i32 \S+, i64 [12]$")
_LANE_FUNCTION = re.compile(r"@mtl_|laneid|activemask")
_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


def vectorization_factor(
    blocks: list[Block], varying: set[str], extent_offset: int
) -> tuple[int, set[str]]:
    """The number of elements in a 16-byte access, and the pointers to the elements.

    The number is 1 if vector accesses are not known to be correct or profitable.

    Parameters
    ----------
    varying : set of str
        Names of values that vary among adjacent threads.
    extent_offset : int
        Offset of the threadgroup's extent in x in launch_data.
    """
    known = _Analysis(blocks, varying)
    min_bytes = _ACCESS_BYTES
    for block in blocks:
        for result, code in map(split_result, block.lines):
            if _LANE_FUNCTION.search(code):
                return 1, set()
            if code.startswith(("load ", "store ")):
                access = _ACCESS.match(code)
                if access and not known.varies(access[2]):
                    known.visit_load(result, access[1], access[2], extent_offset)
                    continue
                size = _BYTES.get(access[1], 0) if access else 0
                if access is None or not size or known.elements.get(access[2]) != size:
                    return 1, set()
                min_bytes = min(min_bytes, size)
            else:
                known.visit(result, code)
    return (_ACCESS_BYTES // min_bytes if min_bytes < _MIN_SCALAR_BYTES else 1), set(known.elements)


class _Analysis:
    """Properties of values; of vectors those of the first component, the one in x.

    Attributes
    ----------
    consecutive : set of str
        Values that are greater by one in the next thread, and start at a multiple of the factor.
    multiples : set of str
        Uniform multiples of the factor.
    elements : dict of int
        Pointers to contiguous elements, with the bytes of an element.
    bases : set of str
        Pointers passed by the launch.
    """

    def __init__(self, blocks: list[Block], varying: set[str]) -> None:
        self._blocks = {block.name for block in blocks}
        self._varying, self._uniform = varying, set[str]()
        self.consecutive, self.multiples, self.bases = set[str](), set[str](), set[str]()
        self._launch = {"%0": 0}  # pointers into launch_data, with their offsets
        self.elements: dict[str, int] = {}

    def varies(self, name: str) -> bool:
        """Whether a value is not uniform."""
        return name in self._varying and name not in self._uniform

    def visit_load(self, result: str, type_: str, pointer: str, extent_offset: int) -> None:
        """Analyse a uniform load."""
        offset = self._launch.get(pointer)
        if type_ == "ptr" and offset is not None:
            self.bases.add(result)
        elif type_ == "i32" and offset == extent_offset:
            self.multiples.add(result)

    def visit(self, result: str, code: str) -> None:
        """Analyse an instruction that is no memory access."""
        used = operands(code)
        if element := _ELEMENT.match(code):
            if element[2] == "%0" and element[1] == "i8" and element[3].isdigit():
                self._launch[result] = int(element[3])
            if element[3] in self.consecutive and element[2] in self.bases:
                self.elements[result] = _BYTES.get(element[1], 0)
        elif code.startswith("addrspacecast ") and used[0] in self.bases:
            self.bases.add(result)
        elif THREAD_INDEX in code or self._has_property(self.consecutive, code, used):
            self.consecutive.add(result)
        elif not any(map(self.varies, used)) or (
            _OTHER_AXIS.match(code) and used[0] in self.consecutive
        ):
            self._uniform.add(result)
            if self._has_property(self.multiples, code, used):
                self.multiples.add(result)

    def _has_property(self, kind: set[str], code: str, used: list[str]) -> bool:
        if _OTHER_COMPONENT.match(code):
            return used[0] in kind
        if code.startswith("phi "):
            values = [value for value, block in _INCOMING.findall(code) if block in self._blocks]
            return bool(values) and kind.issuperset(values)
        if code.startswith("add "):  # of two names: a literal need not be a multiple
            return len(used) == 2 and any(
                left in kind and right in self.multiples for left, right in (used, used[::-1])
            )
        if code.startswith("mul "):
            return kind is self.multiples and not kind.isdisjoint(used)
        return bool(_SAME.match(code)) and used[:1] != [] and used[0] in kind


def is_aligned(words: Sequence[int]) -> bool:
    """Whether all these addresses are multiples of 16."""
    union = 0
    for word in words:
        union |= word
    return union % _ACCESS_BYTES == 0
