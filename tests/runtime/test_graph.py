"""Launches recorded once and run again."""

import threading

import numpy as np
import pytest

import metalloid as mtl

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void scale(device float* x, constant float& by, uint i [[thread_position_in_grid]]) {
  x[i] *= by;
}
kernel void add(device float* z, device const float* x, device const float* y,
                uint i [[thread_position_in_grid]]) { z[i] = x[i] + y[i]; }
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(TEXT)


def numbers(count=100):
    return mtl.Buffer(np.arange(count, dtype=np.float32))


def test_what_is_recorded_runs_when_the_graph_is_launched_and_each_time(lib):
    x, y, z = numbers(), numbers(), mtl.Buffer(np.zeros(100, np.float32))
    graph = mtl.Graph()
    with graph:
        lib.scale(x, 2.0, threads=100)
        lib.scale(y, 3.0, threads=50)
        event = lib.add(z, x, y, threads=100)
    assert np.array_equal(np.asarray(x), np.arange(100))
    assert not event.done
    for match, use in (("has not run", event.wait), ("has not run", lambda: event.seconds)):
        with pytest.raises(mtl.LaunchError, match=match):
            use()
    expected_x, expected_y = np.arange(100.0), np.arange(100.0)
    for _ in range(3):
        done = graph.launch()
        expected_x *= 2
        expected_y[:50] *= 3
        assert np.array_equal(np.asarray(z), expected_x + expected_y)
        assert done.wait().seconds >= 0
    assert len(graph) == 3
    assert repr(graph).startswith("<Graph of 3 launches on ")


def test_what_python_writes_counts_at_the_next_launch(lib):
    x = numbers()
    graph = mtl.Graph()
    with graph:
        lib.scale(x, 2.0, threads=100)
    np.asarray(x)[:] = 7
    graph.launch(wait=True)
    assert np.array_equal(np.asarray(x), np.full(100, 14))


def test_numbers_stay_as_they_were_recorded_whatever_others_follow(lib):
    x, other = numbers(), numbers()
    graph = mtl.Graph()
    with graph:
        lib.scale(x, 2.0, threads=100)
    for by in np.linspace(0, 1, 5000):  # more than a device keeps
        lib.scale(other, float(by), threads=1)
    graph.launch(wait=True)
    assert np.array_equal(np.asarray(x), 2 * np.arange(100))


def test_other_threads_launch_as_ever(lib):
    x, y = numbers(), numbers()
    with mtl.Graph():
        lib.scale(x, 2.0, threads=100)
        thread = threading.Thread(target=lambda: lib.scale(y, 2.0, threads=100).wait())
        thread.start()
        thread.join()
    assert np.array_equal(np.asarray(x), np.arange(100))
    assert np.array_equal(np.asarray(y), 2 * np.arange(100))


def test_an_empty_graph_does_nothing():
    graph = mtl.Graph()
    with graph:
        pass
    assert graph.launch(wait=True).done


def test_wrong_use(lib):
    graph = mtl.Graph()
    with pytest.raises(mtl.LaunchError, match="nothing was recorded"):
        graph.launch()
    with graph, pytest.raises(mtl.LaunchError, match="another graph is being recorded"):
        mtl.Graph().__enter__()
    with pytest.raises(mtl.LaunchError, match="has already been recorded"):
        graph.__enter__()
    x = numbers()
    broken = mtl.Graph()
    with pytest.raises(mtl.ArgumentError), broken:
        lib.scale(x, threads=lib.scale(x, 2.0, threads=100) and 100)
    assert len(broken) == 0
    lib.scale(x, 2.0, threads=100)
    assert np.array_equal(np.asarray(x), 2 * np.arange(100))


def test_arguments_are_checked_when_they_are_recorded(lib):
    with mtl.Graph(), pytest.raises(mtl.ArgumentError, match="expects 2 arguments, got 1"):
        lib.scale(numbers(), threads=4)


def test_memory_of_the_host_is_used_in_place_or_refused(lib):
    x = np.ones(4, np.float32)
    graph = mtl.Graph()
    if graph.device.memory == "host":
        with graph:
            lib.scale(x, 2.0, threads=4)
        graph.launch(wait=True)
        assert x.tolist() == [2, 2, 2, 2]
    elif graph.device.memory == "own":
        with graph, pytest.raises(mtl.ArgumentError, match="can only use memory of the device"):
            lib.scale(x, 2.0, threads=4)


def test_a_graph_that_a_device_refuses_is_not_recorded(lib, monkeypatch):
    def refused(launches):
        raise mtl.LaunchError("[graph] no.")

    graph = mtl.Graph()
    monkeypatch.setattr(graph.device, "prepare", refused)
    with pytest.raises(mtl.LaunchError, match="no"), graph:
        lib.scale(numbers(), 2.0, threads=100)
    assert len(graph) == 0
    assert graph.device.recording is None
    with pytest.raises(mtl.LaunchError, match="nothing was recorded"):
        graph.launch()
