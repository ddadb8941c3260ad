"""Which threads of a warp take part in a simdgroup function.

MSL's functions work on the active threads. CUDA's want to be told which, and `activemask` says only
which happen to be together at the moment: after a branch that need not be all that will come. Where
no branch has parted the threads, all that have not returned take part; that mask is worked out here
and kept in a variable. Elsewhere `activemask` remains: right behind a branch it is as good.
"""

from __future__ import annotations

import re

from metalloid.compiler.entry import ENTRY_SYMBOL
from metalloid.compiler.llvm.cfg import Graph
from metalloid.compiler.llvm.ir import Function, Instruction
from metalloid.compiler.llvm.parser import flatten_address_spaces, parse_function
from metalloid.compiler.llvm.types import Unsupported
from metalloid.compiler.spmd.canonical import make_canonical
from metalloid.compiler.spmd.divergence import Divergence, analyse
from metalloid.compiler.spmd.shapes import VARYING, Shape, consecutive, uniform

_WIDTH = 32
_ACTIVE = "@llvm.nvvm.activemask"
_START = "@mtl_simdgroup_start"
_REGISTERS = "@llvm.nvvm.read.ptx.sreg."
#: Results that all threads of a warp have in common, whatever they give.
_COMMON = (f"{_REGISTERS}ctaid", f"{_REGISTERS}ntid", "@llvm.nvvm.vote.ballot", _ACTIVE)
_FUNCTION = re.compile(rf"^define [^\n]*@{ENTRY_SYMBOL}\(.*?^\}}\n", re.M | re.S)
_LABEL = re.compile(r'^([\w.$-]+|"[^"]*"):')
_CALL = r"^(  %\S+ = )[^\n]*\bcall (?:noundef )?i32 "
_ACTIVE_CALL = re.compile(rf"{_CALL}{_ACTIVE}\(\)")
_START_CALL = re.compile(rf"{_CALL}{_START}\(i32 (?:noundef )?(\S+)\)")
_BRANCH = re.compile(r"^  br i1 (\S+), label (%\S+), label (%\S+)")
_DECLARATIONS = (f"declare i32 {_ACTIVE}()", "declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)")


def name_members(ir: str) -> str:
    """Replace `activemask` where it is known which threads take part."""
    if _ACTIVE not in ir:
        return _lines(ir, set(), {})
    try:
        masked, leaving = _analyse(flatten_address_spaces(ir))
    except Unsupported:
        return _lines(ir, None, {})
    return _lines(ir, masked, leaving)


def _analyse(ir: str) -> tuple[set[str], dict[str, bool]]:
    """Blocks that some threads may miss, and those at whose end some threads return.

    The latter with whether they return where the branch's condition holds.
    """
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
            return divergence.masked, leaving
        # Among parted threads a return is a branch like any other.
        kept |= set(early)


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
    if callee == _START:
        return uniform(_WIDTH, align=5)
    if callee == f"{_REGISTERS}laneid":
        return consecutive(_WIDTH, 5)
    if callee.startswith(_COMMON):
        return uniform(_WIDTH)
    return VARYING if callee.startswith(_REGISTERS) else None


def _lines(ir: str, masked: set[str] | None, leaving: dict[str, bool]) -> str:
    """`ir` with the mask in a variable, which LLVM turns into values.

    Parameters
    ----------
    masked : set of str or None
        Blocks where `activemask` stays; None for all.
    """
    found = _FUNCTION.search(ir)
    assert found is not None
    head, *lines = found[0].split("\n")
    block = "%entry"
    result = [head]
    is_used = masked is not None and _ACTIVE in found[0]
    if is_used:
        result += [
            "  %mtl.mask = alloca i32",
            f"  %mtl.mask.first = call i32 {_ACTIVE}()",
            "  store i32 %mtl.mask.first, ptr %mtl.mask",
        ]
    for line in lines:
        if label := _LABEL.match(line):
            block = f"%{label[1]}"
        if match := _START_CALL.match(line):
            line = f"{match[1]}and i32 {match[2]}, -32"
        elif is_used and (match := _ACTIVE_CALL.match(line)) and block not in (masked or ()):
            line = f"{match[1]}load i32, ptr %mtl.mask"
        elif is_used and block in leaving and (match := _BRANCH.match(line)):
            result += _narrowed(block[1:].strip('"'), match[1], leaving[block])
        result.append(line)
    ir = ir[: found.start()] + "\n".join(result) + ir[found.end() :]
    for declaration in _DECLARATIONS if is_used else ():
        name = declaration.split("@")[1].split("(")[0]
        if not re.search(rf"^declare .*@{re.escape(name)}\(", ir, re.M):
            ir += f"\n{declaration}\n"
    return ir


def _narrowed(block: str, condition: str, returns_if_true: bool) -> list[str]:
    """Take out of the mask who returns at the end of a block."""
    name = f"%mtl.stay.{block}"
    wanted = "true" if returns_if_true else "false"
    return [
        f"  {name}.before = load i32, ptr %mtl.mask",
        f"  {name}.is = xor i1 {condition}, {wanted}",
        f"  {name} = call i32 @llvm.nvvm.vote.ballot.sync(i32 {name}.before, i1 {name}.is)",
        f"  store i32 {name}, ptr %mtl.mask",
    ]
