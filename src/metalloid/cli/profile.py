"""``metalloid profile``: what the kernels of a script take."""

from __future__ import annotations

import argparse
from typing import Any


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "profile", help="run a script and print what its kernels took",
        description="Run a script of Python, and print a table of its kernels: time, bytes, "
        "operations, and the share of what the machine could do.",
    )  # fmt: skip
    parser.add_argument("--perfetto", metavar="FILE", help="write a trace for ui.perfetto.dev")
    parser.add_argument("--plot", metavar="FILE", help="write a picture to an image file")
    parser.add_argument(
        "--lines", metavar="KERNEL", action="append", default=[],
        help="print what each line of a kernel did; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--no-counts", action="store_true", help="count neither bytes nor operations"
    )
    parser.add_argument("script", metavar="SCRIPT", help="a file of Python")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    import runpy
    import sys
    from pathlib import Path

    from metalloid.bench.roofline import require_matplotlib
    from metalloid.errors import ArgumentError
    from metalloid.profiler.profile import profile

    if not Path(options.script).is_file():
        raise ArgumentError(f"[profile] no such file: {options.script!r}.")
    if options.plot:
        require_matplotlib("profile", "--plot")
    arguments, path = sys.argv, list(sys.path)
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, str(Path(options.script).resolve().parent))
    status = 0
    try:
        with profile(counts=not options.no_counts) as result:
            try:
                runpy.run_path(options.script, run_name="__main__")
            except SystemExit as end:  # the script's own status
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv, sys.path[:] = arguments, path
    print(result)
    for kernel in options.lines:
        print(result.lines(kernel))
    if options.perfetto:
        result.to_perfetto(options.perfetto)
        print(f"trace: {options.perfetto} (open it in https://ui.perfetto.dev)")
    if options.plot:
        result.plot(options.plot)
        print(f"picture: {options.plot}")
    return status
