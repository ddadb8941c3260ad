"""``metalloid bench``: how near kernels come to what the machine can do."""

from __future__ import annotations

import argparse
from typing import Any

from metalloid.cli.progress import progress_after_a_second


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "bench", help="time kernels and compare them with the limits of the machine",
        description="Time kernels of many kinds, and compare them with what the machine's memory "
        "and arithmetic allow, which is measured first.",
    )  # fmt: skip
    parser.add_argument("device", choices=("cpu",), help="device to measure")
    parser.add_argument("--plot", metavar="FILE", help="write a roofline plot to an image file")
    parser.add_argument(
        "--kernel",
        action="append",
        default=[],
        metavar="NAME",
        help="time only this kernel; repeatable",
    )
    parser.add_argument("--tiny", action="store_true", help="use small sizes, as a smoke test")
    parser.add_argument(
        "--repeat", type=int, default=9, help="launches per kernel; the median counts"
    )
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from metalloid.bench.cases import cases
    from metalloid.bench.ceilings import ceilings, store
    from metalloid.bench.roofline import draw, measure, require_matplotlib
    from metalloid.errors import ArgumentError
    from metalloid.runtime.devices.registry import get_device

    known = [case.name for case in cases(tiny=True)]
    for name in options.kernel:
        if name not in known:
            raise ArgumentError(f"[bench] unknown kernel {name!r}; known: {known}.")
    if options.repeat < 1:
        raise ArgumentError(f"[bench] --repeat {options.repeat} is less than 1.")
    if options.plot:
        require_matplotlib()
    device = get_device(options.device)
    with progress_after_a_second("measuring the machine"):
        limits = ceilings(options.tiny)
    with progress_after_a_second("measuring kernels"):
        points = measure(options.kernel, options.tiny, options.repeat)
    with progress_after_a_second("measuring the machine once more"):
        # Others may have had a part of it before.
        limits = limits.or_higher(ceilings(options.tiny))
    if not options.tiny:
        store(device, limits)
    title = (
        f"{device.info().description}: {limits.bandwidth / 1e9:.1f} GB/s, "
        f"{limits.arithmetic / 1e9:.0f} GFLOP/s"
    )
    table = Table(title=title, title_justify="left", box=None)
    for head in ("kernel", "time", "GFLOP/s", "GB/s", "FLOP/byte", "of the limit"):
        table.add_column(head, justify="left" if head == "kernel" else "right", no_wrap=True)
    table.add_column("engine")
    for point in points:
        counted = point.operations > 0
        table.add_row(
            point.name,
            f"{point.seconds * 1e3:.3f} ms",
            f"{point.operations / point.seconds / 1e9:.1f}" if counted else "-",
            f"{point.traffic / point.seconds / 1e9:.1f}",
            f"{point.intensity:.3g}" if counted else "-",
            f"{point.share(limits):.0%}",
            point.engine,
        )
    Console().print(table)
    if options.plot:
        draw(points, limits, title, options.plot)
        print(f"picture: {options.plot}")
    return 0
