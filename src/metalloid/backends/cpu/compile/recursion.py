"""Unroll recursion of a known depth, as recursive functions cannot be vectorised.

``if (x < 0) return -f(-x);`` recurs once, but LLVM does not inline a function that calls itself. So
the function is cloned into a chain of calls, which ends in the function itself. If LLVM inlines the
clones and finds the last call unreachable, the recursion is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from metalloid.compiler.ir.function import Function, Instruction
from metalloid.compiler.ir.parser import (
    definition,
    function_names,
    map_functions,
    parse_function,
)
from metalloid.compiler.ir.printer import function_text

#: Maximum clones of a function, and maximum instructions of all inlined clones.
_MAX_DEPTH = 16
_MAX_INSTRUCTIONS = 4000
_COMDAT = re.compile(r" ?\bcomdat(?:\([^)]*\))?")


def unroll_recursion(ir: str, optimise: Callable[[str], str]) -> str:
    """The module without recursion, or unchanged if the depth of a recursion is unknown.

    Parameters
    ----------
    ir : str
        A module whose functions are internal, except those that the runtime calls.
    optimise : callable
        Optimises a module by LLVM.

    Raises
    ------
    Unsupported
        If there is something in a function that no kernel was seen to contain.
    """
    # Few modules have a recursion; the others need not be parsed.
    names = [name for name in function_names(ir) if definition(ir, name).count(f"@{name}(") > 1]
    if not names:
        return ir
    clones = [
        clone for name in names for clone in chain(parse_function(ir, name, retain_hints=True))
    ]
    unrolled = map_functions(ir, lambda function: call_clones(function, names))
    unrolled = optimise("\n".join((unrolled, *map(function_text, clones), "")))
    return unrolled if set(names).isdisjoint(function_names(unrolled)) else ir


def chain(function: Function) -> Iterator[Function]:
    """Clones of a function that calls itself; each calls the next, and the last the function."""
    calls = sum(1 for _ in _calls(function, [function.name]))
    size = sum(1 for _ in function.instructions())
    instructions, depth = size * calls, 1
    while depth < _MAX_DEPTH and instructions < _MAX_INSTRUCTIONS:
        instructions, depth = instructions * calls + size, depth + 1
    for number in range(1, depth + 1):
        clone = function.copy()
        clone.name = _numbered(function.name, number)
        clone.linkage = "internal"
        clone.qualifiers = tuple(word for word in clone.qualifiers if word != "dso_local")
        clone.attributes = _COMDAT.sub("", clone.attributes)
        if number < depth:
            for call in _calls(clone, [function.name]):
                call.callee = f"@{_numbered(function.name, number + 1)}"
        yield clone


def call_clones(function: Function, recursive: Collection[str]) -> None:
    """Let a function call the first clones of others that are recursive."""
    others = [name for name in recursive if name != function.name]
    for call in _calls(function, others):
        call.callee = f"@{_numbered(call.callee[1:], 1)}"


def _calls(function: Function, names: Collection[str]) -> Iterator[Instruction]:
    for instruction in function.instructions():
        if instruction.op == "call" and instruction.callee[1:] in names:
            yield instruction


def _numbered(name: str, number: int) -> str:
    return f'{name[:-1]}.{number}"' if name.endswith('"') else f"{name}.{number}"
