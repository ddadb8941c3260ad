"""Arrays that a processor should look ahead into.

It starts loads as far ahead as its window of some hundred instructions reaches. Where threads do
much with what they load, that is not far enough to keep the memory busy meanwhile. Where they do
little it is, unless what they store is too much for any cache, or far less than what they load: the
comparison of two arrays of 8 MB takes 0.29 ms instead of 0.46. In
loops that go along an array it is not, either, whatever they do: processors guess what comes next
within a page, and rows end with one. Loops do not ask on processors that guess well (`host.py`).
"""

from __future__ import annotations

from metalloid.compiler.ir.cfg import Loop
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.types import Pointer
from metalloid.compiler.vectorize.builder import Builder

PREFETCH = "@llvm.prefetch.p0"
#: Distance in bytes that covers the latency of memory: of kernels that compute, and of loops.
_AHEAD, _AHEAD_IN_LOOPS = 4096, 2048
_LINE = 64
#: Instructions from which on threads do much: some that compute indices, and those for each load.
_FOR_INDICES, _MUCH = 24, 12
#: Bytes that are loaded for each that is stored.
_FAR_LESS = 8
_SAME = ("zext", "sext", "trunc", "freeze")
#: Maximum depth of the search through the operations of an address: chains of random numbers have
#: hundreds, and use values twice.
_DEEPEST = 12


def looks_ahead(function: Function) -> bool:
    """Whether threads do much with what they load, or store little of it."""
    all_ = list(function.instructions())
    loads = [one for one in all_ if one.op == "load" and not one.reads_the_same]
    stored = sum(one.operands[0].type.size for one in all_ if one.op == "store")
    is_much = len(all_) >= _FOR_INDICES + _MUCH * len(loads)
    return is_much or _FAR_LESS * stored <= sum(one.type.size for one in loads)


def look_ahead(builder: Builder, address: Value, size: int) -> None:
    """Prefetch what will be loaded after `size` bytes from an address on.

    In a loop, that is what its next iterations load, otherwise what the next simdgroups load.
    """
    if builder.mask_as_bits() is not None:
        return
    ahead = _AHEAD if builder.looks_ahead else 0
    loop = builder.divergence.graph.loop_of[builder.block]
    if loop is not None and not builder.prefetches_in_loops:
        return
    if loop is not None:
        step = InductionSteps(builder, loop).step(address)
        ahead = -(-_AHEAD_IN_LOOPS // step) * step if step and step > 0 else 0
    if not ahead or not is_in_buffer(builder, address):
        return
    for start in range(0, size, _LINE):
        address_ahead = builder.new(
            f"getelementptr i8, ptr {builder.scalar(address)}, i64 {start + ahead}"
        )
        options = [("i32", option) for option in ("0", "3", "1")]  # to read, often, as data
        builder.call("void", PREFETCH, [("ptr", address_ahead), *options])


def is_in_buffer(builder: Builder, address: Value) -> bool:
    """Whether an address comes from a pointer in memory: variables are in the cache anyway."""
    inst = builder.computed_by.get(address.name)
    while inst is not None and inst.op in ("getelementptr", "bitcast"):
        inst = builder.computed_by.get(inst.operands[0].name)
    return inst is not None and inst.op == "load"


class InductionSteps:
    """Constant steps of values of a loop from iteration to iteration; None if unknown."""

    def __init__(self, builder: Builder, loop: Loop) -> None:
        self._computed_by, self._home, self._loop = (
            builder.computed_by,
            builder.divergence.home,
            loop,
        )
        self._steps: dict[str, int | None] = {}

    def step(self, value: Value, depth: int = 0) -> int | None:
        """The step of a number, or of an address in bytes."""
        if self._home(value) not in self._loop.blocks:
            return 0
        if value.name not in self._steps:
            inst = self._computed_by[value.name]
            self._steps[value.name] = self._of(inst, depth) if depth < _DEEPEST else None
        return self._steps[value.name]

    def _of(self, inst: Instruction, depth: int) -> int | None:
        if inst.op == "phi":
            return self._of_counter(inst)
        if inst.op in ("alloca", "call") or (inst.op == "load" and not inst.reads_the_same):
            return None
        steps = [self.step(operand, depth + 1) for operand in inst.operands]
        known = [step for step in steps if step is not None]
        if len(known) < len(steps):
            return None
        first, *others = known
        if not (first or any(others)) or inst.op in _SAME:
            return first
        if inst.op == "getelementptr" and len(others) == 1:
            return first + others[0] * inst.source.size
        if inst.op == "shl" and (amount := inst.operands[1].integer) is not None:
            return first << amount
        if inst.op in ("add", "sub") or (inst.op == "or" and "disjoint" in inst.flags):
            return first - others[0] if inst.op == "sub" else first + others[0]
        return None

    def _of_counter(self, phi: Instruction) -> int | None:
        """The step of a counter, to which each iteration adds the same."""
        if self._loop.latch not in phi.labels or isinstance(phi.type, Pointer):
            return None
        after = self._computed_by.get(phi.operands[phi.labels.index(self._loop.latch)].name)
        if after is None or after.op != "add" or phi.value not in after.operands:
            return None
        return next((v.integer for v in after.operands if v != phi.value), None)
