"""Sorts, searches and counts: kernels, what metalloid chooses, and NumPy; CPU time of one thread.

    python benchmarks/sorting.py [--only sort top_k ...] [--types float32 ...] [--sizes 10 16 22]

Nanoseconds per element, at 2^10, 2^16 and 2^22 elements: with kernels, with the choice of
`metalloid.arrays.lowering.sort_dispatch`, and with NumPy. Stable orders are compared with
stable ones; NumPy's `top_k` is its partition, which leaves open which of equal ones it takes.
Results are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("METALLOID_NUM_THREADS", "1")

import ml_dtypes
import numpy as np

import metalloid as mtl

TYPES = ("float32", "int32", "int64", "float16", "bfloat16", "uint8")
K, BINS = 16, 100
_SECONDS = 0.3  # for each number


def elements(dtype: str, count: int) -> np.ndarray:
    """Random numbers: floats that are normal, integers that fill their type."""
    rng = np.random.default_rng(count)
    if dtype in ("float32", "float16", "bfloat16"):
        kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        return rng.standard_normal(count).astype(kind)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, count, dtype, endpoint=True)


def _top_k(x: np.ndarray) -> np.ndarray:
    indices = np.argpartition(x, -K)[-K:]
    return np.sort(x[indices])[::-1]


#: By name: what metalloid does, and what NumPy does, with elements and others of the same type.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sort": (lambda x, y: mtl.sort(x), lambda x, y: np.sort(x)),
    "argsort": (lambda x, y: mtl.argsort(x), lambda x, y: np.argsort(x, stable=True)),
    "top_k": (lambda x, y: mtl.top_k(x, K)[0], lambda x, y: _top_k(x)),
    "searchsorted": (mtl.searchsorted, np.searchsorted),
    "isin": (lambda x, y: mtl.isin(y, x), lambda x, y: np.isin(y, x)),
    "unique_counts": (
        lambda x, y: mtl.unique_counts(x).counts,
        lambda x, y: np.unique_counts(x).counts,
    ),
    "histogram": (lambda x, y: mtl.histogram(x, BINS)[0], lambda x, y: np.histogram(x, BINS)[0]),
    "bincount": (lambda x, y: mtl.bincount(x), lambda x, y: np.bincount(x)),
}  # fmt: skip


def cpu_time(run: Callable[[], Any]) -> float:
    """The least of some runs, in nanoseconds."""
    best, end = float("inf"), time.process_time() + _SECONDS
    while time.process_time() < end:
        start = time.process_time_ns()
        run()
        best = min(best, time.process_time_ns() - start)
    return best


def cell(name: str, dtype: str, count: int) -> str:
    """The three numbers; "" if NumPy cannot do it."""
    ours, numpys = FUNCTIONS[name]
    x, y = elements(dtype, count), elements(dtype, count)[::-1].copy()
    if name == "searchsorted":
        x = np.sort(x)
        y = np.random.default_rng(1).permutation(y)
    if name == "bincount":
        if np.dtype(dtype).kind not in "iu":
            return ""
        x = (x % 100).astype(dtype)
    own = mtl.asarray(x), mtl.asarray(y)

    def run() -> Any:
        result = ours(*own)
        mtl.eval(result)
        return result

    times = []
    for how in ("kernels", "auto"):
        with mtl.config.scope(sorting=how):
            if name != "histogram":  # of integers it is in float32, of halves NumPy's is wider
                np.testing.assert_array_equal(np.asarray(run()), numpys(x, y))
            times.append(cpu_time(run))
    times.append(cpu_time(lambda: numpys(x, y)))
    return "   " + "".join(f"{took / count:7.1f}" for took in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(FUNCTIONS), choices=FUNCTIONS)
    parser.add_argument("--types", nargs="+", default=TYPES)
    parser.add_argument("--sizes", nargs="+", type=int, default=(10, 16, 22), help="powers of 2")
    options = parser.parse_args()
    print("ns for each element: kernels, metalloid's choice, NumPy")
    print(f"{'':24}" + "".join(f"{f'2^{size}':^24}" for size in options.sizes))
    for name in options.only:
        for dtype in options.types:
            cells = [cell(name, dtype, 2**size) for size in options.sizes]
            if all(cells):
                print(f"{name:14}{dtype:10}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
