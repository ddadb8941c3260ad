"""Functions of `metalloid.numpy` and of NumPy: ratios of times, in turns, best of many.

    python benchmarks/numpy_functions.py [--elements 1000000] [--processor-time] [function ...]

The last line is the geometric mean of the ratios; below 1, metalloid is faster. The time of the
processor, which is that of all threads, depends less on other processes.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy

import metalloid.numpy as own

#: Functions of a namespace and of one or two vectors of float64.
CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda np, x, y: x + y,
    "exp": lambda np, x, y: np.exp(x),
    "sum": lambda np, x, y: np.sum(x),
    "mean": lambda np, x, y: np.mean(x),
    "std": lambda np, x, y: np.std(x),
    "cumsum": lambda np, x, y: np.cumsum(x),
    "sort": lambda np, x, y: np.sort(x),
    "median": lambda np, x, y: np.median(x),
    "percentile": lambda np, x, y: np.percentile(x, [5, 95]),
    "nanmean": lambda np, x, y: np.nanmean(x),
    "diff": lambda np, x, y: np.diff(x),
    "gradient": lambda np, x, y: np.gradient(x),
    "trapezoid": lambda np, x, y: np.trapezoid(y, x),
    "unwrap": lambda np, x, y: np.unwrap(x),
    "interp": lambda np, x, y: np.interp(x, np.arange(100.0), np.arange(100.0)),
    "convolve": lambda np, x, y: np.convolve(x, y[:9], "same"),
    "histogram": lambda np, x, y: np.histogram(x, 50)[0],
    "searchsorted": lambda np, x, y: np.searchsorted(np.arange(100.0), x),
    "where": lambda np, x, y: np.where(x > y, x, y),
    "clip": lambda np, x, y: np.clip(x, 0.2, 0.8),
    "round": lambda np, x, y: np.round(x, 2),
    "polyval": lambda np, x, y: np.polyval([1.0, 2.0, 3.0, 4.0], x),
    "isclose": lambda np, x, y: np.isclose(x, y),
    "unique": lambda np, x, y: np.unique(x),
    "roll": lambda np, x, y: np.roll(x, 3),
    "pad": lambda np, x, y: np.pad(x, 3),
    "cov": lambda np, x, y: np.cov(x, y),
    "dot": lambda np, x, y: np.dot(x, y),
    "outer": lambda np, x, y: np.outer(x[:1000], y[:1000]),
    "fft": lambda np, x, y: np.fft.fft(x),
}


Clock = Callable[[], float]


def seconds(call: Callable[..., Any], np: Any, x: Any, y: Any, clock: Clock) -> float:
    """Time of a call and of the evaluation of its result."""
    start = clock()
    result = call(np, x, y)
    numpy.asarray(result)
    return clock() - start


def ratio(name: str, elements: int, repeat: int, clock: Clock) -> tuple[float, float]:
    """Best times of metalloid and of NumPy, called in turns."""
    rng = numpy.random.default_rng(0)
    x, y = rng.random(elements), rng.random(elements)
    own_x, own_y = own.asarray(x), own.asarray(y)
    best = [math.inf, math.inf]
    for k in range(repeat + 1):
        call = CALLS[name]
        times = (seconds(call, own, own_x, own_y, clock), seconds(call, numpy, x, y, clock))
        if k:  # the first call compiles
            best = [min(pair) for pair in zip(best, times, strict=True)]
    return best[0], best[1]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("functions", nargs="*", default=list(CALLS))
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--processor-time", action="store_true")
    options = parser.parse_args()
    clock = time.process_time if options.processor_time else time.perf_counter
    logarithms = []
    for name in options.functions:
        ours, theirs = ratio(name, options.elements, options.repeat, clock)
        logarithms.append(math.log(ours / theirs))
        print(f"{name:14s} {ours * 1e3:9.3f} ms {theirs * 1e3:9.3f} ms {ours / theirs:7.2f}")
    print(f"geometric mean {math.exp(sum(logarithms) / len(logarithms)):.2f}")


if __name__ == "__main__":
    main()
