"""Records of launches, evaluations and compilations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from metalloid.bench.ceilings import Ceilings
from metalloid.runtime.launch.program import Size


class SourceLine(NamedTuple):
    """A line of an MSL text.

    Attributes
    ----------
    file : str
        Empty for code that is of no line: loops over threads, and what the compiler has moved.
    line : int
    text : str
    """

    file: str
    line: int
    text: str


class LineCost(NamedTuple):
    """Work of all threads of a launch for a line, or for all lines.

    Attributes
    ----------
    instructions : int
        Of LLVM's IR of one thread, before vectorisation.
    operations : int
        On floating-point numbers; a multiply-add is two.
    loaded, stored : int
        Bytes of device and constant memory.
    shared : int
        Bytes of threadgroup memory, loaded or stored.
    """

    instructions: int = 0
    operations: int = 0
    loaded: int = 0
    stored: int = 0
    shared: int = 0

    def plus(self, other: LineCost) -> LineCost:
        """The sum of both."""
        return LineCost(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Counts:
    """Work of a launch, counted while its threads ran one by one.

    Attributes
    ----------
    total : LineCost
    traffic : int
        Bytes that must come from memory or go there at least: what is loaded and stored, but no
        more than the arguments have.
    lines : dict
        `LineCost` by `SourceLine`.
    """

    total: LineCost
    traffic: int
    lines: dict[SourceLine, LineCost] = field(default_factory=dict)

    def share(self, seconds: float, limits: Ceilings) -> float:
        """Part of what the machine could do: of its memory or arithmetic, whichever ends first."""
        least = max(self.traffic / limits.bandwidth, self.total.operations / limits.arithmetic)
        return least / seconds if seconds > 0 else 0.0


@dataclass(frozen=True)
class LaunchRecord:
    """A launch.

    Times are in seconds, and moments those since the profile began.

    Attributes
    ----------
    kernel, device : str
    file : str
        The user's, whose line made the launch.
    line : int
    threads, group : tuple of int
        Of the grid, and of a threadgroup where it was given.
    began, host_seconds : float
        When the call began, and how long it took.
    device_began, device_seconds : float
        The same on the device. That it began is measured where a launch ends with its call, and
        follows from the order of launches otherwise.
    evaluation : int or None
        Index of the evaluation that it is part of.
    thread : int
        Of the operating system.
    counts : Counts or None
        None if they are not known.
    failed : bool
    """

    kernel: str
    device: str
    file: str
    line: int
    threads: Size
    group: Size | None
    began: float
    host_seconds: float
    device_began: float
    device_seconds: float
    evaluation: int | None
    thread: int
    counts: Counts | None
    failed: bool = False


@dataclass(frozen=True)
class EvaluationRecord:
    """An evaluation of arrays, or a call of a compiled function.

    Attributes
    ----------
    name : str
    file : str
    line : int
    began, host_seconds : float
        The time is without that of counting.
    counting_seconds : float
    thread : int
    """

    name: str
    file: str
    line: int
    began: float
    host_seconds: float
    counting_seconds: float
    thread: int


@dataclass(frozen=True)
class CountingRecord:
    """A run of a launch by code that counts, before the launch itself.

    Attributes
    ----------
    kernel : str
    began, seconds : float
    thread : int
    """

    kernel: str
    began: float
    seconds: float
    thread: int


@dataclass(frozen=True)
class CompilationRecord:
    """A compilation.

    Attributes
    ----------
    subject : str
    began, seconds : float
    """

    subject: str
    began: float
    seconds: float
