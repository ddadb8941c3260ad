"""Thread coarsening of kernels that add to memory: rows of threads add up what they share first.

The adjoint of a naive product of matrices adds to ``d_b[k * n + x]`` in a loop over ``k``: threads
of all rows of the grid add to the same elements, at the same time, so that it is bound by atomic
additions. Where the address of an addition in a loop does not depend on the index of the
threadgroup along an axis, a second kernel, for large grids, lets one CUDA thread run the same
thread of several threadgroups adjacent along that axis (`transforms.interleave_threads`): it adds
their sum.

Such threads share only device memory, and order neither their accesses nor their atomic additions,
so every interleaving that keeps the order within each thread is correct. One flow of control has to
serve all of them: kernels whose branches depend on that index are refused. So their simdgroup
functions run with the same lanes as before, and private memory has the same content for all of
them. Barriers, threadgroup memory and other atomics are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace

from metalloid.backends.cuda.compile.coarsening import COARSENED_SYMBOL, Coarsening
from metalloid.backends.cuda.compile.launch_data import launch_offsets
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.types import I32, Unsupported
from metalloid.compiler.transforms.interleave_threads import (
    MergedThreads,
    OfThread,
    diverges,
    interleave_threads,
)
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors

_FACTOR = 4  # threads in one
#: The calls whose results distinguish threadgroups along x and y.
_BLOCK_INDICES = tuple(f"@llvm.nvvm.read.ptx.sreg.ctaid.{axis}" for axis in "xy")
#: What the lanes of a warp differ by.
_LANE_INDICES = ("@llvm.nvvm.read.ptx.sreg.tid.x", "@llvm.nvvm.read.ptx.sreg.laneid")
_MAX_INSTRUCTIONS = 1200  # of all threads
_WARP = 32
_SUPPORTED = (
    INTEGER_BINARY | FLOAT_BINARY | CASTS
    | {"alloca", "atomicrmw", "call", "extractvalue", "fcmp", "fneg", "freeze", "getelementptr",
       "icmp", "insertvalue", "load", "phi", "select", "store"}
)  # fmt: skip
#: Functions of the lanes of a warp, the extent of private memory, and how threads leave the kernel.
_CALL = re.compile(
    r"@llvm\.nvvm\.(shfl\.sync|vote|activemask)|@mtl_plain_|@llvm\.lifetime|asm .*\"exit;\""
)
_THREADGROUP_MEMORY = re.compile(r"addrspace ?\( ?3 ?\)")
_ADDRESSES = {"addrspacecast", "freeze", "getelementptr", "phi", "select"}


def coarsen_reductions(function: Function, pure: Set[str], names: FreshNames) -> Coarsening | None:
    """Let a CUDA thread run several Metal threads; None where that is not correct or profitable.

    Parameters
    ----------
    pure : set of str
        Functions without memory accesses that are not convergent.
    """
    instructions = list(function.instructions())
    if len(instructions) > _MAX_INSTRUCTIONS or all(i.op != "atomicrmw" for i in instructions):
        return None
    scalars = function.copy()
    try:
        scalarize_vectors(scalars)
        graph = Graph(scalars)
    except Unsupported:
        return None
    scalars.blocks = {name: scalars.blocks[name] for name in graph.order}
    private = _private_addresses(scalars)
    used = {value.name for i in scalars.instructions() for value in i.operands}
    if any(i.op == "atomicrmw" and i.result in used for i in scalars.instructions()):
        return None
    if private is None or not all(_is_unordered(i, pure) for i in scalars.instructions()):
        return None
    by_lane = _Varying(scalars, _LANE_INDICES, private).names

    def additions(varying: _Varying) -> int:
        """Additions of sums, of which those of all lanes are many and those of one lane few."""
        return sum(
            _WARP if i.operands[0].name in by_lane else 1
            for name in graph.order
            if graph.loop_of[name]
            for i in scalars.blocks[name].body
            if varying.shares(i)
        )

    by_axis = [_Varying(scalars, (index,), private) for index in _BLOCK_INDICES]
    counts = [additions(each) if each.is_supported() else 0 for each in by_axis]
    if not any(counts):
        return None
    axis = counts.index(max(counts))
    _interleave(scalars, by_axis[axis], names)
    function.blocks, function.name = scalars.blocks, COARSENED_SYMBOL
    return Coarsening(_FACTOR, is_vectorized=False, axis=axis)


def _is_unordered(i: Instruction, pure: Set[str]) -> bool:
    """Whether no other thread can observe the order of an instruction."""
    if i.op in ("br", "ret", "unreachable"):
        return True
    if i.op not in _SUPPORTED or _THREADGROUP_MEMORY.search(instruction_text(i)):
        return False
    if i.op == "atomicrmw":
        return i.operation == "fadd" and i.ordering == "monotonic"
    if i.op == "call":
        return i.callee in pure or _CALL.search(i.callee) is not None
    return not i.ordering and "volatile" not in i.flags


def _private_addresses(function: Function) -> set[str] | None:
    """Addresses in memory of the thread; None if not all accesses through them are known."""
    private = {i.result for i in function.instructions() if i.op == "alloca"}
    size = -1
    while size < len(private):
        size = len(private)
        for i in function.instructions():
            if i.op in _ADDRESSES and any(value.name in private for value in i.operands):
                private.add(i.result)
    for i in function.instructions():
        escaping = i.operands[:1] if i.op == "store" else i.operands
        is_known = i.op in _ADDRESSES or i.op == "load" or i.callee.startswith("@llvm.lifetime")
        if not is_known and any(value.name in private for value in escaping):
            return None
    return private


@dataclass
class _Varying:
    """The values that vary among threads that differ by the results of some calls.

    Attributes
    ----------
    names : set of str
    """

    function: Function
    indices: tuple[str, ...]
    private: Set[str]
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._launch = {*launch_offsets(self.function)}
        size = -1
        while size < len(self.names):  # once more for what comes around a loop
            size = len(self.names)
            for i in self.function.instructions():
                if i.result and self.is_replicated(i):
                    self.names.add(i.result)

    def is_replicated(self, i: Instruction) -> bool:
        """Whether an instruction is executed for each thread."""
        address = i.operands[-1].name if i.op in ("load", "store") else ""
        if i.op == "atomicrmw" or (i.op == "call" and i.callee in self.indices):
            return True
        if i.op == "store":
            return address not in self.private
        if i.op == "load" and "invariant" not in i.flags:
            # Other threads may write to it.
            return address not in self._launch | self.private
        return any(value.name in self.names for value in i.operands)

    def shares(self, i: Instruction) -> bool:
        """Whether threads add to the same element."""
        return i.op == "atomicrmw" and i.operands[0].name not in self.names

    def is_supported(self) -> bool:
        """Whether one flow of control and one private memory serve all threads."""
        if any(diverges(block, self.names) for block in self.function.blocks.values()):
            return False
        instructions = list(self.function.instructions())
        if any(
            i.op == "alloca" or i.operands[-1].name in self.private
            for i in instructions
            if i.op in ("alloca", "load", "store")
            and any(value.name in self.names for value in i.operands)
        ):
            return False
        return _FACTOR * sum(map(self.is_replicated, instructions)) <= _MAX_INSTRUCTIONS


def _interleave(function: Function, varying: _Varying, names: FreshNames) -> None:
    """Merge the threads, and compute the first one's threadgroup in a new entry block."""
    [index] = varying.indices
    block = Instruction("call", names("%mtl.block"), I32, flags=("tail",), callee=index)
    first = Instruction("mul", names("%mtl.first"), I32, [block.value, Value(I32, str(_FACTOR))])
    indices = {
        i.result: first.value
        for i in function.instructions()
        if i.op == "call" and i.callee == index
    }

    def combine(i: Instruction, of_thread: OfThread) -> list[Instruction]:
        return list(_sum(i, of_thread, names)) if varying.shares(i) else []

    threads = MergedThreads(_FACTOR, varying.names, varying.is_replicated, indices, combine)
    interleave_threads(function, threads, names)
    body = function.entry.body
    memory = [i for i in body if i.op == "alloca"]  # which LLVM expects in the entry block
    function.entry.body = [i for i in body if i.op != "alloca"]
    end = Instruction("br", labels=[function.entry.name])
    entry = Block(names("%mtl.entry"), body=[*memory, block, first], end=end)
    function.blocks = {entry.name: entry, **function.blocks}


def _sum(i: Instruction, of_thread: OfThread, names: FreshNames) -> Iterator[Instruction]:
    """One addition of what all threads add."""
    address, total = i.operands
    for number in range(1, _FACTOR):
        operands = [total, of_thread(i.operands[1], number)]
        add = Instruction("fadd", names("%mtl.sum"), total.type, operands)
        yield add
        total = add.value
    yield replace(i, operands=[address, total])
