"""Where the threads of a warp part: the divergence analysis of vector code, for 32 lanes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from metalloid.backends.cuda.compile.kernel_text import ACTIVE
from metalloid.backends.cuda.compile.reconvergence import Round, Side, find_sides
from metalloid.compiler.entry import ENTRY_SYMBOL
from metalloid.compiler.llvm.cfg import Graph, Loop, immediate_postdominators
from metalloid.compiler.llvm.ir import Function, Instruction
from metalloid.compiler.llvm.parser import flatten_address_spaces, parse_function
from metalloid.compiler.spmd.canonical import EXIT, make_canonical
from metalloid.compiler.spmd.divergence import Divergence, analyse
from metalloid.compiler.spmd.shapes import VARYING, Shape, consecutive, uniform

#: Declared by entry.h: of a thread of a threadgroup, the first one of its simdgroup.
START = "@mtl_simdgroup_start"
_WIDTH = 32
_REGISTERS = "@llvm.nvvm.read.ptx.sreg."
#: Results that all threads of a warp have in common, whatever they give.
_COMMON = (
    f"{_REGISTERS}ctaid", f"{_REGISTERS}ntid", "@llvm.nvvm.vote.", ACTIVE,
    "@llvm.nvvm.redux.sync",
    "@mtl_numbers_of_lanes",
)  # fmt: skip


class Partings(NamedTuple):
    """Where the threads of a warp part.

    Attributes
    ----------
    masked : set of str
        Blocks that some may miss.
    branched : set of str
        Blocks that some miss who wait behind a branch for the others.
    leaving : dict of bool
        Blocks at whose end some return, with whether they do if the branch's condition holds.
    ends : set of str
        Blocks that lead to the function's end, and meet nobody on the way.
    sides : dict of Side or Round
        Who is in a block that some may miss, where it is known.
    loops : list of Loop
        Those that threads leave one by one and in which they ask who still is there; none inside
        another.
    """

    masked: set[str]
    branched: set[str]
    leaving: dict[str, bool]
    ends: set[str]
    sides: dict[str, Side | Round]
    loops: list[Loop]


def find_partings(ir: str) -> Partings:
    """Where the threads of the kernel in `ir` part.

    Raises
    ------
    Unsupported
        If the analysis does not understand the kernel.
    """
    ir = flatten_address_spaces(ir)
    kept: set[str] = set()
    while True:
        function = parse_function(ir, ENTRY_SYMBOL)
        divergence, returns = _divergence(function, kept)
        early = {block: side for block, side in returns.items() if block in divergence.masked}
        if not early:
            leaving = {
                block: side for block, side in returns.items()
                if not divergence.shape(function.blocks[block].end.operands[0], block).is_uniform
            }  # fmt: skip
            original = parse_function(ir, ENTRY_SYMBOL)
            sides = find_sides(divergence, original.blocks)
            return Partings(
                divergence.masked, _branched(divergence), leaving, _ends(original), sides,
                list(_asking_loops(original, divergence)),
            )  # fmt: skip
        # Among parted threads a return is a branch like any other.
        kept |= set(early)


def _branched(divergence: Divergence) -> set[str]:
    """Blocks between a branch that parts threads, but ends no loop, and where they meet."""
    graph, found = divergence.graph, set[str]()
    meeting = immediate_postdominators(graph, EXIT)
    for branch in divergence.branches:
        loop = graph.loop_of[branch]
        ways = [*graph.successors[branch]]
        if loop is not None and not loop.blocks.issuperset(ways):
            continue
        if any(_goes_around(graph, way, meeting[branch]) for way in ways):
            continue
        stops = {meeting[branch], *([loop.header] if loop else [])}
        while ways:
            block = ways.pop()
            if block not in stops:
                found.add(block)
                stops.add(block)
                ways += graph.successors[block]
    return found


def _goes_around(graph: Graph, way: str, stop: str) -> bool:
    """Whether all that lies between is a loop: its first test stands in front of it."""

    def straight(block: str) -> str:
        loop = graph.loop_of[block]
        while block != stop and len(graph.successors[block]) == 1 and graph.loop_of[block] == loop:
            block = graph.successors[block][0]
        return block

    header = straight(way)
    loop = graph.loop_of[header]
    return (
        loop is not None
        and loop.header == header
        and way not in loop.blocks
        and all(straight(exit) == stop for exit in loop.exits)
    )


def _asking_loops(function: Function, divergence: Divergence) -> Iterator[Loop]:
    """Loops for `Partings.loops`, as the text has them."""
    asking = {
        name for name, block in function.blocks.items()
        if any(one.op == "call" and one.detail == ACTIVE for one in block.body)
    }  # fmt: skip
    done = set[str]()
    for loop in Graph(function).loops:  # inner ones first
        if loop.header in divergence.loops and asking & loop.blocks and not done & loop.blocks:
            done |= loop.blocks
            yield loop


def _ends(function: Function) -> set[str]:
    """Returns, and the blocks that only lead to one, by one way in: nobody is met on the way."""
    graph, blocks = Graph(function), function.blocks
    found = {
        name for name, block in blocks.items()
        if block.end.op in ("ret", "br") and not graph.loop_of.get(name) and not block.phis
        and not any(_meets_others(instruction) for instruction in block.body)
    }  # fmt: skip
    while True:
        wrong = {
            name for name in found
            if not found.issuperset(blocks[name].end.labels)
            or (blocks[name].body and len(set(graph.predecessors.get(name, ())) - found) > 1)
        }  # fmt: skip
        if not wrong:
            return found
        found -= wrong


def _meets_others(instruction: Instruction) -> bool:
    callee = instruction.detail
    return instruction.op == "call" and (
        callee.startswith(("@llvm.nvvm.", "@mtl_")) and not callee.startswith(_REGISTERS)
    )


def _divergence(function: Function, kept: set[str]) -> tuple[Divergence, dict[str, bool]]:
    """Analyse the function as if threads that return had never been there."""
    returns = {}
    loops = Graph(function).loop_of
    ends = _ends(function)
    for name, block in function.blocks.items():
        labels = block.end.labels
        # The end of a loop that is the function's last is no early return.
        if block.end.op != "br" or len(labels) != 2 or name in kept or loops.get(name):
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
            shape = _shape_of_call(instruction)
            if shape is not None:
                parameters[instruction.result] = shape
                block.body.remove(instruction)
    graph = make_canonical(function)
    found = analyse(function, graph, _WIDTH, parameters, all_masked=False)
    for name, end in conditions.items():
        if name in function.blocks:
            function.blocks[name].end = end
    return found, {name: side for name, side in returns.items() if name in function.blocks}


def _shape_of_call(instruction: Instruction) -> Shape | None:
    """Shape of what a call gives, where its operands say nothing of it."""
    callee = instruction.detail
    if instruction.op != "call" or not instruction.result:
        return None
    if callee == START:
        return uniform(_WIDTH, align=5)
    if callee == "@mtl_lane":
        return consecutive(_WIDTH, 5)
    if callee.startswith(_COMMON):
        return uniform(_WIDTH)
    return VARYING if callee.startswith(_REGISTERS) else None
