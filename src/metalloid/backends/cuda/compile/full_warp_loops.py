"""Loop versioning for full warps (ispc's coherent loops): a copy that runs with all lanes active.

In a divergent loop like ``for (i = t; i < n; i += 256)`` the active threads are not known, so each
simdgroup function in it has to vote in each iteration, and to work with any member mask. This pass
adds a copy of the loop that a warp executes while all of its 32 threads stay in it::

    before:  br loop                       before:  br all active, copy, loop
    loop:    ...; br stay, loop, exit      copy:    ...; br all stay, copy, middle
                                           middle:  br stay, loop, exit
                                           loop:    ...; br stay, loop, exit

LLVM propagates the full mask through the copy, as a branch on the mask (member_masks.py) dominates
it. The copy needs one vote in each iteration. It differs from the copy that
`transforms.version_uniform_loops` makes for vector code: there the copy has no masks at all, so it
takes only loops over indices, all of whose branches are uniform while all lanes go on.
"""

from __future__ import annotations

from collections.abc import Iterable

from metalloid.backends.cuda.compile.warp_divergence import ACTIVE
from metalloid.compiler.ir.cfg import Loop
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value, replace_predecessor
from metalloid.compiler.ir.types import I1, I32
from metalloid.compiler.transforms.clone_blocks import clone

_VOTE = "@llvm.nvvm.vote.all.sync"
_ALL_LANES = Value(I32, "-1")
#: Longer loops are not copied: instructions, and two for each block.
_MAX_SIZE = 600


def version_full_warp_loops(function: Function, loops: Iterable[Loop], names: FreshNames) -> bool:
    """Add a copy for full warps before each of `loops` for which that is supported.

    Parameters
    ----------
    loops : iterable of Loop
        Loops that are not nested.

    Returns
    -------
    bool
        Whether there was such a loop.
    """
    is_changed = False
    for loop in loops:
        if _is_supported(function, loop):
            _add_copy(function, loop, names)
            is_changed = True
    return is_changed


def _is_supported(function: Function, loop: Loop) -> bool:
    """Whether only the latch exits, and live-out values are used only by phis."""
    blocks = function.blocks
    inside = [blocks[name] for name in blocks if name in loop.blocks]
    exiting = [block.name for block in inside if not loop.blocks.issuperset(block.successors)]
    size = sum(2 + sum(1 for _ in block.instructions()) for block in inside)
    if not loop.preheader or exiting != [loop.latch] or size >= _MAX_SIZE:
        return False
    if blocks[loop.latch].end.op != "br":
        return False
    defined = {i.result for block in inside for i in block.instructions() if i.result}
    for block in blocks.values():
        uses = list(block.instructions())
        if block.name in (loop.header, *loop.exits):
            if any(loop.latch not in phi.labels for phi in block.phis):
                return False
            uses = [*block.body, block.end]
        is_outside = block.name not in loop.blocks
        if is_outside and any(value.name in defined for i in uses for value in i.operands):
            return False
    return True


def _add_copy(function: Function, loop: Loop, names: FreshNames) -> None:
    blocks, header = function.blocks, function.blocks[loop.header]
    preheader, latch = blocks[loop.preheader], blocks[loop.latch]
    order = [*blocks]
    new, copy_of = clone(function, loop.blocks, ".full_warp", names)

    members = Instruction("call", names("%mtl.members"), I32, callee=ACTIVE)
    is_full = Instruction(
        "icmp", names("%mtl.is_full"), I1, [members.value, _ALL_LANES], predicate="eq"
    )
    guard = Block(
        names(f"{loop.header}.guard"), [], [members, is_full],
        Instruction("br", operands=[is_full.value], labels=[new[loop.header], loop.header]),
    )  # fmt: skip
    preheader.end.labels = [
        guard.name if label == loop.header else label for label in preheader.end.labels
    ]
    for name in (loop.header, new[loop.header]):
        replace_predecessor(blocks[name], loop.preheader, guard.name)

    copied = blocks[new[loop.latch]]
    [condition] = copied.end.operands
    is_on_true = latch.end.labels[0] == loop.header
    on = Instruction(
        "xor", names("%mtl.stays"), I1, [condition, Value(I1, "false" if is_on_true else "true")]
    )
    vote = Instruction("call", names("%mtl.all_stay"), I1, [_ALL_LANES, on.value], callee=_VOTE)
    middle = Block(
        names(f"{loop.header}.middle"),
        end=Instruction("br", operands=[condition], labels=[*latch.end.labels]),
    )
    copied.body += [on, vote]
    copied.end = Instruction("br", operands=[vote.value], labels=[new[loop.header], middle.name])
    for name in (loop.header, *loop.exits):
        for phi in blocks[name].phis:
            phi.operands.append(copy_of(phi.operands[phi.labels.index(loop.latch)]))
            phi.labels.append(middle.name)

    # The copy stands before the loop.
    first = order.index(header.name)
    copies = [blocks[new[name]] for name in order if name in new]
    copies.insert(copies.index(copied) + 1, middle)
    ordered = [
        *(blocks[name] for name in order[:first]),
        guard,
        *copies,
        *(blocks[name] for name in order[first:]),
    ]
    function.blocks = {block.name: block for block in ordered}
