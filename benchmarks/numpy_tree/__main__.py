"""Run NumPy's tests by file; see the package's text."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
from pathlib import Path

import numpy
from pytest_shares import run_shares

from numpy_tree import adapter, reasons

FILES = (
    "_core/test_numeric", "_core/test_ufunc", "_core/test_umath", "_core/test_umath_complex",
    "_core/test_shape_base", "_core/test_function_base", "_core/test_einsum",
    "_core/test_item_selection", "_core/test_indexing", "_core/test_multiarray",
    "_core/test_getlimits",
    "lib/test_function_base", "lib/test_nanfunctions", "lib/test_arraysetops",
    "lib/test_shape_base", "lib/test_twodim_base", "lib/test_histograms", "lib/test_index_tricks",
    "lib/test_polynomial", "lib/test_type_check", "lib/test_ufunclike", "lib/test_arraypad",
    "lib/test_stride_tricks", "lib/test_packbits", "linalg/test_linalg", "fft/test_helper",
    "fft/test_pocketfft", "random/test_generator_mt19937",
)  # fmt: skip
#: Test, outcome, statement that failed, error, seconds.
Row = tuple[str, str, str, str, float]


def run(options: argparse.Namespace) -> list[Row]:
    """Run the tests in processes of their own."""
    folder = Path(tempfile.mkdtemp(prefix="numpy_tests_"))
    home = Path(numpy.__file__).parent
    chosen = [f for f in FILES if not options.files or f in options.files
              or f.split("/")[1] in options.files]  # fmt: skip
    copies = []
    for file in chosen:
        part, name = file.split("/")
        (folder / part).mkdir(exist_ok=True)
        copies.append(str(adapter.copy_of(home / part / "tests" / f"{name}.py", folder / part)))
    command = [sys.executable, "-m", "pytest", *copies, "-q", "-c", "/dev/null", "--rootdir",
               str(folder), "--noconftest", "-p", "no:cacheprovider", "-p", "numpy_tree.plugin",
               "-W", "ignore", "--no-header", "--continue-on-collection-errors", "--tb=short",
               "--show-capture=no", "--no-summary", "--import-mode=importlib"]  # fmt: skip
    if options.k:
        command += ["-k", options.k]
    return run_shares(command, options, {}, lambda row: row[0])


def table(rows: list[Row]) -> str:
    """The tables of outcomes by file, and of the reasons of failures, in Markdown."""
    files: dict[str, collections.Counter[str]] = {}
    counted: collections.Counter[tuple[bool, str]] = collections.Counter()
    for row in rows:
        name, outcome, statement, error, _seconds = row
        file = name.split("::")[0].removesuffix(".py")
        counts = files.setdefault(file, collections.Counter())
        if outcome in ("failed", "not imported"):
            reason = reasons.reason_of(name, statement, error)
            counted[reason] += 1
            outcome = "cannot be" if reason[0] else "failed"
        counts[outcome] += 1
    files["all"] = sum(files.values(), collections.Counter())
    text = ["| file | tests | skipped | cannot be | passed | failed | share passed |",
            "|---|---|---|---|---|---|---|"]  # fmt: skip
    for file, counts in files.items():
        ran = counts["passed"] + counts["failed"]
        shown = [counts.total(), *(counts[o] for o in ("skipped", "cannot be", "passed", "failed"))]
        share = f"{100 * counts['passed'] / ran:.1f} %" if ran else ""
        text.append(f"| {file} | {' | '.join(f'{n:,}' for n in shown)} | {share} |")
    text += ["", "| number | | reason |", "|---|---|---|"]
    for (cannot, reason), number in sorted(
        counted.items(), key=lambda item: (-item[0][0], -item[1])
    ):
        text.append(f"| {number} | {'cannot be' if cannot else 'failed'} | {reason} |")
    return "\n".join(text)


def main() -> None:
    """Run the files, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="*", help="such as test_linalg or lib/test_function_base")
    parser.add_argument("-k", help="pytest's choice of tests")
    parser.add_argument("--seconds", type=float, default=1e9, help="for all tests")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a test")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("numpy.jsonl"), help="a line per test")
    parser.add_argument("--rows", type=Path, help="tables of the lines of an earlier run")
    options = parser.parse_args()
    if options.rows:
        print(table([tuple(json.loads(line)) for line in options.rows.read_text().splitlines()]))
    else:
        print(table(run(options)))


if __name__ == "__main__":
    main()
