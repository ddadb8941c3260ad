"""Checked launches: they run instrumented code, and their reports become findings.

The same code runs launches in the order of a schedule, with checks or without.
"""

from __future__ import annotations

import ctypes
import re
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.fast_checks import WRITTEN, FastChecks, fresh_memory
from metalloid.backends.cpu.runtime.program import CpuProgram
from metalloid.backends.cpu.runtime.sanitizer_reports import (
    ALIGNMENT_HINT,
    ATOMIC,
    BUFFER_HINT,
    DEVICE,
    HINTS,
    READ,
    VARIABLE_HINT,
    WRITE,
    Access,
    Report,
    race_hint,
)
from metalloid.errors import LaunchError
from metalloid.msl.signature import BoundParameter
from metalloid.runtime.launch.event import Event, FinishedEvent
from metalloid.runtime.launch.findings import (
    CONVERSION,
    INACTIVE_LANE,
    MISALIGNED,
    NAN,
    RACE,
    SHIFT,
    TEXEL,
    UNINITIALISED,
    Finding,
    Participant,
    collect,
    error_of,
    report,
    without_duplicates,
)
from metalloid.runtime.launch.launches import Arguments, note_first_writes
from metalloid.runtime.launch.program import Size
from metalloid.runtime.launch.schedules import count_scheduled_launch
from metalloid.runtime.launch.unordered import UnorderedLaunches, current
from metalloid.settings import settings

# Kinds of reports (sanitizer.h, mtl_report.kind).
_VARIABLE, _NAN, _MISALIGNED, _SHIFT, _TEXEL = 16, 32, 64, 128, 256
_MEMORY = struct.Struct("=3Q")
_KINDS = {
    1: RACE, 2: UNINITIALISED, 4: INACTIVE_LANE, 8: CONVERSION, _VARIABLE: UNINITIALISED, _NAN: NAN,
    _MISALIGNED: MISALIGNED, _SHIFT: SHIFT, _TEXEL: TEXEL,
}  # fmt: skip
_ACTS = {4: "shuffle", 8: "conversion", _NAN: "operation", _SHIFT: "shift", _TEXEL: "texel"}
_FLOATS = {"half": np.float16, "float": np.float32, "double": np.float64}
_TYPE = re.compile(r"(?:<(\d+) x )?(\w+)>?$")


class _Launch(NamedTuple):
    """A launch, and the number of threadgroups of those that it is not ordered with, before it."""

    program: CheckedProgram
    arguments: Arguments
    grid: Size
    group: Size
    earlier: int = 0


#: The sanitizer's runtime checks one launch at a time, and remembers the accesses of one group of
#: unordered launches.
_lock = threading.Lock()
_remembered: UnorderedLaunches | None = None


def _forget() -> None:
    global _remembered
    with _lock:
        _remembered = None
        native_library.runtime().sanitizer_forget()


def _with_unordered(launch: _Launch, others: UnorderedLaunches | None) -> list[_Launch]:
    """The launches before one that it is not ordered with, and the launch itself."""
    global _remembered
    launches = [launch]
    if others is not None:
        if _remembered is not others:
            others.checked.clear()
        others.forget = _forget
        earlier = sum(_count(_groups(each)) for each in others.checked)
        others.checked.append(launch._replace(earlier=earlier))
        launches = [*others.checked]
    _remembered = others
    return launches


class CheckedProgram(CpuProgram):
    """A kernel with instrumented code, whose launches run at once and on one thread.

    Attributes
    ----------
    checks_all : bool
        Whether each launch is checked, whatever it and the settings ask for.
    fast_checks : FastChecks or None
        The vector form.
    """

    is_sanitized = True
    checks_all = False
    fast_checks: FastChecks | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.flags |= native_library.CHECKED
        self._usual_flags = self.flags

    def run(self, arguments: Arguments, grid: Size, group: Size) -> Event:
        """Run a launch.

        Raises
        ------
        SanitizerError
            If it has defects.
        """
        launch = _Launch(self, arguments, grid, group)
        checks = self.checks_all or arguments.check or settings.check
        seed = settings.schedule
        runtime, outcome = native_library.runtime(), native_library.Outcome()
        groups = _count(_groups(launch))
        fast, others = self.fast_checks, current() if checks and seed is None else None
        requested = _NAN * settings.check_nan | (_SHIFT | _TEXEL) * settings.check_suspicious
        if not checks or seed is not None or settings.check_nan or others is not None:
            fast = None
        is_tried = fast is not None and fast.is_profitable(grid)
        with _lock:
            if fast is not None and is_tried:
                seconds = fast.run(arguments, grid, group)
                if seconds is not None:
                    return FinishedEvent(seconds)
            launches = _with_unordered(launch, others)
            earlier = launches[-1].earlier
            if earlier + groups >= 2**32 - 1:
                raise LaunchError(
                    f"[{self.signature.name}] a checked launch has at most {2**32 - 2} "
                    f"threadgroups, got {earlier + groups}. Use a smaller grid."
                )
            if seed is not None:
                self.flags |= native_library.FIBRES | native_library.SCHEDULED
                runtime.schedule_begin(seed, groups)
                count_scheduled_launch()
            memory = _memory_of(arguments)
            fresh = b"".join(_MEMORY.pack(*each) for each in fresh_memory(arguments))
            runtime.sanitizer_begin(
                groups, checks, requested, memory, len(memory) // _MEMORY.size,
                fresh, len(fresh) // _MEMORY.size, earlier,
            )  # fmt: skip
            try:
                status = runtime.run(self.job(arguments, grid, group), outcome)
            finally:
                note_first_writes(arguments)
                self.flags = self._usual_flags
                reports = ctypes.POINTER(Report)()
                count = runtime.sanitizer_end(others is not None, ctypes.byref(reports))
            stored = count if count >= 0 else -count - 1
            findings = without_duplicates(
                self._finding(reports[n], launches) for n in range(stored)
            )
        if status != 0:
            error = self.failure(outcome, grid, group)
            if findings:
                collect(findings)
                error.add_note(f"Before that, {error_of(self.signature.name, findings)}")
            raise error
        if count < 0 and not findings:
            raise LaunchError(
                f"[{self.signature.name}] there is no memory for the shadow memory of a checked "
                "launch. Use smaller arrays."
            )
        if fast is not None:
            fast.count_exact(outcome.seconds, is_false_alarm=is_tried and not findings)
        report(self.signature.name, findings)
        return FinishedEvent(outcome.seconds)

    # -- from reports to findings

    def _finding(self, report: Report, launches: Sequence[_Launch]) -> Finding:
        kind, launch = _KINDS[report.kind], launches[-1]
        accesses = tuple(self._participants(report, launches))
        if kind == INACTIVE_LANE:
            about = f"lane {report.address}"
        elif kind in (CONVERSION, NAN):
            about = accesses[0].value
        elif kind == SHIFT:
            about = f"a number of {report.offset} bits by {accesses[0].value}"
        elif kind == TEXEL:
            about = ""
        elif report.kind == _VARIABLE:
            about = _variable(accesses[0])
        else:
            about = self._memory(report, launch)
        if kind == RACE:
            hint = race_hint(report, accesses)
        elif kind == MISALIGNED:
            hint = ALIGNMENT_HINT.format(self._alignment(report))
        elif kind == UNINITIALISED and report.kind != _VARIABLE and report.space == DEVICE:
            hint = BUFFER_HINT
        else:
            hint = VARIABLE_HINT if report.kind == _VARIABLE else HINTS[kind]
        return Finding(kind, self.signature.name, about, accesses, report.count, hint)

    def _alignment(self, report: Report) -> int:
        alignment: int = self._site(report.accesses[1])["alignment"]
        return alignment

    def _parameter_at(self, address: int, launch: _Launch) -> BoundParameter | None:
        """The parameter whose memory an address is in."""
        for parameter in self.signature.arguments:
            word = launch.arguments.words[parameter.position]
            extent = launch.arguments.extents.get(parameter.position, 0)
            if word and word <= address < word + extent:
                return parameter
        return None

    def _participants(self, report: Report, launches: Sequence[_Launch]) -> Iterator[Participant]:
        for access, value in zip(report.accesses, report.values, strict=True):
            if not access.group:
                continue
            launch = next(each for each in reversed(launches) if access.group > each.earlier)
            site = launch.program._site(access)
            file, line, column, text = site["position"] or (None, None, None, "")
            threadgroup = _position(access.group - launch.earlier - 1, _groups(launch))
            size = _size_of(threadgroup, launch)
            data = bytes(value)[: report.bytes]
            yield Participant(
                _ACTS.get(report.kind) or _named(site["kind"]), threadgroup,
                _position(access.thread, size),
                _value(data, self._site(report.accesses[1])["type"]), file, line, column, text,
                "" if launch is launches[-1] else launch.program.signature.name,
            )  # fmt: skip

    def _site(self, access: Access) -> dict[str, Any]:
        site: dict[str, Any] = self._first.accesses.sites[access.site]
        return site

    def _memory(self, report: Report, launch: _Launch) -> str:
        """The memory of a report in words."""
        size = self._alignment(report) if report.kind == _MISALIGNED else 0  # so: its bytes
        if report.space == DEVICE:
            parameter = self._parameter_at(report.address, launch)
            if parameter is not None:
                offset = report.address - launch.arguments.words[parameter.position]
                return _element(
                    parameter.name, offset, size or parameter.layout.bytes, "device memory"
                )
            at = f"{report.address:#x}"
            return f"device memory at {at} (a texture, or memory that an argument points to)"
        where = "threadgroup memory"
        for access in reversed(report.accesses):
            site = self._site(access)
            if site["variable"]:
                size = size or _type_bytes(site["type"]) or report.bytes
                return _element(site["variable"], report.offset, size, where)
        starts = sorted((launch.arguments.words[p.position], p) for p in self.signature.threadgroup)
        for start, parameter in reversed(starts):
            if start <= report.offset:
                offset = report.offset - start
                return _element(parameter.name, offset, size or parameter.layout.bytes, where)
        return f"byte {report.offset} of a variable ({where})"


def _memory_of(arguments: Arguments) -> bytes:
    """The memory of a launch's arguments, as the runtime takes it."""
    words = arguments.words
    known = arguments.extents.items()
    return b"".join(_MEMORY.pack(words[position], nbytes, WRITTEN) for position, nbytes in known)


def _variable(read: Participant) -> str:
    """The variable that a thread reads, by its name in the text if the text is known."""
    name = re.match(r"\w+", read.text[read.column - 1 :]) if read.column else None
    return f"variable {name[0]!r}" if name else "a variable"


def _element(name: str, offset: int, size: int, where: str) -> str:
    if size and offset % size == 0:
        return f"element {offset // size} of {name!r} ({where})"
    return f"byte {offset} of {name!r} ({where})"


def _count(size: Size) -> int:
    return size[0] * size[1] * size[2]


def _groups(launch: _Launch) -> Size:
    x, y, z = (-(-n // g) for n, g in zip(launch.grid, launch.group, strict=True))
    return (x, y, z)


def _position(index: int, size: Size) -> Size:
    return (index % size[0], index // size[0] % size[1], index // (size[0] * size[1]))


def _size_of(threadgroup: Size, launch: _Launch) -> Size:
    """The threads of a threadgroup: fewer at the edges of the grid."""
    x, y, z = (
        min(full, count - at * full)
        for at, full, count in zip(threadgroup, launch.group, launch.grid, strict=True)
    )
    return (x, y, z)


def _named(kind: int) -> str:
    act = {READ: "read", WRITE: "write"}.get(kind & (READ | WRITE), "update")
    return f"atomic {act}" if kind & ATOMIC else act


def _type_bytes(type_: str) -> int:
    match = _TYPE.match(type_)
    if match is None:
        return 0
    lanes, scalar = int(match[1] or 1), match[2]
    if scalar in _FLOATS:
        return lanes * np.dtype(_FLOATS[scalar]).itemsize
    if scalar == "bfloat":
        return 2 * lanes
    return lanes * -(-int(scalar[1:]) // 8) if re.fullmatch(r"i\d+", scalar) else 0


def _value(data: bytes, type_: str) -> str:
    """Bytes as the value of a type of the IR."""
    match, size = _TYPE.match(type_), _type_bytes(type_)
    if match is None or not size or len(data) < size:
        return data.hex(" ")
    lanes, scalar = int(match[1] or 1), match[2]
    data = data[:size]
    if scalar == "bfloat":
        words = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        values = [f"{value:.3g}" for value in words.view(np.float32)]
    elif scalar in _FLOATS:
        values = [str(value) for value in np.frombuffer(data, _FLOATS[scalar])]
    else:
        step = size // lanes
        values = [
            str(int.from_bytes(data[at : at + step], "little", signed=True))
            for at in range(0, size, step)
        ]
    return values[0] if lanes == 1 else f"({', '.join(values)})"
