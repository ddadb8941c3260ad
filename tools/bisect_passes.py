"""Find the optional pass of the compiler that makes a result wrong.

``python tools/bisect_passes.py -- COMMAND...`` runs a command that ends with status 0 if its
result is right, such as a test, with more and fewer optional passes (``METALLOID_PASS_LIMIT``), and
prints the pass after which the result is wrong for the first time, as ``-opt-bisect-limit`` of LLVM
helps to. The command must run the same passes in the same order each time, and show the standard
error of its processes: ``pytest -s -n 0``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

_PASS = re.compile(r"^PASS (?:not )?running \((\d+)\) (\S+) on @(.*)$", re.M)


class Run(NamedTuple):
    """A run of an optional pass."""

    number: int
    name: str
    function: str


class NotBisectable(Exception):
    """The command does not tell right from wrong by the number of passes."""


def attempt(command: Sequence[str], limit: int) -> tuple[bool, list[Run]]:
    """Run a command with the first `limit` optional passes: whether it is right, and all runs."""
    environment = os.environ | {"METALLOID_PASS_LIMIT": str(limit)}
    outcome = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    runs = [Run(int(number), *names) for number, *names in _PASS.findall(outcome.stderr)]
    verdict = "right" if outcome.returncode == 0 else f"wrong (status {outcome.returncode})"
    print(f"{limit} passes: {verdict}", file=sys.stderr)
    return outcome.returncode == 0, runs


def bisect(command: Sequence[str]) -> Run:
    """The run of a pass that makes the result of a command wrong.

    Raises
    ------
    NotBisectable
        If the result is right with all optional passes, or wrong without any.
    """
    is_right, runs = attempt(command, 0)
    if not is_right:
        raise NotBisectable("the result is wrong without optional passes, too")
    if not runs:
        raise NotBisectable(
            "no optional pass runs, or the command hides the stderr of its processes (pytest -s)"
        )
    # Code that is wrong may lead to other kernels: the number of runs need not be the same.
    right, wrong = 0, sys.maxsize
    is_right, runs = attempt(command, wrong)
    if is_right:
        raise NotBisectable("the result is right with all optional passes")
    wrong = len(runs)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        is_right, seen = attempt(command, middle)
        if is_right:
            right = middle
        else:
            wrong, runs = middle, seen
    return next(run for run in runs if run.number == wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 if there is nothing to find."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND...")
    command = parser.parse_args(arguments).command
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        parser.error("which command? its status must be 0 if the result is right")
    try:
        culprit = bisect(command)
    except NotBisectable as error:
        print(f"bisect_passes: {error}", file=sys.stderr)
        return 1
    print(f"run {culprit.number}: {culprit.name} on @{culprit.function}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
