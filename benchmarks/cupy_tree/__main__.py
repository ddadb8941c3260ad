"""Run CuPy's tests by folder; see the package's text."""

from __future__ import annotations

import argparse
import collections
import re
import sys
from pathlib import Path

from pytest_shares import run_shares

from cupy_tree.plugin import ABOUT_CUDA, ABOUT_CUPY, NO_TIME

FOLDERS = (
    "core", "creation", "indexing", "linalg", "logic", "manipulation", "math", "misc", "padding",
    "random", "sorting", "statistics", "fft", "polynomial",
)  # fmt: skip
#: Test, outcome, kind of failure, reason, seconds.
Row = tuple[str, str, str, str, float]


def run(options: argparse.Namespace) -> list[Row]:
    """Run the tests in processes of their own."""
    checkout = options.checkout.resolve()
    folders = [str(checkout / "tests/cupy_tests" / f"{folder}_tests") for folder in options.folders]
    command = [sys.executable, "-m", "pytest", *folders, "-q", "-c", "/dev/null", "--rootdir",
               str(checkout), "--noconftest", "-p", "no:cacheprovider", "-p", "cupy_tree.plugin",
               "-W", "ignore", "--no-header", "--continue-on-collection-errors", "--tb=short",
               "--show-capture=no", "--no-summary"]  # fmt: skip
    environment = {
        "CUPY_TREE_CHECKOUT": str(checkout),
        "CUPY_TREE_TYPES": options.types,
        "CUPY_TREE_ONE_EACH": "1" if options.one_each else "",
    }
    return run_shares(command, options, environment, lambda row: row[:2])


def table(rows: list[Row]) -> str:
    """The table of outcomes, and the reasons of failures, in Markdown."""
    folders: dict[str, collections.Counter[str]] = {}
    reasons: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for name, outcome, kind, reason, _seconds in rows:
        match = re.search(r"cupy_tests/(\w+)_tests", name)
        folder = match[1] if match else ""
        known = outcome == "skipped" and reason in (ABOUT_CUDA, ABOUT_CUPY, NO_TIME)
        folders.setdefault(folder, collections.Counter())[reason if known else outcome] += 1
        if outcome in ("failed", "not imported"):
            reasons[kind or outcome][f"{folder}: {reason}"] += 1
    text = [
        "| folder | tests | about CUDA | of CuPy | skipped | not run | passed | failed | share |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    total: collections.Counter[str] = collections.Counter()
    for folder in sorted(folders):
        total += folders[folder]
        text.append(_row(folder, folders[folder]))
    text.append(_row("all", total))
    for kind, counter in reasons.items():
        text += ["", f"{kind}, {sum(counter.values())}", ""]
        text += [f"* {number} {reason}" for reason, number in counter.most_common()]
    return "\n".join(text)


def _row(name: str, outcomes: collections.Counter[str]) -> str:
    shown = (ABOUT_CUDA, ABOUT_CUPY, "skipped", NO_TIME, "passed", "failed")
    counts = [sum(map(outcomes.__getitem__, shown)), *map(outcomes.__getitem__, shown)]
    ran = outcomes["passed"] + outcomes["failed"]
    share = f"{100 * outcomes['passed'] / ran:.1f} %" if ran else ""
    return f"| {name} | {' | '.join(f'{count:,}' for count in counts)} | {share} |"


def main() -> None:
    """Run the folders, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--folders", nargs="*", default=FOLDERS)
    parser.add_argument("--seconds", type=float, default=1e9,
                        help="for all tests, which are in random order")  # fmt: skip
    parser.add_argument("--limit", type=int, default=120, help="seconds for a test")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--types", default="?bBhHiIlLqQefdFD", help="over which tests loop")
    parser.add_argument("--one-each", action="store_true",
                        help="only one of the instances of each test")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("cupy.jsonl"), help="a line per test")
    print(table(run(parser.parse_args())))


if __name__ == "__main__":
    main()
