"""Which threads of a warp take part in a simdgroup function, and which meet at a barrier.

MSL's functions work on the active threads. CUDA's want to be told which, and `activemask` says only
which happen to be together at the moment: after a branch that need not be all that will come. Where
no branch has parted the threads, all that have not returned take part; that mask is worked out here
and kept in a variable. Behind a branch all that it sent there do, for which they vote, and in a
loop all that go on with the next round (reconvergence.py). Elsewhere `activemask` remains: in loops
with several ways out, behind returns in a branch.

A threadgroup barrier that a branch has parted becomes the one of parted_barrier.h. Threads that
return early are made to end at once: the assembler might have them wait for the others at the
function's end, which CUDA's barrier would take for threads still to come.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise

from metalloid.backends.cuda.compile.full_warp_loops import keep_warps_together
from metalloid.backends.cuda.compile.kernel_text import ACTIVE, LABEL, around_kernel, with_blocks
from metalloid.backends.cuda.compile.reconvergence import Round, Side
from metalloid.backends.cuda.compile.warp_divergence import START, Partings, find_partings
from metalloid.compiler.llvm.types import Unsupported

_CALL = r"^(  %\S+ = )[^\n]*\bcall (?:noundef )?i32 "
_ACTIVE_CALL = re.compile(rf"{_CALL}{ACTIVE}\(\)")
_START_CALL = re.compile(rf"{_CALL}{START}\(i32 (?:noundef )?(\S+)\)")
_BARRIER = "call void @llvm.nvvm.barrier.cta.sync.all("
_TARGET = re.compile(r'(?<=label )%(?:[\w.$-]+|"[^"]*")')
_LEAVING = "%mtl.leave"
_LEAVE = "  call void @mtl_leave_parted_barrier()"
_EXIT = '  call void asm sideeffect "exit;", "~{memory}"()'
_OPENING = "call void @mtl_open_parted_barrier("
_BRANCH = re.compile(r"^  br i1 (\S+), label (%\S+), label (%\S+)")
_LANE_FUNCTIONS = ("lane", "lane_of", "numbers_of_lanes", "from_below")
#: How the members of a simdgroup function are found: from the variable, and from the processor.
_KEPT, _ASKED = "load i32, ptr %mtl.mask", f"call i32 {ACTIVE}()"
_DECLARATIONS = (f"declare i32 {ACTIVE}()", "declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)")


def name_members(ir: str, has_order: bool) -> str:
    """Replace `activemask` where it is known who takes part, and barriers where it is not.

    Settles, too, which lane runs which thread of a simdgroup (lanes_nvptx.h).
    """
    return _settle(_with_members(ir), "plain" if has_order else "matrix")


def _settle(ir: str, order: str) -> str:
    """Choose the functions of an order of lanes."""
    for name in _LANE_FUNCTIONS:
        ir = re.sub(rf"^declare [^\n]*@mtl_{name}\([^\n]*\n", "", ir, flags=re.M)
        ir = ir.replace(f"@mtl_{name}(", f"@mtl_{order}_{name}(")
    return ir


def _with_members(ir: str) -> str:
    _, kernel, _ = around_kernel(ir)
    if ACTIVE not in kernel and _BARRIER not in kernel:
        return _lines(ir, _NONE)
    try:
        partings = find_partings(ir)
        if partings.loops and (copied := keep_warps_together(ir, partings.loops)) != ir:
            ir, partings = copied, find_partings(copied)
        return _lines(ir, partings)
    except Unsupported:
        return _lines(ir, None)


_NONE = Partings(set(), set(), {}, set(), {}, [])


def _lines(ir: str, partings: Partings | None) -> str:
    """`ir` with the mask in a variable, which LLVM turns into values.

    Parameters
    ----------
    partings : Partings or None
        None where nothing is known: `activemask` stays everywhere.
    """
    before, kernel, behind = around_kernel(ir)
    head, *body, end, last = kernel.split("\n")
    lines = list(with_blocks(body))
    masked, branched, leaving, ends, sides, _ = partings or _NONE
    returns = {
        block for (_, above), (block, line) in pairwise(lines)
        if line == "  ret void" and LABEL.match(above)
    }  # fmt: skip
    has_parted = any(_BARRIER in line and block in branched for block, line in lines)
    has_mask = partings is not None and (ACTIVE in kernel or has_parted)
    asking = {
        block for block, line in lines
        if _ACTIVE_CALL.match(line) or (_BARRIER in line and block in branched)
    }  # fmt: skip
    votes, rounds = _wanted(asking, sides) if has_mask else ({}, [])

    def members(block: str) -> str:
        """Who is in a block, as an instruction; nothing where it is not known."""
        known = sides.get(block)
        if isinstance(known, Round):
            return f"load i32, ptr {_in_round(known)}"
        if known is not None:
            return f"or i32 {_voted(known)}, 0"
        return _KEPT if has_mask and block not in masked else ""

    told = [_LEAVE] if has_parted else []
    result = [head, *(_variables(rounds) if has_mask else ())]
    for block, line in lines:
        if match := _START_CALL.match(line):
            line = f"{match[1]}and i32 {match[2]}, -32"
        elif (match := _ACTIVE_CALL.match(line)) and members(block):
            line = f"{match[1]}{members(block)}"
        elif _BARRIER in line and block in branched:
            name = f"%mtl.met.{len(result)}"
            result.append(f"  {name} = {members(block) or _ASKED}")
            line = f"  call void @mtl_parted_barrier(i32 {name})"
        elif _OPENING in line and not has_parted:
            continue
        elif has_mask and block in leaving and (match := _BRANCH.match(line)):
            result += _narrowed(block[1:].strip('"'), match[1], leaving[block])
        elif (match := _BRANCH.match(line)) and block in votes:
            for side in votes[block]:
                result += _vote(side, match[1], members(block))
        if line.startswith("  br "):
            for one in rounds:
                result += _kept(one, block, members(block))
        if block in leaving or block in ends:
            line = _to_the_exit(line, returns)
        elif line == "  ret void":
            result += told
        result.append(line)
    result += ["", f"{_LEAVING[1:]}:", *told, _EXIT, "  unreachable", end, last]
    ir = before + "\n".join(result) + behind
    return _declared(ir) if has_mask else ir


def _variables(rounds: list[Round]) -> list[str]:
    """The variables of masks, and what the kernel's begins with."""
    return [
        "  %mtl.mask = alloca i32",
        f"  %mtl.mask.first = {_ASKED}",
        "  store i32 %mtl.mask.first, ptr %mtl.mask",
        *(f"  {_in_round(one)} = alloca i32" for one in rounds),
    ]


def _declared(ir: str) -> str:
    """`ir` with the declarations that it lacks."""
    for declaration in _DECLARATIONS:
        name = declaration.split("@")[1].split("(")[0]
        if not re.search(rf"^declare .*@{re.escape(name)}\(", ir, re.M):
            ir += f"\n{declaration}\n"
    return ir


def _to_the_exit(line: str, returns: set[str]) -> str:
    """A line that leads to where threads end at once if it led to a return."""
    if line == "  ret void":
        return f"  br label {_LEAVING}"
    if not line.startswith("  br "):
        return line
    return _TARGET.sub(lambda label: _LEAVING if label[0] in returns else label[0], line)


def _wanted(
    asking: set[str], sides: dict[str, Side | Round]
) -> tuple[dict[str, set[Side]], list[Round]]:
    """The votes in blocks, and the rounds, by which members are known in those that ask."""
    votes: dict[str, set[Side]] = defaultdict(set)
    rounds: list[Round] = []
    todo: list[str | Side] = [*asking]
    while todo:
        one = todo.pop()
        if isinstance(one, Side):
            if one in votes[one.block]:
                continue
            votes[one.block].add(one)
            one = one.block
        known = sides.get(one)
        if isinstance(known, Side):
            todo.append(known)
        elif known is not None and known not in rounds:
            rounds.append(known)
            todo += [*known.origins, known.staying]
    return votes, rounds


def _in_round(known: Round) -> str:
    """The variable that holds who is in a round."""
    name = known.header[1:].strip('"')
    return f'%"mtl.round.{name}"'


def _kept(known: Round, block: str, members: str) -> list[str]:
    """Keep who comes from the end of a block into the next round; nothing if it leads elsewhere."""
    name = block[1:].strip('"')
    variable, lines = _in_round(known), []
    for one in (*known.origins, known.staying):
        if isinstance(one, Side) and one.block == block:
            lines.append(f"  store i32 {_voted(one)}, ptr {variable}")
        elif one == block:
            all_of_it = f'{variable[:-1]}.from.{name}"'
            lines += [f"  {all_of_it} = {members}", f"  store i32 {all_of_it}, ptr {variable}"]
    return lines


def _voted(side: Side) -> str:
    """The value that holds who takes a side."""
    name = side.block[1:].strip('"')
    return f'%"mtl.side.{name}.{"then" if side.is_taken else "else"}"'


def _vote(side: Side, condition: str, members: str) -> list[str]:
    """Ask the members of a block, at its end, which side they take."""
    name = _voted(side)[:-1]
    wanted = "false" if side.is_taken else "true"
    return [
        f'  {name}.before" = {members}',
        f'  {name}.is" = xor i1 {condition}, {wanted}',
        f'  {name}" = call i32 @llvm.nvvm.vote.ballot.sync(i32 {name}.before", i1 {name}.is")',
    ]


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
