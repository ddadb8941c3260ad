"""``metalloid passes``: run passes of the compiler on LLVM IR, as ``opt`` does; for developers."""

from __future__ import annotations

import argparse
import difflib
import importlib
import textwrap
from pathlib import Path
from typing import Any

from metalloid.errors import ArgumentError, MetalloidError

#: Device -> module with its pipelines and `run_single_passes`.
_MODULES = {
    "cpu": "metalloid.backends.cpu.compile.single_passes.vector",
    "cpu-thread": "metalloid.backends.cpu.compile.single_passes.thread",
    "cpu-check": "metalloid.backends.cpu.compile.single_passes.check",
    "cuda": "metalloid.backends.cuda.compile.single_passes",
}


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "passes", help="run passes of the compiler on LLVM IR",
        description="Run passes of a device's pipelines on a function, after those that give what "
        "they need, and print it; or list all passes. See docs/internals/compiler.md.",
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE.ll", nargs="?")
    parser.add_argument(
        "--pass", dest="passes", action="append", default=[], metavar="NAME", help="repeatable"
    )
    parser.add_argument("--list", action="store_true", help="list the passes of each pipeline")
    parser.add_argument(
        "--device", choices=tuple(_MODULES), default="cpu", help="whose pipelines (cpu)"
    )
    parser.add_argument("--function", metavar="NAME", help="which, if the file has several")
    cpu = parser.add_argument_group("for --device cpu")
    cpu.add_argument("--width", type=int, default=8, help="lanes of vector code (8)")
    cpu.add_argument(
        "--mask-bits", type=int, default=1, help="1, or bits of the integers that are masks (1)"
    )
    parser.add_argument(
        "--words", type=int, default=1, help="parameters of the kernel, each a word (1)"
    )
    cuda = parser.add_argument_group("for --device cuda")
    cuda.add_argument(
        "--constant", type=int, action="append", default=[], metavar="WORD",
        help="index of a word that points to constant memory; repeatable",
    )  # fmt: skip
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    pipelines = importlib.import_module(_MODULES[options.device]).PIPELINES
    if options.list:
        for title, pipeline in pipelines.items():
            print(f"{title}:")
            for each in pipeline:
                print(f"  {each.name}{' (optional)' if each.optional else ''}")
                print(textwrap.fill(each.why, 96, initial_indent="    ", subsequent_indent="    "))
                for word in ("needs", "gives", "invalidates"):
                    if facts := getattr(each, word):
                        print(f"    {word}: {', '.join(facts)}")
        return 0
    if options.file is None or not options.passes:
        raise ArgumentError("[passes] give a file and --pass NAME, or --list.")
    known = {each.name for pipeline in pipelines.values() for each in pipeline}
    for name in options.passes:
        if name not in known:
            near = difflib.get_close_matches(name, known)
            hint = f"did you mean {' or '.join(near)}?" if near else "see --list."
            raise ArgumentError(f"[passes] unknown pass {name!r}; {hint}")
    print(_text_after(options))
    return 0


def _text_after(options: argparse.Namespace) -> str:
    from metalloid.compiler.ir.parser import function_names
    from metalloid.compiler.ir.single_passes import InvalidInput
    from metalloid.compiler.ir.types import Unsupported
    from metalloid.compiler.ir.verifier import InvalidIR

    try:
        ir = Path(options.file).read_text()
    except OSError as error:
        raise ArgumentError(f"[passes] {error}") from error
    names = function_names(ir)
    if not names:
        raise ArgumentError(f"[passes] {options.file} defines no function.")
    if options.function is None and len(names) > 1:
        raise ArgumentError(
            "[passes] the file has several functions. Choose one by --function: "
            f"{', '.join(names)}."
        )
    name = options.function or names[0]
    module = importlib.import_module(_MODULES[options.device])
    targets: list[Any] = []
    if options.device == "cpu":
        targets.append(module.Target(options.width, options.mask_bits, options.words))
    elif options.device == "cuda":
        for word in options.constant:
            if word not in range(options.words):
                raise ArgumentError(
                    f"[passes] --constant {word} is out of range: --words is {options.words}."
                )
        targets.append(module.LaunchLayout(options.words, frozenset(options.constant)))
    try:
        return str(module.run_single_passes(ir, name, options.passes, *targets))
    except KeyError as error:
        raise ArgumentError(f"[passes] @{name} does not go through {error.args[0]}.") from error
    except (InvalidInput, InvalidIR, Unsupported) as error:
        raise MetalloidError(f"{options.file}: {error}") from error
