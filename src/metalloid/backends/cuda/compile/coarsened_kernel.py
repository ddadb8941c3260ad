"""The second form of a kernel as text: several threads in one (coarsening.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from metalloid.backends.cuda.compile.acyclic_blocks import NAME, Block, parts
from metalloid.backends.cuda.compile.vectorized_coarsening import THREAD_INDEX
from metalloid.compiler.entry import ENTRY_SYMBOL

#: The second form of a kernel, in the same module.
COARSENED_SYMBOL = "mtl_several"
#: The call that gives what threads of several threadgroups differ in.
BLOCK_INDEX = "@llvm.nvvm.read.ptx.sreg.ctaid.x("
_ACCESS = re.compile(r"(load|store) (\w+)(?: ([^,]+))?, (ptr(?: addrspace\(\d\))?) (%[\w.$-]+)")
_INCOMING = re.compile(r"\[ ([^\[\]]+), %([\w.$-]+) \]")


def write_several(
    kernel: str,
    blocks: list[Block],
    varying: set[str],
    varies: Callable[[str], bool],
    count: int,
    neighbours: Neighbours | None = None,
) -> str:
    """The function that runs `count` threads in one.

    Parameters
    ----------
    blocks : list of Block
        Each behind all that lead to it.
    varying : set of str
        Names of what differs among the threads.
    varies : callable
        Whether an instruction is one for each thread.
    neighbours : Neighbours, optional
        If the threads are.
    """
    head = kernel.split("\n", 1)[0].replace(f"@{ENTRY_SYMBOL}(", f"@{COARSENED_SYMBOL}(")
    lines = [
        head.replace("%0)", "%launch)"),
        f"  %block = tail call i32 {BLOCK_INDEX})",
        f"  %first = mul i32 %block, {count}",
        *(neighbours.beginning() if neighbours else ()),
        f"  br label %all.{blocks[0].name}",
        *_Together(blocks, varying, varies, count, neighbours).lines(),
    ]
    parting = [block.name for block in blocks if block.condition in varying]
    if parting:
        lines += _one_by_one(_Form(blocks, neighbours), blocks, parting, count)
    return "\n".join([*lines, "}\n"])


class Neighbours:
    """What is different where the threads are neighbours in x.

    A block runs as many threadgroups as each of its threads runs threads.

    Parameters
    ----------
    places : set of str
        Pointers to the element of each thread.
    extent_offset : int
        Of the threadgroup's extent in x in launch_data.
    """

    def __init__(self, count: int, places: set[str], extent_offset: int) -> None:
        self._count, self._places, self._extent_offset = count, places, extent_offset
        self._accesses = 0

    def beginning(self) -> Iterator[str]:
        """Threadgroup and place in it of the first one."""
        yield f"  %own = tail call i32 {THREAD_INDEX})"
        yield f"  %wide = mul i32 %own, {self._count}"
        yield f"  %extent.at = getelementptr i8, ptr %launch, i64 {self._extent_offset}"
        yield "  %extent = load i32, ptr %extent.at, align 4"
        yield "  %behind = udiv i32 %wide, %extent"
        yield "  %beside = urem i32 %wide, %extent"
        yield "  %group = add i32 %first, %behind"

    def index(self, name: str, code: str, number: str) -> str:
        """What a call gives that is different for neighbours; else nothing."""
        if BLOCK_INDEX in code:
            return f"  {name} = add i32 %group, 0"
        return f"  {name} = add i32 %beside, {number}" if THREAD_INDEX in code else ""

    def access(self, line: str, name: Callable[[str, int], str]) -> Iterator[str]:
        """An access of all to their elements; nothing if it is none."""
        result, code = parts(line)
        found = _ACCESS.match(code)
        if found is None or found[5] not in self._places:
            return
        kind, type_, value, pointer, place = found.groups()
        vector, at = f"<{self._count} x {type_}>", f"{pointer} {name(place, 0)}, align 16"
        self._accesses += 1
        whole = f"%wide.{self._accesses}"
        if kind == "load":
            yield f"  {whole} = load {vector}, {at}"
            for k in range(self._count):
                yield f"  {name(result, k)} = extractelement {vector} {whole}, i64 {k}"
            return
        before = "poison"
        for k in range(self._count):
            one = NAME.sub(lambda match, k=k: name(match[0], k), value)
            yield f"  {whole}.{k} = insertelement {vector} {before}, {type_} {one}, i64 {k}"
            before = f"{whole}.{k}"
        yield f"  store {vector} {before}, {at}"


class _Form:
    """Blocks and values under names of their own."""

    prefix = "one"

    def __init__(self, blocks: list[Block], neighbours: Neighbours | None) -> None:
        self._blocks, self._neighbours = blocks, neighbours
        self._defined = {result for block in blocks for result, _ in map(parts, block.lines)}
        self._ways = {(block.name, target) for block in blocks for target in block.targets}

    def name(self, name: str, thread: int) -> str:
        """What a value is called."""
        if name == "%0":
            return "%launch"
        return f"%{self.prefix}.{name[1:]}" if name in self._defined else name

    def origin(self, block: str, target: str) -> str:
        """From where `target` is entered behind `block`."""
        return f"%{self.prefix}.{block}"

    def line(self, line: str, thread: int, number: str, block: str) -> str:
        """An instruction; `number` is the thread's."""
        result, code = parts(line)
        if self._neighbours is not None:
            index = self._neighbours.index(self.name(result, thread), code, number)
            if index:
                return index
        if BLOCK_INDEX in code:
            return f"  {self.name(result, thread)} = add i32 %first, {number}"
        if code.startswith("phi "):
            incoming = (
                f"[ {self._renamed(value, thread)}, {self.origin(origin, block)} ]"
                for value, origin in _INCOMING.findall(code) if (origin, block) in self._ways
            )  # fmt: skip
            kind = code[: code.index(" [")]
            return f"  {self.name(result, thread)} = {kind} {', '.join(incoming)}"
        return self._renamed(line, thread)

    def branch(self, block: Block) -> str:
        """How a block goes on."""
        targets = [f"label %{self.prefix}.{target}" for target in block.targets]
        if block.condition:
            targets.insert(0, f"i1 {self.name(block.condition, 0)}")
        return f"  br {', '.join(targets)}"

    def _renamed(self, text: str, thread: int) -> str:
        return NAME.sub(lambda match: self.name(match[0], thread), text)


class _Together(_Form):
    """All threads, step by step."""

    prefix = "all"

    def __init__(
        self,
        blocks: list[Block],
        varying: set[str],
        varies: Callable[[str], bool],
        count: int,
        neighbours: Neighbours | None,
    ) -> None:
        super().__init__(blocks, neighbours)
        self._varying, self._varies, self._count = varying, varies, count
        self._parting = {
            (block.name, block.targets[1]) for block in blocks if block.condition in varying
        }

    def name(self, name: str, thread: int) -> str:
        if name in self._varying:
            return f"%all.{thread}.{name[1:]}"
        return super().name(name, thread)

    def origin(self, block: str, target: str) -> str:
        return f"%none.{block}" if (block, target) in self._parting else f"%all.{block}"

    def lines(self) -> Iterator[str]:
        """The blocks."""
        for block in self._blocks:
            yield f"all.{block.name}:"
            for line in block.lines:
                together = [*self._neighbours.access(line, self.name)] if self._neighbours else []
                yield from together
                if together:
                    continue
                for thread in range(self._count if self._varies(parts(line)[1]) else 1):
                    yield self.line(line, thread, str(thread), block.name)
            if not block.targets:
                yield "  ret void"
            elif block.condition in self._varying:
                yield from self._agree(block)
            else:
                yield self.branch(block)

    def _agree(self, block: Block) -> Iterator[str]:
        """A branch that all threads take together, if they can."""
        name, (if_true, if_false) = block.name, block.targets
        every = some = self.name(block.condition, 0)
        for thread in range(1, self._count):
            condition = self.name(block.condition, thread)
            yield f"  %every.{thread}.{name} = and i1 {every}, {condition}"
            yield f"  %some.{thread}.{name} = or i1 {some}, {condition}"
            every, some = f"%every.{thread}.{name}", f"%some.{thread}.{name}"
        yield f"  br i1 {every}, label %all.{if_true}, label %none.{name}"
        yield f"none.{name}:"
        yield f"  br i1 {some}, label %apart, label %all.{if_false}"


def _one_by_one(form: _Form, blocks: list[Block], parting: list[str], count: int) -> Iterator[str]:
    """One thread after the other, from the beginning."""
    entered = ", ".join(f"[ 0, %none.{name} ]" for name in parting)
    yield "apart:"
    yield f"  %thread = phi i32 {entered}, [ %next, %done ]"
    yield f"  br label %one.{blocks[0].name}"
    for block in blocks:
        yield f"one.{block.name}:"
        for line in block.lines:
            yield form.line(line, 0, "%thread", block.name)
        yield form.branch(block) if block.targets else "  br label %done"
    yield "done:"
    yield "  %next = add i32 %thread, 1"
    yield f"  %more = icmp ult i32 %next, {count}"
    yield "  br i1 %more, label %apart, label %end"
    yield "end:"
    yield "  ret void"
