"""Messages of kernels by Metal's log states, with a module that stands for them."""

import logging

import numpy as np
import pytest
from metal_stand_ins import descriptor, metal_device

import metalloid as mtl
from metalloid.backends.metal.runtime import logs
from metalloid.compat import Metal

SOURCE = """
#include <metal_stdlib>
#include <metal_logging>
using namespace metal;
constant os_log mine("com.example", "two");
kernel void says(device int* x, uint i [[thread_position_in_grid]]) { mine.log_error("%d", x[i]); }
"""
QUIET = "kernel void quiet(device int* x) { *x = 1; }"


class State:
    def __init__(self):
        self.handlers = []

    def addLogHandler_(self, handler):
        self.handlers.append(handler)


@pytest.fixture
def device(monkeypatch):
    """A device whose Metal has log states, and knows what it was asked for."""
    metal = metal_device(
        MTLLogStateDescriptor=descriptor("Level", "BufferSize"),
        MTLCommandBufferDescriptor=descriptor("LogState"),
        MTLLogLevelDebug=1,
    )
    metal.asked, metal.state = [], State()

    def new_state(self, descriptor, error):
        metal.asked.append(("state", descriptor.told))
        return metal.state, None

    def with_descriptor(self, descriptor):
        metal.asked.append(("buffer", descriptor.told))
        return self.commandBuffer()

    options, queue = Metal.MTLCompileOptions, type(metal.queue)
    monkeypatch.setattr(
        type(metal.gpu), "newLogStateWithDescriptor_error_", new_state, raising=False
    )
    monkeypatch.setattr(queue, "commandBufferWithDescriptor_", with_descriptor, raising=False)
    monkeypatch.setattr(
        options,
        "setEnableLogging_",
        lambda self, on: metal.asked.append(("enabled", on)),
        raising=False,
    )
    return metal


def test_kernels_that_log_get_a_log_state(device):
    lib, x = mtl.library(SOURCE, device=device), mtl.Buffer(np.zeros(4, np.int32), device)
    lib.says(x, threads=1).wait()
    lib.says(x, threads=1).wait()
    expected = ("buffer", {"LogState": device.state})
    assert device.asked == [
        ("enabled", True),
        ("state", {"Level": 1, "BufferSize": 2**20}),
        expected,
        expected,
    ]
    assert device.state.handlers == [logs.emit]
    mtl.library(QUIET, device=device).quiet(x, threads=1).wait()
    assert len(device.asked) == 4


def test_a_gpu_without(device, monkeypatch):
    monkeypatch.setattr(
        type(device.gpu), "newLogStateWithDescriptor_error_", lambda *given: (None, "no")
    )
    x = mtl.Buffer(np.zeros(4, np.int32), device)
    mtl.library(SOURCE, device=device).says(x, threads=1).wait()
    assert device.asked == [("enabled", True)]


def test_messages_become_records(caplog):
    caplog.set_level(logging.DEBUG, "metalloid.kernels")
    for level, meant in ((1, 10), (2, 20), (3, 20), (4, 40), (5, 50), (0, 20), (99, 20)):
        logs.emit("com.example", "two", level, "x = 7 %d")
        record = caplog.records[-1]
        assert (record.name, record.levelno) == ("metalloid.kernels.com.example.two", meant)
        assert record.getMessage() == "x = 7 %d"
        assert (record.kernel, record.kernel_thread) == ("", None)
    logs.emit(None, None, 3, "plain")
    assert caplog.records[-1].name == "metalloid.kernels"
