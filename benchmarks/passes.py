"""The passes that make vector code against clang's back end, which makes machine code of it.

``python benchmarks/passes.py FOLDER [--count N]``, where the folder is a checkout of MLX: kernels
of its files, drawn at random, each compiled without a cache. Both times are of the processor.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from mlx_tree.entries import Entry, files, library
from timing import show, table

import metalloid as mtl
from metalloid.backends.cpu.compile import vector
from metalloid.backends.cpu.compile.kernel_ir import KernelIR, Lowered
from metalloid.compiler.toolchain import clang


class Times(NamedTuple):
    """Times of one kernel, in seconds: in the passes, and in clang from IR to code."""

    entry: Entry
    passes: float
    back_end: float


_lower, _run = vector.lower, clang.run


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """Seconds of the processor in the passes and in the back end, while kernels compile."""
    spent: dict[str, float] = {}

    def lower(kernel: KernelIR, variant: str) -> Lowered:
        before = time.process_time()
        result = _lower(kernel, variant)
        spent["passes"] = time.process_time() - before
        return result

    def run(command: Sequence[str], *given: Any, **options: Any) -> Any:
        before = _of_compilers()
        result = _run(command, *given, **options)
        if "ir" in command and "-c" in command:
            spent["back end"] = _of_compilers() - before
        return result

    with mock.patch.object(vector, "lower", lower), mock.patch.object(clang, "run", run):
        yield spent


def _of_compilers() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def drawn(tree: Path, count: int, seed: int) -> Iterator[Entry]:
    """Kernels of all files, as many of each."""
    rng = random.Random(seed)
    names = list(files(tree))
    rng.shuffle(names)
    of_each = -(-count // len(names))
    for file in names:
        kernels = list(library(tree, file))
        yield from (Entry(file, n) for n in rng.sample(kernels, min(of_each, len(kernels))))


def measured(tree: Path, count: int, seed: int) -> Iterator[Times]:
    """Times of kernels that compile without function constants, and to vector code."""
    with watched() as spent:
        for entry in drawn(tree, count, seed):
            spent.clear()
            try:
                library(tree, entry.file)[entry.name]
            except mtl.MetalloidError:
                continue
            if len(spent) == 2:
                yield Times(entry, spent["passes"], spent["back end"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mlx", type=Path, help="a checkout of MLX")
    parser.add_argument("--count", type=int, default=120, help="kernels, about")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache, mtl.config.scope(cache_dir=cache):
        times = list(measured(options.mlx, options.count, options.seed))
    times.sort(key=lambda one: one.passes / one.back_end)
    median = len(times) // 2
    rows = [
        (
            label,
            show(one.passes),
            show(one.back_end),
            f"{one.passes / one.back_end:.2f}",
            f"{one.entry.file}: {one.entry.name}"[:70],
        )
        for label, one in (("least", times[0]), ("median", times[median]), ("most", times[-1]))
    ]
    totals = [sum(one[field] for one in times) for field in (1, 2)]
    rows.append(("all", *map(show, totals), f"{totals[0] / totals[1]:.2f}", ""))
    ratios = statistics.quantiles((one.passes / one.back_end for one in times), n=10)
    table(
        f"{len(times)} kernels of MLX, by passes / back end (nine of ten below {ratios[-1]:.2f})",
        ("", "passes", "back end", "ratio", "kernel"),
        rows,
    )


if __name__ == "__main__":
    main()
