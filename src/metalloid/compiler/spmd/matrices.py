"""Products of simdgroup matrices."""

from __future__ import annotations

from metalloid.compiler.llvm.ir import Instruction
from metalloid.compiler.llvm.types import FLOAT, I64
from metalloid.compiler.spmd.lanes import WIDTH
from metalloid.compiler.spmd.permute import active_or
from metalloid.compiler.spmd.writer import VECTOR_ATTRIBUTES, Writer

_FUNCTION = "@mtl_multiply_matrices"
_WORDS = f"<{WIDTH} x {I64}>"
_NUMBERS = f"<{2 * WIDTH} x {FLOAT}>"


def multiply(writer: Writer, instruction: Instruction) -> str:
    """Product of two 8 x 8 matrices, two neighbours of a row in each lane (Apple's layout).

    By a function: kernels have hundreds of products, and each is a hundred shuffles.
    """
    left, right = (
        active_or(writer, writer.vector(operand), "0", I64) for operand in instruction.operands
    )
    product = writer.call(_WORDS, _FUNCTION, [(_WORDS, left), (_WORDS, right)])
    writer.declarations[_FUNCTION] = _definition()
    return product


def _definition() -> str:
    """The function, as text."""
    places = [(_row(lane), _column(lane) + j) for lane in range(WIDTH) for j in range(2)]
    at = {place: number for number, place in enumerate(places)}
    lines = [
        f"define internal {_WORDS} {_FUNCTION}({_WORDS} %left, {_WORDS} %right) noinline "
        f"{VECTOR_ATTRIBUTES} {{",
        f"  %a = bitcast {_WORDS} %left to {_NUMBERS}",
        f"  %b = bitcast {_WORDS} %right to {_NUMBERS}",
    ]
    total = "zeroinitializer"
    for k in range(8):
        lines += [
            _pick(f"%a{k}", "%a", [at[row, k] for row, _ in places]),
            _pick(f"%b{k}", "%b", [at[k, column] for _, column in places]),
            f"  %p{k} = fmul {_NUMBERS} %a{k}, %b{k}",
            f"  %s{k} = fadd {_NUMBERS} {total}, %p{k}",
        ]
        total = f"%s{k}"
    lines += [f"  %words = bitcast {_NUMBERS} {total} to {_WORDS}", f"  ret {_WORDS} %words", "}"]
    return "\n".join(lines)


def _pick(name: str, matrix: str, sources: list[int]) -> str:
    mask = ", ".join(f"i32 {source}" for source in sources)
    return (
        f"  {name} = shufflevector {_NUMBERS} {matrix}, {_NUMBERS} poison, "
        f"<{len(sources)} x i32> <{mask}>"
    )


def _row(lane: int) -> int:
    return (lane // 4 & 4) + lane // 2 % 4


def _column(lane: int) -> int:
    return (lane // 4 & 2) * 2 + lane % 2 * 2
