"""Unroll recursion of a known depth, as recursive functions cannot be vectorised.

``if (x < 0) return -f(-x);`` recurs once, but LLVM does not inline a function that calls itself. So
the function is copied into a chain of calls, which ends in the function itself. If LLVM inlines the
copies and finds the last call unreachable, the recursion is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Maximum copies of a function, and maximum instructions of all inlined copies.
_MAX_DEPTH = 16
_MAX_INSTRUCTIONS = 4000
_FUNCTION = re.compile(r'^define [^\n]*?(@(?:[\w.$]+|"[^"]+"))\(.*?^\}\n', re.M | re.S)
#: Attributes of a function that its copies lack.
_LINKAGE = re.compile(r"\b(?:internal|linkonce_odr|dso_local) | comdat(?:\([^)]*\))?")


def unroll_recursion(ir: str, optimise: Callable[[str], str]) -> str:
    """The module without recursion, or unchanged if the depth of a recursion is unknown.

    Parameters
    ----------
    ir : str
        A module whose functions are internal, except those that the runtime calls.
    optimise : callable
        Optimises a module by LLVM.
    """
    copies, names = [], []
    for function in _FUNCTION.finditer(ir):
        text, name = function[0], function[1]
        calls = text.count(f"{name}(") - 1
        if calls > 0:
            names.append(name)
            copies.append(_copies(text, name, calls))
    if not names:
        return ir
    unrolled = ir
    for name in names:
        unrolled = _call_copies(unrolled, name)
    unrolled = optimise(unrolled + "".join(copies))
    return ir if any(f"{name}(" in unrolled for name in names) else unrolled


def _copies(text: str, name: str, calls: int) -> str:
    """The copies of a function; the first calls the second, and so on."""
    instructions, depth = text.count("\n") * calls, 1
    while depth < _MAX_DEPTH and instructions < _MAX_INSTRUCTIONS:
        instructions, depth = instructions * calls + text.count("\n"), depth + 1
    head, body = text.split("\n", 1)
    head = _LINKAGE.sub("", head).replace("define ", "define internal ", 1)
    chain = []
    for number in range(1, depth + 1):
        callee = _numbered(name, number + 1) if number < depth else name
        chain.append(
            f"{head.replace(f'{name}(', f'{_numbered(name, number)}(')}\n"
            f"{body.replace(f'{name}(', f'{callee}(')}"
        )
    return "\n".join(chain)


def _call_copies(ir: str, name: str) -> str:
    """The module with all calls from outside redirected to the first copy."""

    def called(function: re.Match[str]) -> str:
        if function[1] == name:
            return function[0]
        return function[0].replace(f"{name}(", f"{_numbered(name, 1)}(")

    return _FUNCTION.sub(called, ir)


def _numbered(name: str, number: int) -> str:
    return f'{name[:-1]}.{number}"' if name.endswith('"') else f"{name}.{number}"
