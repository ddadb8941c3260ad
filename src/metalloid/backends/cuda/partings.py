"""Where the threads of a warp part: the divergence analysis of vector code, for 32 lanes."""

from __future__ import annotations

from typing import NamedTuple

from metalloid.compiler.entry import ENTRY_SYMBOL
from metalloid.compiler.llvm.cfg import Graph, immediate_postdominators
from metalloid.compiler.llvm.ir import Function, Instruction
from metalloid.compiler.llvm.parser import flatten_address_spaces, parse_function
from metalloid.compiler.spmd.canonical import EXIT, make_canonical
from metalloid.compiler.spmd.divergence import Divergence, analyse
from metalloid.compiler.spmd.shapes import VARYING, Shape, consecutive, uniform

#: Declared by entry.h: of a thread of a threadgroup, the first one of its simdgroup.
START = "@mtl_simdgroup_start"
ACTIVE = "@llvm.nvvm.activemask"
_WIDTH = 32
_REGISTERS = "@llvm.nvvm.read.ptx.sreg."
#: Results that all threads of a warp have in common, whatever they give.
_COMMON = (f"{_REGISTERS}ctaid", f"{_REGISTERS}ntid", "@llvm.nvvm.vote.ballot", ACTIVE)


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
    """

    masked: set[str]
    branched: set[str]
    leaving: dict[str, bool]


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
            return Partings(divergence.masked, _branched(divergence), leaving)
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
        stops = {meeting[branch], *([loop.header] if loop else [])}
        while ways:
            block = ways.pop()
            if block not in stops:
                found.add(block)
                stops.add(block)
                ways += graph.successors[block]
    return found


def _divergence(function: Function, kept: set[str]) -> tuple[Divergence, dict[str, bool]]:
    """Analyse the function as if threads that return had never been there."""
    ends = {
        name for name, block in function.blocks.items()
        if block.end.op == "ret" and not block.body and not block.phis
    }  # fmt: skip
    returns = {}
    loops = Graph(function).loop_of
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
    if callee == f"{_REGISTERS}laneid":
        return consecutive(_WIDTH, 5)
    if callee.startswith(_COMMON):
        return uniform(_WIDTH)
    return VARYING if callee.startswith(_REGISTERS) else None
