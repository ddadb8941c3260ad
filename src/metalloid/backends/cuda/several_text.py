"""The second form of a kernel as text: several threads in one (several.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from metalloid.backends.cuda.plain_blocks import NAME, Block, parts
from metalloid.compiler.entry import ENTRY_SYMBOL

#: The second form of a kernel, in the same module.
SEVERAL_SYMBOL = "mtl_several"
#: The call that gives what threads of several threadgroups differ in.
BLOCK_INDEX = "@llvm.nvvm.read.ptx.sreg.ctaid.x("
_INCOMING = re.compile(r"\[ ([^\[\]]+), %([\w.$-]+) \]")


def write_several(
    kernel: str,
    blocks: list[Block],
    varying: set[str],
    varies: Callable[[str], bool],
    count: int,
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
    """
    head = kernel.split("\n", 1)[0].replace(f"@{ENTRY_SYMBOL}(", f"@{SEVERAL_SYMBOL}(")
    lines = [
        head.replace("%0)", "%launch)"),
        f"  %block = tail call i32 {BLOCK_INDEX})",
        f"  %first = mul i32 %block, {count}",
        f"  br label %all.{blocks[0].name}",
        *_Together(blocks, varying, varies, count).lines(),
    ]
    parting = [block.name for block in blocks if block.condition in varying]
    if parting:
        lines += _one_by_one(blocks, parting, count)
    return "\n".join([*lines, "}\n"])


class _Form:
    """Blocks and values under names of their own."""

    prefix = "one"

    def __init__(self, blocks: list[Block]) -> None:
        self._blocks = blocks
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
        self, blocks: list[Block], varying: set[str], varies: Callable[[str], bool], count: int
    ) -> None:
        super().__init__(blocks)
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


def _one_by_one(blocks: list[Block], parting: list[str], count: int) -> Iterator[str]:
    """One thread after the other, from the beginning."""
    form = _Form(blocks)
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
