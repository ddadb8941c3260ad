"""Count how often basic blocks run, and what a run of each costs.

Each block begins with a call, which `with_counters` replaces by an increment of the block's counter
once no pass looks at the IR any more::

    call void @mtl_count(i32 7)

A counter is a word of the module's variable ``@mtl_counters``. The code is for one thread of the
system at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from metalloid.compiler.analysis.addresses import underlying_object
from metalloid.compiler.frontend.symbols import COUNTERS
from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms
from metalloid.compiler.ir.lexer import variable_of
from metalloid.compiler.ir.types import I32, POINTER, Float, Type, Vector
from metalloid.compiler.sanitizer.context import Kind
from metalloid.compiler.sanitizer.instrument import accesses_of

_COUNT = "@mtl_count"
_CALL = re.compile(rf"^ *call void {_COUNT}\(i32 (\d+)\).*$", re.M)
_FLOAT_OPERATIONS = frozenset(("fadd", "fsub", "fmul", "fdiv", "frem", "fneg"))
_FUSED = re.compile(r"@llvm\.(?:fma|fmuladd)\.")
_FLOAT_FUNCTION = re.compile(
    r"@llvm\.(?:sqrt|fabs|minnum|maxnum|minimum|maximum|floor|ceil|trunc|rint|round|roundeven|"
    r"copysign|exp2?|log2?|log10|pow|sin|cos)\."
)
_NO_CODE = ("@llvm.dbg.", "@llvm.lifetime.", "@llvm.assume", "@llvm.experimental.noalias")


class Cost(NamedTuple):
    """The cost of a run of some instructions.

    Attributes
    ----------
    instructions : int
        Of the IR, without phis.
    operations : int
        On floating-point numbers; a multiply-add is two, one of a vector counts for each component.
    loaded, stored : int
        Bytes of device and constant memory; an atomic update has both.
    shared : int
        Bytes of threadgroup memory.
    """

    instructions: int = 0
    operations: int = 0
    loaded: int = 0
    stored: int = 0
    shared: int = 0

    def plus(self, other: Cost) -> Cost:
        """The sum of both."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))


class Traffic(NamedTuple):
    """Bytes of an argument that a run of a block accesses.

    Attributes
    ----------
    position : int
        Of its word; -1 if it is not known.
    loaded, stored : int
    """

    position: int
    loaded: int
    stored: int


class BlockCost(NamedTuple):
    """The cost of a run of a block.

    Attributes
    ----------
    lines : dict
        By ``!dbg`` attachment.
    traffic : list of Traffic
    """

    lines: dict[str, Cost]
    traffic: list[Traffic]


@dataclass
class CountContext:
    """The state of the pass.

    Attributes
    ----------
    entry : str
        Name of the kernel's entry, which reads the launch that its parameters point to.
    blocks : list of BlockCost
        By number of the block.
    """

    entry: str
    blocks: list[BlockCost] = field(default_factory=list)
    valid: set[str] = field(default_factory=set)


def count_blocks(function: Function, context: CountContext) -> None:
    """Insert the calls of a function, and add the costs of its blocks."""
    root_of = _roots(function, function.name == context.entry)
    for block in function.blocks.values():
        costs: dict[str, Cost] = {}
        traffic: list[Traffic] = []
        for instruction in (*block.body, block.end):
            cost = _cost(instruction, root_of, traffic)
            debug = instruction.debug
            costs[debug] = costs.get(debug, Cost()).plus(cost)
        number = Value(I32, str(len(context.blocks)))
        context.blocks.append(BlockCost(costs, traffic))
        first = next((k for k, i in enumerate(block.body) if i.op != "alloca"), len(block.body))
        block.body.insert(first, Instruction("call", operands=[number], callee=_COUNT))


def with_counters(ir: str, blocks: int) -> str:
    """A module with increments in place of the calls."""

    def increment(match: re.Match[str]) -> str:
        number = match[1]
        counter = f"getelementptr (i8, ptr @{COUNTERS}, i64 {8 * int(number)})"
        return (
            f"  %mtl.count.{number} = load i64, ptr {counter}, align 8\n"
            f"  %mtl.counted.{number} = add i64 %mtl.count.{number}, 1\n"
            f"  store i64 %mtl.counted.{number}, ptr {counter}, align 8"
        )

    variable = f"\n@{COUNTERS} = global [{max(blocks, 1)} x i64] zeroinitializer, align 8\n"
    return _CALL.sub(increment, ir) + variable


def _cost(
    instruction: Instruction, root_of: Callable[[Value], _Root], traffic: list[Traffic]
) -> Cost:
    if instruction.op == "call" and instruction.callee.startswith(_NO_CODE):
        return Cost()
    sizes = dict.fromkeys(("loaded", "stored", "shared"), 0)
    for address, size, kind, _ in accesses_of(instruction):
        root, nbytes = root_of(address), size.integer or 0
        if root.space == "threadgroup":
            sizes["shared"] += nbytes
        elif root.space == "device":
            loaded, stored = nbytes * bool(kind & Kind.READ), nbytes * bool(kind & Kind.WRITE)
            sizes["loaded"] += loaded
            sizes["stored"] += stored
            traffic.append(Traffic(root.position, loaded, stored))
    return Cost(1, _operations(instruction), **sizes)


def _operations(instruction: Instruction) -> int:
    lanes = _float_lanes(instruction.type)
    if instruction.op in _FLOAT_OPERATIONS:
        return lanes
    if instruction.op == "atomicrmw" and instruction.operation in ("fadd", "fsub"):
        return 1
    if instruction.op == "call":
        if _FUSED.match(instruction.callee):
            return 2 * lanes
        if _FLOAT_FUNCTION.match(instruction.callee):
            return lanes
    return 0


def _float_lanes(type_: Type) -> int:
    if isinstance(type_, Vector):
        return type_.lanes if isinstance(type_.element, Float) else 0
    return int(isinstance(type_, Float))


class _Root(NamedTuple):
    """The origin of an address.

    Attributes
    ----------
    space : str
        ``"device"``, ``"threadgroup"``, or else empty.
    position : int
        Of the word of the launch that points to it; -1 if that is not known.
    """

    space: str
    position: int = -1


def _roots(function: Function, is_entry: bool) -> Callable[[Value], _Root]:
    computed_by = {i.result: i for i in function.instructions() if i.result}

    def root(address: Value) -> str | None:
        while (name := underlying_object(address, computed_by)) is not None:
            step = computed_by.get(name)
            if step is None or step.op != "addrspacecast":
                return name
            address = step.operands[0]
        return None

    def position_of(address: Value) -> int:
        """The index of a word in the array of words."""
        distance = 0
        while (step := computed_by.get(address.name)) is not None and step.op == "getelementptr":
            constant, variable = gep_terms(step)
            if variable:
                return -1
            distance += constant
            address = step.operands[0]
        return distance // POINTER.size

    def root_of(address: Value) -> _Root:
        name = root(address)
        if name is None:
            return _Root("device")
        if name.startswith("@"):
            # Constant tables of the text stay in the caches.
            return _Root("" if variable_of(name)[0] in function.tables else "threadgroup")
        step = computed_by.get(name)
        if step is None:  # a parameter: of the entry, the launch and the range
            return _Root("" if is_entry else "device")
        if step.op == "alloca":
            return _Root("")
        if step.op != "load" or not is_entry:
            return _Root("device")
        base = root(step.operands[0])
        launch, range_ = (p.name for p in function.parameters[:2])
        if base == launch:
            return _Root("")  # the words
        if base == range_:
            return _Root("threadgroup")
        words = computed_by.get(base or "")
        if words is None or words.op != "load" or root(words.operands[0]) != launch:
            return _Root("device")  # of a struct in memory
        return _Root("device", position_of(step.operands[0]))

    return root_of
