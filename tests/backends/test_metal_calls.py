"""The calls of the Metal device to Metal, and how it reads the answers."""

import contextlib
import sys
import types

import numpy as np
import pytest
from metal_stand_ins import metal_device

import metalloid as mtl
from metalloid.backends.metal.pyobjc import binding, ownership
from metalloid.backends.metal.runtime import device
from metalloid.compat import Metal

SOURCE = """
#include <metal_stdlib>
using namespace metal;
struct Large { float values[1025]; };
kernel void add(device float* x, constant float& a, uint i [[thread_position_in_grid]]) { x[i] += a; }
kernel void add_all(device float* x, constant float* a, uint i [[thread_position_in_grid]]) { x[0] += a[1023]; }
kernel void add_last(device float* x, constant Large& a) { x[0] += a.values[1024]; }
"""


@pytest.fixture
def said(monkeypatch):
    """A function that notes the arguments of a method of the software device."""

    def note(kind, name, result=None):
        calls, method = [], getattr(kind, name)

        def call(self, *given):
            calls.append(given)
            return method(self, *given) if result is None else result

        monkeypatch.setattr(kind, name, call)
        return calls

    return note


def encoder_of(metal):
    return type(metal.queue.commandBuffer().computeCommandEncoder())


# -- what is asked for


def test_there_is_one_queue(said):
    queues, buffers = said(Metal.MTLDevice, "newCommandQueue"), []
    fresh = metal_device()
    buffers = said(type(fresh.queue), "commandBuffer")
    add = mtl.library(SOURCE, device=fresh).add
    for _ in range(3):
        add(np.zeros(4, np.float32), 1, threads=4)
    assert len(queues) == 1
    assert len(buffers) == 3


def test_small_constants_go_into_the_command(metal, lib, said):
    inline = said(encoder_of(metal), "setBytes_length_atIndex_")
    allocations = said(Metal.MTLDevice, "newBufferWithLength_options_")
    x = mtl.Buffer(np.zeros(1, np.float32), metal)
    lib.add(x, 1.5, threads=1)
    lib.add_all(x, np.ones(1024, np.float32), threads=1).wait()
    assert [(nbytes, index) for _, nbytes, index in inline] == [(4, 1), (4096, 1)]
    assert len(allocations) == 1  # x
    lib.add_last(x, np.ones(1025, np.float32).view("V4100"), threads=1).wait()
    assert len(inline) == 2  # Metal takes no more than 4096 bytes
    assert np.asarray(x).tolist() == [3.5]


@pytest.mark.parametrize(
    ("mode", "chosen", "functions"),
    [("safe", "Safe", "Precise"), ("relaxed", "Relaxed", "Precise"), ("fast", "Fast", "Fast")],
)
def test_math_modes_are_options_of_the_compiler(metal, said, mode, chosen, functions):
    options = Metal.MTLCompileOptions
    modes, exact = said(options, "setMathMode_"), said(options, "setMathFloatingPointFunctions_")
    _ = mtl.library("kernel void k() {}", device=metal, math_mode=mode).k
    assert modes == [(getattr(Metal, f"MTLMathMode{chosen}"),)]
    assert exact == [(getattr(Metal, f"MTLMathFloatingPointFunctions{functions}"),)]


@pytest.mark.parametrize("mode", ["safe", "relaxed", "fast"])
def test_math_modes_before_macos_15(metal, said, monkeypatch, mode):
    monkeypatch.delattr(Metal.MTLCompileOptions, "setMathMode_")
    fast = said(Metal.MTLCompileOptions, "setFastMathEnabled_")
    _ = mtl.library("kernel void before() {}", device=metal, math_mode=mode).before
    assert fast == [(mode == "fast",)]


def test_language_and_macros_are_options_of_the_compiler(metal, said):
    versions = said(Metal.MTLCompileOptions, "setLanguageVersion_")
    macros = said(Metal.MTLCompileOptions, "setPreprocessorMacros_")
    with mtl.config.scope(metal_language="3.1"):
        _ = mtl.library(
            "kernel void k(device int* x) { *x = N; }", defines={"N": "3"}, device=metal
        ).k
    assert versions == [(Metal.MTLLanguageVersion3_1,)]
    assert macros == [({"N": "3"},)]


# -- what the answers become


def test_seconds_are_the_gpus(metal, lib, said):
    buffer = type(metal.queue.commandBuffer())
    said(buffer, "GPUStartTime", 10.0)
    said(buffer, "GPUEndTime", 13.0)
    x = mtl.Buffer(16, metal)
    metal.synchronize()
    events = [lib.add(x, 1, threads=4) for _ in range(4)]
    assert [event.seconds for event in events] == [0.75] * 4


def test_limits_are_the_pipelines(metal, lib, said):
    pipeline = type(lib.add._program.pipeline)
    said(pipeline, "maxTotalThreadsPerThreadgroup", 448)
    said(pipeline, "threadExecutionWidth", 64)
    add = mtl.library(SOURCE, device=metal).add
    assert add.max_group_size == 448
    assert add.engine == "software: simdgroups of 64 threads"
    x = np.zeros(4, np.float32)
    with pytest.raises(
        mtl.ArgumentError, match="449 threads; a threadgroup of this kernel has at most 448"
    ):
        add(x, 1, threads=449, group_size=449)


def test_memory_is_what_metal_says(metal, said):
    said(Metal.MTLDevice, "recommendedMaxWorkingSetSize", 1000)
    said(Metal.MTLDevice, "currentAllocatedSize", 300)
    said(Metal.MTLDevice, "maxBufferLength", 500)
    assert metal.info().memory_bytes == 1000
    told = metal.details()
    assert (told["working set"], told["in use"], told["largest buffer"]) == (
        "1000 bytes", "300 bytes", "500 bytes",
    )  # fmt: skip
    assert told["families"].startswith("Apple1, ")


# -- PyObjC


def test_ownership_is_registered_before_the_device_exists_and_batches_have_a_pool(monkeypatch):
    """PyObjC's modules, as far as the device sees them."""
    happened = []

    @contextlib.contextmanager
    def pool():
        happened.append("pool")
        yield

    def default():
        happened.append("device")
        return Metal.MTLCreateSystemDefaultDevice()

    objc = types.ModuleType("objc")
    objc.registerMetaDataForSelector = lambda owner, selector, data: happened.append(selector)
    objc.autorelease_pool = pool
    module = types.ModuleType("Metal")
    vars(module).update({name: getattr(Metal, name) for name in Metal.__all__})
    module.MTLCreateSystemDefaultDevice = default
    monkeypatch.setitem(sys.modules, "objc", objc)
    monkeypatch.setitem(sys.modules, "Metal", module)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.mac_ver", lambda: ("15.1", ("", "", ""), "arm64"))
    binding._open.cache_clear()
    with mtl.config.scope(metal_binding=""):
        opened = device.open_device(0)
    monkeypatch.undo()
    binding._open.cache_clear()
    assert happened[: happened.index("device")] == list(ownership.OWNED)
    assert opened.by_default
    add, x = mtl.library(SOURCE, device=opened).add, mtl.Buffer(16, opened)
    # A batch is also committed when it has waited too long, as it may on a slow machine.
    monkeypatch.setattr(device, "_LONGEST_BATCH", float("inf"))
    happened.clear()
    for _ in range(64):
        add(x, 1, threads=4)
    opened.synchronize()
    assert happened == ["pool"] * 2  # where it is encoded, and where it has ended
