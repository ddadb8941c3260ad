"""Kernels on the CPU, against C and other packages: ``python benchmarks/cpu.py``.

Every result is checked before anything is timed. What runs on one core is measured in CPU time, so
that other processes do not count; what runs on several, in seconds of the clock.
The peers are those that are installed: ``pip install 'metalloid[bench]'``.
"""

from __future__ import annotations

import argparse
import operator
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from cpu_rivals import goals, oracles
from cpu_rivals import images as pictures
from cpu_rivals.native import RIVALS, CLibrary
from cpu_rivals.operations import operations
from cpu_rivals.peers import CASES as PEER_CASES
from cpu_rivals.peers import peers
from timing import show, table

import metalloid as mtl
from metalloid.bench.cases import Case, cases, kernels
from metalloid.bench.ceilings import ceilings
from metalloid.bench.measure import in_turns, medians
from metalloid.kernels.library import Library

Action = Callable[[], object]

#: Seconds after which threads are awake and processors quick.
_AWAKE = 0.003


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    names = {case.name for case in cases(tiny=True)}
    if unknown := set(options.kernel) - names:
        raise SystemExit(f"unknown cases: {sorted(unknown)}; known: {sorted(names)}")
    chosen = [c for c in cases(options.tiny) if not options.kernel or c.name in options.kernel]
    lib = kernels(math_mode=options.math_mode)
    print(mtl.default_device(), f"math_mode={options.math_mode!r}")
    parts = {"one": one_core, "math": functions_of_a_number, "reference": against_reference,
             "images": images, "scaling": scaling, "peers": against_peers,
             "opencl": against_opencl}  # fmt: skip
    for name in options.part or parts:
        parts[name](chosen, lib, options.repeat)
    if options.mlx:
        kernels_of_mlx(options.mlx, options.tiny, options.repeat)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", nargs="*", help="only these")
    parser.add_argument("--tiny", action="store_true", help="sizes that only show that it works")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument(
        "--part", action="append",
        choices=("one", "math", "reference", "images", "scaling", "peers", "opencl"),
        help="only these tables; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--mlx", type=Path, metavar="FOLDER", help="a checkout of MLX: its kernels against NumPy"
    )
    parser.add_argument(
        "--math-mode", choices=("safe", "relaxed", "fast"), default="relaxed",
        help="of metalloid; relaxed, as C and the peers, has fused multiply-adds",
    )  # fmt: skip
    return parser


@contextmanager
def cores(count: int) -> Iterator[None]:
    """Let launches use so many threads; 0: all."""
    runtime = mtl.default_device().runtime
    runtime.configure(count)
    try:
        yield
    finally:
        runtime.configure(mtl.config.num_threads)


def checked(case: Case, rival: str, action: Action, result: Callable[[], np.ndarray]) -> None:
    """Run it once and compare with NumPy.

    Raises
    ------
    AssertionError
        If the result is wrong: then its time means nothing.
    """
    if case.name != "saxpy":  # which updates what is there; no rival may pass with another's result
        case.arguments[0].fill(0 if case.name == "histogram" else 77)
    expected = oracles.expected(case)
    action()
    wrong = oracles.disagreement(case, np.asarray(result()), expected)
    assert not wrong, f"{case.name} by {rival}: {wrong}"


def one_core(chosen: Sequence[Case], lib: Library, repeat: int) -> None:
    """Against C on one core."""
    rows = []
    with cores(1), tempfile.TemporaryDirectory() as folder:
        built = {rival: CLibrary(rival, Path(folder)) for rival in RIVALS}
        for case in chosen:
            # Some are there with the steps of the kernel's text too, where C has a better method.
            actions = {
                (name, rival): action
                for name, variant in ((case.name, ""), (goals.as_told(case.name), "_as_told"))
                for rival, library in built.items()
                if (action := library.launcher(case, variant))
            }
            launch = case.launcher(lib)
            for (_, rival), action in {("", "metalloid"): launch, **actions}.items():
                checked(case, rival, action, lambda case=case: case.arguments[0])
            own, *times = medians([launch, *actions.values()], repeat, time.process_time)
            seconds = dict(zip(actions, times, strict=True))
            engine = _short(lib[case.name].engine)
            names = dict.fromkeys(name for name, _ in actions)
            rows += [_against_c(name, own, seconds, engine) for name in names]
    head = ("", *RIVALS, "metalloid", "over scalar", "over loop", "over hand", "engine")
    table("One core: times, and how many times as fast metalloid is", head, rows)


def _against_c(
    name: str, own: float, seconds: Mapping[tuple[str, str], float], engine: str
) -> tuple[str, ...]:
    """A row of the table: times of the available rivals, and what `own` is relative to them."""
    given = [seconds.get((name, rival)) for rival in RIVALS]
    ratios = [
        goals.verdict(time / own, goals.over(rival, name)) if time else "-"
        for rival, time in zip(RIVALS, given, strict=True)
    ]
    return (name, *(show(time) if time else "-" for time in given), show(own), *ratios, engine)


def functions_of_a_number(chosen: Sequence[Case], lib: Library, repeat: int) -> None:
    """Against copying the same arrays, and against the multiply-adds that a core can do."""
    rows = []
    libs = {"": lib, ", fast": kernels(math_mode="fast")}
    with cores(1):
        ceiling = ceilings(tiny=repeat == 1).arithmetic
        for case in chosen:
            if case.name not in goals.FUNCTIONS:
                continue
            y, x = case.arguments[:2]
            actions = [*map(case.launcher, libs.values()), lambda y=y, x=x: np.copyto(y, x)]
            *times, copying = medians(actions, repeat, time.process_time)
            for (mode, of_mode), own in zip(libs.items(), times, strict=True):
                count = operations(of_mode[case.name].asm["ll"])
                rate = count * y.size / own
                ratio, share = copying / own, rate / ceiling
                met = ratio >= 1 / goals.OVER_COPY or share >= goals.OF_CEILING
                cells = (str(count), f"{ratio:.2f}", f"{share:.2f}", "met" if met else "MISSED")
                rows.append((case.name + mode, show(own), show(copying), *cells))
    head = (
        "", "metalloid", "copying", "operations", f"copying / own ({1 / goals.OVER_COPY:.2f})",
        f"of {ceiling / 1e9:.0f} GFLOP/s ({goals.OF_CEILING})", "either",
    )  # fmt: skip
    table("One core: functions of a number", head, rows)


def against_reference(chosen: Sequence[Case], lib: Library, repeat: int) -> None:
    """Against the engine that defines results."""
    rows = []
    with mtl.config.scope(cpu_engine="reference"):
        slow_lib = kernels(math_mode="relaxed")
        for case in chosen:
            slow_lib[case.name]  # compiled by the engine of this scope
    with cores(1):
        for case in chosen:
            actions = [case.launcher(slow_lib), case.launcher(lib)]
            slow, fast = medians(actions, min(repeat, 3), time.process_time)
            goal = goals.OVER_REFERENCE.get(case.name)
            rows.append((case.name, show(slow), show(fast), goals.verdict(slow / fast, goal)))
    table("One core: engines", ("", "reference", "simd", "ratio"), rows)


def images(chosen: Sequence[Case], lib: Library, repeat: int) -> None:
    """Kernels over textures, against the engine that defines results and against OpenCV."""
    rows = []
    with mtl.config.scope(cpu_engine="reference"):
        slow_lib = pictures.library("relaxed")
        slow_lib["resize"], slow_lib["blur"]  # compiled by the engine of this scope
    own_lib = pictures.library("relaxed")
    with cores(1):
        for picture in pictures.pictures(tiny=repeat == 1):
            expected = picture.expected()
            actions = {
                "reference": picture.launcher(slow_lib), "simd": picture.launcher(own_lib),
                "OpenCV": pictures.of_opencv(picture),
            }  # fmt: skip
            actions = {name: action for name, action in actions.items() if action}
            for name, action in actions.items():
                picture.result.fill(77)
                action()
                difference = np.abs(picture.result - expected).max()
                assert difference < pictures.MAX_DIFFERENCE, f"{name}: off by {difference}"
            times = medians(list(actions.values()), repeat, time.process_time)
            seconds = dict(zip(actions, times, strict=True))
            slow, own, cv = (seconds.get(name) for name in ("reference", "simd", "OpenCV"))
            goal = goals.OVER_REFERENCE_OF_IMAGES.get(picture.kernel)
            rows.append(
                (picture.name, show(slow), show(own), show(cv) if cv else "-",
                 goals.verdict(slow / own, goal), f"{cv / own:.2f}" if cv else "-")
            )  # fmt: skip
    head = ("", "reference", "simd", "OpenCV", "over reference", "over OpenCV")
    table("One core: textures of 8 bits, four channels", head, rows)


def kernels_of_mlx(tree: Path, tiny: bool, repeat: int) -> None:
    """MLX's kernels against NumPy, both on one core."""
    from cpu_rivals.mlx_kernels import pairs
    from threadpoolctl import threadpool_limits

    rows = []
    with cores(1), threadpool_limits(1):
        for name, own, numpys, tolerance in pairs(tree, tiny):
            error = oracles.relative_error(own(), numpys())
            assert error < tolerance, f"{name} of MLX is off by {error:.2g}"
            seconds, rival = medians([own, numpys], repeat, time.process_time)
            ratio = goals.verdict(rival / seconds, goals.OVER_NUMPY.get(name))
            rows.append((name, show(seconds), show(rival), ratio))
    table("One core: kernels of MLX", ("", "metalloid", "NumPy", "ratio"), rows)


def scaling(chosen: Sequence[Case], lib: Library, repeat: int) -> None:
    """All cores against one, in turns: a core's speed changes while others use the machine."""
    rows = []
    runtime = mtl.default_device().runtime
    count = runtime.configure(0)

    def on(threads: int, launch: Action) -> Action:
        def run() -> None:
            runtime.configure(threads)
            launch()

        return run

    with cores(0):
        for case in chosen:
            launch = case.launcher(lib)
            actions = [on(1, launch), on(0, launch)]
            one, all_ = in_turns(actions, repeat, warm=_AWAKE)
            # Sums: what other threads are at, Linux may count some turns later.
            spent, spent_by_all = map(
                sum, in_turns(actions, repeat, time.process_time, warm=_AWAKE)
            )
            ratio = statistics.median(map(operator.truediv, one, all_))
            goal = goals.SCALING if case.name in goals.COMPUTE_BOUND and count == 2 else None
            times = (show(statistics.median(each)) for each in (one, all_))
            rows.append(
                (case.name, *times, goals.verdict(ratio, goal), f"{spent_by_all / spent:.2f}")
            )
    head = ("", "one", "all", "ratio", "CPU time, all / one")
    table(f"One core and all {count}", head, rows)


def against_peers(chosen: Sequence[Case], lib: Library, repeat: int) -> None:
    """Against other packages on all cores."""
    available = dict(peers())
    for name, peer in available.items():
        if isinstance(peer, str):
            print(f"{name} is left out: {peer}")
    available = {name: peer for name, peer in available.items() if not isinstance(peer, str)}
    rows = []
    for case in chosen:
        if case.name not in PEER_CASES:
            continue
        actions = {"metalloid": case.launcher(lib)}
        checked(case, "metalloid", actions["metalloid"], lambda case=case: case.arguments[0])
        for name, peer in available.items():
            if pair := peer.launcher(case):
                checked(case, name, *pair)
                actions[name] = pair[0]
        times = medians(list(actions.values()), repeat, pause=0.1, warm=0.1)
        seconds = dict(zip(actions, times, strict=True))
        own = seconds.pop("metalloid")
        cells = (
            f"{show(seconds[name])} ({seconds[name] / own:.2f})" if name in seconds else "-"
            for name in available
        )
        rows.append((case.name, show(own), *cells))
    count = mtl.default_device().runtime.configure(mtl.config.num_threads)
    title = f"{count} cores: times (how many times as fast metalloid is)"
    table(title, ("", "metalloid", *available), rows)


def against_opencl(chosen: Sequence[Case], lib: Library, repeat: int) -> None:
    """Against the first device of OpenCL, on buffers: CPU time of all threads."""
    try:
        libraries = {"cpu": lib, "opencl": kernels(math_mode="relaxed", device="opencl")}
    except mtl.DeviceUnavailable as error:
        print(f"opencl is left out: {error}")
        return
    rows = []
    for case in chosen:
        expected = oracles.expected(case)
        actions = []
        for device, library in libraries.items():
            own = case.on(device)
            launch = own.launcher(library)
            actions.append(lambda launch=launch: launch().wait())
            actions[-1]()
            wrong = oracles.disagreement(case, np.asarray(own.arguments[0]), expected)
            assert not wrong, f"{case.name} on {device}: {wrong}"
        here, there = medians(actions, repeat, time.process_time)
        rows.append((case.name, show(here), show(there), f"{there / here:.2f}"))
    print(mtl.Device("opencl"))
    table("CPU time of all threads", ("", "cpu", "opencl", "ratio"), rows)


def _short(engine: str) -> str:
    return engine if len(engine) < 60 else engine[:57] + "..."


if __name__ == "__main__":
    main()
