"""Profiles as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from metalloid.profiler.records import LaunchRecord
from metalloid.profiler.results import Results
from metalloid.profiler.text import number_text, printed, seconds_text, table


def profile_text(result: Results) -> str:
    """The table of a profile."""
    tables = [_kernels(result)]
    if result.evaluations:
        tables.append(_evaluations(result))
    if result.compilations:
        rows = [(c.subject, seconds_text(c.seconds)) for c in result.compilations]
        tables.append(table("compilations", ("what", "time"), rows))
    return printed(tables)


def groups_of(result: Results) -> dict[tuple[str, str, str, int], list[LaunchRecord]]:
    """Launches by kernel, device, file and line; those that took most time on the device first."""
    groups: dict[tuple[str, str, str, int], list[LaunchRecord]] = {}
    for launch in result.launches:
        key = launch.kernel, launch.device, launch.file, launch.line
        groups.setdefault(key, []).append(launch)
    order = sorted(groups, key=lambda k: -sum(launch.device_seconds for launch in groups[k]))
    return {key: groups[key] for key in order}


def _kernels(result: Results) -> Any:
    rows = []
    device_seconds = sum(launch.device_seconds for launch in result.launches)
    for (kernel, device, file, line), launches in groups_of(result).items():
        seconds = sum(launch.device_seconds for launch in launches)
        host = sum(launch.host_seconds for launch in launches)
        rows.append(
            (
                kernel, device, _location(file, line), str(len(launches)), _threads(launches),
                seconds_text(host), seconds_text(seconds),
                f"{seconds / device_seconds:.0%}" if device_seconds else "-",
                *_rates(result, launches, seconds),
            )
        )  # fmt: skip
    limits = "; ".join(
        f"{name}: {limit.bandwidth / 1e9:.1f} GB/s, {limit.arithmetic / 1e9:.0f} GFLOP/s"
        for name, limit in result.ceilings.items()
    )
    title = (
        f"{len(result.launches)} launches in {seconds_text(result.seconds)}, "
        f"{seconds_text(device_seconds)} on devices" + f" (limits of {limits})" * bool(limits)
    )
    heads = (
        "kernel", "device", "line", "launches", "threads", "host", "time", "of all", "bytes",
        "GB/s", "operations", "GFLOP/s", "roofline",
    )  # fmt: skip
    return table(title, heads, rows)


def _rates(result: Results, launches: Sequence[LaunchRecord], seconds: float) -> list[str]:
    """Bytes, GB/s, operations, GFLOP/s and the share of the roofline."""
    counts = [launch.counts for launch in launches if launch.counts is not None]
    if len(counts) < len(launches):
        return ["-"] * 5
    traffic = sum(count.traffic for count in counts)
    operations = sum(count.total.operations for count in counts)
    shares = [
        share * launch.device_seconds
        for launch in launches
        if (share := result.share(launch)) is not None
    ]
    return [
        number_text(traffic),
        f"{traffic / seconds / 1e9:.1f}" if seconds else "-",
        number_text(operations),
        f"{operations / seconds / 1e9:.1f}" if seconds else "-",
        f"{sum(shares) / seconds:.0%}" if seconds and len(shares) == len(launches) else "-",
    ]


def _evaluations(result: Results) -> Any:
    rows: dict[tuple[str, str, int], list[float]] = {}
    launched = [0] * len(result.evaluations)
    device = [0.0] * len(result.evaluations)
    for launch in result.launches:
        if launch.evaluation is not None:
            launched[launch.evaluation] += 1
            device[launch.evaluation] += launch.device_seconds
    for k, each in enumerate(result.evaluations):
        row = rows.setdefault((each.name, each.file, each.line), [0, 0, 0.0, 0.0])
        for column, value in enumerate((1, launched[k], each.host_seconds, device[k])):
            row[column] += value
    ordered = sorted(rows.items(), key=lambda item: -item[1][2])
    return table(
        "evaluations of arrays", ("what", "line", "times", "launches", "host", "device"),
        [
            (name, _location(file, line), f"{times:.0f}", f"{launches:.0f}", seconds_text(host),
             seconds_text(seconds))
            for (name, file, line), (times, launches, host, seconds) in ordered
        ],
    )  # fmt: skip


def _threads(launches: Sequence[LaunchRecord]) -> str:
    sizes = {launch.threads for launch in launches}
    if len(sizes) > 1:
        return f"{sum(math.prod(launch.threads) for launch in launches)} in all"
    (size,) = sizes
    while size[-1] == 1 and len(size) > 1:
        size = size[:-1]  # type: ignore[assignment]
    return "x".join(map(str, size))


def _location(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"
