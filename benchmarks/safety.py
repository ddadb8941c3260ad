"""The cost of checked accesses on the CPU: ``python benchmarks/safety.py [--mlx FOLDER]``.

Kernels of `metalloid.bench` on one core, compiled with ``bounds="checked"`` and ``"unchecked"``, in
turns; with a checkout of MLX also some of its kernels. Times are of the processor.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

from timing import show, table

import metalloid as mtl
from metalloid.bench.cases import cases, kernels
from metalloid.bench.measure import in_turns

GOAL, MOST = 1.05, 1.3


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", nargs="*", help="only these")
    parser.add_argument("--tiny", action="store_true", help="sizes that only show that it works")
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args(arguments)
    mtl.default_device().runtime.configure(1)
    own_cases(options.kernel, options.tiny, options.repeat)


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
    mean = statistics.geometric_mean(ratios)
    rows.append(("geometric mean", "", "", f"{mean:.3f} ({GOAL})"))
    rows.append(("most", "", "", f"{max(ratios):.3f} ({MOST})"))
    table("One core: cost of checks", ("", "unchecked", "checked", "ratio"), rows)


if __name__ == "__main__":
    main()
