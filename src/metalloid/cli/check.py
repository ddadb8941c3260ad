"""``metalloid check``: compile files and report like a compiler."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from metalloid.cli.source_options import add_source_options, source_arguments
from metalloid.errors import CompileError, MetalloidError

if TYPE_CHECKING:
    from metalloid.kernels.library import Library


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "check", help="compile MSL files and report errors and warnings",
        description="Compile MSL files with all their kernels; exit status 1 if one has errors.",
    )  # fmt: skip
    parser.add_argument("files", nargs="+", metavar="FILE")
    add_source_options(parser)
    parser.add_argument(
        "--portable", action="store_true",
        help="also report code that Apple's Metal compiler is known to refuse",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    reports = [_check(file, options) for file in options.files]
    if options.json:
        print(json.dumps({"files": reports}, indent=2))
    failed = sum(not report["ok"] for report in reports)
    if not options.json:
        checked = f"{len(reports)} file{'s' * (len(reports) != 1)}"
        print(f"{checked} checked, {failed} with errors", file=sys.stderr)
    return 1 if failed else 0


def _check(file: str, options: argparse.Namespace) -> dict[str, Any]:
    from metalloid.kernels.library import library

    diagnostics: list[Any] = []
    kernels: list[str] = []
    failure = ""
    try:
        lib = library(path=file, portable=options.portable, **source_arguments(options))
        diagnostics += lib.warnings
        kernels = list(lib.functions)
        _compile_all(lib)
    except CompileError as error:
        diagnostics += error.diagnostics
        failure = str(error)
    except MetalloidError as error:
        failure = str(error)
    if not options.json:
        for diagnostic in diagnostics:
            print(diagnostic, file=sys.stderr)
        if failure and not diagnostics:
            print(failure, file=sys.stderr)
    return {
        "file": file,
        "ok": not failure,
        "kernels": kernels,
        "diagnostics": [asdict(diagnostic) for diagnostic in diagnostics],
        **({"error": failure} if failure and not diagnostics else {}),
    }


def _compile_all(lib: Library) -> None:
    for name in lib:
        lib.function(name)
