"""Barriers that order no memory (``mem_flags::mem_none``).

OpenCL requires that all threads of a threadgroup reach a barrier. Kernels have such barriers, which
let the threads run in step for speed, in branches that some threads do not take. They are left out
there if the kernel has no threadgroup memory: nothing that Metal defines depends on them. If it has
some, threads may exchange values through it, which works on Apple's GPUs, so they remain barriers.
"""

from __future__ import annotations

from metalloid.compiler.analysis.divergence import Divergence, analyse
from metalloid.compiler.analysis.shapes import VARYING, uniform
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.parser import is_hint
from metalloid.compiler.ir.types import I32, Unsupported
from metalloid.compiler.transforms.loop_simplify import simplify_loops
from metalloid.runtime.launch.program import SIMDGROUP_WIDTH

#: The function that is a barrier.
BARRIER = "@_Z22__spirv_ControlBarrieriii"
_ALL_MEMORY = "776"  # as in target_spirv.h
_UNIFORM_IDS = ("@llvm.spv.group.id", "@llvm.spv.num.workgroups", "@llvm.spv.workgroup.size")
_THREADGROUP_MEMORY = "addrspace(3)"
_REPORT = "@_ZZN9metalloid6report"  # variables of report_spirv.h


def lower_execution_barriers(function: Function) -> bool:
    """Remove or replace barriers without memory semantics; return whether there are any."""
    barriers = [i for i in function.instructions() if i.op == "call" and i.callee == BARRIER]
    if all(i.operands[-1].name == _ALL_MEMORY for i in barriers):
        return False
    if not _uses_threadgroup_memory(function):
        for name in _masked_blocks(function):
            block = function.blocks[name]
            block.body = [i for i in block.body if not _is_execution_barrier(i)]
    for i in barriers:
        i.operands[-1] = Value(I32, _ALL_MEMORY)  # also of flags known at run time only
    return True


def _is_execution_barrier(i: Instruction) -> bool:
    return i.op == "call" and i.callee == BARRIER and i.operands[-1].name == "0"


def _uses_threadgroup_memory(function: Function) -> bool:
    return any(
        _THREADGROUP_MEMORY in str(value.type) and _REPORT not in value.name
        for i in function.instructions()
        for value in i.operands
    )


def _masked_blocks(function: Function) -> set[str]:
    """Blocks that perhaps not all threads of a threadgroup execute."""
    copy = function.copy()
    for block in copy.blocks.values():
        block.body = [i for i in block.body if not is_hint(i)]
    try:
        simplify_loops(copy)
        return analyse_divergence(copy).masked & function.blocks.keys()
    except Unsupported:
        return set(function.blocks) - {function.entry.name}


def analyse_divergence(function: Function) -> Divergence:
    """Divergence between the threads of a threadgroup, of a function in canonical form."""
    shapes = {parameter.name: uniform(SIMDGROUP_WIDTH) for parameter in function.parameters}
    for i in function.instructions():
        if i.op == "call" and i.callee.startswith("@llvm.spv."):
            is_uniform = i.callee.startswith(_UNIFORM_IDS)
            shapes[i.result] = uniform(SIMDGROUP_WIDTH) if is_uniform else VARYING
    return analyse(function, Graph(function), SIMDGROUP_WIDTH, shapes, all_masked=False)
