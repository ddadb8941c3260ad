"""``metalloid compile``: the code of a file's kernels for a machine that need not be this one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from metalloid.errors import ArgumentError


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "compile", help="compile MSL files ahead of time",
        description="Compile the kernels of an MSL file for a target, such as cuda:sm_90.",
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "--target", required=True, help="such as cuda:sm_90, cpu:x86-64-v3 or cpu:aarch64"
    )
    parser.add_argument("--kernel", action="append", help="compile only this kernel; repeatable")
    parser.add_argument(
        "--emit", help="stage to write: cpp, ll, or ptx, x86 or arm64 (the last stage, by default)"
    )
    parser.add_argument("--math-mode", choices=("safe", "relaxed", "fast"), default="safe")
    parser.add_argument("-I", dest="include_dirs", action="append", default=[], metavar="FOLDER")
    parser.add_argument(
        "-o", dest="output", metavar="OUT",
        help="file for one kernel, folder for several; by default standard output",
    )  # fmt: skip
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from metalloid.kernels.library import library

    lib = library(
        path=options.file, target=options.target, math_mode=options.math_mode,
        include_dirs=options.include_dirs,
    )  # fmt: skip
    names = options.kernel or lib.functions
    texts = {}
    for name in names:
        stages = lib.function(name).asm
        stage = options.emit or list(stages)[-1]
        if stage not in stages:
            raise ArgumentError(
                f"[compile] --emit must be one of {', '.join(stages)}, got {stage!r}."
            )
        texts[name] = stages[stage]
    if options.output is None:
        sys.stdout.write("\n".join(texts.values()))
    elif len(texts) == 1 and not Path(options.output).is_dir():
        Path(options.output).write_text(next(iter(texts.values())))
    else:
        folder = Path(options.output)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.{stage}").write_text(text)
    return 0
