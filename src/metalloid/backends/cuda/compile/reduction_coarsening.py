"""Thread coarsening of kernels that add to memory: rows of threads add up what they share first.

And interleaved iterations of the loops in which they do, so that these do not wait for each other.

The adjoint of a naive product of matrices adds to ``d_b[k * n + x]`` in a loop over ``k``: threads
of all rows of the grid add to the same elements, at the same time, so that it is bound by atomic
additions. Where the address of an addition in a loop does not depend on the index of the
threadgroup along an axis, a second kernel, for large grids, lets one CUDA thread run the same
thread of several threadgroups adjacent along that axis (`transforms.interleave_threads`): it adds
their sum.

In such a kernel each iteration waits for its loads, for the sum over the lanes of a warp, and for
the branch of the lane that adds it. So its loops run four iterations at a time, and those that are
left alone::

    before:  br loop                  before:  br four left, wide, loop
    loop:    k = phi 0, k'            wide:    k = phi 0, k + 4: iterations k to k + 3
             ...; br k' == n              br four left, wide, rest
             exit, loop               rest:    br k' == n, exit, loop
                                      loop:    k = phi 0, k', k + 4: as before

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
from metalloid.compiler.ir.cfg import Graph, Loop
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import (
    Block,
    Function,
    Instruction,
    Value,
    replace_predecessor,
)
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.types import I1, I32, Unsupported
from metalloid.compiler.transforms.clone_blocks import clone
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
#: What the lanes of a warp differ by, and where the threadgroups are narrower.
_LANE_INDICES = ("@llvm.nvvm.read.ptx.sreg.tid.x", "@mtl_plain_lane")
_THREAD_INDICES = (*_LANE_INDICES, *(f"@llvm.nvvm.read.ptx.sreg.tid.{axis}" for axis in "yz"))
_MAX_INSTRUCTIONS = 1200  # of all threads, or iterations
_ITERATIONS = 4  # of a loop at a time
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
        return list(_sum(i, of_thread, _FACTOR, names)) if varying.shares(i) else []

    threads = MergedThreads(_FACTOR, varying.names, varying.is_replicated, indices, combine)
    interleave_threads(function, threads, names)
    body = function.entry.body
    memory = [i for i in body if i.op == "alloca"]  # which LLVM expects in the entry block
    function.entry.body = [i for i in body if i.op != "alloca"]
    end = Instruction("br", labels=[function.entry.name])
    entry = Block(names("%mtl.entry"), body=[*memory, block, first], end=end)
    function.blocks = {entry.name: entry, **function.blocks}


def _sum(
    i: Instruction, of_thread: OfThread, count: int, names: FreshNames
) -> Iterator[Instruction]:
    """One addition of what all threads add."""
    address, total = i.operands
    for number in range(1, count):
        operands = [total, of_thread(i.operands[1], number)]
        add = Instruction("fadd", names("%mtl.sum"), total.type, operands)
        yield add
        total = add.value
    yield replace(i, operands=[address, total])


# ---- iterations


def interleave_iterations(function: Function, pure: Set[str], names: FreshNames) -> bool:
    """Let the loops of a coarsened kernel that add to memory run several iterations at a time.

    Returns
    -------
    bool
        Whether there was such a loop.
    """
    private = _private_addresses(function)
    if private is None or all(i.op != "atomicrmw" for i in function.instructions()):
        return False
    try:
        graph = Graph(function)
    except Unsupported:
        return False
    by_lane = _Varying(function, _THREAD_INDICES, private).names
    launch = {*launch_offsets(function)}
    is_changed = False
    for loop in graph.loops:
        own = [i for n in loop.blocks if graph.loop_of[n] is loop for i in function.blocks[n].body]
        if not any(i.op == "atomicrmw" for i in own):
            continue
        counter = _counter_of(function, loop, by_lane)
        if counter is not None and _is_independent(function, loop, pure, private | launch):
            is_changed |= _add_wide_loop(function, loop, counter, names)
    return is_changed


@dataclass(frozen=True)
class _Counter:
    """A loop's only phi, which counts to a number that all lanes have in common."""

    phi: Instruction
    following: Instruction
    end: Value


def _counter_of(function: Function, loop: Loop, by_lane: Set[str]) -> _Counter | None:
    header, latch = function.blocks[loop.header], function.blocks.get(loop.latch)
    if latch is None or not loop.preheader or len(header.phis) != 1 or latch.end.op != "br":
        return None
    (phi,), inside = header.phis, [function.blocks[name] for name in loop.blocks]
    defined = {i.result: i for block in inside for i in block.instructions() if i.result}
    following = defined.get(phi.operands[phi.labels.index(loop.latch)].name)
    test = defined.get(latch.end.operands[0].name) if latch.end.operands else None
    if following is None or test is None or following.op != "add" or test.op != "icmp":
        return None
    is_step = following.operands[0] == phi.value and following.operands[1].integer == 1
    goes_on = latch.end.labels.index(loop.header) == (test.predicate == "eq")
    end = test.operands[1]
    if not is_step or test.predicate not in ("eq", "ne") or not goes_on or phi.type != I32 or (
        test.operands[0] != following.value or end.name in defined or end.name in by_lane
    ):  # fmt: skip
        return None
    exits = [block.name for block in inside if not loop.blocks.issuperset(block.successors)]
    after = [block for block in function.blocks.values() if block.name not in loop.blocks]
    is_used = any(
        v.name in defined for block in after for i in block.instructions() for v in i.operands
    )
    if exits != [loop.latch] or is_used or any(function.blocks[n].phis for n in loop.exits):
        return None
    return _Counter(phi, following, end)


def _is_independent(function: Function, loop: Loop, pure: Set[str], unchanged: Set[str]) -> bool:
    """Whether no iteration can observe the order of others."""
    for name in loop.blocks:
        for i in function.blocks[name].instructions():
            is_read = i.op == "load" and not (
                "invariant" in i.flags or i.operands[0].name in unchanged
            )
            if i.op == "store" or is_read or not _is_unordered(i, pure):
                return False
    return True


def _add_wide_loop(function: Function, loop: Loop, counter: _Counter, names: FreshNames) -> bool:
    """Add a loop of several iterations at a time before a loop; False where it would diverge."""
    blocks, order = function.blocks, [*function.blocks]
    new, _ = clone(function, loop.blocks, ".wide", names)
    copies = {new[name]: blocks.pop(new[name]) for name in order if name in new}
    wide = replace(function, blocks=copies)
    header, latch = wide.blocks[new[loop.header]], wide.blocks[new[loop.latch]]
    [phi] = header.phis
    header.phis = []
    index = Instruction("add", phi.result, I32, [Value(I32, "0"), Value(I32, "0")])
    header.body.insert(0, index)
    start = Instruction("phi", names("%mtl.iteration"), I32)
    varying = _IteratedValues(wide, index)
    latch.end = Instruction("br", labels=[header.name])
    if any(diverges(block, varying.names) for block in wide.blocks.values()) or (
        _ITERATIONS * sum(map(varying.is_replicated, wide.instructions())) > 2 * _MAX_INSTRUCTIONS
    ):
        return False

    def combine(i: Instruction, of_thread: OfThread) -> list[Instruction]:
        is_shared = i.op == "atomicrmw" and i.operands[0].name not in varying.names
        return list(_sum(i, of_thread, _ITERATIONS, names)) if is_shared else []

    threads = MergedThreads(
        _ITERATIONS, varying.names, varying.is_replicated, {index.result: start.value}, combine
    )
    interleave_threads(wide, threads, names)
    following = Instruction(
        "add", names("%mtl.iteration.next"), I32, [start.value, Value(I32, str(_ITERATIONS))]
    )
    first = counter.phi.operands[counter.phi.labels.index(loop.preheader)]
    guard = Block(names(f"{loop.header}.guard"))
    rest = Block(names(f"{loop.header}.rest"))
    for block, value in ((guard, first), (latch, following.value)):
        left = Instruction("sub", names("%mtl.left"), I32, [counter.end, value])
        has_more = Instruction(
            "icmp", names("%mtl.has_more"), I1, [left.value, Value(I32, str(_ITERATIONS))],
            predicate="uge",
        )  # fmt: skip
        block.body += [left, has_more]
        other = loop.header if block is guard else rest.name
        block.end = Instruction("br", operands=[has_more.value], labels=[header.name, other])
    latch.body.insert(-2, following)
    start.operands, start.labels = [first, following.value], [guard.name, latch.name]
    header.phis.insert(0, start)
    done = Instruction(
        "icmp", names("%mtl.done"), I1, [following.value, counter.end], predicate="eq"
    )
    (outside,) = loop.exits
    rest.body = [done]
    rest.end = Instruction("br", operands=[done.value], labels=[outside, loop.header])
    preheader = blocks[loop.preheader]
    preheader.end.labels = [
        guard.name if label == loop.header else label for label in preheader.end.labels
    ]
    replace_predecessor(blocks[loop.header], loop.preheader, guard.name)
    counter.phi.operands.append(following.value)
    counter.phi.labels.append(rest.name)
    added = [guard, *wide.blocks.values(), rest]
    at = order.index(loop.header)
    function.blocks = {
        block.name: block
        for block in (*(blocks[n] for n in order[:at]), *added, *(blocks[n] for n in order[at:]))
    }
    return True


class _IteratedValues:
    """The values that differ between the iterations of a loop.

    Attributes
    ----------
    names : set of str
    """

    def __init__(self, function: Function, index: Instruction) -> None:
        self._index, self.names = index, {index.result}
        size = -1
        while size < len(self.names):  # once more for what comes around inner loops
            size = len(self.names)
            for i in function.instructions():
                if i.result and self.is_replicated(i):
                    self.names.add(i.result)

    def is_replicated(self, i: Instruction) -> bool:
        """Whether an instruction is executed for each iteration."""
        if i is self._index or i.op == "atomicrmw":
            return True
        return any(value.name in self.names for value in i.operands)
