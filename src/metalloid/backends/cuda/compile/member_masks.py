"""Member masks of simdgroup functions, and barriers in divergent code.

MSL's functions work on the active threads. CUDA's take a member mask, and `activemask` gives only
the threads that are converged at the moment: after a branch some threads may not have arrived yet.
In convergent code the members are all threads that have not returned; this pass computes that mask
and stores it in a variable. In divergent code the members are the threads that took the edge of the
branch, which vote for it, and in a loop those of the same iteration (reconvergence.py). Elsewhere
`activemask` remains: in loops with several exits, and after returns in a branch.

A threadgroup barrier in divergent code becomes the one of divergent_barrier.h. Threads that return
early execute `exit`: the assembler might make them wait for the others at the function's end, and
CUDA's barrier would wait for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from metalloid.backends.cuda.compile.reconvergence import BranchEdge, LoopIteration
from metalloid.backends.cuda.compile.warp_divergence import (
    ACTIVE,
    BARRIER,
    NO_DIVERGENCE,
    START,
    WarpDivergence,
)
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.types import I1, I32, POINTER

_BALLOT = "@llvm.nvvm.vote.ballot.sync"
_OPEN_BARRIER, _DIVERGENT_BARRIER = "@mtl_open_divergent_barrier", "@mtl_divergent_barrier"
_LEAVE_BARRIER = "@mtl_leave_divergent_barrier"
_EXIT = 'asm sideeffect "exit;", "~{memory}"'


def materialize_member_masks(
    function: Function, divergence: WarpDivergence | None, names: FreshNames
) -> None:
    """Replace `activemask` where the members are known, and barriers in divergent code.

    Masks are in variables, which LLVM promotes to SSA values.

    Parameters
    ----------
    divergence : WarpDivergence or None
        None if the analysis failed: `activemask` remains everywhere.
    """
    _MemberMasks(function, divergence, names).run()


class _MemberMasks:
    def __init__(
        self, function: Function, divergence: WarpDivergence | None, names: FreshNames
    ) -> None:
        self._function, self._names = function, names
        self._divergence = divergence or NO_DIVERGENCE
        stalled = self._divergence.stalled
        entry = function.entry
        #: Blocks with nothing but a return.
        self._returns = {
            block.name for block in function.blocks.values()
            if block.end.op == "ret" and block is not entry and not block.phis and not block.body
        }  # fmt: skip
        barriers = _blocks_with_call(function, BARRIER)
        self._has_divergent_barrier = not stalled.isdisjoint(barriers)
        queries = _blocks_with_call(function, ACTIVE)
        self._has_mask = divergence is not None and bool(queries or self._has_divergent_barrier)
        self._votes: Mapping[str, list[BranchEdge]] = {}
        self._iterations: list[LoopIteration] = []
        if self._has_mask:
            waiting = [name for name in barriers if name in stalled]
            self._votes, self._iterations = _required(
                [*queries, *waiting], self._divergence.members
            )
        self._variable = Value(POINTER, names("%mtl.mask"))
        self._iteration_masks = {
            iteration: Value(POINTER, names(f"%mtl.iteration.{iteration.header[1:]}"))
            for iteration in self._iterations
        }
        self._edge_masks = {
            edge: Value(I32, names(f"%mtl.edge.{edge.block[1:]}"))
            for edges in self._votes.values()
            for edge in edges
        }
        self._exit = names("%mtl.leave")

    def run(self) -> None:
        """Change the function."""
        function = self._function
        for block in function.blocks.values():
            self._rewrite(block)
        if self._has_mask:
            function.entry.body[:0] = self._variables()
        function.blocks[self._exit] = Block(
            self._exit, body=[*self._leave(), Instruction("call", callee=_EXIT)]
        )

    def _rewrite(self, block: Block) -> None:
        is_stalled = block.name in self._divergence.stalled
        body: list[Instruction] = []
        for i in block.body:
            callee = i.callee if i.op == "call" else ""
            if callee == START:
                body.append(Instruction("and", i.result, I32, [i.operands[0], Value(I32, "-32")]))
            elif callee == ACTIVE:
                body.append(self._members(block.name, i.result) or i)
            elif callee == BARRIER and is_stalled:
                members = self._members(block.name, self._names("%mtl.members"))
                members = members or _active(self._names("%mtl.members"))
                call = Instruction("call", operands=[members.value], callee=_DIVERGENT_BARRIER)
                body += [members, call]
            elif callee != _OPEN_BARRIER or self._has_divergent_barrier:
                body.append(i)
        block.body = body + self._before_the_end(block)
        if block.name in self._divergence.returning or block.name in self._divergence.ends:
            self._redirect_returns(block)
        elif block.end.op == "ret":
            block.body += self._leave()

    def _before_the_end(self, block: Block) -> list[Instruction]:
        """Instructions to add before the branch of a block."""
        body: list[Instruction] = []
        is_conditional = block.end.op == "br" and block.end.operands
        if is_conditional and self._has_mask and block.name in self._divergence.returning:
            body += self._remove_returning(block)
        elif is_conditional:
            for edge in self._votes.get(block.name, ()):
                body += self._vote(edge, block)
        if block.end.op == "br":
            for iteration in self._iterations:
                body += self._store_iteration(iteration, block.name)
        return body

    def _members(self, block: str, result: str) -> Instruction | None:
        """The instruction that gives the members of a block; None if they are not known."""
        known = self._divergence.members.get(block)
        if isinstance(known, LoopIteration):
            return _load(self._iteration_masks[known], result)
        if known is not None:
            return Instruction("or", result, I32, [self._edge_masks[known], Value(I32, "0")])
        if self._has_mask and block not in self._divergence.masked:
            return _load(self._variable, result)
        return None

    def _known_members(self, block: str, result: str) -> Instruction:
        members = self._members(block, result)
        assert members is not None
        return members

    def _variables(self) -> list[Instruction]:
        """The mask variables, and the initial mask of the kernel."""
        first = _active(self._names("%mtl.mask.first"))
        return [
            Instruction("alloca", self._variable.name, POINTER, source=I32),
            first,
            Instruction("store", operands=[first.value, self._variable]),
            *(
                Instruction("alloca", variable.name, POINTER, source=I32)
                for variable in self._iteration_masks.values()
            ),
        ]

    def _leave(self) -> list[Instruction]:
        return [Instruction("call", callee=_LEAVE_BARRIER)] if self._has_divergent_barrier else []

    def _redirect_returns(self, block: Block) -> None:
        """Let edges to returns lead to the exit block instead."""
        end = block.end
        if end.op == "ret":
            block.end = Instruction("br", labels=[self._exit])
        elif end.op == "br":
            end.labels = [self._exit if label in self._returns else label for label in end.labels]

    def _vote(self, edge: BranchEdge, block: Block) -> list[Instruction]:
        """Vote at the end of a block for one edge of its branch."""
        mask = self._edge_masks[edge]
        before = self._known_members(block.name, self._names(f"{mask.name}.before"))
        return [before, *self._ballot(before.value, block, edge.is_taken, mask.name)]

    def _ballot(
        self, voters: Value, block: Block, is_taken: bool, result: str
    ) -> list[Instruction]:
        """The mask of those voters whose condition leads to an edge of the block's branch."""
        condition = block.end.operands[0]
        inverted = Value(I1, "false" if is_taken else "true")
        voted_value = Instruction("xor", self._names(f"{result}.vote"), I1, [condition, inverted])
        vote = Instruction("call", result, I32, [voters, voted_value.value], callee=_BALLOT)
        return [voted_value, vote]

    def _remove_returning(self, block: Block) -> list[Instruction]:
        """Remove the threads that return at the end of a block from the mask."""
        result = self._names(f"%mtl.stay.{block.name[1:]}")
        before = _load(self._variable, self._names(f"{result}.before"))
        stays = not self._divergence.returning[block.name]
        ballot = self._ballot(before.value, block, stays, result)
        store = Instruction("store", operands=[ballot[-1].value, self._variable])
        return [before, *ballot, store]

    def _store_iteration(self, known: LoopIteration, block: str) -> list[Instruction]:
        """Store the mask of the next iteration at the end of a block on an entry or back edge."""
        variable, body = self._iteration_masks[known], []
        for source in (*known.entries, known.back_edge):
            if isinstance(source, BranchEdge) and source.block == block:
                mask = self._edge_masks[source]
            elif source == block:
                members = self._known_members(block, self._names(f"{variable.name}.first"))
                body.append(members)
                mask = members.value
            else:
                continue
            body.append(Instruction("store", operands=[mask, variable]))
        return body


def _active(result: str) -> Instruction:
    return Instruction("call", result, I32, callee=ACTIVE)


def _load(variable: Value, result: str) -> Instruction:
    return Instruction("load", result, I32, [variable])


def _blocks_with_call(function: Function, callee: str) -> list[str]:
    return [
        block.name for block in function.blocks.values()
        if any(i.op == "call" and i.callee == callee for i in block.body)
    ]  # fmt: skip


def _required(
    querying: Iterable[str], members: Mapping[str, BranchEdge | LoopIteration]
) -> tuple[Mapping[str, list[BranchEdge]], list[LoopIteration]]:
    """The votes by block, and the iteration masks, that the querying blocks depend on."""
    votes: dict[str, list[BranchEdge]] = defaultdict(list)
    iterations: list[LoopIteration] = []
    todo: list[str | BranchEdge] = [*querying]
    while todo:
        item = todo.pop()
        if isinstance(item, BranchEdge):
            if item in votes[item.block]:
                continue
            votes[item.block].append(item)
            item = item.block
        known = members.get(item)
        if isinstance(known, BranchEdge):
            todo.append(known)
        elif known is not None and known not in iterations:
            iterations.append(known)
            todo += [*known.entries, known.back_edge]
    return votes, iterations
