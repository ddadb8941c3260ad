"""Profiles in Chrome's trace-event format, which ui.perfetto.dev opens.

The format is described in Google's *Trace Event Format*: complete events (``"X"``) with times in
microseconds, on tracks of processes and threads that metadata events (``"M"``) name.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from metalloid.profiler.records import LaunchRecord
from metalloid.profiler.results import Results

_HOST, _FIRST_DEVICE = 1, 2  # processes
_COMPILER = 0  # a track of the host


def write(result: Results, path: str | os.PathLike[str]) -> None:
    """See `profile.to_perfetto`."""
    trace = {"traceEvents": events_of(result), "displayTimeUnit": "ns"}
    Path(path).write_text(json.dumps(trace), "utf-8")


def events_of(result: Results) -> list[dict[str, Any]]:
    """The events of a profile."""
    threads: dict[int, int] = {}
    devices: dict[str, int] = {}
    events = []

    def thread_of(ident: int) -> int:
        return threads.setdefault(ident, len(threads) + 1)

    for each in result.evaluations:
        events.append(
            _complete(
                each.name, "evaluation", _HOST, thread_of(each.thread), each.began,
                each.host_seconds + each.counting_seconds, {"line": f"{each.file}:{each.line}"},
            )
        )  # fmt: skip
    for counted in result.counting:
        events.append(
            _complete(
                f"counting {counted.kernel}", "counting", _HOST, thread_of(counted.thread),
                counted.began, counted.seconds, {},
            )
        )  # fmt: skip
    for compilation in result.compilations:
        events.append(
            _complete(
                compilation.subject,
                "compilation",
                _HOST,
                _COMPILER,
                compilation.began,
                compilation.seconds,
                {},
            )
        )
    for launch in result.launches:
        process = devices.setdefault(launch.device, len(devices) + _FIRST_DEVICE)
        arguments = _arguments(result, launch)
        events.append(
            _complete(
                launch.kernel, "launch", _HOST, thread_of(launch.thread), launch.began,
                launch.host_seconds, arguments,
            )
        )  # fmt: skip
        events.append(
            _complete(
                launch.kernel, "kernel", process, 1, launch.device_began, launch.device_seconds,
                arguments,
            )
        )  # fmt: skip
    names = [_name("process_name", _HOST, 0, "host")]
    if result.compilations:
        names.append(_name("thread_name", _HOST, _COMPILER, "compiler"))
    names += [_name("thread_name", _HOST, k, f"thread {k}") for k in threads.values()]
    for device, process in devices.items():
        names.append(_name("process_name", process, 0, device))
        names.append(_name("thread_name", process, 1, "launches"))
    return names + sorted(events, key=lambda event: (event["ts"], -event["dur"]))


def _arguments(result: Results, launch: LaunchRecord) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "line": f"{launch.file}:{launch.line}",
        "threads": list(launch.threads),
    }
    if launch.counts is not None:
        total = launch.counts.total
        arguments |= {
            "bytes": launch.counts.traffic,
            "operations": total.operations,
            "instructions": total.instructions,
        }
        share = result.share(launch)
        if share is not None:
            arguments["roofline"] = round(share, 4)
    return arguments


def _complete(
    name: str, category: str, process: int, thread: int, began: float, seconds: float,
    arguments: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    return {
        "name": name, "cat": category, "ph": "X", "ts": began * 1e6, "dur": seconds * 1e6,
        "pid": process, "tid": thread, "args": arguments,
    }  # fmt: skip


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
