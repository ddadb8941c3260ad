"""Findings of the sanitizer: defects of kernels that a checked launch has met."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from metalloid.errors import SanitizerError
from metalloid.runtime.launch.program import Size

#: Kinds of findings.
RACE, UNINITIALISED = "race", "uninitialised"
INACTIVE_LANE, CONVERSION, NAN = "inactive-lane", "conversion", "nan"
MISALIGNED = "misaligned"
SHIFT, TEXEL = "shift", "texel"

#: What a finding of one thread is about, before the words about it.
_SUMMARIES = {
    UNINITIALISED: "read of uninitialised memory",
    INACTIVE_LANE: "simdgroup function that reads a lane which does not take part",
    CONVERSION: "conversion of a number that the integer type does not have",
    NAN: "NaN made of numbers",
    MISALIGNED: "access that is not aligned to its type",
    SHIFT: "shift beyond the width of the type",
    TEXEL: "access of a texel outside of the texture",
}

#: What a thread does that does not access memory.
_ACTS = {
    "shuffle": "is here", "conversion": "converted", "operation": "computed NaN of",
    "shift": "shifted by", "texel": "accessed a texel",
}  # fmt: skip


@dataclass(frozen=True)
class Participant:
    """An access of a finding.

    Attributes
    ----------
    access : str
        ``"read"``, ``"write"``, ``"atomic read"``, ``"atomic write"``, ``"atomic update"``,
        ``"shuffle"``, ``"conversion"``, ``"operation"``, ``"shift"`` or ``"texel"``.
    threadgroup, thread : tuple of int
        Position of the threadgroup in the grid and of the thread in its threadgroup.
    value : str
        The value that it read, wrote or converted, the operands of an operation or the amount of
        a shift; empty for a shuffle and a texel, and for functions of the standard library.
    file, line, column : str, int and int, or None
        Its position in the kernel's text.
    text : str
        The line.
    earlier_launch : str
        The kernel, if the access is of an earlier launch than the one that is reported.
    """

    access: str
    threadgroup: Size
    thread: Size
    value: str
    file: str | None
    line: int | None
    column: int | None
    text: str
    earlier_launch: str = ""

    def describe(self) -> str:
        """The access in words, and its line with a caret."""
        where = f"{self.file}:{self.line}: " if self.file else ""
        act = "read" if self.access.endswith("read") else "wrote"
        act = _ACTS.get(self.access, act)
        kind = f" ({self.access})" if " " in self.access else ""
        launch = f" in the launch of {self.earlier_launch!r} before" if self.earlier_launch else ""
        head = (
            f"  {where}thread {self.thread} of threadgroup {self.threadgroup}{launch} {act} "
            f"{self.value}{kind}".rstrip()
        )
        # In the expansion of a macro, columns are those of the expanded line.
        if self.column is None or not 0 < self.column <= len(self.text):
            return head
        return f"{head}\n      {self.text}\n      {' ' * (self.column - 1)}^"


@dataclass(frozen=True)
class Finding:
    """A defect of a kernel.

    Attributes
    ----------
    kind : str
        ``"race"``, ``"uninitialised"``, ``"inactive-lane"``, ``"conversion"``, ``"nan"``,
        ``"misaligned"``, ``"shift"`` or ``"texel"``.
    kernel : str
    memory : str
        The element: ``"element 3 of 'tile' (threadgroup memory)"``; the lane of a shuffle, the
        value and the type of a conversion; the operands of an operation.
    accesses : tuple of Participant
        The accesses, in the order of this run. A race has two, others one.
    count : int
        How often it was met: at this pair of lines.
    hint : str
        How to repair it.
    """

    kind: str
    kernel: str
    memory: str
    accesses: tuple[Participant, ...]
    count: int
    hint: str

    @property
    def summary(self) -> str:
        """The defect in one line, without positions."""
        if self.kind == RACE:
            first, second = (access.access for access in self.accesses)
            return f"data race ({first}, {second}) on {self.memory}"
        return f"{_SUMMARIES[self.kind]}: {self.memory}".removesuffix(": ")

    def describe(self) -> str:
        """The defect as text for people."""
        times = f" ({self.count} times)" if self.count > 1 else ""
        lines = [f"{self.summary}{times}", *(access.describe() for access in self.accesses)]
        return "\n".join((*lines, f"  {self.hint}"))

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON has it."""
        return {**asdict(self), "summary": self.summary}

    @property
    def key(self) -> object:
        """The same for findings at the same lines."""
        lines = sorted(str((access.file, access.line)) for access in self.accesses)
        return (self.kind, self.kernel, *lines)


def without_duplicates(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each pair of lines, in the order in which they were met.

    A read that races with the write for which it comes too early is not uninitialised memory, too.
    """
    merged: dict[object, Finding] = {}
    for finding in findings:
        known = merged.get(finding.key)
        if known is not None:
            finding = Finding(**{**vars(known), "count": known.count + finding.count})
        merged[finding.key] = finding
    racing = {
        (finding.kernel, access.file, access.line)
        for finding in merged.values() if finding.kind == RACE
        for access in finding.accesses if access.access.endswith("read")
    }  # fmt: skip
    return [
        finding for finding in merged.values()
        if finding.kind != UNINITIALISED
        or (finding.kernel, finding.accesses[0].file, finding.accesses[0].line) not in racing
    ]  # fmt: skip


class Collector:
    """The findings of the launches of a ``with`` block.

    Attributes
    ----------
    findings : list of Finding
    raises : bool
        Whether launches with findings raise `SanitizerError`.
    """

    def __init__(self, raises: bool) -> None:
        self.findings: list[Finding] = []
        self.raises = raises


_collectors: list[Collector] = []
_lock = threading.Lock()


@contextmanager
def collecting(raises: bool) -> Iterator[Collector]:
    """Collect the findings of launches meanwhile, those of other threads included."""
    collector = Collector(raises)
    with _lock:
        _collectors.append(collector)
    try:
        yield collector
    finally:
        with _lock:
            _collectors.remove(collector)


def report(kernel: str, findings: Sequence[Finding]) -> None:
    """Report the findings of a launch.

    Raises
    ------
    SanitizerError
        Unless a collector says otherwise.
    """
    if collect(findings) and findings:
        raise error_of(kernel, findings)


def collect(findings: Sequence[Finding]) -> bool:
    """Give findings to the collectors; returns whether to raise them."""
    with _lock:
        for collector in _collectors:
            collector.findings[:] = without_duplicates([*collector.findings, *findings])
        return all(collector.raises for collector in _collectors)


def error_of(kernel: str, findings: Sequence[Finding]) -> SanitizerError:
    """The exception of a launch with findings."""
    first = findings[0]
    last = first.accesses[-1]
    count = f"{len(findings)} defects" if len(findings) > 1 else "a defect"
    text = "\n".join(finding.describe() for finding in findings)
    return SanitizerError(
        f"[{kernel}] the sanitizer found {count}.\n{text}",
        kernel=kernel,
        reason=first.summary,
        threadgroup=last.threadgroup,
        thread=last.thread,
        file=last.file,
        line=last.line,
        findings=findings,
    )
