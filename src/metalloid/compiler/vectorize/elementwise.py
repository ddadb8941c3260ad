"""Instructions that work on each lane alone, for any number of lanes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.opcodes import CASTS, FLOAT_BINARY, INTEGER_BINARY
from metalloid.compiler.ir.types import Type, Unsupported
from metalloid.compiler.vectorize.builder import Builder, fast_math

#: Intrinsics that work on each lane alone, and how many of their operands are values.
_INTRINSICS = {
    "fma": 3, "fmuladd": 3, "sqrt": 1, "fabs": 1, "floor": 1, "ceil": 1, "trunc": 1, "rint": 1,
    "nearbyint": 1, "round": 1, "roundeven": 1, "minnum": 2, "maxnum": 2, "minimum": 2,
    "maximum": 2, "minimumnum": 2, "maximumnum": 2, "copysign": 2, "umin": 2, "umax": 2, "smin": 2,
    "smax": 2, "abs": 1, "ctlz": 1, "cttz": 1, "ctpop": 1, "bswap": 1, "bitreverse": 1, "fshl": 3,
    "fshr": 3, "uadd.sat": 2, "usub.sat": 2, "sadd.sat": 2, "ssub.sat": 2, "is.fpclass": 1,
    "ldexp": 2, "fptoui.sat": 1, "fptosi.sat": 1, "ucmp": 2, "scmp": 2,
}  # fmt: skip
_NAME = re.compile(r"@llvm\.([a-z_.]+?)((?:\.(?:i\d+|f\d+|bf16|p0))+)$")


def count_of_values(callee: str) -> int:
    """The number of vector operands of an intrinsic; 0 if it is not elementwise.

    Examples
    --------
    >>> count_of_values("@llvm.fma.f32"), count_of_values("@llvm.abs.i32")
    (3, 1)
    """
    match = _NAME.match(callee)
    return _INTRINSICS.get(match[1], 0) if match else 0


def text_of(
    instruction: Instruction, flags: str, operands: Sequence[str], type_of: Callable[[Type], str]
) -> str:
    """An instruction that is no call, of scalars or vectors.

    Raises
    ------
    Unsupported
        If it is none that works on each lane alone.
    """
    op, values = instruction.op, instruction.operands
    type = type_of(values[0].type)
    if op in INTEGER_BINARY or op in FLOAT_BINARY:
        return f"{op} {flags}{type} {operands[0]}, {operands[1]}"
    if op in ("icmp", "fcmp"):
        return f"{op} {flags}{instruction.predicate} {type} {operands[0]}, {operands[1]}"
    if op in CASTS:
        return f"{op} {type} {operands[0]} to {type_of(instruction.type)}"
    if op == "fneg":
        return f"fneg {flags}{type} {operands[0]}"
    if op == "freeze":
        return f"freeze {type} {operands[0]}"
    if op == "select":
        given = (f"{type_of(v.type)} {text}" for v, text in zip(values, operands, strict=True))
        return f"select {flags}{', '.join(given)}"
    raise Unsupported(f"the instruction {op}")


def write(builder: Builder, instruction: Instruction, operands: Sequence[str], lanes: int) -> str:
    """Write an instruction or a call of an intrinsic for so many lanes; its result.

    Parameters
    ----------
    builder : Builder
    instruction : Instruction
        Of one lane.
    operands : sequence of str
        Vectors of them; those of a call that are no values are not looked at.
    lanes : int
    """

    def type_of(type: Type) -> str:
        return f"<{lanes} x {type}>"

    flags = fast_math(instruction)
    if instruction.op != "call":
        return builder.new(text_of(instruction, flags, operands, type_of))
    match = _NAME.match(instruction.callee)
    assert match is not None
    suffix = ".".join(f"v{lanes}{type_}" for type_ in match[2][1:].split("."))
    values = _INTRINSICS[match[1]]
    given = [
        (type_of(v.type), text)
        for v, text in zip(instruction.operands[:values], operands[:values], strict=True)
    ]
    given += [(str(v.type), v.name) for v in instruction.operands[values:]]
    return builder.call(f"{flags}{type_of(instruction.type)}", f"@llvm.{match[1]}.{suffix}", given)
