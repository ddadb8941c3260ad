"""Member masks of simdgroup functions, and barriers in divergent code.

MSL's functions work on the active threads. CUDA's take a member mask, and `activemask` gives only
the threads that are converged at the moment: after a branch some threads may not have arrived yet.
In convergent code the members are all threads that have not returned; this pass computes that mask
and stores it in a variable. In divergent code the members are the threads that took the edge of the
branch, which vote for it, and in a loop those of the same iteration (reconvergence.py). Elsewhere
`activemask` remains: in loops with several exits, and after returns in a branch.

A threadgroup barrier in divergent code becomes the one of parted_barrier.h. Threads that return
early execute `exit`: the assembler might make them wait for the others at the function's end, and
CUDA's barrier would wait for them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise

from metalloid.backends.cuda.compile.full_warp_loops import version_full_warp_loops
from metalloid.backends.cuda.compile.kernel_text import ACTIVE, LABEL, around_kernel, with_blocks
from metalloid.backends.cuda.compile.reconvergence import BranchEdge, LoopIteration
from metalloid.backends.cuda.compile.warp_divergence import START, WarpDivergence, analyse_warp
from metalloid.compiler.ir.types import Unsupported

_CALL = r"^(  %\S+ = )[^\n]*\bcall (?:noundef )?i32 "
_ACTIVE_CALL = re.compile(rf"{_CALL}{ACTIVE}\(\)")
_START_CALL = re.compile(rf"{_CALL}{START}\(i32 (?:noundef )?(\S+)\)")
_BARRIER = "call void @llvm.nvvm.barrier.cta.sync.all("
_TARGET = re.compile(r'(?<=label )%(?:[\w.$-]+|"[^"]*")')
_EXIT_BLOCK = "%mtl.leave"
_LEAVE_BARRIER = "  call void @mtl_leave_parted_barrier()"
_EXIT = '  call void asm sideeffect "exit;", "~{memory}"()'
_OPENING = "call void @mtl_open_parted_barrier("
_BRANCH = re.compile(r"^  br i1 (\S+), label (%\S+), label (%\S+)")
_LANE_FUNCTIONS = ("lane", "lane_of", "numbers_of_lanes", "from_below")
#: Instructions that read the members: from the variable, and from the processor.
_STORED, _ACTIVEMASK = "load i32, ptr %mtl.mask", f"call i32 {ACTIVE}()"
_DECLARATIONS = (f"declare i32 {ACTIVE}()", "declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)")


def materialize_member_masks(ir: str, lanes_in_order: bool) -> str:
    """Replace `activemask` where the members are known, and barriers in divergent code.

    Also selects which lane runs which thread of a simdgroup (lanes_nvptx.h).
    """
    return _select_lane_order(_with_masks(ir), "plain" if lanes_in_order else "matrix")


def _select_lane_order(ir: str, order: str) -> str:
    """Select the functions for an order of lanes."""
    for name in _LANE_FUNCTIONS:
        ir = re.sub(rf"^declare [^\n]*@mtl_{name}\([^\n]*\n", "", ir, flags=re.M)
        ir = ir.replace(f"@mtl_{name}(", f"@mtl_{order}_{name}(")
    return ir


def _with_masks(ir: str) -> str:
    _, kernel, _ = around_kernel(ir)
    if ACTIVE not in kernel and _BARRIER not in kernel:
        return _rewrite(ir, _NO_DIVERGENCE)
    try:
        divergence = analyse_warp(ir)
        if divergence.loops and (versioned := version_full_warp_loops(ir, divergence.loops)) != ir:
            ir, divergence = versioned, analyse_warp(versioned)
        return _rewrite(ir, divergence)
    except Unsupported:
        return _rewrite(ir, None)


_NO_DIVERGENCE = WarpDivergence(set(), set(), {}, set(), {}, [])


def _rewrite(ir: str, divergence: WarpDivergence | None) -> str:
    """`ir` with the mask in a variable, which LLVM promotes to SSA values.

    Parameters
    ----------
    divergence : WarpDivergence or None
        None if the analysis failed: `activemask` remains everywhere.
    """
    before, kernel, after = around_kernel(ir)
    head, *body, end, last = kernel.split("\n")
    lines = list(with_blocks(body))
    masked, stalled, returning, ends, known_members, _ = divergence or _NO_DIVERGENCE
    returns = {
        block for (_, above), (block, line) in pairwise(lines)
        if line == "  ret void" and LABEL.match(above)
    }  # fmt: skip
    has_divergent_barrier = any(_BARRIER in line and block in stalled for block, line in lines)
    has_mask = divergence is not None and (ACTIVE in kernel or has_divergent_barrier)
    querying = {
        block for block, line in lines
        if _ACTIVE_CALL.match(line) or (_BARRIER in line and block in stalled)
    }  # fmt: skip
    votes, iterations = _required(querying, known_members) if has_mask else ({}, [])

    def members(block: str) -> str:
        """An instruction that gives the members of a block; empty if they are not known."""
        known = known_members.get(block)
        if isinstance(known, LoopIteration):
            return f"load i32, ptr {_iteration_mask(known)}"
        if known is not None:
            return f"or i32 {_edge_mask(known)}, 0"
        return _STORED if has_mask and block not in masked else ""

    leave = [_LEAVE_BARRIER] if has_divergent_barrier else []
    result = [head, *(_variables(iterations) if has_mask else ())]
    for block, line in lines:
        if match := _START_CALL.match(line):
            line = f"{match[1]}and i32 {match[2]}, -32"
        elif (match := _ACTIVE_CALL.match(line)) and members(block):
            line = f"{match[1]}{members(block)}"
        elif _BARRIER in line and block in stalled:
            name = f"%mtl.met.{len(result)}"
            result.append(f"  {name} = {members(block) or _ACTIVEMASK}")
            line = f"  call void @mtl_parted_barrier(i32 {name})"
        elif _OPENING in line and not has_divergent_barrier:
            continue
        elif has_mask and block in returning and (match := _BRANCH.match(line)):
            result += _remove_returning(block[1:].strip('"'), match[1], returning[block])
        elif (match := _BRANCH.match(line)) and block in votes:
            for edge in votes[block]:
                result += _vote(edge, match[1], members(block))
        if line.startswith("  br "):
            for iteration in iterations:
                result += _store_iteration(iteration, block, members(block))
        if block in returning or block in ends:
            line = _redirect_returns(line, returns)
        elif line == "  ret void":
            result += leave
        result.append(line)
    result += ["", f"{_EXIT_BLOCK[1:]}:", *leave, _EXIT, "  unreachable", end, last]
    ir = before + "\n".join(result) + after
    return _declared(ir) if has_mask else ir


def _variables(iterations: list[LoopIteration]) -> list[str]:
    """The mask variables, and the initial mask of the kernel."""
    return [
        "  %mtl.mask = alloca i32",
        f"  %mtl.mask.first = {_ACTIVEMASK}",
        "  store i32 %mtl.mask.first, ptr %mtl.mask",
        *(f"  {_iteration_mask(iteration)} = alloca i32" for iteration in iterations),
    ]


def _declared(ir: str) -> str:
    """`ir` with the missing declarations."""
    for declaration in _DECLARATIONS:
        name = declaration.split("@")[1].split("(")[0]
        if not re.search(rf"^declare .*@{re.escape(name)}\(", ir, re.M):
            ir += f"\n{declaration}\n"
    return ir


def _redirect_returns(line: str, returns: set[str]) -> str:
    """A terminator whose edges to returns lead to the exit block instead."""
    if line == "  ret void":
        return f"  br label {_EXIT_BLOCK}"
    if not line.startswith("  br "):
        return line
    return _TARGET.sub(lambda label: _EXIT_BLOCK if label[0] in returns else label[0], line)


def _required(
    querying: set[str], members: dict[str, BranchEdge | LoopIteration]
) -> tuple[dict[str, set[BranchEdge]], list[LoopIteration]]:
    """The votes by block, and the iteration masks, that the querying blocks depend on."""
    votes: dict[str, set[BranchEdge]] = defaultdict(set)
    iterations: list[LoopIteration] = []
    todo: list[str | BranchEdge] = [*querying]
    while todo:
        item = todo.pop()
        if isinstance(item, BranchEdge):
            if item in votes[item.block]:
                continue
            votes[item.block].add(item)
            item = item.block
        known = members.get(item)
        if isinstance(known, BranchEdge):
            todo.append(known)
        elif known is not None and known not in iterations:
            iterations.append(known)
            todo += [*known.entries, known.back_edge]
    return votes, iterations


def _iteration_mask(known: LoopIteration) -> str:
    """The variable that holds the mask of an iteration."""
    name = known.header[1:].strip('"')
    return f'%"mtl.round.{name}"'


def _store_iteration(known: LoopIteration, block: str, members: str) -> list[str]:
    """Store the mask of the next iteration at the end of a block on an entry or back edge."""
    name = block[1:].strip('"')
    variable, lines = _iteration_mask(known), []
    for source in (*known.entries, known.back_edge):
        if isinstance(source, BranchEdge) and source.block == block:
            lines.append(f"  store i32 {_edge_mask(source)}, ptr {variable}")
        elif source == block:
            mask = f'{variable[:-1]}.from.{name}"'
            lines += [f"  {mask} = {members}", f"  store i32 {mask}, ptr {variable}"]
    return lines


def _edge_mask(edge: BranchEdge) -> str:
    """The value that holds the mask of a branch edge."""
    name = edge.block[1:].strip('"')
    return f'%"mtl.side.{name}.{"then" if edge.is_taken else "else"}"'


def _vote(edge: BranchEdge, condition: str, members: str) -> list[str]:
    """Vote at the end of a block for one edge of its branch."""
    name = _edge_mask(edge)[:-1]
    wanted = "false" if edge.is_taken else "true"
    return [
        f'  {name}.before" = {members}',
        f'  {name}.is" = xor i1 {condition}, {wanted}',
        f'  {name}" = call i32 @llvm.nvvm.vote.ballot.sync(i32 {name}.before", i1 {name}.is")',
    ]


def _remove_returning(block: str, condition: str, returns_if_true: bool) -> list[str]:
    """Remove the threads that return at the end of a block from the mask."""
    name = f"%mtl.stay.{block}"
    wanted = "true" if returns_if_true else "false"
    return [
        f"  {name}.before = load i32, ptr %mtl.mask",
        f"  {name}.is = xor i1 {condition}, {wanted}",
        f"  {name} = call i32 @llvm.nvvm.vote.ballot.sync(i32 {name}.before, i1 {name}.is)",
        f"  store i32 {name}, ptr %mtl.mask",
    ]
