"""Thread coarsening: one CUDA thread runs several Metal threads, to have more loads in flight.

A kernel that loads one number per thread is bound by memory latency: on an H200 it reaches 80 % of
the bandwidth, and all of it with two or four independent loads per thread (docs/nvidia.md). So
small kernels get a second, coarsened kernel for large grids. Its threads run the same thread of
several adjacent threadgroups (`transforms.interleave_threads`).

Threads of different threadgroups share only device memory, and Metal does not order their plain
loads and stores. So every interleaving that keeps the order within each thread is correct, whether
buffers overlap or not. Instructions that synchronise threads or order accesses are refused:
atomics, volatile accesses, fences, barriers, simdgroup functions, threadgroup memory. Kernels for
which coarsening is not profitable are refused too: loops, which have enough loads in flight
already, and adjacent threads whose addresses are a row apart.

Kernels with small elements are coarsened along x instead (vectorized_coarsening.py).
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from metalloid.backends.cuda.compile.launch_data import LaunchLayout, launch_offsets
from metalloid.backends.cuda.compile.vectorized_coarsening import (
    THREAD_INDEX,
    VectorAccesses,
    is_call,
    vectorization_factor,
)
from metalloid.compiler.ir.cfg import reverse_postorder
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.types import I32, Pointer, Type, Unsupported, Vector, bits_of
from metalloid.compiler.transforms.interleave_threads import (
    MergedThreads,
    diverges,
    interleave_threads,
)
from metalloid.compiler.transforms.loop_simplify import remove_edge

#: The coarsened kernel, in the same module.
COARSENED_SYMBOL = "mtl_coarsened"
#: The call whose result distinguishes the threads of several threadgroups.
BLOCK_INDEX = "@llvm.nvvm.read.ptx.sreg.ctaid.x"
_MAX_FACTOR = 4  # threads in one; eight were slower
_MAX_LOADED_BYTES = 48  # by all threads; kernels that load more have enough loads in flight
_MAX_VECTOR_LOADED_BYTES = 64  # the same with vector accesses
_MAX_INSTRUCTIONS = 800  # of all threads
_MAX_BLOCKS = 256
_SUPPORTED = (
    INTEGER_BINARY | FLOAT_BINARY | CASTS
    | {"call", "extractelement", "extractvalue", "fcmp", "fneg", "freeze", "getelementptr", "icmp",
       "insertelement", "insertvalue", "load", "phi", "select", "shufflevector", "store"}
)  # fmt: skip
_THREADGROUP_MEMORY = re.compile(r"addrspace ?\( ?3 ?\)")
_ATTRIBUTES = re.compile(r"^(?:declare|define) [^\n]*(@[\w.$]+)\([^\n]*#(\d+)", re.M)
_ATTRIBUTE_GROUP = re.compile(r"^attributes #(\d+) = \{([^\n]*)\}", re.M)


@dataclass(frozen=True)
class Coarsening:
    """The threads that one thread of a coarsened kernel runs.

    Attributes
    ----------
    factor : int
        Metal threads per CUDA thread.
    is_vectorized : bool
        Whether they are adjacent in x.
    axis : int
        The axis along which their threadgroups are adjacent.
    """

    factor: int
    is_vectorized: bool
    axis: int = 0


def pure_functions(ir: str) -> set[str]:
    """Functions of a module without memory accesses that are not convergent."""
    groups = {
        number for number, text in _ATTRIBUTE_GROUP.findall(ir)
        if " memory(none)" in text and " convergent " not in text
    }  # fmt: skip
    return {name for name, number in _ATTRIBUTES.findall(ir) if number in groups}


def assume_uniform_grid(function: Function, layout: LaunchLayout) -> bool:
    """Remove the edge for grids that are not uniform: the coarsened kernel runs uniform ones."""
    entry = function.entry
    values = {i.result: i for i in entry.body}

    def defining(value: Value, op: str) -> Instruction | None:
        instruction = values.get(value.name)
        return instruction if instruction is not None and instruction.op == op else None

    if len(entry.end.operands) != 1 or entry.end.op != "br":
        return False
    compared = defining(entry.end.operands[0], "icmp")
    if compared is None or compared.predicate != "eq" or compared.operands[1].integer != 0:
        return False
    loaded = defining(compared.operands[0], "load")
    offsets = launch_offsets(function)
    if loaded is None or offsets.get(loaded.operands[0].name) != layout.uniform_offset:
        return False
    removed, remaining = entry.end.labels
    entry.end = Instruction("br", labels=[remaining])
    if removed != remaining:
        remove_edge(function, entry.name, removed)
    return True


def coarsen_threads(
    function: Function, layout: LaunchLayout, pure: Set[str], names: FreshNames
) -> Coarsening | None:
    """Let a CUDA thread run several Metal threads; None where that is not correct or profitable.

    Parameters
    ----------
    pure : set of str
        Functions without memory accesses that are not convergent.
    """
    if sum(1 for _ in function.instructions()) > 2 * _MAX_INSTRUCTIONS:
        return None
    blocks = _acyclic_blocks(function)
    if blocks is None:
        return None
    by_thread = _VaryingValues(function, blocks, pure, THREAD_INDEX, 16, _MAX_VECTOR_LOADED_BYTES)
    extent = layout.extent_offset
    factor, element_pointers = vectorization_factor(function, blocks, by_thread.names, extent)
    is_vectorized = 1 < factor <= by_thread.factor
    varying = by_thread
    if not is_vectorized:
        varying = _VaryingValues(
            function, blocks, pure, BLOCK_INDEX, _MAX_FACTOR, _MAX_LOADED_BYTES
        )
        factor = varying.factor
    if factor == 1:
        return None
    function.blocks = {block.name: block for block in blocks}
    _coarsen(function, varying, factor, VectorAccesses(factor, element_pointers, names)
             if is_vectorized else None, extent, names)  # fmt: skip
    return Coarsening(factor, is_vectorized)


def _acyclic_blocks(function: Function) -> list[Block] | None:
    """The reachable blocks in topological order; None if there are loops or too many blocks."""
    blocks = function.blocks
    if len(blocks) > _MAX_BLOCKS:
        return None
    order = reverse_postorder(function.entry.name, lambda name: blocks[name].successors)
    number = {name: position for position, name in enumerate(order)}
    for name in order:
        if blocks[name].end.op not in ("br", "ret"):
            return None
        if any(number[target] <= number[name] for target in blocks[name].successors):
            return None
    return [blocks[name] for name in order]


def _coarsen(
    function: Function,
    varying: _VaryingValues,
    factor: int,
    accesses: VectorAccesses | None,
    extent: int,
    names: FreshNames,
) -> None:
    """Interleave the threads, and compute the indices of the first of them in a new entry block."""
    block_index = Instruction("call", names("%mtl.block"), I32, flags=("tail",), callee=BLOCK_INDEX)
    first = Instruction(
        "mul", names("%mtl.first"), I32, [block_index.value, Value(I32, str(factor))]
    )
    prologue, index = [block_index, first], first.value
    if accesses is not None:
        added, index, group = accesses.indices(function.parameters[0], first.value, extent)
        prologue += added
        _replace_calls(function, BLOCK_INDEX, group)
    indices = {i.result: index for i in function.instructions() if is_call(i, varying.index)}
    threads = MergedThreads(factor, varying.names, varying.varies, indices)
    if accesses is not None:
        threads = MergedThreads(factor, varying.names, varying.varies, indices, accesses.combine)
    interleave_threads(function, threads, names)
    entry = Block(
        names("%mtl.entry"), body=prologue, end=Instruction("br", labels=[function.entry.name])
    )
    function.blocks = {entry.name: entry, **function.blocks}
    function.name = COARSENED_SYMBOL


def _replace_calls(function: Function, callee: str, value: Value) -> None:
    for block in function.blocks.values():
        block.body = [
            Instruction("add", i.result, i.type, [value, Value(I32, "0")])
            if is_call(i, callee) else i
            for i in block.body
        ]  # fmt: skip


class _VaryingValues:
    """The values that vary with `index`, a call.

    Attributes
    ----------
    index : str
    names : set of str
    factor : int
        The coarsening factor; 1 if coarsening is not correct or profitable.
    """

    def __init__(
        self,
        function: Function,
        blocks: list[Block],
        pure: Set[str],
        index: str,
        max_factor: int,
        max_loaded: int,
    ) -> None:
        self.index = index
        self.names: set[str] = set()
        self._launch = {*launch_offsets(function)}
        self._consecutive: set[str] = set()  # one greater in the next thread in x
        self.factor = 1
        executed = loaded = 0
        after_store: set[str] = set()  # blocks with a store, or after one
        for block in blocks:
            for i in (*block.phis, *block.body):
                if not _is_unordered(i, pure) or self._is_strided(i):
                    return
                if self._is_consecutive(i):
                    self._consecutive.add(i.result)
                if i.op == "store":
                    after_store.add(block.name)
                if self.varies(i):
                    executed += 1
                    loaded += _loaded_bytes(i)
                    self.names |= {i.result} - {""}
            is_equal = len(set(block.end.labels)) == 1
            if diverges(block, self.names) and (block.name in after_store or is_equal):
                return
            if block.name in after_store:
                after_store.update(block.end.labels)
        if executed:
            self.factor = max_factor
        while self.factor * loaded > max_loaded or self.factor * executed > _MAX_INSTRUCTIONS:
            self.factor //= 2
        self.factor = max(self.factor, 1)

    def _is_consecutive(self, i: Instruction) -> bool:
        if is_call(i, THREAD_INDEX):
            return True
        is_other = i.op in ("load", "store") or (
            i.op == "extractelement" and i.operands[1].integer in (1, 2)
        )
        return not is_other and any(value.name in self._consecutive for value in i.operands)

    def _is_strided(self, i: Instruction) -> bool:
        """Whether an index of adjacent threads is multiplied by a stride.

        Their stores then share cache lines with few other threads; coarsening makes them fewer.
        """
        if i.op != "mul" or isinstance(i.type, Vector):
            return False
        if any(value.is_constant for value in i.operands):
            return False
        return any(value.name in self._consecutive for value in i.operands)

    def varies(self, i: Instruction) -> bool:
        """Whether an instruction is executed for each thread."""
        if is_call(i, self.index) or i.op == "store":
            return True
        if i.op == "load" and "invariant" not in i.flags:
            # Other threads may write to it.
            return i.operands[0].name not in self._launch
        return any(value.name in self.names for value in i.operands)


def _is_unordered(i: Instruction, pure: Set[str]) -> bool:
    """Whether no other thread can observe the order of an instruction."""
    if i.op not in _SUPPORTED or i.ordering or "volatile" in i.flags:
        return False
    if i.op == "call":
        return i.callee in pure
    return _THREADGROUP_MEMORY.search(instruction_text(i)) is None


def _loaded_bytes(i: Instruction) -> int:
    return _bytes(i.type) if i.op == "load" else 0


def _bytes(type_: Type) -> int:
    if isinstance(type_, Vector):
        return type_.lanes * _bytes(type_.element)
    try:
        return 8 if isinstance(type_, Pointer) else -(-bits_of(type_) // 8)
    except Unsupported:
        return 0
