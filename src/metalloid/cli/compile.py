"""``metalloid compile``: the code of a file's kernels for a machine that need not be this one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from metalloid.cli.source_options import (
    add_constants,
    add_source_options,
    function_constants,
    source_arguments,
)
from metalloid.errors import ArgumentError


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "compile", help="compile MSL files ahead of time",
        description="Compile the kernels of an MSL file for a target, such as cuda:sm_90: to text, "
        "or for several targets to a bundle (-o FILE.mtlb), which metalloid.load_library runs "
        "without a compiler.",
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "--target", dest="targets", action="append", required=True, metavar="TARGET",
        help="such as cuda:sm_90, cpu:x86-64-v3, cpu:aarch64 or spirv; repeatable for a bundle",
    )  # fmt: skip
    parser.add_argument("--kernel", action="append", help="compile only this kernel; repeatable")
    parser.add_argument(
        "--emit",
        help="stage to write: cpp, ll, or ptx, x86, arm64 or spirv (the last stage, by "
        "default), or spv, the binary module",
    )
    add_constants(parser)
    add_source_options(parser)
    parser.add_argument(
        "-o", dest="output", metavar="OUT",
        help="bundle (*.mtlb); else file for one kernel, folder for several; by default standard "
        "output",
    )  # fmt: skip
    parser.add_argument(
        "--no-source", action="store_true", help="leave the MSL source out of a bundle"
    )
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    if options.output is not None and options.output.endswith(".mtlb"):
        return _bundle(options)
    if len(options.targets) > 1:
        raise ArgumentError("[compile] several targets need a bundle: -o FILE.mtlb.")
    return _texts(options)


def _bundle(options: argparse.Namespace) -> int:
    from metalloid.kernels.bundles.save import save_library

    if options.emit:
        raise ArgumentError("[compile] --emit is for text; a bundle has machine code.")
    save_library(
        options.output, path=options.file, targets=options.targets, kernels=options.kernel,
        constants=function_constants(options), include_source=not options.no_source,
        **source_arguments(options),
    )  # fmt: skip
    return 0


def _texts(options: argparse.Namespace) -> int:
    from metalloid.kernels.library import library

    lib = library(path=options.file, target=options.targets[0], **source_arguments(options))
    names, constants = options.kernel or lib.functions, function_constants(options)
    texts: dict[str, bytes] = {}
    for name in names:
        kernel = lib.function(name, constants)
        stages = {name: text.encode() for name, text in kernel.asm.items()}
        options.emit = options.emit or list(stages)[-1]
        stages |= kernel.modules
        stage = options.emit
        if stage not in stages:
            raise ArgumentError(
                f"[compile] --emit must be one of {', '.join(stages)}, got {stage!r}."
            )
        texts[name] = stages[stage]
    if options.output is None:
        sys.stdout.buffer.write(b"\n".join(texts.values()))
        sys.stdout.flush()
    elif len(texts) == 1 and not Path(options.output).is_dir():
        Path(options.output).write_bytes(next(iter(texts.values())))
    else:
        folder = Path(options.output)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.{stage}").write_bytes(text)
    return 0
