"""The line of the user's program that makes a launch."""

from __future__ import annotations

from pathlib import Path
from types import CodeType, FrameType

_PACKAGE = f"{Path(__file__).parents[1]}/"


def calling_line(frame: FrameType | None) -> tuple[CodeType, int]:
    """The code and the line of the innermost frame that is outside of the package."""
    assert frame is not None
    outermost = frame
    while frame is not None:
        outermost = frame
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            break
        frame = frame.f_back
    return outermost.f_code, outermost.f_lineno
