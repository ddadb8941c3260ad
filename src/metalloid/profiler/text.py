"""Tables, durations and counts as text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

_WIDTH = 1000  # of a terminal that cuts nothing off


def seconds_text(seconds: float) -> str:
    """A duration with a unit: ``"1.5 ms"``."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} us"


def number_text(value: float) -> str:
    """A count, in thousands, millions ..."""
    if value >= 10_000:
        for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size:
                return f"{value / size:.3g} {name}"
    return f"{value:.0f}"


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """A table for `printed`; columns of texts are aligned to the left."""
    from rich.table import Table
    from rich.text import Text

    result = Table(title=Text(title), title_justify="left", box=None)
    left = ("kernel", "device", "line", "what", "text")
    for head in heads:
        result.add_column(head, justify="left" if head in left else "right", no_wrap=True)
    for row in rows:
        result.add_row(*map(Text, row))
    return result


def printed(tables: Sequence[Any]) -> str:
    """Tables as text."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(file=file, width=_WIDTH, color_system=None, force_jupyter=False)
    for table in tables:
        console.print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
