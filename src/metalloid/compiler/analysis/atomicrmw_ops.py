"""The operations of ``atomicrmw`` as plain instructions and as combiners."""

from __future__ import annotations

import re

#: The same without atomicity: an instruction or an intrinsic.
PLAIN = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "fadd": "fadd",
         "fsub": "fsub", "min": "@llvm.smin", "max": "@llvm.smax", "umin": "@llvm.umin",
         "umax": "@llvm.umax", "fmin": "@llvm.minnum", "fmax": "@llvm.maxnum"}  # fmt: skip
#: Combiners: one update with the combined operand equals two updates. For integers whose results
#: are unused, so that the order of updates cannot be observed.
BOTH = {name: PLAIN["add" if name == "sub" else name]
        for name in ("add", "sub", "and", "or", "xor", "min", "max", "umin", "umax")}  # fmt: skip

_SHORT = {"half": "f16", "float": "f32", "double": "f64"}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")


def computed(declarations: dict[str, str], name: str, type: str, first: str, second: str) -> str:
    """The text that computes one of these of two numbers or vectors; what it calls is declared."""
    if name[0] != "@":
        return f"{name} {type} {first}, {second}"
    vector = _VECTOR.fullmatch(type)
    lanes, element = (f"v{vector[1]}", vector[2]) if vector else ("", type)
    callee = f"{name}.{lanes}{_SHORT.get(element, element)}"
    declarations[callee] = f"declare {type} {callee}({type}, {type})"
    return f"call {type} {callee}({type} {first}, {type} {second})"
