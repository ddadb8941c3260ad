"""The line of the user's program that makes a launch."""

from __future__ import annotations

import functools
from pathlib import Path
from types import CodeType, FrameType

_PACKAGE = f"{Path(__file__).parents[1]}/"
_outside: set[str] = set()  # files that are not of the package


def calling_instruction(frame: FrameType | None) -> tuple[CodeType, int]:
    """The code and the instruction of the innermost frame that is outside of the package.

    The line follows from them by `line_of`, when there is time for it.
    """
    assert frame is not None
    outermost = frame
    while frame is not None:
        outermost = frame
        file = frame.f_code.co_filename
        if file in _outside:
            break
        if not file.startswith(_PACKAGE):
            _outside.add(file)
            break
        frame = frame.f_back
    return outermost.f_code, outermost.f_lasti


@functools.lru_cache(1024)
def line_of(code: CodeType, instruction: int) -> int:
    """The line of an instruction."""
    for first, end, line in code.co_lines():
        if first <= instruction < end and line:
            return line
    return code.co_firstlineno
