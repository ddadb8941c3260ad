"""Reversal of an integer's bits by shifts: SPIR-V has an instruction for graphics only.

LLVM's optimiser makes the intrinsic of loops over bits, too.
"""

from __future__ import annotations

import re

_DECLARATION = re.compile(r"^declare [^\n]*@llvm\.bitreverse\.(?:v(\d+))?i(\d+)\([^\n]*\n", re.M)


def reverse_bits_by_shifts(ir: str) -> str:
    """The module with functions in place of the intrinsics."""
    functions = [_function(match[1], int(match[2])) for match in _DECLARATION.finditer(ir)]
    ir = _DECLARATION.sub("", ir).replace("@llvm.bitreverse.", "@mtl_reversed_")
    return ir + "".join(functions)


def _function(lanes: str | None, bits: int) -> str:
    """A function that swaps neighbouring bits, then pairs of them, and so on."""
    type = f"<{lanes} x i{bits}>" if lanes else f"i{bits}"
    suffix = f"v{lanes}i{bits}" if lanes else f"i{bits}"
    lines, value, step = [], "%x", 1
    while step < bits:
        # Of every two groups of `step` bits the lower one.
        mask = sum(((1 << step) - 1) << at for at in range(0, bits, 2 * step))
        amount, lower = (f"splat (i{bits} {n})" if lanes else str(n) for n in (step, mask))
        lines += [
            f"%h{step} = lshr {type} {value}, {amount}", f"%l{step} = and {type} %h{step}, {lower}",
            f"%m{step} = and {type} {value}, {lower}", f"%u{step} = shl {type} %m{step}, {amount}",
            f"%x{step} = or {type} %l{step}, %u{step}",
        ]  # fmt: skip
        value, step = f"%x{step}", 2 * step
    body = "".join(f"  {line}\n" for line in [*lines, f"ret {type} {value}"])
    return f"\ndefine internal {type} @mtl_reversed_{suffix}({type} %x) {{\n{body}}}\n"
