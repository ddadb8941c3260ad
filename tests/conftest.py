"""Fixtures and options of all tests."""

import collections
import faulthandler
import os
import sys
import tempfile
from pathlib import Path

import hypothesis
import numpy as np
import pytest

# The compiler verifies its IR after every pass, in subprocesses of tests too; 0 switches it off.
os.environ.setdefault("METALLOID_VERIFY", "1")
# Tests start many processes that import the package, so its modules are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from metalloid.runtime.devices import registry

sys.dont_write_bytecode = False

if os.environ.get("METALLOID_DEVICE") == "own":
    sys.path.insert(0, str(Path(__file__).parent))
    registry._KINDS["own"] = "own_memory_device"

hypothesis.settings.register_profile(
    "metalloid",
    deadline=None,  # the first example of a kernel compiles it
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("metalloid")


#: Names the folder where workers of pytest-xdist write their stacks if they crash. Standard error is
#: buried under the progress of the others.
CRASH_FOLDER = "METALLOID_CRASH_FOLDER"
_crash_files = []  # open as long as faulthandler may write to them


@pytest.hookimpl(trylast=True)  # after pytest's own use of faulthandler
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        if getattr(config.option, "numprocesses", None):
            os.environ[CRASH_FOLDER] = tempfile.mkdtemp(prefix="metalloid-crashes-")
    elif CRASH_FOLDER in os.environ:
        file = Path(os.environ[CRASH_FOLDER], f"{os.getpid()}.txt")
        _crash_files.append(file.open("w"))
        faulthandler.enable(_crash_files[-1])


def pytest_terminal_summary(terminalreporter, config):
    folder = os.environ.pop(CRASH_FOLDER, "")
    if not folder or hasattr(config, "workerinput"):
        return
    for file in sorted(Path(folder).iterdir()):
        if stack := file.read_text().splitlines():
            terminalreporter.section(f"the stack of a worker that crashed (process {file.stem})")
            terminalreporter.write_line("\n".join(stack[:50]))
        file.unlink()
    Path(folder).rmdir()


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


#: What a test may need of the default device, and the kinds of device that lack it.
LACKING = {
    # Its engines, choices by cost, stages of compilation, messages, faults.
    "the CPU": {"cuda", "metal", "opencl", "own"},
    "the process's memory": {"cuda", "metal", "opencl", "own"},  # in place, where it lies
    "a context that outlives a fault": {"cuda", "opencl"},  # or a process, where nothing is checked
    "checks on GPUs": {"cpu", "metal", "own"},  # of accesses, if bounds="checked" is asked for
    "checks in PTX": {"cpu", "metal", "opencl", "own"},  # and barriers that do not wait
    "an end to launches": {"metal", "opencl", "own"},  # by Ctrl-C, time limits and Event.cancel
    "every kind of texture": {"metal"},  # multisampled ones, texture buffers
    "tensors": {"metal"},
    "more than 31 buffers": {"metal"},
    "arrays of pointers": {"metal"},  # as parameters; not those in structs
}


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(config, items):
    mark_other_instances(items)
    mark_long_tests(config, items)


def mark_long_tests(config, items):
    """Mark the tests of ``long_tests.txt`` as slow.

    Raises
    ------
    pytest.UsageError
        If a file that is collected has no such test.
    """
    text = Path(__file__).with_name("long_tests.txt").read_text()
    names = {line for line in text.splitlines() if not line.startswith("#")}
    for item in items:
        if item.nodeid in names:
            item.add_marker(pytest.mark.slow)
    if not any("::" in arg for arg in config.args):
        collected = {item.nodeid for item in items}
        files = {name.partition("::")[0] for name in collected}
        unknown = [n for n in names - collected if n.partition("::")[0] in files]
        if unknown:
            raise pytest.UsageError(f"tests/long_tests.txt: no tests: {sorted(unknown)}")


def mark_other_instances(items):
    """Mark the instances that `sample` leaves out as slow.

    ``sample(n)`` keeps `n` instances at equal distances, the first and the last among them.
    ``sample(n, per="name")`` does so for each value of the parameter `name`, beginning one further
    for each value, so that the values of the other parameters all occur.
    """
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for item in items:
        marker = item.get_closest_marker("sample")
        if marker and not item.get_closest_marker("slow"):
            per = marker.kwargs.get("per")
            value = item.callspec.params[per] if per else None
            groups[item.nodeid.partition("[")[0], marker.args[0]][repr(value)].append(item)
    for (_, count), instances_of in groups.items():
        for first, instances in enumerate(instances_of.values()):
            size = len(instances)
            steps = max(count - 1, 1)
            selected = {(first + k * (size - 1) // steps) % size for k in range(count)}
            for k in set(range(size)) - selected:
                instances[k].add_marker(pytest.mark.slow)


def pytest_runtest_setup(item):
    kind = os.environ.get("METALLOID_DEVICE", "cpu").partition(":")[0]
    for marker in item.iter_markers("needs"):
        for need in marker.args:
            if kind in LACKING[need]:
                pytest.skip(f"{kind} lacks: {need}")


def asks_for_double(call):
    """Whether a test ended with the error for float64 on a device that has none."""
    import metalloid as mtl

    error = call.excinfo.value if call.excinfo else None
    is_about_double = isinstance(error, mtl.UnsupportedType) or (
        isinstance(error, mtl.CompileError) and "'double' is not supported" in str(error)
    )
    return is_about_double and not mtl.default_device().has_float64


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed and asks_for_double(call):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "Skipped: the device lacks: float64")
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = str(call.excinfo.value) if call.excinfo else ""
        required = [word for word in os.environ.get("METALLOID_REQUIRE", "").split(",") if word]
        # What a device does not have by its nature is not missing.
        missing = [word for word in required if word in reason and " lacks: " not in reason]
        if missing:
            report.outcome = "failed"
            report.longrepr = f"METALLOID_REQUIRE: {missing[0]} is required, but: {reason}"
