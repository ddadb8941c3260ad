"""Messages to a user whose Apple GPU, or the binding to it, has trouble; the CPU goes on working.

The texts stand in ``metal_messages.txt`` (see ``snapshots.py``).
"""

import importlib
import types
from pathlib import Path

import numpy as np
import pytest
from snapshots import Snapshots

import metalloid as mtl
from metalloid.backends.metal.pyobjc import binding
from metalloid.backends.metal.runtime import device
from metalloid.compat import Metal
from metalloid.runtime.devices import registry

MESSAGES = Snapshots(Path(__file__).with_name("metal_messages.txt"))
#: The size of memory that is wrapped depends on where it begins in its page.
HIDDEN = [(r"which has \d+ elements", "which has N elements")]
SOFTWARE = "metalloid.compat.Metal"
SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void add_one(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }
kernel void far(device float* x, uint i [[thread_position_in_grid]]) { x[i + (1ul << 40)] = 1; }
kernel void brighten(texture2d<float, access::read_write> t, uint2 p [[thread_position_in_grid]])
{ t.write(t.read(p) + 1, p); }
"""


@pytest.fixture(autouse=True)
def _nothing_is_open(monkeypatch):
    cpu = registry.get_device("cpu")  # other tests have it, too
    monkeypatch.setattr(registry, "_open", {"cpu": cpu, "cpu:0": cpu})
    binding._open.cache_clear()
    yield
    binding._open.cache_clear()


def on_system(monkeypatch, system, version=""):
    monkeypatch.setattr("sys.platform", "darwin" if system == "Darwin" else "linux")
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.mac_ver", lambda: (version, ("", "", ""), "arm64"))


# -- no device at all


def no_metal(monkeypatch):
    on_system(monkeypatch, "Linux")
    return {"metal_binding": ""}


def no_pyobjc(monkeypatch):
    on_system(monkeypatch, "Darwin", "15.1")
    real = importlib.import_module

    def import_module(name, *package):
        if name == "Metal":
            raise ModuleNotFoundError("No module named 'Metal'")
        return real(name, *package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    return {"metal_binding": ""}


def an_old_macos(monkeypatch):
    on_system(monkeypatch, "Darwin", "12.6.1")
    return {"metal_binding": ""}


def no_gpu(monkeypatch):
    monkeypatch.setattr(Metal, "MTLCreateSystemDefaultDevice", lambda: None)
    return {"metal_binding": SOFTWARE}


def a_binding_that_is_none(monkeypatch):
    return {"metal_binding": "no_such_module"}


ABSENT = {
    "no Metal": no_metal,
    "no PyObjC": no_pyobjc,
    "an old macOS": an_old_macos,
    "no GPU": no_gpu,
    "no such binding": a_binding_that_is_none,
}


@pytest.mark.parametrize("name", ABSENT)
def test_there_is_no_device(name, monkeypatch):
    with mtl.config.scope(device="", **ABSENT[name](monkeypatch)):
        with pytest.raises(mtl.DeviceUnavailable) as caught:
            mtl.Device("metal")
        MESSAGES.check(f"absent: {name}", caught.value)
        assert registry.absent_devices()["metal"] == str(caught.value)
        assert mtl.default_device().name == "cpu"
        the_cpu_works()


# -- a device with trouble


def refused_text(monkeypatch):
    def compile_text(self, source, options, error):
        text = (
            "program_source:2:10: error: no member named 'wrong' in namespace 'metal'\n  far();\n  ^\n"
            "program_source:4:1: note: declared here\n"
        )
        return None, types.SimpleNamespace(localizedDescription=lambda: text)

    monkeypatch.setattr(Metal.MTLDevice, "newLibraryWithSource_options_error_", compile_text)
    kernel("add_one")


def compile_error_without_a_location(monkeypatch):
    def compile_text(self, source, options, error):
        return None, types.SimpleNamespace(localizedDescription=lambda: "Compiler went away")

    monkeypatch.setattr(Metal.MTLDevice, "newLibraryWithSource_options_error_", compile_text)
    kernel("add_one")


def refused_pipeline(monkeypatch):
    def pipeline(self, descriptor, *rest):
        return None, types.SimpleNamespace(localizedDescription=lambda: "too many registers")

    name = "newComputePipelineStateWithDescriptor_options_reflection_error_"
    monkeypatch.setattr(Metal.MTLDevice, name, pipeline)
    kernel("add_one")


def too_large(monkeypatch):
    mtl.Buffer(2**60, "metal")


def memory_is_full(monkeypatch):
    mtl.Device("metal")
    monkeypatch.setattr(Metal.MTLDevice, "newBufferWithLength_options_", lambda *given: None)
    mtl.Buffer(1000, "metal")


def texture_is_out_of_memory(monkeypatch):
    monkeypatch.setattr(Metal.MTLDevice, "newTextureWithDescriptor_", lambda *given: None)
    kernel("brighten")(np.zeros((2, 3), np.float32), threads=(3, 2))


def fault(monkeypatch):
    kernel("far")(np.zeros(4, np.float32), threads=1)


def hangs(monkeypatch):
    """Metal ends command buffers that run too long, and says no more of them than this."""
    text = "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)"
    error = types.SimpleNamespace(localizedDescription=lambda: text)
    buffer = type(mtl.Device("metal").queue.commandBuffer())
    monkeypatch.setattr(buffer, "status", lambda self: Metal.MTLCommandBufferStatusError)
    monkeypatch.setattr(buffer, "error", lambda self: error)


def a_gpu_that_hangs(monkeypatch):
    hangs(monkeypatch)
    kernel("add_one")(np.zeros(4, np.float32), threads=4)


def one_launch_of_a_batch_hangs(monkeypatch):
    hangs(monkeypatch)
    monkeypatch.setattr(device, "_LONGEST_BATCH", 60.0)
    x, add_one, brighten = mtl.Buffer(64, "metal"), kernel("add_one"), kernel("brighten")
    event = add_one(x, threads=4)
    brighten(mtl.Texture((2, 2), "r32float", device="metal"), threads=(2, 2))
    event.wait()


def full_threadgroups(monkeypatch):
    monkeypatch.setattr(mtl.Device("metal"), "is_exact", False)
    kernel("add_one")(np.zeros(90, np.float32), threads=90, group_size=32)


def doubles(monkeypatch):
    mtl.zeros(3, dtype=mtl.float64, device=mtl.Device("metal"))


def a_tensor(monkeypatch):
    text = "#include <metal_stdlib>\n#include <metal_tensor>\nusing namespace metal;\n"
    text += "kernel void k(tensor<device float, dextents<int, 2>> t) {}"
    _ = mtl.library(text, device="metal").k


def too_many_buffers(monkeypatch):
    parameters = ", ".join(f"device float* x{number}" for number in range(32))
    _ = mtl.library(f"\nkernel void k({parameters}) {{}}", device="metal").k


def too_long_a_threadgroup(monkeypatch):
    monkeypatch.setattr(mtl.Device("metal").limits, "group", (1024, 1024, 64))
    kernel("add_one")(np.zeros(128, np.float32), threads=(1, 1, 128), group_size=(1, 1, 128))


def too_much_threadgroup_memory(monkeypatch):
    text = (
        "kernel void k(device int* x, threadgroup int* t) {\n    threadgroup int own[4096];\n"
        "    own[x[0]] = t[x[1]] = 1;\n    x[2] = own[x[3]];\n}"
    )
    k = mtl.library(text, device="metal").k
    k(np.zeros(4, np.int32), mtl.threadgroup_memory(20000), threads=1)


def a_capture(monkeypatch):
    with mtl.metal.capture("trace.gputrace"):
        pass


TROUBLE = {
    "compile error": refused_text,
    "compile error without a place": compile_error_without_a_location,
    "pipeline": refused_pipeline,
    "out of memory": too_large,
    "memory is full": memory_is_full,
    "no room for a texture": texture_is_out_of_memory,
    "fault": fault,
    "a GPU that hangs": a_gpu_that_hangs,
    "one of several hangs": one_launch_of_a_batch_hangs,
    "whole threadgroups": full_threadgroups,
    "doubles": doubles,
    "a tensor": a_tensor,
    "too many buffers": too_many_buffers,
    "too long a threadgroup": too_long_a_threadgroup,
    "too much threadgroup memory": too_much_threadgroup_memory,
    "a capture": a_capture,
}
#: Of a machine with 16 GB.
SIZES = {
    "currentAllocatedSize": 1_234_567_168,
    "recommendedMaxWorkingSetSize": 11_453_251_584,
    "maxBufferLength": 8_589_934_592,
}


def kernel(name):
    return mtl.library(SOURCE, device="metal").function(name)


@pytest.mark.parametrize("name", TROUBLE)
def test_the_device_has_trouble(name, monkeypatch):
    # The reference engine's kernels bring their threadgroup memory, as if there were no limit.
    with mtl.config.scope(device="", metal_binding=SOFTWARE, cpu_engine="simd"):
        with monkeypatch.context() as trouble:
            trouble.setattr(Metal.MTLDevice, "name", lambda self: "Apple M1")
            for method, size in SIZES.items():
                trouble.setattr(Metal.MTLDevice, method, lambda self, size=size: size)
            with pytest.raises(mtl.MetalloidError) as caught:
                TROUBLE[name](trouble)
            MESSAGES.check(f"trouble: {name}", caught.value, HIDDEN)
            the_cpu_works()
        for known in ("metal", "metal:0"):
            registry._open.pop(known, None)
        x = np.zeros(4, np.float32)  # and so does the GPU, once it can
        kernel("add_one")(x, threads=4)
        assert x.tolist() == [1] * 4


def the_cpu_works():
    x = np.zeros(4, np.float32)
    mtl.library(SOURCE, device="cpu").add_one(x, threads=4)
    assert x.tolist() == [1] * 4
    assert mtl.asarray([1.0, 2.0], device=mtl.Device("cpu")).sum() == 3


def test_no_message_is_left_over():
    names = {f"absent: {name}" for name in ABSENT} | {f"trouble: {name}" for name in TROUBLE}
    assert set(MESSAGES.known()) == names
