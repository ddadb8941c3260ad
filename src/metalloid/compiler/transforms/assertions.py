"""Messages of kernels to the host: logs and assertions.

clang makes a branch of an assertion, to a block that ends the thread. Lanes would diverge there,
and all code after it would need masks. But if an assertion fails the launch ends; so a branch to a
failure becomes an ``assert`` instruction, which all active lanes pass or the launch ends, and the
control flow is that of a kernel without assertions.

A log message is a call for each active lane, one after the other. The runtime gets the index of the
thread with each call, since a simdgroup runs many.
"""

from __future__ import annotations

from dataclasses import replace

from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Block, Function, Instruction, Value, replace_predecessor
from metalloid.compiler.ir.types import I1, I32
from metalloid.compiler.transforms.clone_blocks import clone

#: Functions that report to the host.
REPORTS = _FAILED, _LOG, OUTSIDE = "@__msl_assertion_failed", "@__msl_log", "@__msl_outside"
_IN_THREAD = "_in_thread"
FAILED_IN_THREAD, LOG_IN_THREAD = f"{_FAILED}{_IN_THREAD}", f"{_LOG}{_IN_THREAD}"
#: An access outside of its object: site, offset and extent in bytes (bounds.check_accesses).
OUTSIDE_IN_THREAD = f"{OUTSIDE}{_IN_THREAD}"
_FAILURES = (FAILED_IN_THREAD, OUTSIDE_IN_THREAD)
_DECLARATIONS = {
    OUTSIDE_IN_THREAD: f"declare void {OUTSIDE_IN_THREAD}(i32, i64, i64, i32, i32) cold noreturn",
    FAILED_IN_THREAD: f"declare void {FAILED_IN_THREAD}(ptr, ptr, i32, i32) cold noreturn",
    LOG_IN_THREAD: f"declare void {LOG_IN_THREAD}(i32, ptr, ptr, ptr, ptr, i32, i32)",
}


def pass_thread_index(function: Function, index: Value) -> None:
    """Pass the thread's index with what a function reports; see `declare_reports`."""
    for i in function.instructions():
        if i.op == "call" and i.callee in REPORTS:
            i.callee += _IN_THREAD
            i.operands.append(index)
            if i.callee == OUTSIDE_IN_THREAD:  # how many more threads fail
                i.operands.append(Value(I32, "0"))


def declare_reports(ir: str) -> str:
    """The module with declarations of what `pass_thread_index` calls."""
    declared = (line for name, line in _DECLARATIONS.items() if f"{name}(" in ir)
    return "\n".join((ir, *declared, ""))


def lower_assertions(function: Function) -> None:
    """Replace branches to failed assertions by ``assert`` and ``assert_not``.

    Their operands are the condition and what the failure reports.
    """
    graph = Graph(function)
    joined: list[str] = []
    failing = [block for block in function.blocks.values() if _has_failed(block)]
    for failed in failing:
        *others, call = failed.body
        failed.body[-1] = _assertion(True, Value(I1, "false"), call)
        for name in graph.predecessors.get(failed.name, ()):
            block = function.blocks[name]
            if len(block.end.labels) != 2 or block.end.labels.count(failed.name) != 1:
                continue
            if others:
                _let_fall_through(function, block, failed)
            else:
                _assert_instead(block, failed, call)
                joined.append(name)
        if not any(failed.name in block.end.labels for block in function.blocks.values()):
            del function.blocks[failed.name]
    _join_chains(function, joined)


def _has_failed(block: Block) -> bool:
    last = block.body[-1] if block.body else block.end
    return last.op == "call" and last.callee in _FAILURES


def _assertion(holds: bool, condition: Value, call: Instruction) -> Instruction:
    """An assertion of a condition, in place of a call with these operands."""
    op = "assert" if holds else "assert_not"
    if call.callee == OUTSIDE_IN_THREAD:
        op = "assert_inside"
    return Instruction(op, operands=[condition, *call.operands])


def _let_fall_through(function: Function, block: Block, failed: Block) -> None:
    """Let `block` go to a copy of `failed`, and from there to where it goes otherwise.

    No lane continues, and if one did all would: code after it needs no masks.
    """
    new, _ = clone(function, [failed.name], f"~{block.name[1:]}")
    copy = function.blocks[new[failed.name]]
    for phi, of_copy in zip(failed.phis, copy.phis, strict=True):
        of_copy.operands, of_copy.labels = [_taken_from(phi, block.name)], [block.name]
    other = _other(block, failed)
    block.end.labels = [copy.name if label == failed.name else label for label in block.end.labels]
    copy.end = Instruction("br", labels=[other])
    for phi in function.blocks[other].phis:
        phi.operands.append(phi.operands[phi.labels.index(block.name)])
        phi.labels.append(copy.name)


def _taken_from(phi: Instruction, predecessor: str) -> Value:
    """Remove the operand of `phi` for a block that is no longer a predecessor; the operand."""
    position = phi.labels.index(predecessor)
    del phi.labels[position]
    return phi.operands.pop(position)


def _other(block: Block, failed: Block) -> str:
    """Where a block goes that does not go to `failed`."""
    return block.end.labels[block.end.labels[0] == failed.name]


def _assert_instead(block: Block, failed: Block, call: Instruction) -> None:
    """Let `block` assert what it branches by, rather than go to `failed`."""
    end, other = block.end, _other(block, failed)
    given = {phi.result: _taken_from(phi, block.name) for phi in failed.phis}
    own = replace(call, operands=[given.get(value.name, value) for value in call.operands])
    block.body.append(_assertion(other == end.labels[0], end.operands[0], own))
    block.end = Instruction("br", labels=[other])


def _join_chains(function: Function, names: list[str]) -> None:
    """Join each block of `names` with the one that it alone goes to."""
    blocks, predecessors = function.blocks, Graph(function).predecessors
    values: dict[str, Value] = {}
    for name in names:
        while name in blocks and len(blocks[name].end.labels) == 1:
            block, following = blocks[name], blocks[blocks[name].end.labels[0]]
            if len(predecessors[following.name]) != 1 or following is block:
                break
            values.update((phi.result, phi.operands[0]) for phi in following.phis)
            block.body += following.body
            block.end = following.end
            for successor in following.successors:
                replace_predecessor(blocks[successor], following.name, name)
                of = predecessors[successor]
                of[of.index(following.name)] = name
            del blocks[following.name]

    def resolved(value: Value) -> Value:
        while value.name in values:
            value = values[value.name]
        return value

    for one in function.instructions() if values else ():
        one.operands = [resolved(value) for value in one.operands]
