"""Keep matrices whole from one operation to the next, through loops and from memory.

A product takes its operands from lanes and gives its elements to lanes. Where what it takes is what
another operation gave, the matrix goes straight from one to the other:

- two elements of one matrix are that matrix
- two variables of a loop, one of which comes from a matrix, are one variable: a matrix
- two loads, in rows of eight neighbours, are the load of a matrix

Only where all lanes are active: in place of inactive lanes' elements there would be zeros.
"""

from __future__ import annotations

from metalloid.compiler.llvm.ir import Function, Instruction, Value
from metalloid.compiler.spmd.divergence import Divergence
from metalloid.compiler.spmd.interleaved import root_of
from metalloid.compiler.spmd.lanes import WIDTH
from metalloid.compiler.spmd.matrices import MATRIX, column_of, of_matrix, row_of

#: A lane whose elements lie one row below those of lane 0.
_NEXT_ROW = next(lane for lane in range(WIDTH) if (row_of(lane), column_of(lane)) == (1, 0))

#: Operations that may change what is in memory.
_WRITES = frozenset(("store", "copy", "call","atomicrmw", "cmpxchg", "fence"))
_DROPPED = frozenset(("to_matrix", "of_matrix", "load", "fpext"))


def keep_whole(function: Function, divergence: Divergence) -> bool:
    """Remove changes of form; whether `function` has changed, and `divergence` is out of date."""
    found = [
        (name, instruction)
        for name, block in function.blocks.items()
        for instruction in block.body
        if instruction.op == "to_matrix"
    ]
    if found:
        _Keeping(function, divergence).run(found)
    return bool(found)


class _Keeping:
    def __init__(self, function: Function, divergence: Divergence) -> None:
        self._function, self._divergence = function, divergence
        self._computed_by = {i.result: i for i in function.instructions() if i.result}
        self._same: dict[str, Value] = {}  # what takes the place of a value
        self._todo: list[tuple[str, Instruction]] = []

    def run(self, found: list[tuple[str, Instruction]]) -> None:
        self._todo = list(found)
        while self._todo:
            name, instruction = self._todo.pop()
            if name in self._divergence.masked:
                continue
            first, second = (self._computed_by.get(v.name) for v in instruction.operands)
            if first is None or second is None:
                continue
            matrix = self._matrix_of(name, first, second)
            if matrix is not None:
                self._same[instruction.result] = matrix
        self._replace()

    def _matrix_of(self, name: str, first: Instruction, second: Instruction) -> Value | None:
        """The matrix of which these are the elements."""
        if first.op == second.op == "phi":
            home = self._divergence.home(first.value)
            if self._divergence.home(second.value) == home and self._is_variable(home, first):
                self._join(home, first, second)
                first, second = (self._computed_by[i.result] for i in (first, second))
        if first.op == second.op == "of_matrix":
            [matrix] = first.operands
            whole = matrix == second.operands[0] and (first.detail, second.detail) == ("0", "1")
            leaves = self._divergence.leaves_loop(first.value, name)
            return matrix if whole and not leaves else None
        if first.op == second.op == "fpext":
            first, second = (self._computed_by.get(i.operands[0].name, i) for i in (first, second))
        if first.op == second.op == "load":
            return self._load(first, second)
        return None

    # -- variables of loops

    def _is_variable(self, home: str, phi: Instruction) -> bool:
        masked = self._divergence.masked
        if home in masked or home in self._divergence.joins or not masked.isdisjoint(phi.labels):
            return False
        origins = (self._computed_by.get(value.name) for value in phi.operands)
        return any(origin is not None and origin.op == "of_matrix" for origin in origins)

    def _join(self, home: str, first: Instruction, second: Instruction) -> None:
        """Make one variable of two."""
        variable = Instruction("phi", f"{first.result}.matrix", MATRIX, labels=list(first.labels))
        for label, value in zip(first.labels, first.operands, strict=True):
            other = second.operands[second.labels.index(label)]
            name = f"{variable.result}.{len(variable.operands)}"
            made = Instruction("to_matrix", name, MATRIX, [value, other])
            self._function.blocks[label].body.append(made)
            self._todo.append((label, made))
            variable.operands.append(made.value)
        block = self._function.blocks[home]
        block.phis = [phi for phi in block.phis if phi is not first and phi is not second]
        block.phis.append(variable)
        parts = [of_matrix(phi.result, variable.value, n) for n, phi in enumerate((first, second))]
        block.body[:0] = parts
        self._computed_by.update((part.result, part) for part in parts)

    # -- loads

    def _load(self, first: Instruction, second: Instruction) -> Value | None:
        """The matrix in memory whose elements two loads get."""
        name = f"{first.result}.matrix"
        if name in self._computed_by:
            return self._computed_by[name].value
        home, type = self._divergence.home(first.value), first.type
        shapes = [self._divergence.shape(i.operands[0], home) for i in (first, second)]
        offsets = shapes[0].offsets
        if (
            offsets is None or shapes[1].offsets != offsets or type != second.type
            or self._divergence.home(second.value) != home or home in self._divergence.masked
            or any(i.flags or i.detail for i in (first, second))
        ):  # fmt: skip
            return None
        step = offsets[_NEXT_ROW]
        places = (row_of(lane) * step + column_of(lane) * type.size for lane in range(WIDTH))
        (start, begin), (other, end) = (
            root_of(i.operands[0], self._computed_by) for i in (first, second)
        )
        if tuple(places) != offsets or start != other or end != begin + type.size:
            return None
        body = self._function.blocks[home].body
        at = body.index(first)
        between = body[at : body.index(second)]
        if not between or any(i.op in _WRITES for i in between):
            return None
        made = Instruction(
            "load_matrix", name, MATRIX, first.operands, detail=str(step), source=type,
            align=first.align,
        )  # fmt: skip
        body.insert(at, made)
        self._computed_by[name] = made
        return made.value

    # -- afterwards

    def _replace(self) -> None:
        """Use what takes the place of values, and drop what nobody uses then."""
        for instruction in self._function.instructions():
            instruction.operands = [self._resolved(value) for value in instruction.operands]
        dropped = True
        while dropped:
            used = {v.name for i in self._function.instructions() for v in i.operands}
            dropped = False
            for block in self._function.blocks.values():
                kept = [i for i in block.body if i.result in used or not _is_dropped(i)]
                dropped = dropped or len(kept) < len(block.body)
                block.body = kept

    def _resolved(self, value: Value) -> Value:
        while value.name in self._same:
            value = self._same[value.name]
        return value


def _is_dropped(instruction: Instruction) -> bool:
    """Whether it does nothing if nobody uses the result."""
    is_special = instruction.op == "load" and (instruction.flags or instruction.detail)
    return instruction.op in _DROPPED and not is_special
