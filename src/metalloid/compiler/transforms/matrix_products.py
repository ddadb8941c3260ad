"""simdgroup_matrix: 8 x 8 floats that the lanes of a simdgroup hold together.

A thread has two adjacent elements of a row (Apple's layout). Together they are one value of the
simdgroup, with contiguous rows: `MATRIX`, which is uniform. Two of them side by side are a `PAIR`,
whose rows fill the widest registers. `lower_matrix_products` rewrites the code of a thread in these
terms, with operations of its own:

- ``to_matrix``: the matrix whose elements the lanes hold, inactive lanes zeros
- ``of_matrix``: the lane's first or second element
- ``load_matrix``: rows or columns from memory, each without gaps
- ``multiply_matrices``: a b + c; b and c may be pairs
- ``join_matrices``, ``half_of_pair``: two matrices as a pair, and back

A product adds an element of a times a row of b to a row of c, 64 times: eight sums for the latency
of one, elements of a read from memory by the multiplications themselves.
`matrix_forwarding` removes the changes of form between one operation and the next.
"""

from __future__ import annotations

from metalloid.compiler.analysis.simdgroup_functions import MULTIPLY
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.matrix_type import MATRIX
from metalloid.compiler.ir.types import FLOAT, I64, Vector


def lower_matrix_products(function: Function) -> None:
    """Write the products of `function` in terms of matrices."""
    for block in function.blocks.values():
        if not any(i.callee == MULTIPLY for i in block.body):
            continue
        body: list[Instruction] = []
        extracted: dict[str, Value] = {}  # products whose elements are extracted one by one
        for instruction in block.body:
            if instruction.callee == MULTIPLY:
                product = _product(instruction, body)
                if isinstance(instruction.type, Vector):
                    body += _as_vector(instruction, product)
                else:
                    extracted[instruction.result] = product
            elif instruction.op == "extractvalue" and instruction.operands[0].name in extracted:
                product = extracted[instruction.operands[0].name]
                body.append(of_matrix(instruction.result, product, instruction.indices[0]))
            else:
                body.append(instruction)
        block.body = body


def _product(call: Instruction, body: list[Instruction]) -> Value:
    matrices = []
    for name, start in (("left", 0), ("right", 2), ("start", 4)):
        elements = call.operands[start : start + 2]
        body.append(Instruction("to_matrix", f"{call.result}~{name}", MATRIX, elements))
        matrices.append(body[-1].value)
    body.append(Instruction("multiply_matrices", f"{call.result}~matrix", MATRIX, matrices))
    return body[-1].value


def _as_vector(call: Instruction, product: Value) -> list[Instruction]:
    """The elements as a vector of two, which is how x86-64 returns two floats."""
    first, second = (of_matrix(f"{call.result}~of{n}", product, n) for n in (0, 1))
    half = Instruction(
        "insertelement", f"{call.result}~half", call.type,
        [Value(call.type, "poison"), first.value, Value(I64, "0")],
    )  # fmt: skip
    operands = [half.value, second.value, Value(I64, "1")]
    return [first, second, half, Instruction("insertelement", call.result, call.type, operands)]


def of_matrix(name: str, matrix: Value, element: int) -> Instruction:
    """The instruction that gives each lane one of its elements."""
    return Instruction("of_matrix", name, FLOAT, [matrix], indices=(element,))
