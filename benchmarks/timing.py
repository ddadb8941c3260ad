"""Common parts of the benchmark scripts: best-of timings and a plain table."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def best(action: Callable[[], object], repeat: int = 15, number: int = 1,
         clock: Callable[[], float] = time.perf_counter) -> float:  # fmt: skip
    """Seconds per call: the least of `repeat` measurements of `number` calls each."""
    least = float("inf")
    for _ in range(repeat):
        started = clock()
        for _ in range(number):
            action()
        least = min(least, (clock() - started) / number)
    return least


def alternating(actions: Sequence[Callable[[], object]], repeat: int = 15) -> list[float]:
    """`best` of several actions, measured in turns so that noise meets all of them."""
    least = [float("inf")] * len(actions)
    for _ in range(repeat):
        for index, action in enumerate(actions):
            least[index] = min(least[index], best(action, repeat=1))
    return least


def show(seconds: float) -> str:
    """A time with a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows in columns."""
    text = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in text) for column in range(len(head))]
    print(f"\n{title}")
    for number, row in enumerate(text):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
        if number == 0:
            print("  ".join("-" * width for width in widths))


def installed(name: str) -> Any:
    """A module, if there is one."""
    path = list(sys.path)
    # numba would take our coverage.py for the package of that name.
    sys.path[:] = [folder for folder in path if not Path(folder, "mlx_tree").is_dir()]
    ours = sys.modules.get("coverage")
    if ours is not None and not hasattr(ours, "__path__"):
        del sys.modules["coverage"]
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
    finally:
        sys.path[:] = path
