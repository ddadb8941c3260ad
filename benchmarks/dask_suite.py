"""Dask's tests of CuPy, and xarray's of wrapped arrays, with `metalloid.numpy` as `cupy`.

    pip install pytest 'metalloid[dask]' xarray pint sparse
    python benchmarks/dask_suite.py [--only creation] [--xarray]

Runs the tests of the installed packages and prints a table by file, and the error of each failure.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
from typing import Any

import numpy as np
import pytest

import metalloid.dask  # registers arrays as chunks  # noqa: F401
import metalloid.numpy as own

_FILES = (
    "core", "creation", "gufunc", "linalg", "overlap", "percentile", "random", "reductions",
    "routines", "slicing", "sparse",
)  # fmt: skip


class Outcomes:
    """A plug-in of pytest that records outcomes by file, and errors."""

    def __init__(self) -> None:
        self.counts: dict[str, collections.Counter[str]] = collections.defaultdict(
            collections.Counter
        )
        self.errors: list[str] = []
        self.file = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record a phase of a test."""
        if report.when != "call" and report.passed:
            return
        file = self.file or re.sub(r".*test_(cupy_)?|\.py", "", report.location[0])
        outcome = "expected failure" if hasattr(report, "wasxfail") else report.outcome
        self.counts[file][outcome] += 1
        if outcome == "failed":
            error = str(report.longrepr).strip().splitlines()[-1]
            self.errors.append(f"{report.nodeid.split('::', 1)[1]}: {error}")
            print(f"\n* {file}: {self.errors[-1]}", flush=True)  # a long run may be stopped


def print_table(outcomes: Outcomes) -> None:
    """Print numbers by file, and errors."""
    kinds = "passed", "failed", "skipped", "expected failure"
    print(f"| file | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for file, counter in sorted(outcomes.counts.items()):
        print(f"| {file} | {' | '.join(str(counter[kind]) for kind in kinds)} |")
    for error in outcomes.errors:
        print("*", error)


def main() -> None:
    """Run the tests and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=_FILES)
    parser.add_argument("--xarray", action="store_true")
    options = parser.parse_args()
    own.ndarray.get = lambda array: np.asarray(array)  # type: ignore[attr-defined]  # CuPy's
    own.asnumpy = np.asarray  # type: ignore[attr-defined]
    own.random.XORWOW = own.random.PCG64  # type: ignore[attr-defined]  # CuPy's default
    sys.modules["cupy"] = own
    for name in ("linalg", "random", "fft"):
        sys.modules[f"cupy.{name}"] = getattr(own, name)
    modules = [f"dask.array.tests.test_cupy_{name}" for name in options.only]
    if options.xarray:
        modules = ["xarray.tests.test_duck_array_wrapping"]
    outcomes = Outcomes()
    quiet = ["-q", "-p", "no:cacheprovider", "--no-summary", "--tb=line", "-W", "ignore"]
    pytest.main(["--pyargs", *modules, *quiet], plugins=[outcomes])
    print_table(outcomes)


if __name__ == "__main__":
    main()
