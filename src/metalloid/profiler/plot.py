"""Pictures of profiles: the timeline, and the kernels under the roofline."""

from __future__ import annotations

import os
from typing import Any

from metalloid.bench.roofline import require_matplotlib
from metalloid.errors import MetalloidError
from metalloid.profiler.results import Results
from metalloid.profiler.table import groups_of

_MAX_KERNELS = 12  # in the timeline


def draw(result: Results, path: str | os.PathLike[str] | None) -> Any:
    """See `profile.plot`."""
    require_matplotlib("profile", "plot()")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    FigureCanvasAgg(figure)
    timeline, roofline = figure.subplots(2, 1)
    _draw_timeline(result, timeline)
    _draw_roofline(result, roofline)
    if path is not None:
        try:
            figure.savefig(path, dpi=120)
        except (ValueError, OSError) as error:
            raise MetalloidError(f"[profile] cannot write {os.fspath(path)!r}: {error}") from None
    return figure


def _draw_timeline(result: Results, axes: Any) -> None:
    names = list(dict.fromkeys(kernel for kernel, *_ in groups_of(result)))[:_MAX_KERNELS]
    for row, name in enumerate(names):
        launches = [each for each in result.launches if each.kernel == name]
        bars = [(1e3 * each.device_began, 1e3 * each.device_seconds) for each in launches]
        axes.broken_barh(bars, (row - 0.4, 0.8), color=f"C{row % 10}")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel="ms", title="time on the device")


def _draw_roofline(result: Results, axes: Any) -> None:
    intensities, points = [], []
    for (kernel, device, *_), launches in groups_of(result).items():
        counts = [launch.counts for launch in launches if launch.counts is not None]
        seconds = sum(launch.device_seconds for launch in launches)
        operations = sum(count.total.operations for count in counts)
        traffic = sum(count.traffic for count in counts)
        if len(counts) == len(launches) and operations and traffic and seconds:
            intensities.append(operations / traffic)
            points.append((kernel, device, operations / traffic, operations / seconds / 1e9))
    ridges = [limit.arithmetic / limit.bandwidth for limit in result.ceilings.values()]
    if ridges:
        left, right = min(intensities + ridges) / 4, max(intensities + ridges) * 4
        for (name, limit), ridge in zip(result.ceilings.items(), ridges, strict=True):
            corners = [left, ridge, right]
            axes.loglog(corners, [limit.at(x) / 1e9 for x in corners], label=name)
        axes.legend()
    for kernel, _, intensity, rate in points:
        axes.plot(intensity, rate, "o", color="black")
        axes.annotate(kernel, (intensity, rate), (5, -3), textcoords="offset points", fontsize=8)
    axes.set(xlabel="operations per byte", ylabel="GFLOP/s", title="roofline")
    axes.grid(which="major", alpha=0.3)
