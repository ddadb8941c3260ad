"""Writes the coarsened kernel (coarsening.py) as IR text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from metalloid.backends.cuda.compile.acyclic_blocks import NAME, Block, split_result
from metalloid.backends.cuda.compile.vectorized_coarsening import THREAD_INDEX
from metalloid.compiler.frontend.entry import ENTRY_SYMBOL

#: The coarsened kernel, in the same module.
COARSENED_SYMBOL = "mtl_several"
#: The call whose result distinguishes the threads of several threadgroups.
BLOCK_INDEX = "@llvm.nvvm.read.ptx.sreg.ctaid.x("
_ACCESS = re.compile(r"(load|store) (\w+)(?: ([^,]+))?, (ptr(?: addrspace\(\d\))?) (%[\w.$-]+)")
_INCOMING = re.compile(r"\[ ([^\[\]]+), %([\w.$-]+) \]")


def write_coarsened(
    kernel: str,
    blocks: list[Block],
    varying: set[str],
    varies: Callable[[str], bool],
    factor: int,
    vector_accesses: VectorAccesses | None = None,
) -> str:
    """The function whose threads run `factor` threads each.

    Parameters
    ----------
    blocks : list of Block
        In topological order.
    varying : set of str
        Names of values that vary among the threads.
    varies : callable
        Whether an instruction is executed for each thread.
    vector_accesses : VectorAccesses, optional
        If the threads are adjacent in x.
    """
    head = kernel.split("\n", 1)[0].replace(f"@{ENTRY_SYMBOL}(", f"@{COARSENED_SYMBOL}(")
    lines = [
        head.replace("%0)", "%launch)"),
        f"  %block = tail call i32 {BLOCK_INDEX})",
        f"  %first = mul i32 %block, {factor}",
        *(vector_accesses.prologue() if vector_accesses else ()),
        f"  br label %all.{blocks[0].name}",
        *_Interleaved(blocks, varying, varies, factor, vector_accesses).lines(),
    ]
    divergent = [block.name for block in blocks if block.condition in varying]
    if divergent:
        lines += _write_sequential(_Copy(blocks, vector_accesses), blocks, divergent, factor)
    return "\n".join([*lines, "}\n"])


class VectorAccesses:
    """Coarsening along x: indices, and vector accesses of adjacent threads.

    A block runs as many threadgroups as each of its threads runs threads.

    Parameters
    ----------
    element_pointers : set of str
        Pointers to the element of each thread.
    extent_offset : int
        Offset of the threadgroup's extent in x in launch_data.
    """

    def __init__(self, factor: int, element_pointers: set[str], extent_offset: int) -> None:
        self._factor, self._element_pointers, self._extent_offset = (
            factor,
            element_pointers,
            extent_offset,
        )
        self._accesses = 0

    def prologue(self) -> Iterator[str]:
        """Threadgroup of the first thread, and its index in it."""
        yield f"  %own = tail call i32 {THREAD_INDEX})"
        yield f"  %wide = mul i32 %own, {self._factor}"
        yield f"  %extent.at = getelementptr i8, ptr %launch, i64 {self._extent_offset}"
        yield "  %extent = load i32, ptr %extent.at, align 4"
        yield "  %behind = udiv i32 %wide, %extent"
        yield "  %beside = urem i32 %wide, %extent"
        yield "  %group = add i32 %first, %behind"

    def index(self, name: str, code: str, number: str) -> str:
        """The replacement of a call for an index; empty for other instructions."""
        if BLOCK_INDEX in code:
            return f"  {name} = add i32 %group, 0"
        return f"  {name} = add i32 %beside, {number}" if THREAD_INDEX in code else ""

    def access(self, line: str, name: Callable[[str, int], str]) -> Iterator[str]:
        """A vector access to the elements of all threads; nothing for other instructions."""
        result, code = split_result(line)
        found = _ACCESS.match(code)
        if found is None or found[5] not in self._element_pointers:
            return
        kind, type_, value, pointer_type, pointer = found.groups()
        vector, at = f"<{self._factor} x {type_}>", f"{pointer_type} {name(pointer, 0)}, align 16"
        self._accesses += 1
        whole = f"%wide.{self._accesses}"
        if kind == "load":
            yield f"  {whole} = load {vector}, {at}"
            for k in range(self._factor):
                yield f"  {name(result, k)} = extractelement {vector} {whole}, i64 {k}"
            return
        before = "poison"
        for k in range(self._factor):
            element = NAME.sub(lambda match, k=k: name(match[0], k), value)
            yield f"  {whole}.{k} = insertelement {vector} {before}, {type_} {element}, i64 {k}"
            before = f"{whole}.{k}"
        yield f"  store {vector} {before}, {at}"


class _Copy:
    """A copy of the blocks, with renamed blocks and values."""

    prefix = "one"

    def __init__(self, blocks: list[Block], vector_accesses: VectorAccesses | None) -> None:
        self._blocks, self._vector_accesses = blocks, vector_accesses
        self._defined = {result for block in blocks for result, _ in map(split_result, block.lines)}
        self._edges = {(block.name, target) for block in blocks for target in block.targets}

    def name(self, name: str, thread: int) -> str:
        """The name of a value in the copy."""
        if name == "%0":
            return "%launch"
        return f"%{self.prefix}.{name[1:]}" if name in self._defined else name

    def incoming_block(self, block: str, target: str) -> str:
        """The block from which `target` is entered on an edge from `block`."""
        return f"%{self.prefix}.{block}"

    def line(self, line: str, thread: int, number: str, block: str) -> str:
        """An instruction, for the thread `number`."""
        result, code = split_result(line)
        if self._vector_accesses is not None:
            index = self._vector_accesses.index(self.name(result, thread), code, number)
            if index:
                return index
        if BLOCK_INDEX in code:
            return f"  {self.name(result, thread)} = add i32 %first, {number}"
        if code.startswith("phi "):
            incoming = (
                f"[ {self._renamed(value, thread)}, {self.incoming_block(source, block)} ]"
                for value, source in _INCOMING.findall(code) if (source, block) in self._edges
            )  # fmt: skip
            kind = code[: code.index(" [")]
            return f"  {self.name(result, thread)} = {kind} {', '.join(incoming)}"
        return self._renamed(line, thread)

    def branch(self, block: Block) -> str:
        """The terminator of a block."""
        targets = [f"label %{self.prefix}.{target}" for target in block.targets]
        if block.condition:
            targets.insert(0, f"i1 {self.name(block.condition, 0)}")
        return f"  br {', '.join(targets)}"

    def _renamed(self, text: str, thread: int) -> str:
        return NAME.sub(lambda match: self.name(match[0], thread), text)


class _Interleaved(_Copy):
    """All threads, interleaved by instruction."""

    prefix = "all"

    def __init__(
        self,
        blocks: list[Block],
        varying: set[str],
        varies: Callable[[str], bool],
        factor: int,
        vector_accesses: VectorAccesses | None,
    ) -> None:
        super().__init__(blocks, vector_accesses)
        self._varying, self._varies, self._factor = varying, varies, factor
        self._divergent_edges = {
            (block.name, block.targets[1]) for block in blocks if block.condition in varying
        }

    def name(self, name: str, thread: int) -> str:
        if name in self._varying:
            return f"%all.{thread}.{name[1:]}"
        return super().name(name, thread)

    def incoming_block(self, block: str, target: str) -> str:
        return f"%none.{block}" if (block, target) in self._divergent_edges else f"%all.{block}"

    def lines(self) -> Iterator[str]:
        """The blocks."""
        for block in self._blocks:
            yield f"all.{block.name}:"
            for line in block.lines:
                vectorized = (
                    [*self._vector_accesses.access(line, self.name)]
                    if self._vector_accesses
                    else []
                )
                yield from vectorized
                if vectorized:
                    continue
                for thread in range(self._factor if self._varies(split_result(line)[1]) else 1):
                    yield self.line(line, thread, str(thread), block.name)
            if not block.targets:
                yield "  ret void"
            elif block.condition in self._varying:
                yield from self._write_divergent_branch(block)
            else:
                yield self.branch(block)

    def _write_divergent_branch(self, block: Block) -> Iterator[str]:
        """A branch that all threads take if their conditions agree."""
        name, (if_true, if_false) = block.name, block.targets
        every = some = self.name(block.condition, 0)
        for thread in range(1, self._factor):
            condition = self.name(block.condition, thread)
            yield f"  %every.{thread}.{name} = and i1 {every}, {condition}"
            yield f"  %some.{thread}.{name} = or i1 {some}, {condition}"
            every, some = f"%every.{thread}.{name}", f"%some.{thread}.{name}"
        yield f"  br i1 {every}, label %all.{if_true}, label %none.{name}"
        yield f"none.{name}:"
        yield f"  br i1 {some}, label %apart, label %all.{if_false}"


def _write_sequential(
    form: _Copy, blocks: list[Block], divergent: list[str], factor: int
) -> Iterator[str]:
    """A loop over the threads that restarts each of them."""
    entered = ", ".join(f"[ 0, %none.{name} ]" for name in divergent)
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
    yield f"  %more = icmp ult i32 %next, {factor}"
    yield "  br i1 %more, label %apart, label %end"
    yield "end:"
    yield "  ret void"
