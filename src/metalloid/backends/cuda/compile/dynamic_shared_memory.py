"""Threadgroup variables of more than 48 KB, which a launch has to ask for.

The largest becomes memory whose size the launch says, as that of parameters; others stay.
"""

from __future__ import annotations

import re

#: What a kernel has without asking.
_USUAL_BYTES = 48 * 1024
_VARIABLE = re.compile(r"^(?:\t|\.weak )\.shared (\.align \d+ \.b8 (?:\S+))\[(\d+)\];\n", re.M)
_KERNEL = re.compile(r"^(?:\.visible |\.weak )?\.entry ", re.M)
_PARAMETERS = "mtl_threadgroup_memory"


def ask_for_memory(ptx: str) -> tuple[str, int]:
    """A kernel's text, and the bytes that each launch has to ask for, which most often are none."""
    variables = list(_VARIABLE.finditer(ptx))
    if sum(int(v[2]) for v in variables) <= _USUAL_BYTES or _PARAMETERS in ptx:
        return ptx, 0
    largest = max(variables, key=lambda v: int(v[2]))
    text = ptx[: largest.start()] + ptx[largest.end() :]
    text = _KERNEL.sub(lambda kernel: f".extern .shared {largest[1]}[];\n\n{kernel[0]}", text)
    return text, int(largest[2])
