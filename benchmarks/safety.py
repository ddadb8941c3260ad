"""The cost of checked accesses: ``python benchmarks/safety.py [--mlx FOLDER]``.

Kernels of `metalloid.bench`, compiled with ``bounds="checked"`` and ``"unchecked"``, in turns: on
one core of the CPU, with a checkout of MLX also some of its kernels, in time of the processor; on
other devices, in time of the device's events.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mlx_tree.agreement import Unchecked
from mlx_tree.entries import (
    Entry,
    families,
    family_of,
    files,
    library,
    reads_past_the_end,
)
from timing import show, table
from workers import Worker, share

import metalloid as mtl
from metalloid.bench.cases import cases, kernels
from metalloid.bench.measure import in_turns

GOAL, LIMIT = 1.05, 1.3

#: A pointer for each row, and a linked list whose nodes are in any order.
POINTERS = """
#include <metal_stdlib>
using namespace metal;

struct Row { device const float* data; uint n; };
struct Node { device Node* next; float value; };

kernel void sum_rows(device const Row* rows, device float* y, uint t [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint k = 0; k < rows[t].n; k++) sum += rows[t].data[k];
  y[t] = sum;
}

kernel void link(device Node* nodes, device const uint* at, device const uint* next,
                 uint t [[thread_position_in_grid]]) {
  nodes[at[t]].next = nodes + next[t];
  nodes[at[t]].value = t;
}

kernel void walk(device Node* nodes, constant uint& n, device float* y,
                 uint t [[thread_position_in_grid]]) {
  float sum = 0;
  device Node* at = nodes + t;
  for (uint k = 0; k < n; k++) {
    sum += at->value;
    at = at->next;
  }
  y[t] = sum;
}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", nargs="*", help="only these")
    parser.add_argument("--tiny", action="store_true", help="sizes that only show that it works")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--mlx", type=Path, metavar="FOLDER", help="a checkout of MLX")
    parser.add_argument("--count", type=int, default=100, help="entries of MLX")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes that compile MLX's entries")
    options = parser.parse_args(arguments)
    if not mtl.default_device().name.startswith("cpu"):
        gpu_cases(options.kernel, options.tiny, options.repeat)
        return
    mtl.default_device().runtime.configure(1)
    own_cases(options.kernel, options.tiny, options.repeat)
    if not options.kernel:
        pointer_cases(options.tiny, options.repeat)
    if options.mlx:
        chosen = list(drawn(options.mlx, options.count, options.seed))
        compile_entries(options.mlx, chosen, options.jobs)
        entries_of_mlx(options.mlx, chosen, options.count, options.repeat)


def own_cases(names: Sequence[str], tiny: bool, repeat: int) -> None:
    """The kernels of `metalloid.bench`."""
    checked, unchecked = (kernels(math_mode="relaxed", bounds=b) for b in ("checked", "unchecked"))
    rows, ratios = [], []
    for case in cases(tiny):
        if names and case.name not in names:
            continue
        launches = [case.launcher(checked), case.launcher(unchecked)]
        own, plain = map(min, in_turns(launches, repeat, time.process_time))
        ratios.append(own / plain)
        rows.append((case.name, show(plain), show(own), f"{own / plain:.3f}"))
    if rows:
        _print("One core: cost of checks", rows, ratios)


def pointer_cases(tiny: bool, repeat: int) -> None:
    """Kernels that load pointers from memory, whose objects are looked up."""
    count, length = (8, 4) if tiny else (2000, 64)
    rows = mtl.array(np.random.default_rng(0).random((count, length), dtype=np.float32))
    arrays = [mtl.Buffer(np.asarray(row)) for row in rows]
    y = mtl.Buffer(np.zeros(count, np.float32))
    libraries = [
        mtl.library(POINTERS, bounds=bounds, math_mode="relaxed")
        for bounds in ("checked", "unchecked")
    ]
    order = np.random.default_rng(1).permutation(count)
    nodes = mtl.Buffer(32 * count)
    libraries[0].link(nodes, order.astype(np.uint32), np.roll(order, -1).astype(np.uint32),
                      threads=count, wait=True)  # fmt: skip
    shown, ratios = [], []
    for name, arguments in (
        ("sum_rows", ([{"data": a, "n": length} for a in arrays], y)),
        ("walk", (nodes, length, y)),
    ):
        launches = [
            functools.partial(lib[name], *arguments, threads=count, wait=True) for lib in libraries
        ]
        own, plain = map(min, in_turns(launches, repeat, time.process_time))
        ratios.append(own / plain)
        shown.append((name, show(plain), show(own), f"{own / plain:.3f}"))
    _print("One core: pointers in memory", shown, ratios)


def gpu_cases(names: Sequence[str], tiny: bool, repeat: int) -> None:
    """The kernels of `metalloid.bench` with buffers, in time of events."""
    checked, unchecked = (kernels(math_mode="relaxed", bounds=b) for b in ("checked", "unchecked"))
    rows, ratios = [], []
    for case in cases(tiny):
        if names and case.name not in names:
            continue
        given = [mtl.Buffer(a) if isinstance(a, np.ndarray) and a.nbytes > 64 else a
                 for a in case.arguments]  # fmt: skip

        def seconds(lib: mtl.Library, case: Any = case, given: Any = given) -> float:
            kernel = lib[case.name]
            return kernel(*given, threads=case.threads, group_size=case.group_size).seconds

        taken = [[seconds(lib) for lib in (checked, unchecked)] for _ in range(2 * repeat)]
        own, plain = map(min, zip(*taken, strict=True))
        ratios.append(own / plain)
        rows.append((case.name, show(plain), show(own), f"{own / plain:.3f}"))
    _print(f"{mtl.default_device().name}: cost of checks", rows, ratios, goals=False)


def _print(
    title: str, rows: list[tuple[str, ...]], ratios: Sequence[float], goals: bool = True
) -> None:
    mean = statistics.geometric_mean(ratios)
    rows.append(("geometric mean", "", "", f"{mean:.3f}" + goals * f" ({GOAL})"))
    rows.append(("most", "", "", f"{max(ratios):.3f}" + goals * f" ({LIMIT})"))
    table(title, ("", "unchecked", "checked", "ratio"), rows)


class Recorder:
    """A library whose kernels record their launches.

    Parameters
    ----------
    library : Library
    launches : list
        Gets the arguments of `Library.function`, and those of a call of the kernel.
    """

    def __init__(self, library: mtl.Library, launches: list[Any]) -> None:
        self._library, self._launches = library, launches

    def function(self, *which: Any, **options: Any) -> Callable[..., Any]:
        """See `Library.function`."""
        kernel = self._library.function(*which, **options)
        launches = self._launches

        class Recorded:
            def __call__(self, *args: Any, **named: Any) -> Any:
                launches.append((which, options, args, named))
                return kernel(*args, **named)

            def __getattr__(self, name: str) -> Any:
                return getattr(kernel, name)

        return Recorded()

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self.function(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


def drawn(tree: Path, count: int, seed: int) -> Iterator[Entry]:
    """Entries of all files, as many of each."""
    rng, names = random.Random(seed), list(files(tree))
    rng.shuffle(names)
    per_file = -(-count // len(names))
    for file in names:
        kernels_of_file = list(library(tree, file))
        chosen = rng.sample(kernels_of_file, min(per_file, len(kernels_of_file)))
        yield from (Entry(file, name) for name in chosen)


def is_strict(run: Callable[[], None]) -> bool:
    """Whether launches run with strict barriers, as by default; some of MLX's do not."""
    with mtl.config.scope(strict_barriers=True):
        try:
            run()
        except mtl.KernelFault:
            return False
    return True


def compile_entry(tree: Path, entry: Entry) -> None:
    """Compile an entry, and what its launches need, with and without checks."""
    family = family_of(entry, families())
    if family is None or reads_past_the_end(entry):
        return
    for bounds in ("checked", "unchecked"):
        rng, lib = np.random.default_rng(0), library(tree, entry.file, bounds)
        failures = contextlib.suppress(AssertionError, Unchecked, mtl.MetalloidError)
        with mtl.config.scope(strict_barriers=False), failures:
            family.check(lib, entry.name, rng)


def compile_entries(tree: Path, entries: Sequence[Entry], jobs: int) -> None:
    """Compile entries in processes, which leave the results in the cache.

    One that takes too long is compiled when it is measured.
    """

    def ask(worker: Worker, entry: Entry) -> None:
        with contextlib.suppress(TimeoutError):
            worker.ask(compile_entry, entry, 300)

    workers = [Worker(tree) for _ in range(jobs)]
    share(workers, entries, ask)
    for worker in workers:
        worker.stop()


def entries_of_mlx(tree: Path, entries: Sequence[Entry], count: int, repeat: int) -> None:
    """Launches of MLX's kernels by the checks of their results, of `count` entries at most."""
    rows, ratios, known = [], [], families()
    for entry in entries:
        if len(ratios) == count:
            break
        family = family_of(entry, known)
        if family is None or reads_past_the_end(entry):
            continue
        launches: list[Any] = []
        checked = library(tree, entry.file, "checked")
        unchecked = library(tree, entry.file, "unchecked")
        try:
            with mtl.config.scope(strict_barriers=False):
                family.check(Recorder(checked, launches), entry.name, np.random.default_rng(0))
        except (AssertionError, Unchecked):
            continue  # its checks cannot tell
        except mtl.MetalloidError as error:
            rows.append((entry.name[:60], "", "", f"{type(error).__name__}: {error}"[:200]))
            continue
        if not launches:
            continue

        def all_of(of: mtl.Library, launches: Sequence[Any] = launches) -> Callable[[], None]:
            bound = [(of.function(*which, **options), args, named)
                     for which, options, args, named in launches]  # fmt: skip

            def run() -> None:
                for kernel, args, named in bound:
                    kernel(*args, **named)

            return run

        runs = [all_of(checked), all_of(unchecked)]
        with mtl.config.scope(strict_barriers=is_strict(runs[1])):
            own, plain = map(min, in_turns(runs, repeat, time.process_time))
        ratios.append(own / plain)
        rows.append((entry.name[:60], show(plain), show(own), f"{own / plain:.3f}"))
        print(*rows[-1], flush=True)
    _print(f"One core: cost of checks for {len(ratios)} entries of MLX", rows, ratios)


if __name__ == "__main__":
    main()
