"""Private arrays as structures of arrays (SoA): the lanes' elements become contiguous.

A private array that did not become registers is in memory once for each lane, array after array, so
lanes that access the same element access memory with gaps. If all accesses are to elements of one
size, the arrays are interleaved: all lanes' first elements, then their second ones. An access with
a uniform index is then one vector access; with a varying index it is a gather, as before.

Only strides within the arrays change: they are multiplied by the number of lanes.
"""

from __future__ import annotations

from metalloid.compiler.analysis.shapes import alignment_of
from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms
from metalloid.compiler.ir.types import I1, I8, I64, POINTER, Type, Unsupported
from metalloid.compiler.transforms.callees import NO_CALLEES, PARAMETER, Callees

_ARITHMETIC = ("zext", "sext", "shl", "mul", "and", "or", "add", "sub")
#: Of the computation of an index, which may be as long as the kernel.
_STEPS = 6


def soa_private(function: Function, width: int, callees: Callees = NO_CALLEES) -> None:
    """Interleave what private arrays of `function` can be.

    Raises
    ------
    Unsupported
        If one is passed to a function, or comes from a caller, and cannot be interleaved.
    """
    users: dict[str, list[Instruction]] = {}
    computed_by = {i.result: i for i in function.instructions() if i.result}
    for instruction in function.instructions():
        for value in instruction.operands:
            users.setdefault(value.name, []).append(instruction)
    longer: set[str] = set()  # steps in interleaved arrays
    for instruction in function.instructions():
        if instruction.op == "alloca":
            array = _Array(instruction, users, computed_by, callees)
            is_passed = array.is_argument or PARAMETER in instruction.flags
            if is_passed and array.is_used and not array.size:
                message = "a private array that functions access in different units"
                raise Unsupported(message).at(instruction.debug)
            if array.size:
                instruction.lane_step = array.size
                longer |= array.steps
                for access in array.accesses:
                    access.align = array.size
    if longer:
        for block in function.blocks.values():
            body = block.body
            block.body = []
            for instruction in body:
                is_step = instruction.op == "getelementptr" and instruction.result in longer
                block.body += _lengthened(instruction, width) if is_step else [instruction]


class _Array:
    """The uses of a private array.

    Attributes
    ----------
    size : int
        Bytes of its elements; 0 if a use requires it to be contiguous.
    is_argument : bool
        Whether it is passed to a function that has a vector form.
    is_used : bool
        Whether anything is accessed.
    accesses : list of Instruction
    steps : set of str
        Addresses in it.
    """

    def __init__(
        self,
        alloca: Instruction,
        users: dict[str, list[Instruction]],
        computed_by: dict[str, Instruction],
        callees: Callees,
    ) -> None:
        self.accesses: list[Instruction] = []
        self.steps: set[str] = set()
        self.size = 0
        self.is_argument = False
        is_contiguous = False  # whether something wants it in one piece
        sizes: set[int] = set()
        distances: list[int] = []
        todo = [alloca]
        while todo:
            address = todo.pop()
            for user in users.get(address.result, ()):
                if user.op in ("load", "store") and _is_plain(user, address.value):
                    self.accesses.append(user)
                elif user.op == "bitcast" and user.type == POINTER:
                    todo.append(user)
                elif user.op == "getelementptr" and user.operands[0].name == address.result:
                    constant, variable = gep_terms(user)
                    distances.append(constant)
                    distances += (size * _factor(index, computed_by) for index, size in variable)
                    self.steps.add(user.result)
                    todo.append(user)
                elif user.op == "call" and user.callee in callees:
                    units = callees[user.callee].units
                    given = zip(user.operands, units, strict=True)
                    sizes |= {unit for v, unit in given if v.name == address.result and unit}
                    self.is_argument = True
                else:
                    is_contiguous = True
        sizes |= {_accessed(access).size for access in self.accesses}
        self.is_used = is_contiguous or bool(sizes)
        if len(sizes) == 1 and not is_contiguous:
            [size] = sizes
            if all(distance % size == 0 for distance in (*distances, alloca.source.size)):
                self.size = size


def _is_plain(access: Instruction, address: Value) -> bool:
    is_address = access.operands[-1] == address and address not in access.operands[:-1]
    return is_address and not access.flags and not access.ordering and _accessed(access) != I1


def _accessed(access: Instruction) -> Type:
    return access.type if access.op == "load" else access.operands[0].type


def _factor(index: Value, computed_by: dict[str, Instruction], steps: int = _STEPS) -> int:
    """A power of two that divides `index`, as the last `steps` of its computation tell."""
    number, inst = index.integer, computed_by.get(index.name)
    if number is not None:
        return 1 << alignment_of(number)
    if inst is None or inst.op not in _ARITHMETIC or not steps:
        return 1
    if inst.op in ("zext", "sext"):
        return _factor(inst.operands[0], computed_by, steps)
    if inst.op == "shl":
        return 1 << (inst.operands[1].integer or 0)
    factors = [_factor(value, computed_by, steps - 1) for value in inst.operands]
    if inst.op == "mul":
        return factors[0] * factors[1]
    if inst.op == "and":
        return max(factors)
    return min(factors)


def _lengthened(step: Instruction, times: int) -> list[Instruction]:
    """A ``getelementptr`` over `times` the distance."""
    constant, variable = gep_terms(step)
    inserted: list[Instruction] = []
    base = step.operands[0]
    for number, (index, size) in enumerate(variable):
        stem = f"{step.result}~{number}"
        if index.type != I64:
            inserted.append(Instruction("sext", f"{stem}~index", I64, [index]))
            index = inserted[-1].value
        factor = Value(I64, str(size * times))
        inserted.append(Instruction("mul", f"{stem}~distance", I64, [index, factor]))
        operands = [base, inserted[-1].value]
        inserted.append(Instruction("getelementptr", stem, POINTER, operands, source=I8))
        base = inserted[-1].value
    operands = [base, Value(I64, str(constant * times))]
    return [*inserted, Instruction("getelementptr", step.result, POINTER, operands, source=I8)]
