"""A plugin of pytest: ``pytest --metalloid-check`` checks all launches of the tests.

The launches that a test makes with `metalloid.checking` are left to it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

_FINDINGS = pytest.StashKey[list[Any]]()
_OUTPUT = "metalloid_findings"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("metalloid")
    group.addoption(
        "--metalloid-check",
        action="store_true",
        help="check launches of Metal kernels on the CPU for races and uninitialised memory",
    )
    group.addoption(
        "--metalloid-sarif",
        metavar="FILE",
        help="with --metalloid-check: write the findings to a SARIF file",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare for findings."""
    config.stash[_FINDINGS] = []


@pytest.hookimpl(hookwrapper=True)  # which old versions of pytest know, too
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Check the launches of a test, and fail it if they have findings."""
    with ExitStack() as stack:
        if item.config.getoption("--metalloid-check"):
            from metalloid.sanitizer.checking import checking

            findings = stack.enter_context(checking())
            stack.callback(item.config.stash[_FINDINGS].extend, findings)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the findings of a process of pytest-xdist."""
    findings = getattr(node, "workeroutput", {}).get(_OUTPUT)
    if findings is not None:
        node.config.stash[_FINDINGS] += pickle.loads(findings)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the SARIF file; in a process of pytest-xdist, send the findings to the first one."""
    path: Any = session.config.getoption("--metalloid-sarif")
    if not path:
        return
    from metalloid.runtime.launch.findings import without_duplicates
    from metalloid.sanitizer.sarif import write_sarif

    collected: list[Any] = session.config.stash[_FINDINGS]
    findings = without_duplicates(collected)
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = pickle.dumps(findings)
    else:
        write_sarif(path, findings)
