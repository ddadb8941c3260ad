"""Threadgroup variables beyond the limit of static shared memory.

The largest variable becomes dynamic shared memory, whose size the launch passes; others stay
static.
"""

from __future__ import annotations

import re

#: Limit of static shared memory.
_STATIC_BYTES = 48 * 1024
_VARIABLE = re.compile(r"^(?:\t|\.weak )\.shared (\.align \d+ \.b8 (?:\S+))\[(\d+)\];\n", re.M)
_KERNEL = re.compile(r"^(?:\.visible |\.weak )?\.entry ", re.M)
_PARAMETERS = "mtl_threadgroup_memory"


def use_dynamic_shared_memory(ptx: str) -> tuple[str, int]:
    """A kernel's PTX, and the dynamic shared memory of each launch in bytes, usually 0."""
    variables = list(_VARIABLE.finditer(ptx))
    if sum(int(v[2]) for v in variables) <= _STATIC_BYTES or _PARAMETERS in ptx:
        return ptx, 0
    largest = max(variables, key=lambda v: int(v[2]))
    text = ptx[: largest.start()] + ptx[largest.end() :]
    text = _KERNEL.sub(lambda kernel: f".extern .shared {largest[1]}[];\n\n{kernel[0]}", text)
    return text, int(largest[2])
