"""Traces for Xcode: what is asked of Metal, by a module that stands for it."""

import types

import numpy as np
import pytest
from metal_stand_ins import descriptor, metal_device

import metalloid as mtl


class Manager:
    def __init__(self):
        self.calls, self.is_enabled, self.error = [], True, None

    def sharedCaptureManager(self):
        return self

    def supportsDestination_(self, destination):
        return self.is_enabled and destination == 2

    def startCaptureWithDescriptor_error_(self, descriptor, error):
        self.calls.append(("start", descriptor.told))
        return self.error is None, self.error

    def stopCapture(self):
        self.calls.append(("stop", None))


@pytest.fixture
def manager():
    return Manager()


@pytest.fixture
def device(manager):
    return metal_device(
        MTLCaptureManager=manager,
        MTLCaptureDescriptor=descriptor("CaptureObject", "Destination", "OutputURL"),
        MTLCaptureDestinationGPUTraceDocument=2,
        NSURL=types.SimpleNamespace(fileURLWithPath_=lambda path: path),
    )


def test_a_trace_has_the_launches_of_the_block(device, manager, tmp_path, monkeypatch):
    lib = mtl.library(
        "kernel void k(device int* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }",
        device=device,
    )
    commit = device._commit
    monkeypatch.setattr(
        device,
        "_commit",
        lambda batch: (manager.calls.append(("commit", batch.count)), commit(batch)),
    )
    x = mtl.Buffer(np.zeros(4, np.int32), device)
    lib.k(x, threads=4)
    with mtl.metal.capture(tmp_path / "trace.gputrace", device):
        lib.k(x, threads=4)
        lib.k(x, threads=4)
    path = str(tmp_path / "trace.gputrace")
    told = {"CaptureObject": device.gpu, "Destination": 2, "OutputURL": path}
    assert manager.calls == [("commit", 1), ("start", told), ("commit", 2), ("stop", None)]
    assert np.asarray(x).tolist() == [3] * 4


def test_an_error_in_the_block_ends_the_trace(device, manager):
    with pytest.raises(ZeroDivisionError), mtl.metal.capture("x.gputrace", device):
        1 / 0  # noqa: B018
    assert [what for what, _ in manager.calls] == ["start", "stop"]


def test_what_metal_refuses(device, manager):
    manager.error = types.SimpleNamespace(localizedDescription=lambda: "it exists")
    with (
        pytest.raises(mtl.LaunchError, match=r"cannot start a trace at x.gputrace: it exists"),
        mtl.metal.capture("x.gputrace", device),
    ):
        pass
    manager.is_enabled = False
    with (
        pytest.raises(mtl.LaunchError, match=r"Set MTL_CAPTURE_ENABLED=1 in its environment"),
        mtl.metal.capture("x.gputrace", device),
    ):
        pass
    assert [what for what, _ in manager.calls] == ["start"]


def test_devices_without_traces():
    with (
        pytest.raises(mtl.LaunchError, match="the software Metal device cannot write traces"),
        mtl.metal.capture("x.gputrace", metal_device()),
    ):
        pass
    with pytest.raises(mtl.ArgumentError, match=r"is for Apple's GPUs, not for cpu"):
        mtl.metal.capture("x.gputrace", "cpu")
