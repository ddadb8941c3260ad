"""Ranges of a function's integers, as range programs (`range_program`).

The range of a value holds in the block that it is asked for: branches on the path to the block
narrow it, and the end of a loop limits what counts its iterations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from metalloid.compiler.bounds.objects import Addresses
from metalloid.compiler.bounds.range_program import Op, RangeProgram, Variable
from metalloid.compiler.ir.cfg import Graph, Loop
from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.types import Integer, Vector

#: Offset of each in `thread_ids` (kernel_entry.h).
_IDS = {48: Variable.GROUP, 64: Variable.GROUP_SIZE, 80: Variable.DISPATCHED_SIZE,
        96: Variable.GRID, 112: Variable.GROUPS}  # fmt: skip
#: The parameters of a thread's function that differ (rows.h), from the position of the first.
_FIRST_POSITION, _POSITIONS = 3, 7
_BINARY = {
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
_SWAPPED = {"ult": "ugt", "ule": "uge", "ugt": "ult", "uge": "ule", "slt": "sgt", "sle": "sge",
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


class Ranges:
    """Ranges of the integers of one function.

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
        self._variables: dict[str, int] = {
            parameter.name: number
            for number, parameter in enumerate(
                function.parameters[_FIRST_POSITION : _FIRST_POSITION + _POSITIONS]
            )
        }

    def range_of(self, value: Value, block: str) -> int:
        """The node of an integer's range in a block."""
        return self._range(value, 0, self._context(block))

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
        return self.program.add(Op.FULL, _bits(value))

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
        return self.program.add(Op.CONSTANT, _bits(value), number)

    def _clipped(self, number: int, value: Value, condition: _Condition, context: str) -> int:
        for own, predicate, other in (
            (condition.left, condition.predicate, condition.right),
            (condition.right, _SWAPPED[condition.predicate], condition.left),
        ):
            added = self._added(own, value)
            if added is not None and other.name != value.name:
                limit = self._range(other, 0, self._context(condition.block))
                number = self.program.add(_CLIPS[predicate], _bits(value), number, limit, added)
        return number

    def _added(self, own: Value, value: Value) -> int | None:
        """The constant that is added to `value` to give `own`; None if it is another value."""
        if own.name == value.name:
            return 0
        step = self._addresses.computed_by(own)
        if step is None or not (step.op == "add" or (step.op == "or" and "disjoint" in step.flags)):
            return None
        return step.operands[1].integer if step.operands[0].name == value.name else None

    def _computed(self, value: Value, lane: int, context: str) -> int:
        add = self.program.add
        variable = self._variables.get(value.name)
        if variable is not None:
            return add(Op.VARIABLE, 32, variable)
        step = self._addresses.computed_by(value)
        bits = _bits(value)
        if step is None or not bits:
            return self._full(value)
        operands = step.operands

        def of(position: int) -> int:
            return self._range(operands[position], lane, context)

        if step.op in _BINARY:
            return add(_BINARY[step.op], bits, of(0), of(1))
        if step.op in ("zext", "sext", "trunc"):
            before = _bits(operands[0])
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
            for start, variable in _IDS.items():
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
                    Op.UNION, _bits(phi.value), number, each
                )  # fmt: skip
        self._open.discard(key)
        self._phis[phi.result] = number
        return number

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

    def _initial(self, phi: Instruction, loop: Loop) -> int:
        number = -1
        header = self._function.blocks[loop.header]
        for value, label in zip(phi.operands, phi.labels, strict=True):
            if label in loop.blocks:
                continue
            each = self._on_edge(value, label, header)
            number = each if number < 0 else self.program.add(
                Op.UNION, _bits(phi.value), number, each
            )  # fmt: skip
        return number

    def _counter(self, phi: Instruction, loop: Loop) -> int:
        if not loop.latch:
            return self._full(phi.value)
        after = phi.operands[phi.labels.index(loop.latch)]
        step = self._addresses.computed_by(after)
        if after.name == phi.result:
            return self._initial(phi, loop)

        def either() -> int:
            """Its initial range, or that after an iteration from any number."""
            later = self._range(after, 0, self._context(loop.latch))
            return self.program.add(Op.UNION, _bits(after), self._initial(phi, loop), later)

        if step is None or not step.operands or step.operands[0].name != phi.result:
            if step is None or step.op != "add" or step.operands[1].name != phi.result:
                return either()
            step = Instruction("add", step.result, step.type, step.operands[::-1])
        if step.op in ("lshr", "udiv", "and", "urem"):
            zero = self.program.add(Op.CONSTANT, _bits(phi.value), 0)
            return self.program.add(Op.UNION, _bits(phi.value), zero, self._initial(phi, loop))
        if step.op == "sub" and step.operands[1].integer is not None:
            return self._stepped(phi, loop, step, -step.operands[1].integer)
        if step.op == "add" and step.operands[1].integer is not None:
            return self._stepped(phi, loop, step, step.operands[1].integer)
        if step.op == "add" and self._is_invariant(step.operands[1], loop):
            return self._secondary(phi, loop, step)
        if step.op == "shl":
            return self._stepped(phi, loop, step, 0)
        return either()

    def _is_invariant(self, value: Value, loop: Loop) -> bool:
        """Whether a value is the same in all iterations; so is a number of the launch."""
        block = self._block_of.get(value.name)
        if block is None or block.name not in loop.blocks:
            return True
        step = self._addresses.computed_by(value)
        if step is None:
            return False
        if step.op == "load":
            return self.program.nodes[self._loaded(step, 0, _bits(value) or 1)].op != Op.FULL
        if step.op == "phi":
            nodes = {
                self._loaded(load, 0, _bits(value)) if load and load.op == "load" else -1
                for load in map(self._addresses.computed_by, step.operands)
            }
            return len(nodes) == 1 and nodes != {-1}
        is_pure = step.op in _BINARY or step.op in ("zext", "sext", "trunc")
        return is_pure and all(
            value.name[0] != "%" or self._is_invariant(value, loop) for value in step.operands
        )

    def _stepped(self, phi: Instruction, loop: Loop, step: Instruction, size: int) -> int:
        """A phi to which a constant is added: it ends by its own exit, or with another."""
        initial, bits = self._initial(phi, loop), _bits(phi.value)
        number = self._until(phi, loop, step, size, initial)
        if number is None:
            return self._full(phi.value) if step.op == "shl" else self._secondary(phi, loop, step)
        if step.op == "shl":
            zero = self.program.add(Op.CONSTANT, bits, 0)
            return self.program.add(Op.UNION, bits, zero, number)
        return number

    def _until(
        self, phi: Instruction, loop: Loop, step: Instruction, size: int, initial: int
    ) -> int | None:
        """The range of a counter from the exit that compares it; None if there is none."""
        blocks, add, bits = self._function.blocks, self.program.add, _bits(phi.value)
        for name in sorted(loop.blocks, key=self._graph.number.__getitem__):
            end = blocks[name].end
            if end.op != "br" or len(end.labels) != 2:
                continue
            stays = [label in loop.blocks for label in end.labels]
            if stays[0] == stays[1] or not self._graph.dominates(name, loop.latch):
                continue
            for condition in self._comparisons(end.operands[0], stays[0], name):
                left, predicate, right = condition.left, condition.predicate, condition.right
                if right.name in (phi.result, step.result):
                    left, predicate, right = right, _SWAPPED[predicate], left
                is_next = left.name == step.result
                if not (is_next or left.name == phi.result) or not self._is_invariant(right, loop):
                    continue
                limit = self._range(right, 0, self._context(self._outside(loop)))
                if not is_next:  # the comparison is of the number before the step
                    moved = add(Op.CONSTANT, bits, size)
                    limit = add(Op.ADD, bits, limit, moved)
                if predicate in ("ule", "sle", "uge", "sge"):
                    one = add(Op.CONSTANT, bits, 1 if predicate[1] == "l" else -1)
                    limit = add(Op.ADD, bits, limit, one)
                rises = size > 0 or step.op == "shl"
                if predicate[0] in "us" and (predicate[1] == "l") == rises:
                    op = Op.UP_TO if rises else Op.DOWN_TO
                    return add(op, bits, initial, limit, abs(size) * 2 + (predicate[0] == "s"))
                if predicate == "ne" and size:
                    op = Op.UP_TO_EQUAL if rises else Op.DOWN_TO_EQUAL
                    return add(op, bits, initial, limit, abs(size) * 2)
        return None

    def _outside(self, loop: Loop) -> str:
        return self._graph.dominator[loop.header]

    def _secondary(self, phi: Instruction, loop: Loop, step: Instruction) -> int:
        """A phi that advances with the counter of its loop."""
        bits = _bits(phi.value)
        header = self._function.blocks[loop.header]
        for other in header.phis:
            if other is phi or not isinstance(other.type, Integer) or not loop.latch:
                continue
            after = self._addresses.computed_by(other.operands[other.labels.index(loop.latch)])
            if after is None or after.op != "add" or after.operands[0].name != other.result:
                continue
            size = after.operands[1].integer
            if not size:
                continue
            initial = self._initial(other, loop)
            counter = self._until(other, loop, after, size, initial)
            if counter is None:
                continue
            add = self.program.add
            span = add(Op.SPAN, bits, counter, c=abs(size))
            each = self._range(step.operands[1], 0, self._context(self._outside(loop)))
            return add(Op.ADD, bits, self._initial(phi, loop), add(Op.MUL, bits, span, each))
        return self._full(phi.value)


def _bits(value: Value) -> int:
    """The width of an integer, or of the elements of a vector; 0 of other values."""
    type = value.type.element if isinstance(value.type, Vector) else value.type
    return type.bits if isinstance(type, Integer) else 0
