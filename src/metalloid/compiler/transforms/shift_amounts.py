"""Give shifts by more bits than a scalar has the meaning that Metal gives them.

The low bits of an amount count, says the specification: ``1 << 33`` is 2, and ``x >> 32`` is x. In
C++, and so in clang's IR, such a shift has no value, and what comes of it differs between scalar
and vector instructions. The header treats vectors (metal_vector_operators.h).
"""

from __future__ import annotations

from typing import Any

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import Function, Instruction, Value
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.ir.types import Integer

_SHIFTS = ("shl", "lshr", "ashr")
_BITS = (8, 16, 32, 64)  # of scalars; clang uses other widths for its own purposes


def mask_shift_amounts(function: Function, names: FreshNames) -> None:
    """Take the low bits of each amount that is no constant; LLVM drops what changes nothing."""
    for block in function.blocks.values():
        body: list[Instruction] = []
        for i in block.body:
            if i.op in _SHIFTS and isinstance(i.type, Integer) and i.type.bits in _BITS:
                value, amount = i.operands
                if not amount.is_constant:
                    low = Value(i.type, str(i.type.bits - 1))
                    masked = Instruction("and", names("%mtl.amount"), i.type, [amount, low])
                    body.append(masked)
                    i.operands, i.flags = [value, masked.value], ()
            body.append(i)
        block.body = body


#: For contexts that have `names`.
MASK_SHIFT_AMOUNTS: Pass[Any] = Pass(
    "mask-shift-amounts", lambda function, context: mask_shift_amounts(function, context.names),
    "shifts by more bits than a scalar has use the low bits of the amount",
)  # fmt: skip
