"""Several threads of Metal in one of CUDA, so that each has several loads under way.

A kernel that reads one number a thread waits for memory most of the time: on an H200 it reaches
80 % of the bandwidth, with two or four independent loads a thread all of it (docs/nvidia.md). So
small kernels get a second form, whose threads run the same thread of several threadgroups that
follow each other, step by step: first a load of all of them, then the next. Large grids use it.

Threads of different threadgroups have nothing in common but the device's memory, whose plain loads
and stores Metal does not order between them. So any order is right that keeps each thread's own,
and whether buffers overlap does not matter. What could make one thread wait for another, or order
its accesses, is refused: atomics, volatile accesses, fences, barriers, simdgroup functions,
threadgroup memory. Refused, too, is what would not pay: loops, where there is enough under way
already, and threads whose places lie a row from each other.

Where elements are small, the threads are neighbours of each other instead
(vectorized_coarsening.py).

At a branch all go on together if they agree. If they do not, they begin anew, one after the other:
branches that may part them have to come before the first store.
"""

from __future__ import annotations

import re

from metalloid.backends.cuda.compile.acyclic_blocks import Block, Loop, blocks_of, operands, parts
from metalloid.backends.cuda.compile.coarsened_kernel import BLOCK_INDEX, Neighbours, write_several
from metalloid.backends.cuda.compile.kernel_text import around_kernel
from metalloid.backends.cuda.compile.vectorized_coarsening import THREAD_INDEX, neighbours_in_one
from metalloid.msl.signature import Signature

_MOST = 4  # threads in one; more of them was slower
_MOST_LOADED = 48  # bytes that all of them load; what loads more has enough under way
_MOST_BESIDE = 64  # that neighbours load
_MOST_LINES = 800  # of all threads together

#: Of a threadgroup's extent in x and of is_even in launch_data, behind the words (entry.h).
_EXTENT_OFFSET, _EVEN_OFFSET = 12, 36
_KNOWN = re.compile(
    r"(?:(?:tail|musttail|notail) )?(?:add|addrspacecast|and|ashr|bitcast|call|extractelement|"
    r"extractvalue|fadd|fcmp|fdiv|fmul|fneg|fpext|fptosi|fptoui|fptrunc|freeze|frem|fsub|"
    r"getelementptr|icmp|insertelement|insertvalue|inttoptr|load|lshr|mul|or|phi|ptrtoint|sdiv|"
    r"select|sext|shl|shufflevector|sitofp|srem|store|sub|trunc|udiv|uitofp|urem|xor|zext)\b"
)
#: Accesses whose order others may see, and memory of the threadgroup.
_ORDERED = re.compile(r"addrspace\(3\)| volatile | atomic ")
_CALL = re.compile(r"(?:(?:tail|musttail|notail) )?call\b(?: [^@]*(@[\w.$]+)\()?")
_LOADED = re.compile(r"load (?:<(\d+) x )?([a-z]+)(\d*)")
_ATTRIBUTES = re.compile(r"^(?:declare|define) [^\n]*(@[\w.$]+)\([^\n]*#(\d+)", re.M)
_GROUP = re.compile(r"^attributes #(\d+) = \{([^\n]*)\}", re.M)
_OTHER_AXIS = re.compile(r"extractelement .*, i64 [12]$")
_PRODUCT = re.compile(r"mul (?:nuw |nsw )*i\d+ (%\S+), (%\S+)$")
_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


def add_several(ir: str, signature: Signature) -> tuple[str, int, bool]:
    """The module with a second form of its kernel, and how many threads that runs in one.

    The number is 1, and there is no second form, where that would not be right or not pay. Last,
    whether those threads are neighbours.
    """
    before, kernel, behind = around_kernel(ir)
    if kernel.count("\n") > 2 * _MOST_LINES:
        return ir, 1, False
    even_offset = 8 * max(1, len(signature.sources)) + _EVEN_OFFSET
    try:
        blocks = blocks_of(kernel, lambda blocks: _decide_even(blocks, even_offset))
    except Loop:
        return ir, 1, False
    pure = _pure(ir)
    beside = _Varying(blocks, pure, THREAD_INDEX, 16, _MOST_BESIDE)
    extent_offset = even_offset - _EVEN_OFFSET + _EXTENT_OFFSET
    count, places = neighbours_in_one(blocks, beside.names, extent_offset)
    is_beside = 1 < count <= beside.count
    varying = beside if is_beside else _Varying(blocks, pure, BLOCK_INDEX, _MOST, _MOST_LOADED)
    count = count if is_beside else varying.count
    if count == 1:
        return ir, 1, False
    neighbours = Neighbours(count, places, extent_offset) if is_beside else None
    text = write_several(kernel, blocks, varying.names, varying.varies, count, neighbours)
    return f"{before}{kernel}\n{text}{behind}", count, is_beside


def _decide_even(blocks: dict[str, Block], offset: int) -> None:
    """Take the branch for even grids, where a thread of a block is that of the threadgroup."""
    first = next(iter(blocks.values()))
    values = dict(parts(line) for line in first.lines)
    compared = re.match(r"icmp eq i32 (%\S+), 0$", values.get(first.condition, ""))
    loaded = re.match(r"load i32, ptr (%[^,]+),", values.get(compared[1], "")) if compared else None
    place = values.get(loaded[1], "") if loaded else ""
    if re.match(rf"getelementptr [^,]*, ptr %0, i64 {offset}$", place):
        first.condition, first.targets = "", first.targets[1:]


def _pure(ir: str) -> set[str]:
    """Functions that give the same for the same arguments, whoever calls them together."""
    groups = {
        number for number, text in _GROUP.findall(ir)
        if " memory(none)" in text and " convergent " not in text
    }  # fmt: skip
    return {name for name, number in _ATTRIBUTES.findall(ir) if number in groups}


class _Varying:
    """What differs among threads in which `index` differs, a call.

    Attributes
    ----------
    names : set of str
    count : int
        Threads to run in one; 1 if that would not be right or not pay.
    """

    def __init__(
        self, blocks: list[Block], pure: set[str], index: str, most: int, most_loaded: int
    ) -> None:
        self._index = index
        self.names: set[str] = set()
        self._launch = {"%0"}  # pointers to launch_data
        self._along: set[str] = set()  # what is one more for the next thread in x
        self.count = 1
        lines = loaded = 0
        stored: set[str] = set()  # blocks that may come behind a store, or have one
        for block in blocks:
            for result, code in map(parts, block.lines):
                if not _is_plain(code, pure) or self._goes_down(code):
                    return
                if self._goes_along(code):
                    self._along.add(result)
                if code.startswith("store "):
                    stored.add(block.name)
                if self.varies(code):
                    lines += 1
                    loaded += _loaded_bytes(code)
                    self.names |= {result} - {""}
                elif code.startswith("getelementptr ") and operands(code)[0] == "%0":
                    self._launch.add(result)
            parts_them = block.condition in self.names
            if parts_them and (block.name in stored or len(set(block.targets)) == 1):
                return
            if block.name in stored:
                stored.update(block.targets)
        if lines:
            self.count = most
        while self.count * loaded > most_loaded or self.count * lines > _MOST_LINES:
            self.count //= 2
        self.count = max(self.count, 1)

    def _goes_along(self, code: str) -> bool:
        if THREAD_INDEX in code:
            return True
        is_other = code.startswith(("load ", "store ")) or _OTHER_AXIS.match(code)
        return not is_other and not self._along.isdisjoint(operands(code))

    def _goes_down(self, code: str) -> bool:
        """Whether threads beside each other go to places far from each other.

        What they write then meets in the cache, with fewer of them the better.
        """
        factors = _PRODUCT.match(code)
        return factors is not None and not self._along.isdisjoint(factors.groups())

    def varies(self, code: str) -> bool:
        """Whether an instruction is one for each thread."""
        if self._index in code or code.startswith("store "):
            return True
        used = operands(code)
        if code.startswith("load ") and "!invariant.load" not in code:
            # Others may write to it meanwhile. A variable of the program has no name of this kind.
            return not used or used[0] not in self._launch
        return not self.names.isdisjoint(used)


def _is_plain(code: str, pure: set[str]) -> bool:
    """Whether nobody but the thread itself is concerned by an instruction's order."""
    if not _KNOWN.match(code) or _ORDERED.search(code):
        return False
    call = _CALL.match(code)
    return call is None or call[1] in pure


def _loaded_bytes(code: str) -> int:
    found = _LOADED.match(code)
    if found is None:
        return 0
    return int(found[1] or 1) * (_BYTES.get(found[2]) or -(-int(found[3] or 64) // 8))
