"""Progress of launches that a cell waits for longer than a second.

A thread looks now and then where the main thread is, so launches take no longer.
"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any, NamedTuple

from metalloid.compiler.toolchain import progress
from metalloid.kernels.kernel import Kernel
from metalloid.runtime.launch.event import Event
from metalloid.settings import settings

#: Seconds until the first line, and between two looks.
PATIENCE, INTERVAL = 1.0, 0.25
_PACKAGE = __name__.partition(".")[0]
#: Modules that evaluate arrays.
_EVALUATION = (f"{_PACKAGE}.arrays.execution", f"{_PACKAGE}.transforms")
_ERASE = "\r\033[K"


class _Call(NamedTuple):
    """A call of this package that a thread is in."""

    frame: FrameType
    subject: str
    line: int


class LaunchProgress:
    """Shows the launch that the main thread runs or waits for, from `start` to `stop`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *_: Any) -> None:
        """Begin to look: a cell begins."""
        self.stop()
        self._stopped = threading.Event()
        arguments = threading.main_thread().ident, self._stopped
        self._thread = threading.Thread(
            target=_watch, args=arguments, name="metalloid-launches", daemon=True
        )
        self._thread.start()

    def stop(self, *_: Any) -> None:
        """End it, and erase the line: the cell has ended."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _watch(thread: int, stopped: threading.Event) -> None:
    seen: _Call | None = None
    since, is_shown = 0.0, False
    while not stopped.wait(INTERVAL):
        call = None if progress.is_compiling() else _call_of(sys._current_frames().get(thread))
        if seen is None or call is None or call.frame is not seen.frame:
            since = time.perf_counter()
        seen, seconds = call, time.perf_counter() - since
        if call is not None and seconds >= PATIENCE and settings.progress:
            text = f"metalloid: running {call.subject}, line {call.line} ({seconds:.0f} s)"
            sys.stderr.write(f"{_ERASE}{text}")
            sys.stderr.flush()
            is_shown = True
        elif is_shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            is_shown = False
    if is_shown:
        sys.stderr.write(_ERASE)
        sys.stderr.flush()


def _call_of(frame: FrameType | None) -> _Call | None:
    """The outermost call of this package among the callers of a frame, if it launches something."""
    call, evaluates = None, False
    while frame is not None:
        caller = frame.f_back
        if _module(frame).startswith(_EVALUATION):
            evaluates = True
        if caller is not None and _is_own(frame) and not _is_own(caller):
            subject = _subject(frame, evaluates)
            call = _Call(frame, subject, caller.f_lineno) if subject else None
        frame = caller
    return call


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_own(frame: FrameType) -> bool:
    return _module(frame).partition(".")[0] == _PACKAGE


def _subject(frame: FrameType, evaluates: bool) -> str:
    """Name of what a call runs; empty if it compiles or does something else."""
    owner = frame.f_locals.get("self")
    if isinstance(owner, Kernel):
        return owner.name
    if isinstance(owner, Event):
        return "a launch"
    return "arrays" if evaluates else ""
