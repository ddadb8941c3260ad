"""Ranges of a function's integers, also of counters of loops, and of what advances with them."""

from __future__ import annotations

from dataclasses import dataclass

from metalloid.compiler.bounds.operations import Op
from metalloid.compiler.bounds.value_ranges import (
    BINARY,
    SWAPPED,
    ValueRanges,
    element_bits,
    pair,
)
from metalloid.compiler.ir.cfg import Loop
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import Integer


@dataclass(frozen=True)
class _Counter:
    """A number that advances in each iteration of a loop.

    Attributes
    ----------
    name : str
        The number in an iteration.
    later : frozenset of str
        The number in the next one.
    step : Instruction
        Advances it, or a phi that it is the sum of and an invariant.
    size : int
        What is added; 0 if that is no constant.
    bits : int
    """

    name: str
    later: frozenset[str]
    step: Instruction
    size: int
    bits: int


class Ranges(ValueRanges):
    """Ranges of the integers of one function; see `ValueRanges`."""

    def _initial(self, phi: Instruction, loop: Loop) -> int:
        number = -1
        header = self._function.blocks[loop.header]
        for value, label in zip(phi.operands, phi.labels, strict=True):
            if label in loop.blocks:
                continue
            each = self._on_edge(value, label, header)
            number = each if number < 0 else self.program.add(
                Op.UNION, element_bits(phi.value), number, each
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
            return self.program.add(Op.UNION, element_bits(after), self._initial(phi, loop), later)

        if step is None or not step.operands or step.operands[0].name != phi.result:
            if step is None or step.op != "add" or step.operands[1].name != phi.result:
                return either()
            step = Instruction("add", step.result, step.type, step.operands[::-1])
        if step.op in ("lshr", "udiv", "and", "urem"):
            zero = self.program.add(Op.CONSTANT, element_bits(phi.value), 0)
            return self.program.add(
                Op.UNION, element_bits(phi.value), zero, self._initial(phi, loop)
            )
        if step.op == "sub" and step.operands[1].integer is not None:
            return self._stepped(phi, loop, step, -step.operands[1].integer)
        if step.op == "add" and step.operands[1].integer is not None:
            return self._stepped(phi, loop, step, step.operands[1].integer)
        if step.op == "add" and self._is_invariant(step.operands[1], loop):
            return self._stepped(phi, loop, step, 0)
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
            return self.program.nodes[self._loaded(step, 0, element_bits(value) or 1)].op != Op.FULL
        if step.op == "phi":
            return self._loaded_by_all(step) >= 0
        is_pure = step.op in BINARY or step.op in ("zext", "sext", "trunc")
        return is_pure and all(
            value.name[0] != "%" or self._is_invariant(value, loop) for value in step.operands
        )

    def _stepped(self, phi: Instruction, loop: Loop, step: Instruction, size: int) -> int:
        """A phi to which a number is added: it ends by its own exit, or with another.

        `size` is the number, or 0 if it is another invariant.
        """
        initial, bits = self._initial(phi, loop), element_bits(phi.value)
        counter = _Counter(phi.result, frozenset((step.result,)), step, size, bits)
        number = self._until(counter, loop, initial)
        if number is None:
            return self._full(phi.value) if step.op == "shl" else self._secondary(phi, loop, step)
        if step.op == "shl":
            zero = self.program.add(Op.CONSTANT, bits, 0)
            return self.program.add(Op.UNION, bits, zero, number)
        return number

    def _sum(self, total: Instruction, number: int) -> int:
        """A counter and an invariant whose sum the exit compares, as in ``begin + i < n``."""
        for counter, invariant in (total.operands, total.operands[::-1]):
            phi = self._addresses.computed_by(counter)
            block = self._block_of[phi.result] if phi is not None and phi.op == "phi" else None
            loop = self._graph.loop_of.get(block.name) if block is not None else None
            if phi is None or loop is None or block is None or loop.header != block.name:
                continue
            if not loop.latch or not self._is_invariant(invariant, loop):
                continue
            after = phi.operands[phi.labels.index(loop.latch)]
            step, later = self._addresses.computed_by(after), self._sums.get(pair(after, invariant))
            if later is None or step is None or step.op != "add":
                continue
            size = step.operands[1].integer
            if step.operands[0].name != phi.result or not size:
                continue
            bits = element_bits(counter)
            of = _Counter(total.result, frozenset((later.name,)), step, size, bits)
            limit = self._until(of, loop, self._initial_sum(phi, invariant, loop))
            if limit is not None:
                number = self.program.add(Op.EQ, bits, number, limit)
        return number

    def _initial_sum(self, phi: Instruction, invariant: Value, loop: Loop) -> int:
        """The sum of a phi and an invariant where the loop is entered."""
        add, bits, number = self.program.add, element_bits(invariant), -1
        header = self._function.blocks[loop.header]
        for value, label in zip(phi.operands, phi.labels, strict=True):
            if label in loop.blocks:
                continue
            total = self._sums.get(pair(value, invariant))
            if total is not None:
                each = self._on_edge(total, label, header)
            else:
                each = self._on_edge(invariant, label, header)
                if value.integer != 0:
                    each = add(Op.ADD, bits, each, self._on_edge(value, label, header))
            number = each if number < 0 else add(Op.UNION, bits, number, each)
        return number

    def _until(self, counter: _Counter, loop: Loop, initial: int) -> int | None:
        """The range of a counter from the exit that compares it; None if there is none."""
        blocks, add, bits = self._function.blocks, self.program.add, counter.bits
        size, is_doubled = counter.size, counter.step.op == "shl"
        context = self._context(self._outside(loop))
        for name in sorted(loop.blocks, key=self._graph.number.__getitem__):
            end = blocks[name].end
            if end.op != "br" or len(end.labels) != 2:
                continue
            stays = [label in loop.blocks for label in end.labels]
            if stays[0] == stays[1] or not self._graph.dominates(name, loop.latch):
                continue
            for condition in self._comparisons(end.operands[0], stays[0], name):
                left, predicate, right = condition.left, condition.predicate, condition.right
                if right.name in (counter.name, *counter.later):
                    left, predicate, right = right, SWAPPED[predicate], left
                is_next = left.name in counter.later
                if not (is_next or left.name == counter.name):
                    continue
                if not self._is_invariant(right, loop):
                    continue
                limit, by = self._range(right, 0, context), -1
                if not (size or is_doubled):
                    by = self._range(counter.step.operands[1], 0, context)
                if not is_next:  # the comparison is of the number before the step
                    moved = by if by >= 0 else add(Op.CONSTANT, bits, size)
                    limit = add(Op.ADD, bits, limit, moved)
                if predicate in ("ule", "sle", "uge", "sge"):
                    one = add(Op.CONSTANT, bits, 1 if predicate[1] == "l" else -1)
                    limit = add(Op.ADD, bits, limit, one)
                rises, is_signed = size > 0 or is_doubled or by >= 0, predicate[0] == "s"
                if predicate[0] in "us" and (predicate[1] == "l") == rises:
                    if by >= 0:
                        return add(Op.UP_TO_BY, bits, initial, limit, by * 2 + is_signed)
                    op = Op.UP_TO if rises else Op.DOWN_TO
                    return add(op, bits, initial, limit, abs(size) * 2 + is_signed)
                if predicate == "ne" and size:
                    op = Op.UP_TO_EQUAL if rises else Op.DOWN_TO_EQUAL
                    return add(op, bits, initial, limit, abs(size) * 2)
        return None

    def _outside(self, loop: Loop) -> str:
        return self._graph.dominator[loop.header]

    def _secondary(self, phi: Instruction, loop: Loop, step: Instruction) -> int:
        """A phi that advances with the counter of its loop."""
        bits = element_bits(phi.value)
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
            of = _Counter(other.result, frozenset((after.result,)), after, size, bits)
            counter = self._until(of, loop, self._initial(other, loop))
            if counter is None:
                continue
            add = self.program.add
            span = add(Op.SPAN, bits, counter, c=abs(size))
            each = self._range(step.operands[1], 0, self._context(self._outside(loop)))
            return add(Op.ADD, bits, self._initial(phi, loop), add(Op.MUL, bits, span, each))
        return self._full(phi.value)
