"""The two limits of a machine: bytes per second of its memory, operations per second."""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass

import numpy as np

from metalloid.bench.cases import Arrays
from metalloid.bench.measure import in_turns
from metalloid.kernels.library import library

_CHAINS, _ITERATIONS = 8, 1000  # in multiply_adds


@dataclass(frozen=True)
class Ceilings:
    """Upper bounds for every kernel.

    Attributes
    ----------
    bandwidth : float
        Bytes that memory delivers or takes, per second.
    arithmetic : float
        Floating-point operations per second; a multiply-add is two.

    Examples
    --------
    >>> Ceilings(bandwidth=1e10, arithmetic=1e11).at(intensity=2)
    20000000000.0
    """

    bandwidth: float
    arithmetic: float

    def at(self, intensity: float) -> float:
        """Operations per second that are possible with so many operations per byte."""
        return min(self.arithmetic, intensity * self.bandwidth)

    def or_higher(self, other: Ceilings) -> Ceilings:
        """The higher of each of two measurements' limits.

        Examples
        --------
        >>> Ceilings(1e10, 1e11).or_higher(Ceilings(2e10, 5e10))
        Ceilings(bandwidth=20000000000.0, arithmetic=100000000000.0)
        """
        return Ceilings(
            max(self.bandwidth, other.bandwidth), max(self.arithmetic, other.arithmetic)
        )


def ceilings(tiny: bool = False, repeat: int = 15) -> Ceilings:
    """Measure the limits of the default device: the best of some runs, as they are limits."""
    lib = library(
        importlib.resources.files("metalloid.bench").joinpath("ceilings.metal").read_text("utf-8")
    )
    # Of four floats: 16 MiB, and as much for the copy; as large as the largest cases, so that both
    # lie where the next cache, or memory, serves them.
    elements = 1 << (12 if tiny else 20)
    array = Arrays()
    x, y = array(elements, 4), array(elements, 4)
    threads = 1 << (10 if tiny else 14)
    sums = np.empty(threads, np.float32)
    runs = in_turns(
        [
            lambda: lib.copy(y, x, threads=elements),
            lambda: lib.multiply_adds(sums, 0.5, _ITERATIONS, threads=threads),
        ],
        repeat,
    )
    copying, computing = map(min, runs)
    return Ceilings(
        (x.nbytes + y.nbytes) / copying, 2.0 * _CHAINS * _ITERATIONS * threads / computing
    )
