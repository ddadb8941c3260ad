"""Several rows of threads at a time: what they have in common is loaded once.

A thread of a naive product of matrices loads two numbers to multiply and add them. Threads below
each other load the same number of the second matrix, and their sums do not wait for each other. So
one thread does the work of several rows, with one flow of control: thread coarsening (Volkov,
"Better performance at lower occupancy", GTC 2010), or unroll-and-jam of the loop over threads. Each
thread's own arithmetic stays as it was.

Where rows would branch differently before anything is stored, as at a matrix's edge, they are
computed one after the other instead, by a copy of the code in a loop.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from metalloid.compiler.analysis.target_builtins import is_lanewise
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Block, Function, Instruction, Value, replace_predecessor
from metalloid.compiler.ir.types import I1, I32
from metalloid.compiler.transforms.clone_blocks import clone

#: Instructions of a function that is worth it.
_LONG = 160
_NOT_BY_ROWS = ("alloca", "atomicrmw", "cmpxchg", "fence", "switch")
_SEQUENTIAL = ".apart"


def coarsen(
    function: Function, along: Set[str], across: Set[str], index: str, max_carried: int
) -> int:
    """Let each thread do the work of several, if profitable; return how many.

    Parameters
    ----------
    function : Function
        Of one thread, without barriers.
    along : set of str
        Parameters that grow by one from row to row; those of the first row will be given.
    across : set of str
        Parameters by which lanes differ.
    index : str
        Parameter that is a thread's index in its threadgroup: what uses it is left as it is.
    max_carried : int
        Numbers of each lane that loops may carry on, of all rows.
    """
    instructions = list(function.instructions())
    if len(instructions) > _LONG or any(
        v.name == index for one in instructions for v in one.operands
    ):
        return 1
    graph = Graph(function)
    by_row, by_lane = (_computed_from(function, names) for names in (along, across))
    if not _can_be_joined(function, graph, by_row):
        return 1
    carried = _carried_on(function, graph, by_row, by_lane)
    rows = max_carried // carried if carried else 1
    if rows > 1:
        _Coarsening(function, by_row, along, rows).run()
    return max(rows, 1)


def _computed_from(function: Function, names: Set[str]) -> set[str]:
    """The values that depend on `names`, and `names`."""
    dependent, before = set(names), 0
    while len(dependent) > before:  # once more for what comes around a loop
        before = len(dependent)
        for one in function.instructions():
            if one.result and any(value.name in dependent for value in one.operands):
                dependent.add(one.result)
    return dependent


def _can_be_joined(function: Function, graph: Graph, by_row: Set[str]) -> bool:
    """Whether one flow of control can serve several rows, but for where it has stored nothing."""
    for one in function.instructions():
        if one.op in _NOT_BY_ROWS or (one.op == "call" and not is_lanewise(one.callee)):
            return False
    later_stores = 0
    for name in graph.order:
        if any(one.op in ("store", "copy", "fill") for one in function.blocks[name].body):
            later_stores |= graph.reach[name]
    return not any(
        graph.loop_of[name] or later_stores >> graph.number[name] & 1
        for name in graph.order
        if _branches_by_row(function.blocks[name], by_row)
    )


def _branches_by_row(block: Block, by_row: Set[str]) -> bool:
    return any(value.name in by_row for value in block.end.operands)


def _carried_on(function: Function, graph: Graph, by_row: Set[str], by_lane: Set[str]) -> int:
    """The number of loop-carried values of a row, if rows share loads in loops; else 0."""
    blocks = [function.blocks[name] for name in graph.order if graph.loop_of[name]]
    shared = (
        one.op == "load" and one.operands[0].name not in by_row and one.operands[0].name in by_lane
        for block in blocks
        for one in block.body
    )
    carried = [phi for block in blocks for phi in block.phis if phi.result in by_row & by_lane]
    return len(carried) if any(shared) else 0


class _Coarsening:
    def __init__(self, function: Function, by_row: Set[str], along: Set[str], rows: int) -> None:
        self._function, self._by_row, self._along, self._rows = function, by_row, along, rows

    def run(self) -> None:
        """Change the function."""
        blocks, by_row = self._function.blocks, self._by_row
        own = list(blocks.values())
        divergent = [block for block in own if _branches_by_row(block, by_row)]
        asking = [f"{block.name}.rows" for block in divergent]
        if divergent:
            self._add_rows_one_by_one(asking)
        for block in own:
            block.phis = [copy for phi in block.phis for copy in self._copies(phi)]
            block.body = [copy for one in block.body for copy in self._copies(one)]
        rows = [
            Instruction("add", self._of_row(value, row).name, value.type,
                        [value, Value(value.type, str(row))])
            for value in self._parameters()
            for row in range(1, self._rows)
        ]  # fmt: skip
        self._function.entry.body[:0] = rows
        for block, name in zip(divergent, asking, strict=True):
            self._ask(block, name)

    def _parameters(self) -> list[Value]:
        return [value for value in self._function.parameters if value.name in self._along]

    def _of_row(self, value: Value, row: int) -> Value:
        differs = row and value.name in self._by_row
        return Value(value.type, f"{value.name}.row{row}") if differs else value

    def _copies(self, one: Instruction) -> list[Instruction]:
        """An instruction for each row, or the one that serves them all."""
        if not any(value.name in self._by_row for value in one.operands):
            return [one]
        return [
            replace(
                one,
                result=self._of_row(one.value, row).name,
                operands=[self._of_row(value, row) for value in one.operands],
            )
            for row in range(self._rows)
        ]

    def _ask(self, block: Block, name: str) -> None:
        """Branch where all rows do, or else run them one by one."""
        [condition] = block.end.operands
        yes, no = block.end.labels
        every, any_ = condition, condition
        for row in range(1, self._rows):
            own = self._of_row(condition, row)
            joined = [
                Instruction(op, f"{name}.{op}{row}", I1, [before, own])
                for op, before in (("and", every), ("or", any_))
            ]
            block.body += joined
            every, any_ = (one.value for one in joined)
        block.end = Instruction("br", operands=[every], labels=[yes, name])
        end = Instruction("br", operands=[any_], labels=[f"%mtl{_SEQUENTIAL}", no])
        self._function.blocks[name] = Block(name, end=end)
        replace_predecessor(self._function.blocks[no], block.name, name)

    def _add_rows_one_by_one(self, origins: list[str]) -> None:
        """Add a loop over the rows of what the function does for one, entered from `origins`."""
        function = self._function
        entry = function.entry.name
        new, _ = clone(function, list(function.blocks), _SEQUENTIAL)
        header, latch, outside = (f"%mtl{_SEQUENTIAL}{part}" for part in ("", ".next", ".end"))
        row = Instruction("phi", f"{header}.row", I32)
        following = Instruction("add", f"{latch}.row", I32, [row.value, Value(I32, "1")])
        row.operands = [Value(I32, "0")] * len(origins) + [following.value]
        row.labels = [*origins, latch]
        axes = {
            value.name: Instruction(
                "add", f"{value.name}{_SEQUENTIAL}", value.type, [value, row.value]
            )
            for value in self._parameters()
        }
        for name in new.values():
            block = function.blocks[name]
            for one in block.instructions():
                one.operands = [
                    axes[value.name].value if value.name in axes else value
                    for value in one.operands
                ]
            if block.end.op == "ret":
                block.end = Instruction("br", labels=[latch])
        function.blocks[header] = Block(
            header, [row], [*axes.values()], Instruction("br", labels=[new[entry]])
        )
        is_last = Instruction(
            "icmp",
            f"{latch}.last",
            I1,
            [following.value, Value(I32, str(self._rows))],
            predicate="eq",
        )
        function.blocks[latch] = Block(
            latch,
            [],
            [following, is_last],
            Instruction("br", operands=[is_last.value], labels=[outside, header]),
        )
        function.blocks[outside] = Block(outside, end=Instruction("ret"))
