"""Edits of a module's text besides the kernel's function: globals, declarations, linkage."""

from __future__ import annotations

import re
from collections.abc import Iterable

from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.ir.function import Function

#: Variable with the address of the printf buffer; set when a kernel is loaded.
PRINTF_SYMBOL = "mtl_report_block"
_PRINTF_BUFFER = re.compile(
    rf"^(@{PRINTF_SYMBOL} = )external ([^\n]*?)constant (i64)([^\n]*)$", re.M
)
#: Threadgroup arrays, which are aligned to 16 bytes, so that they can be read by float4.
_SHARED_VARIABLE = re.compile(
    r"^(@\S+ = internal [^\n]*addrspace\(3\) global \[[^\n]*, align )[1248]$", re.M
)
_PUBLIC_FUNCTION = re.compile(
    r"^define (?:dso_local )?(?!linkonce|weak|internal|private|available)"
    rf"(?=[^@\n]*@(?!{ENTRY_SYMBOL}\b))", re.M,
)  # fmt: skip
_LANE_FUNCTIONS = ("lane", "lane_of", "numbers_of_lanes", "from_below")
_INTRINSIC = "@llvm."


def prepare_module(ir: str, lane_order: str) -> str:
    """The module for the passes and for LLVM.

    Parameters
    ----------
    lane_order : str
        Which lane runs which thread of a simdgroup (lanes_nvptx.h): ``"plain"`` or ``"matrix"``.
    """
    ir = _select_lane_order(ir, lane_order)
    ir = _SHARED_VARIABLE.sub(r"\g<1>16", ir)
    ir = _PRINTF_BUFFER.sub(r"\1\2externally_initialized global \3 0\4", ir)
    # All functions are inlined; the external copies that clang keeps are unused.
    return _PUBLIC_FUNCTION.sub("define internal ", ir)


def _select_lane_order(ir: str, order: str) -> str:
    """Select the functions for an order of lanes."""
    for name in _LANE_FUNCTIONS:
        ir = re.sub(rf"^declare [^\n]*@mtl_{name}\([^\n]*\n", "", ir, flags=re.M)
        ir = ir.replace(f"@mtl_{name}(", f"@mtl_{order}_{name}(")
    return ir


def declare_intrinsics(ir: str, functions: Iterable[Function]) -> str:
    """The module with declarations of the intrinsics that `functions` call."""
    declarations: dict[str, str] = {}
    for function in functions:
        for i in function.instructions():
            if i.op == "call" and i.callee.startswith(_INTRINSIC):
                types = ", ".join(str(operand.type) for operand in i.operands)
                declarations[i.callee] = f"declare {i.type} {i.callee}({types})"
    missing = (
        text for name, text in declarations.items()
        if not re.search(rf"^declare .*{re.escape(name)}\(", ir, re.M)
    )  # fmt: skip
    return "\n".join([ir, *missing, ""])
