"""Functions of the standard library that are called for each lane.

They do what takes too much code as vectors, such as decoding texels whose format is not known. A
function of the module calls one for every active lane in turn.
"""

from __future__ import annotations

from metalloid.compiler.ir.function import Instruction
from metalloid.compiler.ir.types import I1
from metalloid.compiler.vectorize.builder import VECTOR_ATTRIBUTES, Builder

_NAMESPACE = "@_ZN9metalloid7by_lane"  # metalloid::by_lane


def is_by_lane(callee: str) -> bool:
    """Whether it is one of them; it returns nothing."""
    return callee.startswith(_NAMESPACE)


def call_by_lane(builder: Builder, instruction: Instruction) -> None:
    """Write a call of one."""
    callee = instruction.callee
    around = f"@mtl.by_lane{callee[1:]}"
    types = [value.type for value in instruction.operands]
    wide = [builder.wide(type) for type in types]
    vectors = [builder.vector(value) for value in instruction.operands]
    bits = builder.wide(I1)
    given = [*zip(wide, vectors, strict=True), (bits, builder.active())]
    builder.call("void", around, given)
    lanes = [f"  %v{n} = extractelement {wide[n]} %all{n}, i32 %lane" for n in range(len(types))]
    arguments = ", ".join(f"{type} %v{n}" for n, type in enumerate(types))
    parameters = [f"{type} %all{n}" for n, type in enumerate(wide)]
    builder.declarations[around] = "\n".join(
        (
            f"define internal void {around}({', '.join([*parameters, f'{bits} %active'])})"
            f" noinline {VECTOR_ATTRIBUTES} {{",
            "start:",
            "  br label %next",
            "next:",
            "  %lane = phi i32 [ 0, %start ], [ %following, %end ]",
            f"  %is_active = extractelement {bits} %active, i32 %lane",
            "  br i1 %is_active, label %go, label %end",
            "go:",
            *lanes,
            f"  call void {callee}({arguments})",
            "  br label %end",
            "end:",
            "  %following = add i32 %lane, 1",
            f"  %is_last = icmp eq i32 %following, {builder.width}",
            "  br i1 %is_last, label %done, label %next",
            "done:",
            "  ret void",
            "}",
        )
    )
