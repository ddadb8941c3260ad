"""Inserts polls of a flag by which the host cancels kernels.

A running kernel cannot be stopped without destroying its context, and with it all memory of the
device. So a kernel polls a flag of its module, and exits when the flag is set:

* at the entry of kernels with loops: a long grid ends with the threads that are running;
* at the back edges of loops without a known bound, once in `_PERIOD` iterations. Loops with a
  counter are bounded. A poll in each iteration costs small loops a factor of three.

A poll reads past the first-level cache, which is not coherent. If all warps of a grid read the same
word, they wait for each other: 2.3 us on an H200 for the entry alone. So there are `_COPIES` of the
flag, in cache lines of their own, and a multiprocessor reads one of them.

The pass edits the text of PTX, as loops must be found after LLVM has rotated and unrolled them: a
poll in LLVM IR would stand in each copy of an unrolled iteration. PTX has no `Function`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from metalloid.compiler.ir.cfg import immediate_dominators, reverse_postorder

#: The copies of the flag, in each module that has loops.
CANCEL_SYMBOL = "mtl_cancelled"
_COPIES = 32  # a power of two
_LINE_BYTES = 128
CANCEL_BYTES = _COPIES * _LINE_BYTES
_PERIOD = 256

_FUNCTION = re.compile(r"^[^\n]*\.(?:entry|func)\b[^\n;]*\n(?:[^{}\n;]*\n)*\{\n", re.M)
_HEAD = re.compile(r"^\.address_size \d+\n", re.M)
_LABEL = re.compile(r"^(\$\w+):")
_BRANCH = re.compile(r"^\t(@!?(%\w+) )?bra(?:\.uni)? *\t(\$\w+);")
_JUMP = re.compile(r"^\tbrx\.idx(?:\.uni)? *\t%\w+, (\$\w+);")
_JUMP_TABLE = re.compile(r"^\t?(\$\w+): \.branchtargets([^;]*);", re.M)
_END = re.compile(r"^\t(?:ret|exit|trap);")
_DEFINITION = re.compile(r"^\t(?:@!?%\w+ )?([\w.:]+) *\t(\{[^}]*\}|%\w+(?:\|%\w+)?), (.*);$")
_STEP = re.compile(r"(?:add|sub|shr|shl)\.\w+$")
_REGISTERS = """\
	.reg .pred 	%mtl_p<2>;
	.reg .b32 	%mtl_r<2>;
	.reg .b64 	%mtl_rd;
"""
_POLL = f"""\
	mov.u32 	%mtl_r1, %smid;
	and.b32 	%mtl_r1, %mtl_r1, {_COPIES - 1};
	mov.u64 	%mtl_rd, {CANCEL_SYMBOL};
	mad.wide.u32 	%mtl_rd, %mtl_r1, {_LINE_BYTES}, %mtl_rd;
	ld.volatile.global.b32 	%mtl_r1, [%mtl_rd];
	setp.ne.b32 	%mtl_p1, %mtl_r1, 0;
	@%mtl_p1 exit;
"""


@dataclass
class _Block:
    """A basic block: lines of a function, by their numbers."""

    first: int
    last: int = -1
    successors: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Definition:
    """An instruction that writes registers."""

    block: int
    op: str
    operands: tuple[str, ...]


class _Body:
    """The control flow of a function, and the definitions of its registers.

    Blocks are numbered by their first lines.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.blocks = {block.first: block for block in _blocks(lines)}
        entry = next(iter(self.blocks))
        names = {first: str(first) for first in self.blocks}
        successors = {
            names[first]: [names[n] for n in block.successors if n in names]
            for first, block in self.blocks.items()
        }
        order = reverse_postorder(names[entry], successors.__getitem__)
        self.predecessors: dict[str, list[str]] = {name: [] for name in order}
        for name in order:
            for successor in successors[name]:
                self.predecessors[successor].append(name)
        self._dominator = immediate_dominators(order, self.predecessors)
        self._number = {name: position for position, name in enumerate(order)}
        self._successors = successors

    def dominates(self, above: str, below: str) -> bool:
        """Whether every path to `below` goes through `above`."""
        while self._number[below] > self._number[above]:
            below = self._dominator[below]
        return below == above

    def retreating_edges(self) -> Iterator[tuple[str, str]]:
        """Edges from a block to one that is not after it: each cycle has one."""
        for name, number in self._number.items():
            for successor in self._successors[name]:
                if self._number[successor] <= number:
                    yield name, successor

    def loops(self) -> dict[str, tuple[set[str], list[str]]]:
        """Blocks and latches of each natural loop by its header."""
        loops: dict[str, tuple[set[str], list[str]]] = {}
        for latch, header in self.retreating_edges():
            if not self.dominates(header, latch):
                continue
            blocks, latches = loops.setdefault(header, ({header}, []))
            latches.append(latch)
            todo = [latch]
            while todo:
                block = todo.pop()
                if block not in blocks:
                    blocks.add(block)
                    todo += self.predecessors[block]
        return loops

    def exits(self, block: str, inside: set[str]) -> str:
        """The predicate by which a block leaves a loop, or stays in it; empty if it does not."""
        own = self.blocks[int(block)]
        branch = _BRANCH.match(self.lines[own.last])
        leaves = any(str(successor) not in inside for successor in own.successors)
        return branch[2] if branch and branch[2] and leaves else ""

    def definitions(self, blocks: set[str]) -> dict[str, list[_Definition]]:
        """The definitions of each register in some blocks."""
        definitions: dict[str, list[_Definition]] = {}
        for name in blocks:
            block = self.blocks[int(name)]
            for line in self.lines[block.first : block.last + 1]:
                match = _DEFINITION.match(line)
                if match is None or match[1].startswith(("st.", "red.")):
                    continue
                operands = tuple(match[3].split(", "))
                for register in re.findall(r"%\w+", match[2]):
                    definition = _Definition(int(name), match[1], operands)
                    definitions.setdefault(register, []).append(definition)
        return definitions


def _blocks(lines: list[str]) -> Iterator[_Block]:
    labels = {m[1]: n for n, line in enumerate(lines) if (m := _LABEL.match(line))}
    tables = {
        table: [labels[label] for label in re.findall(r"\$\w+", targets)]
        for table, targets in _JUMP_TABLE.findall("\n".join(lines))
    }
    block = _Block(0)
    for number, line in enumerate(lines):
        if _LABEL.match(line) and number > block.first:
            block.last = number - 1
            block.successors.append(number)
            yield block
            block = _Block(number)
        branch, jump = _BRANCH.match(line), _JUMP.match(line)
        if not (branch or jump or _END.match(line)):
            continue
        block.last = number
        if branch:
            block.successors.append(labels[branch[3]])
        elif jump:
            block.successors += tables[jump[1]]
        if branch and branch[1]:
            block.successors.append(number + 1)
        yield block
        block = _Block(number + 1)
    block.last = len(lines) - 1
    if block.first < len(lines):
        yield block


def poll_loops(ptx: str) -> str:
    """Insert the polls into PTX.

    A module without loops is returned unchanged.
    """
    segments: list[str] = []
    end = 0
    for head in _FUNCTION.finditer(ptx):
        stop = ptx.index("\n}\n", head.end() - 1)
        segments += [ptx[end : head.end()], _with_polls(ptx[head.end() : stop])]
        end = stop
    text = "".join((*segments, ptx[end:]))
    if CANCEL_SYMBOL not in text:
        return ptx
    flags = f".visible .global .align {_LINE_BYTES} .b8 {CANCEL_SYMBOL}[{CANCEL_BYTES}];\n"
    return _HEAD.sub(lambda size: f"{size[0]}\n{flags}", text, count=1)


def _with_polls(text: str) -> str:
    lines = text.split("\n")
    start = next(n for n, line in enumerate(lines) if line and not line.startswith("\t."))
    body = _Body(lines[start:])
    edges = list(body.retreating_edges())
    if not edges:
        return text
    bounded = {header for header, loop in body.loops().items() if _is_bounded(body, *loop)}
    polled = {body.blocks[int(latch)].last for latch, header in edges if header not in bounded}
    code = [
        f"{_periodic_poll(f'$L__mtl_poll_{number}')}\n{line}" if number in polled else line
        for number, line in enumerate(body.lines)
    ]
    counter = "\tmov.b32 \t%mtl_r0, 0;\n" if polled else ""
    return "\n".join((*lines[:start], f"{_REGISTERS}{counter}{_POLL}", *code))


def _periodic_poll(label: str) -> str:
    return (
        "\tadd.s32 \t%mtl_r0, %mtl_r0, 1;\n"
        f"\tand.b32 \t%mtl_r1, %mtl_r0, {_PERIOD - 1};\n"
        "\tsetp.ne.b32 \t%mtl_p0, %mtl_r1, 0;\n"
        f"\t@%mtl_p0 bra \t{label};\n{_POLL}{label}:"
    )


def _is_bounded(body: _Body, blocks: set[str], latches: list[str]) -> bool:
    """Whether each iteration compares a counter with a bound, and may leave the loop by that."""
    definitions = body.definitions(blocks)

    def single(register: str) -> _Definition | None:
        """The definition of a register, if it is the only one and executed in each iteration."""
        values = definitions.get(register, [])
        if len(values) != 1 or not in_each_iteration(str(values[0].block)):
            return None
        return values[0]

    def in_each_iteration(block: str) -> bool:
        return all(body.dominates(block, latch) for latch in latches)

    def is_counter(register: str) -> bool:
        """Whether each iteration changes it by a constant, or it is the counter after its step."""
        step = single(register)
        if step is not None and step.op.startswith("mov."):
            step = single(step.operands[0])
        if step is None or not _STEP.match(step.op) or step.operands[1].startswith("%"):
            return False
        before = step.operands[0]
        update = single(before)
        if update is not None and update.op.startswith("mov."):
            update = single(update.operands[0])
        return update is step

    for block in blocks:
        predicate = body.exits(block, blocks)
        test = single(predicate) if predicate and in_each_iteration(block) else None
        if test is not None and test.op == "vote.sync.all.pred":
            test = single(test.operands[0])  # a warp leaves as soon as one thread does
        if test is None or not test.op.startswith("setp."):
            continue
        left, right = test.operands[:2]
        for counter, bound in ((left, right), (right, left)):
            if bound not in definitions and is_counter(counter):
                return True
    return False
