"""Profiles see every launch and evaluation, with the line that made it and what it did."""

import json
import sys
import threading
import time

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution import known_evaluations
from metalloid.bench.ceilings import Ceilings
from metalloid.compiler.toolchain import progress
from metalloid.kernels.kernel import Kernel
from metalloid.profiler.records import Counts, LineCost
from metalloid.runtime.devices.registry import default_device

TEXT = """
#include <metal_stdlib>
using namespace metal;

kernel void scale(device float *x, constant float &by, uint i [[thread_position_in_grid]])
{
    x[i] *= by;
}
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(TEXT)


def here():
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def test_launches_of_kernels(lib):
    x, buffer = np.ones(1000, np.float32), mtl.Buffer(np.ones(64, np.float32))
    lib.scale(x, 2.0, threads=1000)  # so that the fast path is taken
    with mtl.profile() as p:
        lib.scale(x, 2.0, threads=1000)
        first = here() - 1
        lib.scale(buffer, 3.0, threads=(48, 1), group_size=8)
        lib.scale(x=x, by=0.5, threads=1000)
        lib.scale(x, 2.0, threads=0)
    assert x.tolist() == [2.0] * 1000
    assert np.asarray(buffer).tolist() == [3.0] * 48 + [1.0] * 16
    assert [each.kernel for each in p.launches] == ["scale"] * 4
    assert [each.line for each in p.launches] == [first, first + 2, first + 3, first + 4]
    assert {each.file for each in p.launches} == {__file__}
    assert {each.device for each in p.launches} == {default_device().name}
    assert [each.threads for each in p.launches] == [
        (1000, 1, 1), (48, 1, 1), (1000, 1, 1), (0, 1, 1)
    ]  # fmt: skip
    for each in p.launches[:3]:
        assert 0 < each.device_seconds < p.seconds
        assert 0 <= each.began <= each.began + each.host_seconds <= p.seconds
        assert each.thread == threading.get_ident()
    assert p.launches[1].group == (8, 1, 1)
    # A float is loaded and stored, and the number is loaded.
    assert [each.counts.total.operations for each in p.launches] == [1000, 48, 1000, 0]
    assert p.launches[0].counts.total.stored == 4000
    assert p.launches[0].counts.traffic == 8004
    assert not p.evaluations


def test_launches_that_take_their_turn_in_a_queue(lib):
    x = mtl.Buffer(np.ones(1 << 16, np.float32))
    with mtl.profile() as p:
        for _ in range(5):
            lib.scale(x, 2.0, threads=1 << 16)
    assert np.asarray(x)[-1] == 32
    ends = 0.0
    for each in p.launches:  # one after another
        assert each.device_began >= ends - 1e-9
        ends = each.device_began + each.device_seconds
    assert len(p.launches) == 5


def test_everything_is_as_before_afterwards(lib):
    call, run, launch, device = Kernel.__call__, Kernel.run, mtl.Graph.launch, default_device()
    x = np.ones(4, np.float32)
    with mtl.profile() as p:
        assert Kernel.__call__ is not call
        with pytest.raises(mtl.ArgumentError, match="another profile"):
            mtl.profile().__enter__()
    with pytest.raises(mtl.ArgumentError, match="used already"):
        p.__enter__()

    def fail():
        with failed:
            lib.scale(x, 2.0, threads=4)
            raise ZeroDivisionError

    failed = mtl.profile()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(failed.launches) == 1
    assert (Kernel.__call__, Kernel.run, mtl.Graph.launch) == (call, run, launch)
    assert device.recording is device.default_recorder is None
    assert not known_evaluations.observers
    assert not progress.observers


def test_arrays():
    a, b = mtl.asarray(np.arange(64, dtype=np.float32) * 1.5), mtl.asarray(np.ones(64, np.float32))
    twice = mtl.compile(lambda x, y: x * y + x)
    expected = (np.arange(64) * 3.0).tolist()
    with mtl.profile() as p:
        for _ in range(3):  # which is planned, repeated, and found by native functions
            mtl.eval(result := a * b + a)
            assert result.tolist() == expected
        line = here() - 2
        for _ in range(4):
            assert twice(a, b).tolist() == expected
    evaluations = [each for each in p.evaluations if each.line == line]
    assert [each.name for each in evaluations] == ["evaluation"] * 3
    assert len(p.evaluations) == 7 or default_device().memory != "host"
    # The software Metal device launches kernels of the CPU.
    launches = [each for each in p.launches if each.device == default_device().name]
    assert len(launches) == 7
    assert {each.kernel for each in launches} == {launches[0].kernel}
    for each in launches[:3]:
        evaluation = p.evaluations[each.evaluation]
        assert evaluation.line == each.line == line
        assert evaluation.began <= each.began
    assert all(each.counts.total.operations == 128 for each in launches)
    assert mtl.eval(result := a * b + a) is None
    assert result.tolist() == expected
    assert twice(a, b).tolist() == expected


@pytest.mark.slow
def test_products_have_the_operations_of_the_definition():
    a, b = (mtl.asarray(np.random.default_rng(k).random((64, 64), np.float32)) for k in range(2))
    with mtl.profile() as p, mtl.config.scope(products="kernels"):
        mtl.eval(mtl.matmul(a, b))
    operations = sum(each.counts.total.operations for each in p.launches)
    assert 1 <= operations / (2 * 64**3) < 1.02


@pytest.mark.slow
def test_graphs_and_kernels_of_other_libraries(lib):
    x = mtl.Buffer(np.ones(8, np.float32))
    custom = mtl.metal_kernel(
        name="twice", input_names=["a"], output_names=["b"],
        source="uint i = thread_position_in_grid.x; b[i] = 2 * a[i];",
    )  # fmt: skip
    graph = mtl.Graph()
    with mtl.profile() as p:
        with graph:
            lib.scale(x, 2.0, threads=8)
            lib.scale(x, 5.0, threads=4)
        assert not p.launches
        graph.launch(wait=True)
        (b,) = custom(
            inputs=[np.ones(6, np.float32)], grid=(6, 1, 1), threadgroup=(6, 1, 1),
            output_shapes=[(6,)], output_dtypes=[np.float32],
        )  # fmt: skip
        line = here() - 1
        assert np.asarray(b).tolist() == [2.0] * 6
    assert np.asarray(x).tolist() == [10.0] * 4 + [2.0] * 4
    *replayed, last = p.launches
    assert len(replayed) == (2 if default_device().name == "cpu" else len(replayed))
    assert "twice" in last.kernel
    assert abs(last.line - line) <= 6  # Python 3.11 has the line of the call's beginning


@pytest.mark.slow
@pytest.mark.needs("the CPU")
def test_failures_and_checked_launches(lib):
    x = np.ones(4, np.float32)
    with mtl.profile() as p:
        with pytest.raises(mtl.KernelFault):
            lib.scale(x, 2.0, threads=400)
        lib.scale(x, 2.0, threads=4, check=True)
        lib.scale(mtl.Buffer(x), 2.0, threads=4, wait=False).wait()
    assert [each.threads[0] for each in p.launches] == [4, 4]
    assert x.tolist() == [2.0] * 4


def test_profiles_without_counts(lib):
    with mtl.profile(counts=False) as p:
        lib.scale(np.ones(4, np.float32), 2.0, threads=4)
    assert p.launches[0].counts is None
    assert p.share(p.launches[0]) is None
    assert "scale" in str(p)
    with pytest.raises(mtl.ArgumentError, match="no counted launch of 'scale'"):
        p.lines("scale")


def test_share_of_the_roofline():
    limits = Ceilings(bandwidth=100.0, arithmetic=1000.0)
    assert Counts(LineCost(operations=500), 10).share(1.0, limits) == 0.5
    assert Counts(LineCost(operations=500), 80).share(1.0, limits) == 0.8
    assert Counts(LineCost(operations=500), 80).share(2.0, limits) == 0.4


def test_table(lib, monkeypatch):
    x = np.ones(1000, np.float32)
    with mtl.profile() as p:
        for _ in range(3):
            lib.scale(x, 2.0, threads=1000)
    p.__dict__["ceilings"] = {default_device().name: Ceilings(1e12, 1e12)}
    (row,) = [line.split() for line in str(p).splitlines() if line.startswith(" scale")]
    assert row[2].startswith("test_profile.py:")
    assert row[3:5] == ["3", "1000"]
    seconds = sum(each.device_seconds for each in p.launches if each.kernel == "scale")
    share = 3 * 8004 / 1e12 / seconds
    assert row[-1] == f"{share:.0%}"


# -- traces

#: By phase, the fields that the format requires and their types.
_SCHEMA = {
    "M": {"name": str, "ph": str, "pid": int, "tid": int, "args": dict},
    "X": {
        "name": str, "cat": str, "ph": str, "ts": float, "dur": float, "pid": int, "tid": int,
        "args": dict,
    },
}  # fmt: skip
_METADATA = {"process_name", "thread_name"}


def assert_is_trace(trace):
    """The trace is of Google's format: 'Trace Event Format', JSON Object Format."""
    assert trace.keys() <= {"traceEvents", "displayTimeUnit", "otherData", "metadata"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    named, tracks = set(), {}
    for event in trace["traceEvents"]:
        fields = _SCHEMA[event["ph"]]
        assert event.keys() == fields.keys()
        for name, type_ in fields.items():
            assert type(event[name]) is type_, name
        if event["ph"] == "M":
            assert event["name"] in _METADATA
            assert event["args"].keys() == {"name"}
            named.add((event["name"], event["pid"], event["tid"]))
        else:
            assert event["ts"] >= 0
            assert event["dur"] >= 0
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    for (process, thread), events in tracks.items():
        assert ("process_name", process, 0) in named
        assert ("thread_name", process, thread) in named
        open_until = []  # complete events of a track are nested or apart
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            end = event["ts"] + event["dur"]
            while open_until and open_until[-1] <= event["ts"] + 1e-3:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3, event
            open_until.append(end)


def test_traces(lib, tmp_path):
    x, (a, b) = np.ones(1000, np.float32), (mtl.asarray(np.ones(64, np.float32)) for _ in range(2))
    with mtl.profile() as p:
        lib.scale(x, 2.0, threads=1000)
        for _ in range(3):
            mtl.eval(a * b + a)
    p.to_perfetto(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert_is_trace(trace)
    events = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    for category in ("launch", "kernel"):
        assert sum(each["cat"] == category for each in events) == len(p.launches)
    assert sum(each["cat"] == "evaluation" for each in events) == 3
    (kernel,) = [e for e in events if e["cat"] == "kernel" and e["name"] == "scale"]
    assert kernel["args"]["operations"] == 1000
    assert kernel["args"]["line"].startswith(f"{__file__}:")


@pytest.mark.slow
def test_compilations_are_events(fresh_cache):
    lib = mtl.library(TEXT)
    with mtl.profile(counts=False) as p:
        lib.scale(np.ones(4, np.float32), 2.0, threads=4)
    (compilation,) = [each for each in p.compilations if "kernel 'scale'" in each.subject]
    assert 0 < compilation.seconds < p.seconds
    assert "kernel 'scale'" in str(p)


@pytest.mark.slow
def test_pictures(lib, tmp_path):
    pytest.importorskip("matplotlib")
    with mtl.profile() as p:
        lib.scale(np.ones(1000, np.float32), 2.0, threads=1000)
    figure = p.plot(tmp_path / "profile.png")
    timeline, roofline = figure.axes
    assert [text.get_text() for text in timeline.get_yticklabels()] == ["scale"]
    assert "scale" in [text.get_text() for text in roofline.texts]
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(mtl.MetalloidError, match="cannot write"):
        p.plot(tmp_path / "profile.nonsense")


@pytest.mark.needs("the CPU")
@pytest.mark.slow
def test_overhead():
    """Off none, on less than 3 us a launch, in turns."""
    lib, x = mtl.library(TEXT), np.ones(64, np.float32)
    a, b = mtl.arange(64.0), mtl.ones(64)
    twice = mtl.compile(lambda x, y: x * y + x)

    def seconds(action, number=200):
        began = time.perf_counter()
        for _ in range(number):
            action()
        return (time.perf_counter() - began) / number

    for action in (
        lambda: lib.scale(x, 1.0, threads=64),
        lambda: mtl.eval(a * b + a),
        lambda: twice(a, b),
    ):
        off, on, after = [], [], []
        for _ in range(50):  # short runs, of which some are not interrupted
            off.append(seconds(action))
            with mtl.profile():
                action()  # which is counted
                on.append(seconds(action))
            after.append(seconds(action))
        assert min(on) - min(off) < 3e-6
        assert min(after) < 1.1 * min(off)


def test_on_cuda():
    """Times of launches on a card are those of its events."""
    try:
        device = mtl.Device("cuda")
    except mtl.DeviceUnavailable as reason:
        pytest.skip(str(reason))
    lib = mtl.library(TEXT, device=device)
    x, host = mtl.Buffer(np.ones(1 << 24, np.float32), device), np.ones(1 << 20, np.float32)
    a = mtl.asarray(np.ones((512, 512), np.float32), device=device)
    with mtl.profile() as p:
        for _ in range(3):
            lib.scale(x, 2.0, threads=1 << 24)
        lib.scale(host, 2.0, threads=1 << 20)
        for _ in range(3):
            mtl.eval(mtl.exp(a) + a)
        graph = mtl.Graph(device)
        with graph:
            lib.scale(x, 0.5, threads=1 << 24)
        graph.launch(wait=True)
    assert {each.device for each in p.launches} == {device.name}
    assert sum(each.kernel == "scale" for each in p.launches) == 4
    assert len(p.evaluations) == 3
    for each in p.launches[1:3]:  # 128 MiB, at most 8 TB/s
        assert 1.6e-5 < each.device_seconds < 1e-2
    assert p.launches[0].counts.total.operations == 1 << 24
    assert host[0] == 2
    assert "GB/s" in str(p)
