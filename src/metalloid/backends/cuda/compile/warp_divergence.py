"""Warp divergence: the divergence analysis of vector code, applied to the 32 lanes of a warp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from metalloid.backends.cuda.compile.reconvergence import BranchEdge, LoopIteration, find_members
from metalloid.compiler.analysis.divergence import Divergence, analyse
from metalloid.compiler.analysis.shapes import VARYING, Shape, consecutive, uniform
from metalloid.compiler.ir.cfg import EXIT, Graph, Loop, immediate_postdominators
from metalloid.compiler.ir.function import Function, Instruction
from metalloid.compiler.ir.parser import is_hint
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.transforms.loop_simplify import simplify_loops

#: Reads the mask of the threads of the warp that are converged at the moment.
ACTIVE = "@llvm.nvvm.activemask"
BARRIER = "@llvm.nvvm.barrier.cta.sync.all"
#: Declared in entry.h: index of the first thread of a thread's simdgroup.
START = "@mtl_simdgroup_start"
_WIDTH = 32
_REGISTERS = "@llvm.nvvm.read.ptx.sreg."
#: Calls whose results are uniform across a warp.
_UNIFORM = (
    f"{_REGISTERS}ctaid", f"{_REGISTERS}ntid", "@llvm.nvvm.vote.", ACTIVE,
    "@llvm.nvvm.redux.sync",
    "@mtl_plain_numbers_of_lanes", "@mtl_matrix_numbers_of_lanes",
)  # fmt: skip
_LANE = ("@mtl_plain_lane", "@mtl_matrix_lane")


class WarpDivergence(NamedTuple):
    """Divergence of a kernel.

    Attributes
    ----------
    masked : set of str
        Blocks that not all threads of a warp execute.
    stalled : set of str
        Blocks of a divergent branch, at whose post-dominator the other threads of the warp wait.
    returning : dict of bool
        Blocks with a divergent branch to a return, with the condition under which it is taken.
    ends : set of str
        Blocks on paths that lead only to a return and execute nothing convergent.
    members : dict of BranchEdge or LoopIteration
        The threads of masked blocks, where they are known.
    loops : list of Loop
        Divergent loops, not nested, in which `activemask` is read.
    """

    masked: set[str]
    stalled: set[str]
    returning: dict[str, bool]
    ends: set[str]
    members: dict[str, BranchEdge | LoopIteration]
    loops: list[Loop]


NO_DIVERGENCE = WarpDivergence(set(), set(), {}, set(), {}, [])


def analyse_warp(kernel: Function) -> WarpDivergence:
    """Analyse a kernel; one without `activemask` and barriers is taken as convergent.

    Raises
    ------
    Unsupported
        If the analysis does not support the kernel.
    """
    if not any(i.op == "call" and i.callee in (ACTIVE, BARRIER) for i in kernel.instructions()):
        return NO_DIVERGENCE
    original = _without_hints(kernel)
    taken: set[str] = set()
    while True:
        function = original.copy()
        divergence, returns = _analyse(function, taken)
        early = {block: edge for block, edge in returns.items() if block in divergence.masked}
        if not early:
            returning = {
                block: edge for block, edge in returns.items()
                if not divergence.shape(function.blocks[block].end.operands[0], block).is_uniform
            }  # fmt: skip
            members = find_members(divergence, original.blocks)
            return WarpDivergence(
                divergence.masked, _stalled_blocks(divergence), returning, _return_paths(original),
                members, list(_querying_loops(original, divergence)),
            )  # fmt: skip
        # In divergent code a return is treated as an ordinary branch.
        taken |= set(early)


def _without_hints(kernel: Function) -> Function:
    """A copy without calls that compute nothing, and without address spaces."""
    function = kernel.copy()
    for block in function.blocks.values():
        block.body = [i for i in block.body if not is_hint(i)]
        for i in block.body:
            if i.op == "call" and not i.callee.startswith("@"):
                raise Unsupported("a call of inline assembly or through a pointer")
            if i.op == "addrspacecast":
                i.op = "bitcast"
    return function


def _stalled_blocks(divergence: Divergence) -> set[str]:
    """Blocks between a divergent branch that is no loop exit and its post-dominator."""
    graph, stalled = divergence.graph, set[str]()
    postdominator = immediate_postdominators(graph, EXIT)
    for branch in divergence.branches:
        loop = graph.loop_of[branch]
        todo = [*graph.successors[branch]]
        if loop is not None and not loop.blocks.issuperset(todo):
            continue
        if any(_is_guarded_loop(graph, start, postdominator[branch]) for start in todo):
            continue
        stops = {postdominator[branch], *([loop.header] if loop else [])}
        while todo:
            block = todo.pop()
            if block not in stops:
                stalled.add(block)
                stops.add(block)
                todo += graph.successors[block]
    return stalled


def _is_guarded_loop(graph: Graph, start: str, stop: str) -> bool:
    """Whether there is only a loop between `start` and `stop`: the branch is its guard."""

    def follow(block: str) -> str:
        loop = graph.loop_of[block]
        while block != stop and len(graph.successors[block]) == 1 and graph.loop_of[block] == loop:
            block = graph.successors[block][0]
        return block

    header = follow(start)
    loop = graph.loop_of[header]
    return (
        loop is not None
        and loop.header == header
        and start not in loop.blocks
        and all(follow(exit) == stop for exit in loop.exits)
    )


def _querying_loops(function: Function, divergence: Divergence) -> Iterator[Loop]:
    """The loops for `WarpDivergence.loops`, by the block names of the text."""
    querying = {
        name for name, block in function.blocks.items()
        if any(inst.op == "call" and inst.callee == ACTIVE for inst in block.body)
    }  # fmt: skip
    done = set[str]()
    for loop in Graph(function).loops:  # inner ones first
        if loop.header in divergence.loops and querying & loop.blocks and not done & loop.blocks:
            done |= loop.blocks
            yield loop


def _return_paths(function: Function) -> set[str]:
    """Returns, and single-entry blocks that lead only to one and execute nothing convergent."""
    graph, blocks = Graph(function), function.blocks
    paths = {
        name for name, block in blocks.items()
        if block.end.op in ("ret", "br") and not graph.loop_of.get(name) and not block.phis
        and not any(_is_convergent(instruction) for instruction in block.body)
    }  # fmt: skip
    while True:
        wrong = {
            name for name in paths
            if not paths.issuperset(blocks[name].end.labels)
            or (blocks[name].body and len(set(graph.predecessors.get(name, ())) - paths) > 1)
        }  # fmt: skip
        if not wrong:
            return paths
        paths -= wrong


def _is_convergent(instruction: Instruction) -> bool:
    callee = instruction.callee
    return instruction.op == "call" and (
        callee.startswith(("@llvm.nvvm.", "@mtl_")) and not callee.startswith(_REGISTERS)
    )


def _analyse(function: Function, taken: set[str]) -> tuple[Divergence, dict[str, bool]]:
    """Analyse the function as if early returns were never taken."""
    returns = {}
    loops = Graph(function).loop_of
    ends = _return_paths(function)
    for name, block in function.blocks.items():
        labels = block.end.labels
        # The exit of a final loop is not an early return.
        if block.end.op != "br" or len(labels) != 2 or name in taken or loops.get(name):
            continue
        if (labels[0] in ends) != (labels[1] in ends):
            returns[name] = labels[0] in ends
    conditions = {name: function.blocks[name].end for name in returns}
    for name, returns_if_true in returns.items():
        label = conditions[name].labels[1 if returns_if_true else 0]
        function.blocks[name].end = Instruction("br", labels=[label])
    parameters = {parameter.name: uniform(_WIDTH) for parameter in function.parameters}
    for block in function.blocks.values():
        for instruction in list(block.body):
            shape = _call_shape(instruction)
            if shape is not None:
                parameters[instruction.result] = shape
                block.body.remove(instruction)
    graph = simplify_loops(function)
    divergence = analyse(function, graph, _WIDTH, parameters, all_masked=False)
    for name, end in conditions.items():
        if name in function.blocks:
            function.blocks[name].end = end
    return divergence, {name: edge for name, edge in returns.items() if name in function.blocks}


def _call_shape(instruction: Instruction) -> Shape | None:
    """Shape of a call's result where it does not follow from the operands."""
    callee = instruction.callee
    if instruction.op != "call" or not instruction.result:
        return None
    if callee == START:
        return uniform(_WIDTH, align=5)
    if callee in _LANE:
        return consecutive(_WIDTH, 5)
    if callee.startswith(_UNIFORM):
        return uniform(_WIDTH)
    return VARYING if callee.startswith(_REGISTERS) else None
