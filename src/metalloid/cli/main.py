"""The ``metalloid`` command: one verb per module."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from metalloid import __version__
from metalloid.cli import (
    bench,
    cache,
    check,
    compile,
    completion,
    demo,
    info,
    passes,
    profile,
    run,
    selftest,
)
from metalloid.errors import MetalloidError

_VERBS = (run, check, compile, info, selftest, cache, demo, bench, profile, passes, completion)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="metalloid", description="Run Metal kernels on any machine."
    )
    parser.add_argument("--version", action="version", version=f"metalloid {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for module in _VERBS:
        module.add_verb(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; its exit status."""
    options = build_parser().parse_args(arguments)
    try:
        status: int = options.act(options)
    except MetalloidError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        return 0
    except KeyboardInterrupt:
        return 130
    return status
