"""Ranges of a function's integers, as range programs (`range_program`); `ranges` has loops.

The range of a value holds in the block that it is asked for: branches on the path to the block
narrow it, and the end of a loop limits what counts its iterations.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.compiler.bounds.objects import Addresses
from metalloid.compiler.bounds.operations import Op
from metalloid.compiler.bounds.range_program import RangeProgram, Variable
from metalloid.compiler.ir.cfg import Graph, Loop
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.types import I64, Integer, Vector

#: Offset of each in `thread_ids` (kernel_entry.h).
IDS = {48: Variable.GROUP, 64: Variable.GROUP_SIZE, 80: Variable.DISPATCHED_SIZE,
        96: Variable.GRID, 112: Variable.GROUPS}  # fmt: skip
#: The parameters of a thread's function that differ (rows.h), from the position of the first.
FIRST_POSITION, POSITIONS = 3, 7
BINARY = {
    "add": Op.ADD, "sub": Op.SUB, "mul": Op.MUL, "udiv": Op.UDIV, "urem": Op.UREM,
    "lshr": Op.LSHR, "shl": Op.SHL, "and": Op.AND, "or": Op.OR, "xor": Op.XOR, "sdiv": Op.SDIV,
    "srem": Op.SREM, "ashr": Op.ASHR,
}  # fmt: skip
_MINIMA = {f"@llvm.{name.lower()}.": Op[name] for name in ("UMIN", "UMAX", "SMIN", "SMAX")}
_CLIPS = {
    name.lower(): Op[name]
    for name in ("ULT", "ULE", "UGT", "UGE", "SLT", "SLE", "SGT", "SGE", "EQ", "NE")
}
_INVERSE = {"ult": "uge", "ule": "ugt", "ugt": "ule", "uge": "ult", "slt": "sge", "sle": "sgt",
            "sgt": "sle", "sge": "slt", "eq": "ne", "ne": "eq"}  # fmt: skip
SWAPPED = {"ult": "ugt", "ule": "uge", "ugt": "ult", "uge": "ule", "slt": "sgt", "sle": "sge",
            "sgt": "slt", "sge": "sle", "eq": "eq", "ne": "ne"}  # fmt: skip
#: More than these are not worth their evaluation.
_MAX_NODES = 4000
_MAX_DEPTH = 60
_ELEMENT = re.compile(r"\bi\d+ (-?\d+)")


@dataclass(frozen=True)
class _Condition:
    """A comparison that holds in a block."""

    block: str
    left: Value
    predicate: str
    right: Value


class ValueRanges(ABC):
    """Ranges of the integers of one function, but for counters of loops (see `ranges`).

    Parameters
    ----------
    function : Function
        The function of one thread (rows.h).
    addresses : Addresses
        Of its addresses.
    """

    def __init__(self, function: Function, addresses: Addresses) -> None:
        self.program = RangeProgram()
        self._function, self._addresses = function, addresses
        self._graph = Graph(function)
        self._block_of = {
            i.result: block
            for block in function.blocks.values() for i in block.instructions() if i.result
        }  # fmt: skip
        self._known: dict[tuple[str, int, str], int] = {}
        self._conditions: dict[str, tuple[_Condition, ...]] = {}
        self._contexts: dict[str, str] = {}
        self._open: set[tuple[str, int, str]] = set()
        self._phis: dict[str, int] = {}
        self._sums = {
            pair(*i.operands): i.value for i in function.instructions()
            if _is_sum(i)
        }  # fmt: skip
        self._extended = {
            (i.op, i.operands[0].name): i.value for i in function.instructions()
            if i.op in ("zext", "sext") and i.type == I64
        }  # fmt: skip
        self._variables: dict[str, int] = {
            parameter.name: number
            for number, parameter in enumerate(
                function.parameters[FIRST_POSITION : FIRST_POSITION + POSITIONS]
            )
        }

    def range_of_sum(self, terms: Sequence[tuple[Value, int]], block: str) -> int:
        """The node of the range, in a block, of a sum of multiples; -1 without any.

        If two are extended numbers, a comparison may limit their sum before it is extended.
        """
        add, context, total, todo = self.program.add, self._context(block), -1, [*terms]
        while todo:
            index, size = todo.pop(0)
            node = -1
            for other in [other for other, factor in todo if factor == size]:
                node = self._range_of_both(index, other, context)
                if node >= 0:
                    todo.remove((other, size))
                    break
            if node < 0:
                node = self._wide(index, context)
            if size != 1:
                node = add(Op.MUL, 64, node, add(Op.CONSTANT, 64, size))
            total = node if total < 0 else add(Op.ADD, 64, total, node)
        return total

    def _range_of_both(self, index: Value, other: Value, context: str) -> int:
        """The range of the sum of two numbers, as a comparison limits it; -1 if none does."""
        add = self.program.add
        if index.type == other.type == I64:
            computed = Instruction("add", "", I64, [index, other])
            number = add(Op.ADD, 64, self._wide(index, context), self._wide(other, context))
            limited = self._sum(computed, number)
            if limited != number:
                return limited
        (index, added), (other, more) = map(self._without_constant, (index, other))
        narrow = self._narrow_sum(index, other)
        if narrow is None:
            return -1
        op, total = narrow
        both = add(Op.ADD, 64, self._wide(index, context), self._wide(other, context))
        extended, bits = self._extended.get((op.name.lower(), total.name)), element_bits(total)
        if extended is not None:
            known = self._range(extended, 0, context)
        else:
            known = add(op, bits, self._range(total, 0, context), 64)
        node = add(Op.NARROW, bits, both, known, op == Op.SEXT)
        if added + more:
            node = add(Op.ADD, 64, node, add(Op.CONSTANT, 64, added + more))
        return node

    def _without_constant(self, index: Value) -> tuple[Value, int]:
        """An index as a value and a constant."""
        step = self._addresses.computed_by(index)
        if step is not None and index.type == I64 and _is_sum(step):
            constant = step.operands[1].integer
            if constant is not None:
                return step.operands[0], constant
        return index, 0

    def _wide(self, index: Value, context: str) -> int:
        """The range of an index that is extended to 64 bits."""
        node, bits = self._range(index, 0, context), element_bits(index)
        return node if bits == 64 else self.program.add(Op.SEXT, bits, node, 64)

    def _narrow_sum(self, index: Value, other: Value) -> tuple[Op, Value] | None:
        """The sum of two extended numbers before they were extended, and how they were."""
        steps = [self._addresses.computed_by(each) for each in (index, other)]
        ops = {step.op for step in steps if step is not None and step.op in ("zext", "sext")}
        if len(ops) != 1 or None in steps:
            return None
        narrow = [step.operands[0] for step in steps if step is not None and step.op in ops]
        if len(narrow) != 2:
            return None
        total = self._sums.get(pair(*narrow))
        return None if total is None else (Op[ops.pop().upper()], total)

    # -- contexts

    def _context(self, block: str) -> str:
        """The outermost block that has the same conditions."""
        if block not in self._contexts:
            graph = self._graph
            above = graph.dominator.get(block, block)
            if above == block:
                self._conditions[block], self._contexts[block] = (), block
            else:
                outer = self._context(above)
                own = self._entered_by(block, above)
                if own:
                    self._conditions[block] = (*own, *self._conditions[outer])
                    self._contexts[block] = block
                else:
                    self._contexts[block] = outer
        return self._contexts[block]

    def _entered_by(self, block: str, above: str) -> tuple[_Condition, ...]:
        """The comparisons that hold since `above` has branched to `block`."""
        end = self._function.blocks[above].end
        if end.op != "br" or len(end.labels) != 2 or end.labels[0] == end.labels[1]:
            return ()
        if block not in end.labels or len(self._graph.predecessors[block]) != 1:
            return ()
        return tuple(self._comparisons(end.operands[0], end.labels[0] == block, above))

    def _comparisons(self, condition: Value, holds: bool, block: str) -> list[_Condition]:
        step = self._addresses.computed_by(condition)
        if step is None:
            return []
        if step.op == "icmp" and isinstance(step.operands[0].type, Integer):
            predicate = step.predicate if holds else _INVERSE[step.predicate]
            return [_Condition(block, step.operands[0], predicate, step.operands[1])]
        if step.op == "xor" and step.operands[1].name in ("true", "-1"):
            return self._comparisons(step.operands[0], not holds, block)
        joined: tuple[Value, ...] = ()
        if step.op == ("and" if holds else "or"):
            joined = tuple(step.operands)
        elif step.op == "select" and step.operands[2 if holds else 1].name == (
            "false" if holds else "true"
        ):
            joined = (step.operands[0], step.operands[1 if holds else 2])
        return [each for one in joined for each in self._comparisons(one, holds, block)]

    # -- values

    def _full(self, value: Value) -> int:
        return self.program.add(Op.FULL, element_bits(value))

    def _range(self, value: Value, lane: int, context: str) -> int:
        key = (value.name, lane, context)
        if value.name[0] != "%":
            return self._constant(value, lane)
        if key in self._known:
            return self._known[key]
        too_long = len(self._open) > _MAX_DEPTH or len(self.program.nodes) > _MAX_NODES
        if key in self._open or too_long:
            return self._full(value)
        self._open.add(key)
        number = self._computed(value, lane, context)
        for condition in self._conditions[context]:
            number = self._clipped(number, value, condition, context)
        self._open.discard(key)
        self._known[key] = number
        return number

    def _constant(self, value: Value, lane: int) -> int:
        number = value.integer
        if number is None and isinstance(value.type, Vector):
            elements = _ELEMENT.findall(value.name)
            if "splat" in value.name or lane < len(elements):
                number = int(elements[0 if "splat" in value.name else lane])
        if number is None:
            return self._full(value)
        return self.program.add(Op.CONSTANT, element_bits(value), number)

    def _clipped(self, number: int, value: Value, condition: _Condition, context: str) -> int:
        for own, predicate, other in (
            (condition.left, condition.predicate, condition.right),
            (condition.right, SWAPPED[condition.predicate], condition.left),
        ):
            added = self._added(own, value)
            if added is not None and other.name != value.name:
                limit = self._range(other, 0, self._context(condition.block))
                number = self.program.add(
                    _CLIPS[predicate], element_bits(value), number, limit, added
                )
        return number

    def _added(self, own: Value, value: Value) -> int | None:
        """The constant that is added to `value` to give `own`; None if it is another value."""
        if own.name == value.name:
            return 0
        step = self._addresses.computed_by(own)
        if step is None or not _is_sum(step):
            return None
        return step.operands[1].integer if step.operands[0].name == value.name else None

    def _computed(self, value: Value, lane: int, context: str) -> int:
        add = self.program.add
        variable = self._variables.get(value.name)
        if variable is not None:
            return add(Op.VARIABLE, 32, variable)
        step = self._addresses.computed_by(value)
        bits = element_bits(value)
        if step is None or not bits:
            return self._full(value)
        operands = step.operands

        def of(position: int) -> int:
            return self._range(operands[position], lane, context)

        if _is_sum(step):
            return self._sum(step, add(Op.ADD, bits, of(0), of(1)))
        if step.op in BINARY:
            return add(BINARY[step.op], bits, of(0), of(1))
        if step.op in ("zext", "sext", "trunc"):
            before = element_bits(operands[0])
            if before <= 1:
                return self._full(value)
            return add(Op[step.op.upper()], before if step.op != "trunc" else bits, of(0), bits)
        if step.op == "freeze":
            return of(0)
        if step.op == "call":
            for name, op in _MINIMA.items():
                if step.callee.startswith(name):
                    return add(op, bits, of(0), of(1))
        if step.op == "select" and not isinstance(operands[0].type, Vector):
            return add(Op.UNION, bits, of(1), of(2))
        if step.op == "extractelement" and operands[1].integer is not None:
            return self._range(operands[0], operands[1].integer, context)
        if step.op == "insertelement" and operands[2].integer is not None:
            if operands[2].integer == lane:
                return self._range(operands[1], 0, context)
            return of(0)
        if step.op == "shufflevector" and lane < len(step.mask):
            first = operands[0].type
            source = step.mask[lane]
            if isinstance(first, Vector) and source >= 0:
                side, inside = divmod(source, first.lanes)
                return self._range(operands[side], inside, context)
        if step.op == "load":
            return self._loaded(step, lane, bits)
        if step.op == "phi" and not isinstance(step.type, Vector):
            return self._phi(step)
        return self._full(value)

    def _loaded(self, load: Instruction, lane: int, bits: int) -> int:
        """A number of the launch."""
        address = load.operands[0]
        offset = self._addresses.distance_from(address, self._function.parameters[0].name)
        nbytes = bits // 8
        if offset is not None and bits == 32:
            offset += lane * nbytes
            for start, variable in IDS.items():
                axis = (offset - start) // 4
                if 0 <= axis < 3 and offset % 4 == 0:
                    return self.program.add(Op.VARIABLE, 32, variable + axis)
        located = self._addresses.locate(address)
        if (
            located is not None and located.object.word >= 0 and not located.terms
            and "invariant" in load.flags and bits in (8, 16, 32, 64) and located.distance >= 0
        ):  # fmt: skip
            distance = located.distance + lane * nbytes
            return self.program.add(Op.ARGUMENT, bits, located.object.word, distance)
        return self._full(load.value)

    # -- phis

    def _phi(self, phi: Instruction) -> int:
        """A phi has one range, that of all its incoming values."""
        if phi.result in self._phis:
            return self._phis[phi.result]
        same = self._loaded_by_all(phi)
        if same >= 0:
            return same
        key = (phi.result, -1, "")
        if key in self._open:
            return self._full(phi.value)
        self._open.add(key)
        block = self._block_of[phi.result]
        loop = self._graph.loop_of.get(block.name)
        if loop is not None and loop.header == block.name:
            number = self._counter(phi, loop)
        else:
            number = -1
            for value, label in zip(phi.operands, phi.labels, strict=True):
                each = self._on_edge(value, label, block)
                number = each if number < 0 else self.program.add(
                    Op.UNION, element_bits(phi.value), number, each
                )  # fmt: skip
        self._open.discard(key)
        self._phis[phi.result] = number
        return number

    def _loaded_by_all(self, phi: Instruction) -> int:
        """The number of the launch that a phi has, whatever the path; -1 if it has none."""
        nodes, todo, seen = set[int](), [phi], {phi.result}
        while todo:
            for value in todo.pop().operands:
                step = self._addresses.computed_by(value)
                if step is None or step.op not in ("load", "phi"):
                    return -1
                if step.op == "load":
                    nodes.add(self._loaded(step, 0, element_bits(value)))
                elif step.result not in seen:
                    seen.add(step.result)
                    todo.append(step)
        if len(nodes) != 1:
            return -1
        node = nodes.pop()
        return -1 if self.program.nodes[node].op == Op.FULL else node

    def _on_edge(self, value: Value, label: str, block: Block) -> int:
        """The range of a value where a block is entered from another."""
        if label not in self._graph.number:
            return self._full(value)
        context = self._context(label)
        number = self._range(value, 0, context)
        end = self._function.blocks[label].end
        if end.op == "br" and len(set(end.labels)) == 2:
            for each in self._comparisons(end.operands[0], end.labels[0] == block.name, label):
                number = self._clipped(number, value, each, context)
        return number

    @abstractmethod
    def _counter(self, phi: Instruction, loop: Loop) -> int:
        """The range of a phi of a loop's header."""

    @abstractmethod
    def _sum(self, total: Instruction, number: int) -> int:
        """The range of a sum, whose operands have one of `number`."""


def _is_sum(step: Instruction) -> bool:
    return step.op == "add" or (step.op == "or" and "disjoint" in step.flags)


def pair(left: Value, right: Value) -> tuple[str, ...]:
    """Two values in either order."""
    return tuple(sorted((left.name, right.name)))


def element_bits(value: Value) -> int:
    """The width of an integer, or of the elements of a vector; 0 of other values."""
    type = value.type.element if isinstance(value.type, Vector) else value.type
    return type.bits if isinstance(type, Integer) else 0
