"""Run CuPy's tests by folder; see the package's text."""

from __future__ import annotations

import argparse
import collections
import inspect
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cupy_tree import adapter

FOLDERS = (
    "core", "creation", "indexing", "linalg", "logic", "manipulation", "math", "misc", "padding",
    "random", "sorting", "statistics", "fft", "polynomial",
)  # fmt: skip
#: Files about CUDA itself, CuPy's inside or kernels written in CUDA C++.
CUDA_FILES = re.compile(
    "fusion_tests|test_(bfloat16|carray|cub_reduction|elementwise|flags|function|include|internal|"
    "mdspan|multithreading|ndarray_contiguity|ndarray_cuda_array_interface|ndarray_get|"
    "ndarray_owndata|ndarray_scatter|raw|reduction|scan|structured|syncdetect|userkernel|gufuncs|"
    "memory_ranges|who|byte_bounds|cache|callback|bit_generator)[.]py"
)
#: Marks of such tests in a test's text.
CUDA_TEXT = re.compile(
    r"\bcuda\.(?!runtime\.is_hip)|cupyx\.|\b_core\.|_internal\b|\bcublas|cusolver|cufft|Stream\(|"
    r"get_array_module|[^_]_util\.|testing\.multi_gpu|\.data\.ptr|accelerator|RawKernel|fuse\(|"
    r"(Elementwise|Reduction)Kernel|_default_fft_func|config\.[a-z]|get_fft_plan|\.toDlpack|"
    r"_is_initialized|_kernel\b|asfortranarray|set_allocator|AssertFunctionIsCalled|CudaArray|"
    r"_index_32_bits"
)
#: Outcomes of a comparison.
KINDS = (
    ("another type of the result", r"ndarrays of different dtypes"),
    ("order in memory", r"contiguous flag|f_contiguous|c_contiguous|F_CONTIGUOUS|Orders of"),
    ("an error where NumPy has none", r"Only cupy raises error"),
    ("no error where NumPy has one", r"Only numpy raises error|DID NOT RAISE"),
    ("another class of error", r"Both cupy and numpy raise|Different types of errors"),
    ("missing name", r"has no attribute|cannot import|has no '"),
    ("other numbers", r"Mismatched elements|not equal|Not equal|Max absolute|max_ulp|ULP|"
     r"AssertionError"),
)  # fmt: skip


class Recorder:
    """pytest's plugin: chooses the tests, and notes their outcomes."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.start = seconds, time.monotonic()
        self.rows: list[tuple[str, str, str, str]] = []
        self.cuda = self.collected = 0
        self.errors: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out tests about CUDA; the others are in random order."""
        random.Random(0).shuffle(items)
        own = [item for item in items if not self._is_about_cuda(item)]
        self.collected, self.cuda = len(items), len(items) - len(own)
        items[:] = own

    def _is_about_cuda(self, item: Any) -> bool:
        if CUDA_FILES.search(item.nodeid) or "CudaArrayInterface" in item.nodeid:
            return True
        code = item.function
        while hasattr(code, "__wrapped__"):
            code = code.__wrapped__
        try:
            return bool(CUDA_TEXT.search(inspect.getsource(code)))
        except (OSError, TypeError):
            return False

    def pytest_collectreport(self, report: Any) -> None:
        """Note files that cannot be imported."""
        if report.failed and not CUDA_FILES.search(report.nodeid):
            self.errors.append(f"{report.nodeid}: {str(report.longrepr).splitlines()[-1]}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the outcome of a test."""
        if report.when == "call" or report.failed or (report.skipped and report.when == "setup"):
            text = str(report.longrepr or "")
            kind, reason = ("", "") if report.passed or report.skipped else explain(text)
            self.rows.append((report.nodeid, report.outcome, kind, reason))

    def pytest_runtest_teardown(self, item: Any) -> None:
        """Stop after the time."""
        if time.monotonic() - self.start > self.seconds:
            item.session.shouldstop = "time"


def explain(text: str) -> tuple[str, str]:
    """The kind of a failure, and the line that tells its reason."""
    lines = [re.sub(r"^E\s+", "", line).strip() for line in text.splitlines()]
    kind = next((kind for kind, pattern in KINDS if re.search(pattern, text)), "an error")
    matches = [k for k, line in enumerate(lines) if re.match(r"[A-Za-z_.]*(Error|Failed)\b", line)]
    own = [k for k in matches if "raises error" not in lines[k] and "Both cupy" not in lines[k]]
    at = (own or matches or [0])[-1]
    reason = " ".join(line for line in lines[at : at + 4] if line)
    return kind, re.sub(r"\d+", "N", reason)[:150]


def run_folder(checkout: Path, folder: str, seconds: float, dtypes: str) -> dict[str, Any]:
    """Run the tests of a folder in this process."""
    adapter.install(checkout, dtypes)
    sys.path.insert(0, str(checkout / "tests"))
    recorder = Recorder(seconds)
    pytest.main(
        [str(checkout / "tests" / "cupy_tests" / f"{folder}_tests"), "-q", "-c", "/dev/null",
         "--rootdir", str(checkout), "--noconftest", "-p", "no:cacheprovider", "-W", "ignore",
         "--no-header", "--continue-on-collection-errors", "--tb=short", "--show-capture=no"],
        plugins=[recorder],
    )  # fmt: skip
    return {"folder": folder, "collected": recorder.collected, "cuda": recorder.cuda,
            "rows": recorder.rows, "errors": recorder.errors}  # fmt: skip


def table(results: list[dict[str, Any]]) -> str:
    """The table of outcomes, and the reasons of failures, in Markdown."""
    text = [
        "| folder | tests | about CUDA | run | skipped | passed | failed | share passed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    reasons: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    total = [0] * 6
    for result in results:
        outcomes = collections.Counter(row[1] for row in result["rows"])
        passed, failed = outcomes["passed"], outcomes["failed"]
        counts = [result["collected"], result["cuda"], passed + failed, outcomes["skipped"],
                  passed, failed]  # fmt: skip
        total = [a + b for a, b in zip(total, counts, strict=True)]
        text.append(_row(result["folder"], counts))
        for _name, outcome, kind, reason in result["rows"]:
            if outcome == "failed":
                reasons[kind][f"{result['folder']}: {reason}"] += 1
        for error in result["errors"]:
            reasons["not imported"][error] += 1
    text.append(_row("all", total))
    for kind, counter in reasons.items():
        text += ["", f"{kind}, {sum(counter.values())}", ""]
        text += [f"* {number} {reason}" for reason, number in counter.most_common()]
    return "\n".join(text)


def _row(name: str, counts: list[int]) -> str:
    share = f"{100 * counts[4] / counts[2]:.1f} %" if counts[2] else ""
    return f"| {name} | {' | '.join(map(str, counts))} | {share} |"


def main() -> None:
    """Run each folder in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--folders", nargs="*", default=FOLDERS)
    parser.add_argument("--seconds", type=float, default=1e9,
                        help="of a folder; tests are in random order")  # fmt: skip
    parser.add_argument("--types", default="?bBhHiIlLqQefdFD", help="over which tests loop")
    parser.add_argument("--out", type=Path, default=Path("cupy.json"))
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_this_process:
        (folder,) = options.folders
        result = run_folder(options.checkout.resolve(), folder, options.seconds, options.types)
        options.out.write_text(json.dumps(result))
        return
    results = []
    for folder in options.folders:
        out = options.out.with_suffix(f".{folder}.json")
        command = [sys.executable, "-m", "cupy_tree", str(options.checkout), "--folders", folder,
                   "--seconds", str(options.seconds), "--types", options.types, "--out", str(out),
                   "--in-this-process"]  # fmt: skip
        subprocess.run(command, check=False, stdout=sys.stderr)
        if out.exists():
            results.append(json.loads(out.read_text()))
    options.out.write_text(json.dumps(results))
    print(table(results))


if __name__ == "__main__":
    main()
