"""Rooflines: performance of kernels relative to the limits of the machine, as text and picture."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.bench.cases import cases, kernels
from metalloid.bench.ceilings import Ceilings
from metalloid.bench.measure import medians
from metalloid.errors import MetalloidError


@dataclass(frozen=True)
class Point:
    """A kernel that was measured.

    Attributes
    ----------
    name : str
    seconds : float
        Median of its launches.
    operations, traffic : float
        Floating-point operations, 0 if they are not counted, and bytes of the algorithm.
    engine : str
        What ran it.
    """

    name: str
    seconds: float
    operations: float
    traffic: float
    engine: str

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.traffic

    def share(self, limits: Ceilings) -> float:
        """Part of what the machine could do: of its arithmetic or memory, whichever ends first.

        More than 1 if its data stays in the caches.
        """
        if self.operations:
            return self.operations / self.seconds / limits.at(self.intensity)
        return self.traffic / self.seconds / limits.bandwidth


def measure(names: Sequence[str] = (), tiny: bool = False, repeat: int = 9) -> list[Point]:
    """Run the cases of these names, or all of them."""
    lib = kernels(math_mode="relaxed")
    points = []
    for case in cases(tiny):
        if names and case.name not in names:
            continue
        (seconds,) = medians([case.launcher(lib)], repeat)
        engine = lib[case.name].engine
        points.append(Point(case.name, seconds, case.operations, case.traffic, engine))
    return points


def draw(
    points: Sequence[Point], limits: Ceilings, title: str, path: str | os.PathLike[str]
) -> None:
    """Write the roofline picture to a file.

    Raises
    ------
    MetalloidError
        If matplotlib is not installed, or cannot write files of this kind.
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counted = [point for point in points if point.operations]
    ridge = limits.arithmetic / limits.bandwidth
    left = min([ridge, *(point.intensity for point in counted)]) / 4
    right = max([ridge, *(point.intensity for point in counted)]) * 4
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    corners = [left, ridge, right]
    axes.loglog(corners, [limits.at(x) / 1e9 for x in corners], color="black")
    axes.annotate(
        f"{limits.bandwidth / 1e9:.0f} GB/s", (left, limits.at(left) / 1e9), (4, 12),
        textcoords="offset points",
    )  # fmt: skip
    axes.annotate(
        f"{limits.arithmetic / 1e9:.0f} GFLOP/s", (right, limits.arithmetic / 1e9), (-4, 6),
        textcoords="offset points", ha="right",
    )  # fmt: skip
    above: dict[float, float] = {}
    for point in sorted(counted, key=lambda p: p.seconds / p.operations):
        rate = point.operations / point.seconds / 1e9
        axes.plot(point.intensity, rate, "o")
        # Not over the name of one right above it.
        shift = (5, -10 if above.get(point.intensity, math.inf) < 1.2 * rate else -3)
        above[point.intensity] = rate
        axes.annotate(
            point.name,
            (point.intensity, rate),
            shift,
            textcoords="offset points",
            fontsize=8,
        )
    axes.set(xlabel="operations per byte", ylabel="GFLOP/s", title=title)
    axes.grid(which="major", alpha=0.3)
    try:
        figure.savefig(path, dpi=120)
    except (ValueError, OSError) as error:
        raise MetalloidError(f"[bench] cannot write {os.fspath(path)!r}: {error}") from None


def require_matplotlib(where: str = "bench", what: str = "--plot") -> None:
    """Say it at once, not after a minute of measuring, if there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MetalloidError(
            f"[{where}] {what} needs matplotlib, which is not installed. "
            "Run: pip install 'metalloid[plot]'"
        ) from None
