"""Progress of compilations that take longer than a second.

On a terminal, and in a notebook with the extension ``metalloid``, one line on standard error says
it while it lasts; elsewhere nothing is printed. The logger ``metalloid`` gets the same at level
INFO, and at the end how long each stage took.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from metalloid.settings import settings

#: Seconds until the first line, and between two.
PATIENCE, _INTERVAL = 1.0, 0.5
_ERASE = "\r\033[K"
#: Whether standard error shows lines that replace each other though it is no terminal, as that of
#: notebooks does.
shows_lines = False

_logger = logging.getLogger("metalloid")


class _Compilation:
    """One compilation: what is compiled, and the stages so far."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.started = time.perf_counter()
        self.is_shown = False
        self.stages: list[tuple[str, float]] = []

    def line(self) -> str:
        """The current stage, and the start of the compilation."""
        seconds = int(time.perf_counter() - self.started)
        doing = f": {self.stages[-1][0]}" if self.stages else ""
        return f"compiling {self.subject}{doing} ({seconds} s)"

    def summary(self) -> str:
        """The times of its stages."""
        now = time.perf_counter()
        starts = [start for _, start in self.stages]
        stages = ", ".join(
            f"{name} {end - start:.1f}"
            for (name, start), end in zip(self.stages, [*starts[1:], now], strict=False)
        )
        took = f"{now - self.started:.1f} s"
        return f"compiled {self.subject} in {took}" + f" ({stages})" * bool(stages)


class _Progress:
    """The compilations that are running, and the thread that shows the longest of them."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: a forked child has neither the thread nor the compilations."""
        self._changed = threading.Condition()
        self._active: list[_Compilation] = []
        self._thread: threading.Thread | None = None
        self._has_line = False

    def add(self, compilation: _Compilation) -> None:
        """Show `compilation` when it has run for a second."""
        with self._changed:
            self._active.append(compilation)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._show, name="metalloid-progress", daemon=True
                )
                self._thread.start()

    def remove(self, compilation: _Compilation) -> None:
        """End its line, and log how long its stages took."""
        with self._changed:
            if compilation in self._active:
                self._active.remove(compilation)
            self._erase()
            self._changed.notify()
        if compilation.is_shown:
            _logger.info("%s", compilation.summary())

    def _show(self) -> None:
        with self._changed:
            while self._active:
                first = self._active[0]
                left = first.started + PATIENCE - time.perf_counter()
                if left <= 0:
                    self._write(first, len(self._active) - 1)
                self._changed.wait(left if left > 0 else _INTERVAL)
            self._thread = None

    def _write(self, compilation: _Compilation, others: int) -> None:
        if not compilation.is_shown:
            compilation.is_shown = True
            _logger.info("%s", compilation.line())
        if settings.progress and sys.stderr is not None and (shows_lines or sys.stderr.isatty()):
            more = f", and {others} more" if others else ""
            sys.stderr.write(f"{_ERASE}metalloid: {compilation.line()}{more}")
            sys.stderr.flush()
            self._has_line = True

    def _erase(self) -> None:
        if self._has_line:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._has_line = False


#: Called after each compilation, with what was compiled and when it began and ended
#: (`time.perf_counter_ns`).
observers: list[Callable[[str, int, int], object]] = []
_progress = _Progress()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_progress.reset)


def is_compiling() -> bool:
    """Whether anything is being compiled."""
    return bool(_progress._active)


@contextmanager
def compiling(subject: str) -> Iterator[Callable[[str], None]]:
    """Tell that `subject` is being compiled, if the block takes longer than a second.

    Yields
    ------
    callable
        To be called with the name of each stage when it begins.
    """
    compilation = _Compilation(subject)
    started = time.perf_counter_ns()

    def begin(stage: str) -> None:
        compilation.stages.append((stage, time.perf_counter()))

    _progress.add(compilation)
    try:
        yield begin
    finally:
        _progress.remove(compilation)
        for observe in observers:
            observe(subject, started, time.perf_counter_ns())
