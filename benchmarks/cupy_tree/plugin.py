"""pytest's plugin: puts the module `cupy` in place, marks tests about CUDA, notes the outcomes.

`__main__.py` starts several processes with it, and sets its options as environment variables.
"""

from __future__ import annotations

import inspect
import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cupy_tree import adapter

#: Files about CUDA itself, CuPy's inside or kernels written in CUDA C++.
CUDA_FILES = re.compile(
    "fusion_tests|test_(bfloat16|carray|cub_reduction|elementwise|flags|function|include|internal|"
    "mdspan|multithreading|ndarray_contiguity|ndarray_cuda_array_interface|ndarray_get|"
    "ndarray_owndata|ndarray_scatter|raw|reduction|scan|structured|syncdetect|userkernel|gufuncs|"
    "memory_ranges|who|byte_bounds|cache|callback|bit_generator)[.]py|MultiGpu"
)
#: Marks of such tests in a test's text.
CUDA_TEXT = re.compile(
    r"\bcuda\.(?!runtime\.is_hip)|cupyx\.|\b_core\.|_internal\b|\bcublas|cusolver|cufft|Stream\(|"
    r"get_array_module|[^_]_util\.|testing\.multi_gpu|\.data\.ptr|accelerator|RawKernel|fuse\(|"
    r"(Elementwise|Reduction)Kernel|_default_fft_func|config\.(?!enable_nd)[a-z]|get_fft_plan|"
    r"\.toDlpack|_is_initialized|_kernel\b|set_allocator|AssertFunctionIsCalled|CudaArray|"
    r"_index_32_bits|__cuda_array_interface__|n_free_blocks"
)
#: Marks of tests of what only CuPy has: private functions, refusals of NumPy's arrays.
CUPY_TEXT = re.compile(
    r"NotImplementedError|assert_called|_check_and_get_dtype|[gs]et_random_state|reset_states|"
    r"_cupy_get_ndarray|memptr|blocking="
)
CUPY_NAMES = re.compile(
    "with_numpy_input|numpy_(nd)?array_rejected|TestInterval|cupy_only|like_subok"
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
ABOUT_CUDA, ABOUT_CUPY, NO_TIME = "about CUDA", "about CuPy", "no time left"
_PREFIX = "CUPY_TREE_"


class TestTimeout(Exception):
    """A test has run for too long."""


def pytest_configure(config: Any) -> None:
    """Put the module in place."""
    checkout = Path(os.environ[_PREFIX + "CHECKOUT"])
    adapter.install(checkout, os.environ[_PREFIX + "TYPES"])
    sys.path.insert(0, str(checkout / "tests"))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Choose this process's share of the tests, in random order; mark those about CUDA."""
    choose_share(items)
    for item in items:
        reason = _other_subject(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def choose_share(items: list[Any]) -> None:
    """Choose this process's share of the tests, in random order."""
    random.Random(0).shuffle(items)
    if os.environ.get(_PREFIX + "ONE_EACH"):
        names = {re.sub(r"_param_\d+_{.*}|\[.*\]", "", item.nodeid): item for item in items}
        items[:] = names.values()
    share, shares = map(int, os.environ[_PREFIX + "SHARE"].split("/"))
    rows = _rows_file()
    known = [json.loads(line) for line in rows.open()] if rows.exists() else []
    finished = {name for name, outcome, *_ in known if outcome != "not imported"}
    items[:] = [item for item in items[share::shares] if item.nodeid not in finished]
    if finished and items:  # the process that wrote the rows ended in the next test
        write_row(items.pop(0).nodeid, "failed", "crash", "the process ended", 0.0)


def _other_subject(item: Any) -> str:
    """The subject of a test, if that is not NumPy's functions."""
    if CUDA_FILES.search(item.nodeid) or "CudaArrayInterface" in item.nodeid:
        return ABOUT_CUDA
    code = item.function
    while hasattr(code, "__wrapped__"):
        code = code.__wrapped__
    try:
        text = inspect.getsource(code)
    except (OSError, TypeError):
        text = ""
    if CUDA_TEXT.search(text):
        return ABOUT_CUDA
    return ABOUT_CUPY if CUPY_TEXT.search(text) or CUPY_NAMES.search(item.nodeid) else ""


def pytest_runtest_setup(item: Any) -> None:
    """Skip what is left after the time."""
    if time.time() > float(os.environ[_PREFIX + "END"]):
        pytest.skip(NO_TIME)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Any:
    """Stop a test after its time."""

    def stop(number: int, frame: Any) -> None:
        raise TestTimeout(f"more than {limit} s")

    limit = int(os.environ[_PREFIX + "LIMIT"])
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_collectreport(report: Any) -> None:
    """Note files that cannot be imported."""
    if report.failed and not CUDA_FILES.search(report.nodeid):
        reason = str(report.longrepr).splitlines()[-1]
        write_row(report.nodeid, "not imported", "", reason, 0.0)


def pytest_runtest_logreport(report: Any) -> None:
    """Note the outcome of a test."""
    if report.when == "call" or report.failed or (report.skipped and report.when == "setup"):
        kind, reason = "", ""
        if report.failed:
            kind, reason = explain(str(report.longrepr or ""))
        elif report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
        write_row(report.nodeid, report.outcome, kind, reason, report.duration)


def _rows_file() -> Path:
    return Path(os.environ[_PREFIX + "ROWS"])


def write_row(*row: Any) -> None:
    """Add a line to the file of outcomes."""
    with _rows_file().open("a") as file:
        file.write(json.dumps(row) + "\n")


def explain(text: str, length: int = 150) -> tuple[str, str]:
    """The kind of a failure, and the line that tells its reason."""
    lines = [re.sub(r"^E\s+", "", line).strip() for line in text.splitlines()]
    kind = next((kind for kind, pattern in KINDS if re.search(pattern, text)), "an error")
    matches = [k for k, line in enumerate(lines) if re.match(r"[A-Za-z_.]*(Error|Failed)\b", line)]
    own = [k for k in matches if "raises error" not in lines[k] and "Both cupy" not in lines[k]]
    at = (own or matches or [0])[-1]
    reason = " ".join(line for line in lines[at : at + 4] if line)
    return kind, re.sub(r"\d+", "N", reason)[:length]
