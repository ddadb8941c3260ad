"""The functions by which lanes of a simdgroup exchange values: names and shapes of results."""

from __future__ import annotations

import re

from metalloid.compiler.analysis.shapes import VARYING, Shape, consecutive, uniform
from metalloid.compiler.ir.function import Instruction

#: Lanes of a simdgroup whose threads know each other.
WIDTH = 32
#: And of a quadgroup.
QUAD = 4
BARRIER = "@__msl_threadgroup_barrier"
LANE = "@__msl_simd_lane"
MULTIPLY = "@__msl_simdgroup_matrix_multiply_f32"
#: Functions that tell whether all lanes have a condition, or none has.
ALL_PASS, NONE_PASSES = "@mtl.all_pass", "@mtl.none_passes"
#: Group, function, and type of a name.
NAME = re.compile(r"@__msl_(simd|quad)_(\w+?)(?:_([iufb]\d\d))?$")
#: Reductions, with the operations on integers and floats that they repeat.
OPERATIONS = {
    "sum": ("add", "fadd"), "product": ("mul", "fmul"), "min": ("", "minimumnum"),
    "max": ("", "maximumnum"), "and": ("and", ""), "or": ("or", ""), "xor": ("xor", ""),
}  # fmt: skip


def exchanges(callee: str) -> bool:
    """Whether a call needs the lanes of a whole simdgroup."""
    return callee.startswith(("@__msl_simd", "@__msl_quad"))


def has_any_width(callee: str) -> bool:
    """Whether an exchange is also written for simdgroups of fewer lanes."""
    match = NAME.match(callee)
    return callee == LANE or (match is not None and match.group(1, 2) == ("simd", "shuffle_xor"))


def shape_of_call(instruction: Instruction, operands: list[Shape], width: int) -> Shape | None:
    """Shape of a call's result; None if it is none of these functions."""
    if instruction.callee == LANE:
        return consecutive(width, 32)
    match = NAME.match(instruction.callee)
    if match is None:
        return None
    group, name = match[1], match[2]
    everywhere = name in OPERATIONS or name in ("ballot", "broadcast_first")
    if name in ("broadcast", "shuffle"):
        everywhere = operands[1].is_uniform
    return uniform(width) if group == "simd" and everywhere else VARYING
