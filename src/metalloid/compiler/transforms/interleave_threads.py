"""Thread coarsening: one thread does the work of several, interleaved instruction by instruction.

(Volkov, "Better performance at lower occupancy", GTC 2010; unroll-and-jam of the loop over
threads.) What is the same for the merged threads is computed once, and everything else for each of
them, under one flow of control. At a divergent branch all continue together if their conditions
agree. If they do not, the threads are restarted one after the other, by a copy of the code in a
loop: divergent branches have to come before the first store, and outside of loops.

Which threads are merged, which values vary among them, and where that is correct and profitable is
for the callers to say: `transforms.coarsen` merges rows of threads for vector code, and
`backends/cuda/compile/coarsening.py` threads of adjacent threadgroups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value, replace_predecessor
from metalloid.compiler.ir.types import I1, I32
from metalloid.compiler.transforms.clone_blocks import clone

#: Gives the value that a thread has in place of one of the original code.
OfThread = Callable[[Value, int], Value]


def _combine_nothing(instruction: Instruction, of_thread: OfThread) -> list[Instruction]:
    return []


@dataclass(frozen=True)
class MergedThreads:
    """The threads that one thread does the work of.

    Attributes
    ----------
    count : int
    varying : set of str
        Names of the values that vary among them.
    is_replicated : callable
        Whether an instruction is executed for each of them.
    indices : mapping of Value
        Parameters and results by which they differ: that of the first thread, to which the number
        of a thread is added.
    combine : callable
        The instructions in place of those of all threads; none if an instruction is an ordinary
        one.
    """

    count: int
    varying: Set[str]
    is_replicated: Callable[[Instruction], bool]
    indices: Mapping[str, Value]
    combine: Callable[[Instruction, OfThread], list[Instruction]] = _combine_nothing


def diverges(block: Block, varying: Set[str]) -> bool:
    """Whether a block ends in a branch at which threads may diverge."""
    return any(value.name in varying for value in block.end.operands)


def interleave_threads(function: Function, threads: MergedThreads, names: FreshNames) -> None:
    """Let a thread of `function` do the work of several."""
    _Interleaving(function, threads, names).run()


class _Interleaving:
    def __init__(self, function: Function, threads: MergedThreads, names: FreshNames) -> None:
        self._function, self._threads, self._fresh = function, threads, names
        self._names: dict[tuple[str, int], str] = {}

    def run(self) -> None:
        """Change the function."""
        function, threads = self._function, self._threads
        original = list(function.blocks.values())
        checks = {
            block.name: self._fresh(f"{block.name}.none")
            for block in original
            if diverges(block, threads.varying)
        }
        sequential = self._sequential([*checks.values()]) if checks else []
        for block in original:
            block.phis = [copy for phi in block.phis for copy in self._copies(phi)]
            block.body = [copy for i in block.body for copy in self._copies(i)]
        original[0].body[:0] = [
            self._index(parameter, number, self._of_thread(parameter, number).name)
            for parameter in function.parameters
            if parameter.name in threads.indices
            for number in range(1, threads.count)
        ]
        ordered = []
        for block in original:
            ordered.append(block)
            if block.name in checks:
                ordered.append(self._check(block, checks[block.name], sequential[0].name))
        function.blocks = {block.name: block for block in (*ordered, *sequential)}

    def _of_thread(self, value: Value, number: int) -> Value:
        if number == 0 or value.name not in self._threads.varying:
            return value
        key = value.name, number
        if key not in self._names:
            self._names[key] = self._fresh(f"{value.name}.thread{number}")
        return Value(value.type, self._names[key])

    def _index(self, value: Value, number: int | Value, result: str) -> Instruction:
        """An index of a thread."""
        if isinstance(number, int):
            number = Value(value.type, str(number))
        return Instruction("add", result, value.type, [self._threads.indices[value.name], number])

    def _copies(self, i: Instruction) -> list[Instruction]:
        """An instruction for each thread, or the one that serves them all."""
        threads = self._threads
        combined = threads.combine(i, self._of_thread)
        if combined or not threads.is_replicated(i):
            return combined or [i]
        if i.result in threads.indices:
            return [
                self._index(i.value, number, self._of_thread(i.value, number).name)
                for number in range(threads.count)
            ]
        return [
            replace(
                i,
                result=self._of_thread(i.value, number).name,
                operands=[self._of_thread(value, number) for value in i.operands],
                labels=[*i.labels],
            )
            for number in range(threads.count)
        ]

    def _check(self, block: Block, name: str, sequential: str) -> Block:
        """Let all threads take a branch whose conditions agree; a block for where they do not."""
        [condition] = block.end.operands
        if_true, if_false = block.end.labels
        every, any_ = condition, condition
        for number in range(1, self._threads.count):
            own = self._of_thread(condition, number)
            joined = [
                Instruction(op, self._fresh(f"{name}.{op}"), I1, [before, own])
                for op, before in (("and", every), ("or", any_))
            ]
            block.body += joined
            every, any_ = (i.value for i in joined)
        block.end = Instruction("br", operands=[every], labels=[if_true, name])
        replace_predecessor(self._function.blocks[if_false], block.name, name)
        end = Instruction("br", operands=[any_], labels=[sequential, if_false])
        return Block(name, end=end)

    def _sequential(self, predecessors: list[str]) -> list[Block]:
        """A loop over the threads that restarts each of them; it is entered from `predecessors`."""
        function, threads = self._function, self._threads
        original = list(function.blocks.values())
        new, _ = clone(function, list(function.blocks), ".sequential", self._fresh)
        header, latch, end = (self._fresh(f"%mtl.{name}") for name in ("sequential", "next", "end"))
        number = Instruction("phi", self._fresh("%mtl.thread"), I32)
        following = Instruction(
            "add", self._fresh("%mtl.thread.next"), I32, [number.value, Value(I32, "1")]
        )
        number.operands = [Value(I32, "0")] * len(predecessors) + [following.value]
        number.labels = [*predecessors, latch]
        indices = {
            parameter.name: self._index(
                parameter, number.value, self._fresh(f"{parameter.name}.sequential")
            )
            for parameter in function.parameters
            if parameter.name in threads.indices
        }
        copies = [function.blocks[new[block.name]] for block in original]
        for block, copy in zip(original, copies, strict=True):
            copy.body = [
                self._index(i.value, number.value, own.result)
                if i.result in threads.indices
                else own
                for i, own in zip(block.body, copy.body, strict=True)
            ]
            for i in copy.instructions():
                i.operands = [
                    indices[value.name].value if value.name in indices else value
                    for value in i.operands
                ]
            if copy.end.op == "ret":
                copy.end = Instruction("br", labels=[latch])
        more = Instruction(
            "icmp", self._fresh("%mtl.has_next"), I1,
            [following.value, Value(I32, str(threads.count))], predicate="ult",
        )  # fmt: skip
        enter = Instruction("br", labels=[copies[0].name])
        go_on = Instruction("br", operands=[more.value], labels=[header, end])
        return [
            Block(header, [number], [*indices.values()], enter),
            *copies,
            Block(latch, [], [following, more], go_on),
            Block(end, end=Instruction("ret")),
        ]
