"""What all tests share."""

import os
import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from metalloid.runtime import registry

sys.path.insert(0, str(Path(__file__).parent))
registry._KINDS["own"] = "own_memory_device"

hypothesis.settings.register_profile(
    "metalloid",
    deadline=None,  # the first example of a kernel compiles it
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("metalloid")


@pytest.fixture(autouse=True)
def _doctest_folder(request, monkeypatch):
    """Examples in docstrings name files from the top of the repository."""
    monkeypatch.chdir(request.config.rootpath)


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)


@pytest.fixture
def fresh_cache(tmp_path):
    """An empty cache of compiled kernels, for this test only."""
    import metalloid as mtl

    with mtl.config.scope(cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = str(call.excinfo.value) if call.excinfo else ""
        required = [word for word in os.environ.get("METALLOID_REQUIRE", "").split(",") if word]
        missing = [word for word in required if word in reason]
        if missing:
            report.outcome = "failed"
            report.longrepr = f"METALLOID_REQUIRE: {missing[0]} is required, but: {reason}"
