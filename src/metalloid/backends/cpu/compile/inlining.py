"""Inlining: all calls of a kernel, or only those of small functions.

Passes and LLVM optimise one function best. But if functions of a thousand instructions are called a
hundred times, as in arithmetic on 256-bit numbers, that function takes minutes to compile. Then
large functions are not inlined (`compiler/transforms/callees.py`).
"""

from __future__ import annotations

import re
from typing import Protocol

from metalloid.compiler.toolchain.clang import OutOfTime

#: Options for LLVM if calls may remain: thresholds of its inliner, at a cost of 5 an instruction.
SMALL_CALLS = [
    argument
    for kind in ("-inline", "-inlinehint", "-inlinecold", "-inline-cold-callsite")
    for argument in ("-mllvm", f"{kind}-threshold=300")
]
#: Limits for a kernel with all calls inlined: seconds of compilation, and lines of IR of its
#: longest function.
MAX_SECONDS, MAX_LINES = 4.0, 10_000

_FUNCTION = re.compile(r"^define [^\n]*?@([\w.$]+)\((.*?)^\}", re.M | re.S)
_CALL = re.compile(r"\bcall [^\n]*?@([\w.$]+)\(")


class Compile(Protocol):
    """Compiles a kernel to IR; returns the compiled text and the IR."""

    def __call__(self, options: list[str] | None, seconds: float = 0.0) -> tuple[str, str]:
        """Compile with options for calls that may remain; without them, inline all calls.

        Raises
        ------
        OutOfTime
            If it takes longer than `seconds` of processor time, unless these are 0.
        """


def choose_inlining(
    compiled: Compile, has_large_calls: bool
) -> tuple[list[str] | None, tuple[str, str]]:
    """Compile a kernel with the best options; returns these and the result.

    Parameters
    ----------
    compiled : Compile
    has_large_calls : bool
        Whether inlining all calls is known to take too long.
    """
    inlined = None
    if not has_large_calls:
        try:
            inlined = compiled(None, MAX_SECONDS)
        except OutOfTime:
            pass
        else:
            if _length(inlined[1]) <= MAX_LINES:
                return None, inlined
    options = list(SMALL_CALLS)
    result = compiled(options)
    waiting = _waiting_functions(result[1])
    if waiting:
        for name in waiting:
            options += ("-mllvm", f"-force-attribute={name}:alwaysinline")
        result = compiled(options)
    if inlined is not None and _length(result[1]) > _length(inlined[1]) // 2:
        return None, inlined
    return options, result


def _length(ir: str) -> int:
    """Lines of the longest function."""
    return max((ir.count("\n", *match.span()) for match in _FUNCTION.finditer(ir)), default=0)


def _waiting_functions(ir: str) -> list[str]:
    """Functions that synchronise threads or report to the host, and their callers."""
    calls = {name: set(_CALL.findall(body)) for name, body in _FUNCTION.findall(ir)}
    waiting = {name for called in calls.values() for name in called if name.startswith("__msl_")}
    before = -1
    while before != len(waiting):
        before = len(waiting)
        waiting |= {name for name, called in calls.items() if not waiting.isdisjoint(called)}
    return sorted(name for name in waiting if name in calls and not name.startswith("mtl_"))
