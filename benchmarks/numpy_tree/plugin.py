"""pytest's plugin: puts the module in place that the tests import, and notes the outcomes.

Shares of the tests and limits of time are those of CuPy's tests, set by `__main__.py`.
"""

from __future__ import annotations

import re
import resource
from typing import Any

from cupy_tree import plugin as shared
from cupy_tree.plugin import pytest_runtest_call as pytest_runtest_call
from cupy_tree.plugin import pytest_runtest_setup as pytest_runtest_setup

from numpy_tree import adapter

_MEMORY = 10 << 30  # bytes of a process: some tests want more than there is
_FRAME = re.compile(r"^(\S*test_\w+\.py):(\d+): in .*\n((?:    .*\n)+)", re.MULTILINE)


def pytest_configure(config: Any) -> None:
    """Put the module in place, and limit the memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    adapter.install()


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Choose this process's share of the tests."""
    adapter.is_collecting = False
    shared.choose_share(items)


def pytest_collectreport(report: Any) -> None:
    """Note files that cannot be imported."""
    if report.failed:
        reason = str(report.longrepr).splitlines()[-1]
        shared.write_row(report.nodeid, "not imported", "", reason, 0.0)


def pytest_runtest_logreport(report: Any) -> None:
    """Note the outcome of a test, and of a failure the statement and the error."""
    if report.when == "call" or report.failed or (report.skipped and report.when == "setup"):
        statement, reason = "", ""
        if report.failed:
            text = str(report.longrepr or "")
            frames = _FRAME.findall(text)
            statement = f"{frames[-1][1]}: {' '.join(frames[-1][2].split())}" if frames else ""
            reason = shared.explain(text, 400)[1]
        elif report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
        shared.write_row(report.nodeid, report.outcome, statement, reason, report.duration)
