"""A spinner for what takes longer than a second, and nothing for what does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from metalloid.settings import settings

_PATIENCE = 1.0  # seconds


@contextmanager
def progress_after_a_second(message: str) -> Iterator[None]:
    """Show `message` with a spinner on standard error while the block runs, if that takes long."""
    from rich.console import Console

    console = Console(stderr=True)
    status = console.status(f"{message} ...")
    timer = threading.Timer(_PATIENCE, status.start)
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        with settings.scope(progress=False):  # one line is enough
            yield
    finally:
        timer.cancel()
        status.stop()
