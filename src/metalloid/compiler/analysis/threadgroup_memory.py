"""Sizes and offsets of a module's threadgroup variables."""

from __future__ import annotations

import re

from metalloid.compiler.ir.parser import type_of

_VARIABLE = re.compile(
    r"^(@\S+) = [^\n]*?\bthread_local [^\n]*?\bglobal (.*?)(?:, align (\d+))?$", re.M
)
#: What the end of all variables, where the caller's address points, is a multiple of.
_ALIGNMENT = 128


def sizes(ir: str) -> dict[str, int]:
    """Bytes of each threadgroup variable."""
    return {match[1]: type_of(match[2], ir).size for match in _VARIABLE.finditer(ir)}


def distances(ir: str) -> tuple[dict[str, int], int]:
    """Distance from each threadgroup variable to the end of them all, and their size, in bytes."""
    distances, total = {}, 0
    for match in _VARIABLE.finditer(ir):
        size, align = type_of(match[2], ir).size, int(match[3] or 16)
        total = -(-(total + size) // align) * align
        distances[match[1]] = total
    return distances, -(-total // _ALIGNMENT) * _ALIGNMENT
