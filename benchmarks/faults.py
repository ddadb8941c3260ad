"""Launches with wild indices: ``python benchmarks/faults.py --kernels 10000 --jobs 16``.

Random kernels, and the cases of tests/backends/test_fault_cases.py, on both engines of the CPU. In
processes, as a kernel that ends one is a failure. Each launch must fail exactly if an access is
outside, leave the memory around all arrays as it is, and the next launch must be right.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from timing import table
from workers import Worker, share

TESTS = Path(__file__).parents[1] / "tests" / "backends"
sys.path.insert(0, str(TESTS))

from test_bounds import ENGINES, check_random_kernel  # noqa: E402
from test_fault_cases import CASES, KINDS, check_cases, text  # noqa: E402

import metalloid as mtl  # noqa: E402

#: Seconds that a part of the work may take, random kernels of one, and launches of a kernel.
PATIENCE, KERNELS, LAUNCHES = 120, 20, 5


class Part(NamedTuple):
    """Random kernels from a seed on, or the cases of a kind of object."""

    engine: str
    seed: int
    kind: str = ""


def outcome(_: Path, part: Part) -> tuple[Counter[str], list[str]]:
    """Counts and failures of a part."""
    counts, failures = Counter[str](), []
    with mtl.config.scope(cpu_engine=part.engine, device="cpu"):
        try:
            if part.kind:
                source = text()
                check_cases(mtl.library(source), source, part.kind)
                counts["fault cases"] += sum(name == part.kind for name, *_ in CASES)
            else:
                check_kernels(part.seed, counts)
        except Exception as error:
            failures.append(f"{part}: {type(error).__name__}: {error}")
    return counts, failures


def check_kernels(first: int, counts: Counter[str]) -> None:
    """Check random kernels and count them."""
    for seed in range(first, first + KERNELS):
        for launch in range(LAUNCHES):
            counts["launches that fault"] += check_random_kernel(seed, launch)
            counts["launches"] += 1
        counts["random kernels"] += 1


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=200, help="random kernels")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many")
    options = parser.parse_args(arguments)
    end = time.perf_counter() + options.seconds
    seeds = range(options.first, options.first + options.kernels, KERNELS)
    parts = [Part(engine, 0, kind) for kind in KINDS for engine in ENGINES]
    parts += [Part(engine, seed) for seed in seeds for engine in ENGINES]
    counts = {engine: Counter[str]() for engine in ENGINES}
    workers = [Worker(TESTS) for _ in range(options.jobs)]

    def check(worker: Worker, part: Part) -> None:
        try:
            numbers, failures = worker.ask(outcome, part, PATIENCE)
        except (EOFError, TimeoutError) as error:
            numbers, failures = Counter({"processes lost": 1}), [f"{part}: {error}"]
        counts[part.engine].update(numbers, failures=len(failures))
        print(*failures, sep="\n", end="\n" * bool(failures), flush=True)

    share(workers, parts, check, lambda: time.perf_counter() < end)
    for worker in workers:
        worker.stop()
    names = (
        "random kernels", "launches", "launches that fault", "fault cases", "failures",
        "processes lost",
    )  # fmt: skip
    rows = [(engine, *(numbers[name] for name in names)) for engine, numbers in counts.items()]
    table("Wild indices", ("engine", *names), rows)


if __name__ == "__main__":
    main()
