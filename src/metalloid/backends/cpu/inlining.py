"""Which calls of a kernel are inlined: all, or those of small functions if all are too many.

The passes and LLVM do best with one function. But where functions of a thousand instructions are
called a hundred times, as in arithmetic on numbers of 256 bits, that function takes minutes to
compile. Then large functions stay functions (`compiler/transforms/callees.py`).
"""

from __future__ import annotations

import re
from typing import Protocol

from metalloid.compiler.toolchain.clang import OutOfTime

#: Options for LLVM if calls may stay: it inlines what costs less, in units of 5 for an instruction.
SMALL_CALLS = [
    argument
    for kind in ("-inline", "-inlinehint", "-inlinecold", "-inline-cold-callsite")
    for argument in ("-mllvm", f"{kind}-threshold=300")
]
#: A kernel with all calls inlined may take clang so many seconds, and its longest
#: function so many lines of IR.
MAX_SECONDS, MAX_LINES = 4.0, 10_000

_FUNCTION = re.compile(r"^define [^\n]*?@([\w.$]+)\((.*?)^\}", re.M | re.S)
_CALL = re.compile(r"\bcall [^\n]*?@([\w.$]+)\(")


class Compile(Protocol):
    """Compiles a kernel to IR; the text that was compiled, and the IR."""

    def __call__(self, options: list[str] | None, seconds: float = 0.0) -> tuple[str, str]:
        """With options for calls that may stay; without, all are inlined.

        Raises
        ------
        OutOfTime
            If it takes longer than `seconds` of processor time, where these are not 0.
        """


def choose_inlining(
    compiled: Compile, has_large_calls: bool
) -> tuple[list[str] | None, tuple[str, str]]:
    """The options that a kernel is compiled with, and what comes out.

    Parameters
    ----------
    compiled : Compile
    has_large_calls : bool
        Whether it is known that it takes too long to inline all calls.
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
    """Functions by which threads wait for each other or talk to the host, and their callers."""
    calls = {name: set(_CALL.findall(body)) for name, body in _FUNCTION.findall(ir)}
    found = {name for called in calls.values() for name in called if name.startswith("__msl_")}
    before = -1
    while before != len(found):
        before = len(found)
        found |= {name for name, called in calls.items() if not found.isdisjoint(called)}
    return sorted(name for name in found if name in calls and not name.startswith("mtl_"))
