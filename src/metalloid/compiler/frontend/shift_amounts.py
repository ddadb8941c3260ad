"""Give shifts by more bits than a scalar has the meaning that Metal gives them.

The low bits of an amount count, says the specification: ``1 << 33`` is 2, and ``x >> 32`` is x. In
C++, and so in clang's IR, such a shift has no value, and what comes of it differs between scalar
and vector instructions. Vectors are the header's affair (metal_vector_operators.h).
"""

from __future__ import annotations

import itertools
import re

_SHIFT = re.compile(
    r"^(?P<result> +%\S+ = (?:shl|lshr|ashr) )(?:nuw |nsw |exact )*(?P<type>i(?P<bits>8|16|32|64)) "
    r"(?P<value>\S+), (?P<amount>%[\w.$-]+)(?P<more>.*)$",
    re.M,
)


def mask_shift_amounts(ir: str) -> str:
    """Take the low bits of each amount that is no constant; LLVM drops what changes nothing."""
    numbers = itertools.count()

    def masked(shift: re.Match[str]) -> str:
        name = f"%mtl.amount{next(numbers)}"
        low_bits = f"  {name} = and {shift['type']} {shift['amount']}, {int(shift['bits']) - 1}"
        return (
            f"{low_bits}\n{shift['result']}{shift['type']} {shift['value']}, {name}{shift['more']}"
        )

    return _SHIFT.sub(masked, ir)
