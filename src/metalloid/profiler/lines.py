"""Profiles of kernels by line of their MSL text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from metalloid.errors import ArgumentError
from metalloid.profiler.records import LaunchRecord, LineCost, SourceLine
from metalloid.profiler.text import number_text, printed, seconds_text, table


class LineRow(NamedTuple):
    """The work of the launches of a kernel for a line.

    Attributes
    ----------
    file : str
        Empty for what belongs to no line: loops over threads, and code that LLVM has moved.
    line : int
    text : str
    cost : LineCost
    share : float
        Of the instructions.
    seconds : float
        The same share of the time on the device.
    """

    file: str
    line: int
    text: str
    cost: LineCost
    share: float
    seconds: float


class LineProfile:
    """The lines of a kernel, in the order of the text.

    Attributes
    ----------
    kernel : str
    launches : int
    total : LineCost
    seconds : float
        Of all launches, on the device.
    """

    def __init__(
        self, kernel: str, launches: int, lines: dict[SourceLine, LineCost], total: LineCost,
        seconds: float,
    ) -> None:  # fmt: skip
        self.kernel, self.launches, self.total, self.seconds = kernel, launches, total, seconds
        self._lines = lines

    def __iter__(self) -> Iterator[LineRow]:
        instructions = max(self.total.instructions, 1)
        for line in sorted(
            self._lines, key=lambda at: (not at.line, not at.file, at.file, at.line)
        ):
            cost = self._lines[line]
            share = cost.instructions / instructions
            yield LineRow(*line, cost, share, share * self.seconds)

    def __str__(self) -> str:
        rows = [
            (
                f"{row.line}" if row.line else "", number_text(row.cost.instructions),
                f"{row.share:.1%}", seconds_text(row.seconds),
                *map(number_text, row.cost[1:]),
                row.text if row.file else "(code of no line)",
            )
            for row in self
        ]  # fmt: skip
        title = (
            f"{self.kernel}: {self.launches} launches, {number_text(self.total.instructions)} "
            f"instructions, {seconds_text(self.seconds)}"
        )
        heads = (
            "line", "instructions", "share", "time", "operations", "loaded", "stored",
            "threadgroup", "text",
        )  # fmt: skip
        return printed([table(title, heads, rows)])


def line_profile(launches: Sequence[LaunchRecord], kernel: str | None) -> LineProfile:
    """See `profile.lines`."""
    counted = [launch for launch in launches if launch.counts is not None]
    seconds: dict[str, float] = {}
    for launch in counted:
        seconds[launch.kernel] = seconds.get(launch.kernel, 0.0) + launch.device_seconds
    if kernel is None and seconds:
        kernel = max(seconds, key=seconds.__getitem__)
    if kernel not in seconds:
        known = ", ".join(seconds) or "none"
        raise ArgumentError(f"[profile] no counted launch of {kernel!r}; those counted: {known}.")
    lines: dict[SourceLine, LineCost] = {}
    total, number = LineCost(), 0
    for launch in counted:
        if launch.kernel == kernel and launch.counts is not None:
            number += 1
            total = total.plus(launch.counts.total)
            for at, cost in launch.counts.lines.items():
                lines[at] = lines.get(at, LineCost()).plus(cost)
    return LineProfile(kernel, number, lines, total, seconds[kernel])
