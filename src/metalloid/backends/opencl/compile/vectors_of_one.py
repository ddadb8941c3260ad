"""Vectors of one element, which SPIR-V does not have.

LLVM loads one where a kernel fills a vector with a number from memory.
"""

from __future__ import annotations

import re

_LOAD = re.compile(r"^(  (%[\w.$-]+) = load (?:volatile )?)<1 x (\w+)>,", re.M)


def load_scalars(ir: str) -> str:
    """The module in which such loads are of the element, if only ``shufflevector`` uses them."""
    for load in _LOAD.finditer(ir):
        name, type = re.escape(load[2]), load[3]
        shuffle = re.compile(
            rf"^  %([\w.$-]+) = shufflevector <1 x {type}> {name}, <1 x {type}> poison, "
            r"(<(\d+) x i32> [^\n]*)$", re.M,
        )  # fmt: skip
        edited = shuffle.sub(
            rf"  %one.\1 = insertelement <\3 x {type}> poison, {type} {load[2]}, i64 0" "\n"
            rf"  %\1 = shufflevector <\3 x {type}> %one.\1, <\3 x {type}> poison, \2", ir,
        )  # fmt: skip
        if not re.search(rf"<1 x {type}> {name}(?![\w.$-])", edited):
            ir = edited.replace(load[0], f"{load[1]}{type},")
    return ir
