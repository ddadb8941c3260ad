"""Recall and false alarms of the sanitizer: ``python benchmarks/sanitizer.py [--mlx FOLDER]``.

Defects are planted in the kernels of ``planted_defects/``: each of them is a defect by the
construction of the kernel. The kernels themselves, those of `metalloid.bench` and, with a checkout
of MLX, some of its kernels must have no findings.

    python benchmarks/sanitizer.py --mlx mlx --results findings.jsonl --jobs 16 --seconds 500

checks all entries of MLX, or with ``--ggml FOLDER`` those of ggml: one JSON line each, in a random
order. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from coverage import entries_of, read
from ggml_tree.source import Source
from mlx_tree.agreement import Unchecked
from mlx_tree.checks import findings_of, findings_of_ggml
from mlx_tree.entries import Entry, families, family_of, library
from mlx_tree.workers import PATIENCE, Result, Workers
from safety import drawn
from timing import table

import metalloid as mtl
from metalloid.backends.cpu.runtime import fast_checks
from metalloid.backends.cpu.runtime.device import _GENERAL_PATH
from metalloid.bench.cases import cases, kernels
from metalloid.runtime.devices.registry import get_device

TEXT = Path(__file__).with_name("planted_defects").joinpath("kernels.metal").read_text()
TYPES = {
    "float": np.float32, "half": np.float16, "int": np.int32, "uint": np.uint32,
    "short": np.int16, "ushort": np.uint16,
}  # fmt: skip
SIZES = (64, 128, 256, 512)
GROUPS = 2
_BARRIER = re.compile(r"threadgroup_barrier\(mem_flags::(mem_\w+)\);  // (barrier|lanes)")
_OTHER_FLAG = {"mem_threadgroup": "mem_device", "mem_device": "mem_threadgroup"}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--defects", type=int, default=200, help="planted defects")
    parser.add_argument("--mlx", type=Path, metavar="FOLDER", help="a checkout of MLX")
    parser.add_argument("--ggml", type=Path, metavar="FOLDER", help="of ggml-metal.metal")
    parser.add_argument("--count", type=int, default=50, help="entries of MLX")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, help="of all entries of MLX or ggml")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--match", default="", help="only entries that this expression finds")
    parser.add_argument("--only-cost", action="store_true", help="only the cost for MLX's kernels")
    options = parser.parse_args(arguments)
    if options.results:
        check_all(options)
        return
    if options.only_cost:
        cost_for_mlx(options.mlx, options.count, options.seed)
        return
    planted_defects(options.defects, options.seed, options.jobs)
    own_cases()
    if options.mlx:
        entries_of_mlx(options.mlx, options.count, options.seed)
        cost_for_mlx(options.mlx, options.count, options.seed)


def texts() -> dict[str, str]:
    """The text of each kernel by name, with the lines before the first one."""
    head, *parts = re.split(r"(?=^kernel void )", TEXT, flags=re.M)
    return {re.search(r"void (\w+)", part)[1]: head + part for part in parts}


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each defect that can be planted in a kernel."""
    start = text.index("kernel void")
    for match in _BARRIER.finditer(text, start):
        before, after, flag = text[: match.start()], text[match.end() :], match[1]
        yield "barrier left out", before + after
        yield "barrier without flags", f"{before}threadgroup_barrier(mem_flags::mem_none);{after}"
        yield (
            "barrier with the other flag",
            f"{before}threadgroup_barrier(mem_flags::{_OTHER_FLAG[flag]});{after}",
        )
        if match[2] == "barrier":
            of_simdgroup = f"{before}simdgroup_barrier(mem_flags::{flag});{after}"
            yield "barrier of the simdgroup", of_simdgroup
    for match in re.finditer(r"^[^\n]*// (initialise|guard)\n", text[start:], re.M):
        at = start + match.start()
        yield f"{match[1]} left out", text[:at] + text[start + match.end() :]
    for match in re.finditer(r"/\*\*/", text[start:]):
        at = start + match.start()
        yield "index off by one", f"{text[:at]} + 1{text[at + 4 :]}"


def outcome(kernel: tuple[str, str, str, int]) -> str:
    """The kind of finding of a text, name, type and size; empty if there is none."""
    text, name, type_, size = kernel
    lib = mtl.library(text, defines={"T": type_, "N": size}, device="cpu", check=True)
    values = (np.arange(GROUPS * size) * 37 % 41).astype(TYPES[type_])
    out = np.zeros_like(values)
    try:
        lib[name](values, out, threads=GROUPS * size, group_size=size)
    except mtl.SanitizerError as error:
        return error.findings[0].kind
    except mtl.KernelFault:
        return "outside"
    return ""


def outcomes(kernels: Sequence[tuple[str, str, str, int]], jobs: int) -> Iterator[str]:
    """The outcome of each kernel, by several processes."""
    if jobs == 1:
        yield from map(outcome, kernels)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(outcome, kernels)


def planted_defects(count: int, seed: int, jobs: int) -> None:
    """Recall over planted defects, and false alarms on the kernels without them."""
    every = [
        (name, type_, size, kind, mutant)
        for name, text in texts().items() for kind, mutant in mutants(text)
        for type_ in TYPES for size in SIZES
    ]  # fmt: skip
    random.Random(seed).shuffle(every)
    planted, detected, missed = Counter[str](), Counter[tuple[str, str]](), []
    chosen = every[:count]
    results = outcomes([(mutant, *kernel) for *kernel, _, mutant in chosen], jobs)
    for (name, type_, size, kind, _), result in zip(chosen, results, strict=True):
        planted[kind] += 1
        detected[kind, result] += 1
        if not result:
            missed.append(f"{name}<{type_}, {size}>: {kind}")
    kinds = ("race", "uninitialised", "outside", "")
    rows = [
        (
            kind,
            number,
            *(detected[kind, result] for result in kinds),
            _share(number, detected[kind, ""]),
        )
        for kind, number in sorted(planted.items())
    ]
    total = [sum(detected[kind, result] for kind in planted) for result in kinds]
    rows.append(("all", planted.total(), *total, _share(planted.total(), total[-1])))
    head = ("planted", "kernels", "race", "uninitialised", "outside", "missed", "recall")
    table(f"{planted.total()} of {len(every)} planted defects", head, rows)
    print(*missed, sep="\n")
    correct = [
        (text, name, type_, size)
        for name, text in texts().items() for type_ in TYPES for size in SIZES[: 1 + count // 200]
    ]  # fmt: skip
    alarms = [
        f"{name}<{type_}, {size}>"
        for (_, name, type_, size), result in zip(correct, outcomes(correct, jobs), strict=True)
        if result
    ]
    print(f"false alarms on {len(correct)} kernels without defects: {len(alarms)}", *alarms)


def _share(number: int, missed: int) -> str:
    return f"{(number - missed) / number:.1%}"


def own_cases() -> None:
    """The kernels of `metalloid.bench`."""
    lib, rows = kernels(math_mode="relaxed"), []
    for case in cases(tiny=True):
        launch = case.launcher(lib)
        launch()
        plain = _seconds(launch)
        with mtl.checking(raises=False) as findings:
            launch()
            checked = _seconds(launch)
        rows.append((case.name, len(findings), f"{checked / plain:.0f}"))
    table("Kernels of metalloid.bench, tiny", ("kernel", "findings", "slowdown"), rows)


def _seconds(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def entries_of_mlx(tree: Path, count: int, seed: int) -> None:
    """Kernels of MLX as the checks of their results launch them."""
    rows, known, checked = [], families(), 0
    with mtl.config.scope(strict_barriers=False):  # some entries need that
        for entry in drawn(tree, count, seed):
            family = family_of(entry, known)
            if family is None:
                continue
            with mtl.checking(raises=False) as findings:
                try:
                    family.check(library(tree, entry.file), entry.name, np.random.default_rng(0))
                except Unchecked:
                    continue
                except (AssertionError, mtl.MetalloidError) as error:
                    rows.append((entry.name[:60], f"{type(error).__name__}: {error}"[:150]))
                    continue
            checked += 1
            rows += [(entry.name[:60], finding.describe()) for finding in findings]
    table(f"Findings of {checked} entries of MLX", ("entry", "finding"), rows)


def check_all(options: argparse.Namespace) -> None:
    """Check all entries of MLX or ggml that have no results yet, and print those of all."""
    tree, examine = (options.ggml, findings_of_ggml) if options.ggml else (options.mlx, findings_of)
    workers = Workers(tree, options.jobs, 0, options.seconds, examine)
    if options.ggml:
        every = [Entry(Source.FILE, name) for name in Source(tree).library()]
    else:
        groups = entries_of(tree, False, workers)
        every = [entry for group in groups.values() for entry in group]
    entries = [entry for entry in every if re.search(options.match, entry.name)]
    # What a run that stops early has done is a fair sample.
    random.Random(0).shuffle(entries)
    results = read(options.results)
    with options.results.open("a") as log:

        def done(entry: Entry, result: Result) -> None:
            results[entry] = {**entry._asdict(), **result}
            log.write(json.dumps(results[entry]) + "\n")
            log.flush()

        workers.check([entry for entry in entries if entry not in results], PATIENCE, done)
    workers.stop()
    show_findings(list(results.values()), len(entries))


def show_findings(results: Sequence[Result], count: int) -> None:
    """Print findings by their lines, and why checks have ended early."""
    entries, example, reasons = Counter[tuple[str, ...]](), {}, Counter[str]()
    for result in results:
        keys = {(f["kind"], *sorted(f["lines"])) for f in result.get("findings", ())}
        entries.update(keys)
        example.update(dict.fromkeys(keys, result["name"]))
        if result["reason"]:
            reasons[result["reason"].splitlines()[0][:100]] += 1
    with_findings = sum(bool(result.get("findings")) for result in results)
    title = f"{with_findings} of {len(results)} entries with findings, of {count} in all"
    rows = [(kind, " ".join(lines), number, example[kind, *lines][:70])
            for (kind, *lines), number in entries.most_common()]  # fmt: skip
    table(title, ("kind", "lines", "entries", "one of them"), rows)
    table(
        "Ended early", ("entries", "reason"), [(n, reason) for reason, n in reasons.most_common()]
    )


def cost_for_mlx(tree: Path, count: int, seed: int) -> None:
    """Print the cost of checks for kernels of MLX, launched as the checks of their results do.

    Each launch is repeated with its arguments: without checks, with the exact engine alone, and
    with the vector form before it. Times are those of `Device.launch`, sums of all launches.
    """
    rows, known = [], families()
    with mtl.config.scope(strict_barriers=False):  # some entries need that
        for entry in drawn(tree, count, seed):
            family = family_of(entry, known)
            if family is None or len(rows) == count:
                continue
            costs = Costs()
            failures = suppress(Unchecked, AssertionError, mtl.MetalloidError)  # after launches
            with timed_launches(costs), failures:
                family.check(library(tree, entry.file), entry.name, np.random.default_rng(0))
            if costs.launches:
                ratios = (costs.exact / costs.plain)[0], *(costs.fast / costs.plain)
                share = f"{costs.clean} of {costs.launches}"
                rows.append((entry.name[:50], f"{costs.plain[0] * 1e3:.2f}", ratios, share))
                print(entry.name, *(f"{ratio:.1f}" for ratio in ratios), share, flush=True)
    shown = [(*row[:2], *(f"{ratio:.1f}" for ratio in row[2]), row[3]) for row in rows]
    head = ("entry", "ms", "exact engine", "vector form first", "its CPU time", "without an alarm")
    table(f"Slowdowns of {len(rows)} entries of MLX", head, shown)
    medians = np.median([row[2] for row in rows], axis=0)
    text = "medians: exact engine {:.0f}, vector form first {:.1f}, its CPU time {:.1f}"
    print(text.format(*medians))


@dataclass
class Costs:
    """Seconds and CPU seconds of launches, and how many the vector form has checked alone."""

    plain: np.ndarray = field(default_factory=lambda: np.zeros(2))
    exact: np.ndarray = field(default_factory=lambda: np.zeros(2))
    fast: np.ndarray = field(default_factory=lambda: np.zeros(2))
    launches: int = 0
    clean: int = 0


@contextmanager
def timed_launches(costs: Costs) -> Iterator[None]:
    """Repeat all launches of the CPU to find out what checks cost."""
    device = get_device("cpu")
    launch, fast_checks.MANY_THREADS = device.launch, 0

    def timed(program, arguments, grid, group, wait):
        event = launch(program, arguments, grid, group, wait)

        def best(times: int) -> np.ndarray:
            """The least seconds and CPU seconds of the launch."""
            seconds = []
            for _ in range(times):
                start = np.array((time.perf_counter(), time.process_time()))
                launch(program, arguments, grid, group, True)
                seconds.append(np.array((time.perf_counter(), time.process_time())) - start)
            return np.min(seconds, axis=0)

        plain = best(7)
        arguments.check = True
        checked = device._checked(program, arguments)
        form, checked.fast_checks = checked.fast_checks, None
        exact = best(1)
        checked.fast_checks = form
        costs.fast, costs.exact, costs.plain = (
            costs.fast + best(4), costs.exact + exact, costs.plain + plain
        )  # fmt: skip
        costs.clean += form.run(arguments, grid, group) is not None
        costs.launches += 1
        arguments.check = False
        return event

    device.launch, device.default_recorder = timed, _GENERAL_PATH
    device.recording = _GENERAL_PATH
    try:
        yield
    finally:
        del device.launch
        device.recording = device.default_recorder = None


if __name__ == "__main__":
    main()
