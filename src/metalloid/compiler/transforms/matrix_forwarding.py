"""Keep matrices whole from one operation to the next, through loops and from memory.

A product takes its operands from lanes and gives its elements to lanes. Where what it takes is what
another operation gave, the matrix goes straight from one to the other:

- two elements of one matrix are that matrix
- two variables of a loop, one of which comes from a matrix, are one variable: a matrix
- two loads, of eight neighbours in each row or column, are the load of a matrix

Then two products with the same first factor are made one, whose other operands are pairs; and pairs
are kept whole as matrices are. All this only where all lanes are active: in place of inactive
lanes' elements there would be zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

from metalloid.compiler.analysis.addresses import root_of
from metalloid.compiler.analysis.divergence import Divergence
from metalloid.compiler.analysis.simdgroup_functions import WIDTH
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.matrix_type import MATRIX, PAIR, column_of, row_of
from metalloid.compiler.ir.types import FLOAT, Type

#: A lane whose elements lie one row below those of lane 0.
_NEXT_ROW = next(lane for lane in range(WIDTH) if (row_of(lane), column_of(lane)) == (1, 0))
#: Operations that may change what is in memory.
_WRITES = frozenset(("store", "copy", "fill", "call", "atomicrmw", "cmpxchg", "fence"))


@dataclass(frozen=True)
class _Composition:
    """A composition of two values: the operations to compose and to split, and the types."""

    compose: str
    extract: str
    composed: Type
    half: Type


_ELEMENTS = _Composition("to_matrix", "of_matrix", MATRIX, FLOAT)
_HALVES = _Composition("join_matrices", "half_of_pair", PAIR, MATRIX)
_DROPPED = frozenset(
    (
        "to_matrix", "of_matrix", "join_matrices", "half_of_pair", "load", "fpext", "bitcast",
    )
)  # fmt: skip


def forward_matrices(function: Function, divergence: Divergence, pairs: bool) -> bool:
    """Remove changes of form; whether `function` has changed, and `divergence` is out of date.

    Parameters
    ----------
    function : Function
    divergence : Divergence
    pairs : bool
        Whether registers have room for rows of 16.
    """
    if not any(i.op == _ELEMENTS.compose for i in function.instructions()):
        return False
    _Keeping(function, divergence, _ELEMENTS).run()
    if pairs:
        for name, block in function.blocks.items():
            if name not in divergence.masked:
                block.body = _late(_paired(block.body))
        _Keeping(function, divergence, _HALVES).run()
    return True


class _Keeping:
    def __init__(self, function: Function, divergence: Divergence, form: _Composition) -> None:
        self._function, self._divergence, self._form = function, divergence, form
        self._computed_by: dict[str, Instruction] = {}
        self._home: dict[str, str] = {}
        self._todo: list[tuple[str, Instruction]] = []
        self._same: dict[str, Value] = {}  # replacements of values
        for name, block in function.blocks.items():
            for instruction in (*block.phis, *block.body):
                self._computed_by[instruction.result] = instruction
                self._home[instruction.result] = name
                if instruction.op == form.compose:
                    self._todo.append((name, instruction))

    def run(self) -> None:
        while self._todo:
            name, instruction = self._todo.pop()
            if name in self._divergence.masked:
                continue
            first, second = (self._computed_by.get(v.name) for v in instruction.operands)
            if first is None or second is None:
                continue
            composed = self._composed_value(name, first, second)
            if composed is not None:
                self._same[instruction.result] = composed
        for instruction in self._function.instructions():
            instruction.operands = [self._resolved(value) for value in instruction.operands]
        _drop_unused(self._function)

    def _resolved(self, value: Value) -> Value:
        while value.name in self._same:
            value = self._same[value.name]
        return value

    def _composed_value(self, name: str, first: Instruction, second: Instruction) -> Value | None:
        """The value of which these are the parts."""
        if first.op == second.op == "phi" and self._is_variable(first, second):
            first, second = self._joined(first, second)
        if first.op == second.op == self._form.extract:
            [composed] = first.operands
            same = composed == second.operands[0] and (first.indices, second.indices) == (
                (0,),
                (1,),
            )
            leaves = self._divergence.leaves_loop(first.value, name)
            return composed if same and not leaves else None
        for cast in ("fpext", "bitcast"):  # the second of the bits of bfloats
            if first.op == second.op == cast:
                first, second = (
                    self._computed_by.get(i.operands[0].name, i) for i in (first, second)
                )
        if first.op == second.op == "load":
            return self._loaded(first, second)
        return None

    # -- variables of loops

    def _is_variable(self, first: Instruction, second: Instruction) -> bool:
        home, masked = self._home[first.result], self._divergence.masked
        if home in masked or home in self._divergence.joins or not masked.isdisjoint(first.labels):
            return False
        operands = (self._computed_by.get(value.name) for value in first.operands)
        return self._home[second.result] == home and any(
            inst is not None and inst.op == self._form.extract for inst in operands
        )

    def _joined(self, first: Instruction, second: Instruction) -> list[Instruction]:
        """Merge two variables into one; return the parts that replace them."""
        form = self._form
        variable = Instruction("phi", f"{first.result}~whole", form.composed, labels=first.labels)
        for label, value in zip(first.labels, first.operands, strict=True):
            other = second.operands[second.labels.index(label)]
            name = f"{variable.result}~{len(variable.operands)}"
            composition = Instruction(form.compose, name, form.composed, [value, other])
            self._function.blocks[label].body.append(composition)
            self._todo.append((label, composition))
            variable.operands.append(composition.value)
        block = self._function.blocks[self._home[first.result]]
        block.phis = [phi for phi in block.phis if phi is not first and phi is not second]
        block.phis.append(variable)
        extracts = [
            Instruction(form.extract, phi.result, form.half, [variable.value], indices=(number,))
            for number, phi in enumerate((first, second))
        ]
        block.body[:0] = extracts
        self._computed_by.update((extract.result, extract) for extract in extracts)
        return extracts

    # -- loads

    def _loaded(self, first: Instruction, second: Instruction) -> Value | None:
        """The matrix in memory whose elements two loads get."""
        name = f"{first.result}~{second.result}~whole"
        if name in self._computed_by:
            return self._computed_by[name].value
        home, type = self._home[first.result], first.type
        shapes = [self._divergence.shape(i.operands[0], home) for i in (first, second)]
        offsets = shapes[0].offsets
        if (
            offsets is None or shapes[1].offsets != offsets or type != second.type
            or self._home[second.result] != home or home in self._divergence.masked
            or any(i.flags or i.ordering for i in (first, second))
        ):  # fmt: skip
            return None
        (start, begin), (other, end) = (
            root_of(i.operands[0], self._computed_by) for i in (first, second)
        )
        down, right = offsets[_NEXT_ROW], end - begin
        lane_offsets = (row_of(lane) * down + column_of(lane) * right for lane in range(WIDTH))
        if tuple(lane_offsets) != offsets or start != other or type.size not in (down, right):
            return None
        body = self._function.blocks[home].body
        at = next(n for n, i in enumerate(body) if i is first)
        until = next(n for n, i in enumerate(body) if i is second)
        if until < at or any(i.op in _WRITES for i in body[at:until]):
            return None
        composition = Instruction(
            "load_matrix", name, MATRIX, first.operands, indices=(down, right), source=type,
            align=min(i.align or type.size for i in (first, second)),
        )  # fmt: skip
        body.insert(at, composition)
        self._computed_by[name] = composition
        return composition.value


def _paired(body: list[Instruction]) -> list[Instruction]:
    """Make one product of two with the same first factor, in place of the second."""
    composition: list[Instruction] = []
    waiting: Instruction | None = None  # a product without a second
    extracts: list[Instruction] = []  # its elements, which can come later
    position = {instruction.result: number for number, instruction in enumerate(body)}
    for instruction in body:
        used = {value.name for value in instruction.operands}
        if waiting is not None and instruction.op == "of_matrix" and waiting.result in used:
            extracts.append(instruction)
            continue
        is_product = instruction.op == "multiply_matrices"
        unrelated = waiting is None or used.isdisjoint(i.result for i in (waiting, *extracts))
        if waiting is not None and (is_product or not unrelated):
            if unrelated and waiting.operands[0] == instruction.operands[0]:
                composition = [other for other in composition if other is not waiting]
                composition += [*_both(waiting, instruction, position), *extracts]
                waiting, extracts = None, []
                continue
            composition += extracts
            waiting, extracts = None, []
        if is_product:
            waiting = instruction
        composition.append(instruction)
    return composition + extracts


def _both(first: Instruction, second: Instruction, position: dict[str, int]) -> list[Instruction]:
    """Two products as one. What stands first in a pair is always the same: pairs are kept then."""
    if position.get(first.operands[1].name, 0) > position.get(second.operands[1].name, 0):
        first, second = second, first
    joined = [
        Instruction("join_matrices", f"{second.result}~{name}", PAIR, list(operands))
        for name, *operands in zip(
            ("right", "start"), first.operands[1:], second.operands[1:], strict=True
        )
    ]
    operands = [first.operands[0], *(instruction.value for instruction in joined)]
    product = Instruction("multiply_matrices", f"{second.result}~both", PAIR, operands)
    halves = [
        Instruction("half_of_pair", i.result, MATRIX, [product.value], indices=(number,))
        for number, i in enumerate((first, second))
    ]
    return [*joined, product, *halves]


def _late(body: list[Instruction]) -> list[Instruction]:
    """Load matrices where they are used first, and join them once."""
    composition: list[Instruction] = []
    loads: dict[str, Instruction] = {}
    for instruction in body:
        if instruction.op == "load_matrix":
            loads[instruction.result] = instruction
            continue
        names = [value.name for value in instruction.operands]
        if instruction.op in _WRITES:
            names = list(loads)
        composition += [loads.pop(name) for name in names if name in loads]
        composition.append(instruction)
    return composition + list(loads.values())


def _drop_unused(function: Function) -> None:
    dropped = True
    while dropped:
        used = {v.name for i in function.instructions() for v in i.operands}
        dropped = False
        for block in function.blocks.values():
            remaining = [i for i in block.body if i.result in used or not _is_pure(i)]
            dropped = dropped or len(remaining) < len(block.body)
            block.body = remaining


def _is_pure(instruction: Instruction) -> bool:
    """Whether it has no effect if its result is unused."""
    is_special = instruction.op == "load" and (instruction.flags or instruction.ordering)
    return instruction.op in _DROPPED and not is_special
