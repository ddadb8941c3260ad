"""The Metal device over the software binding: memory, batches, events, errors."""

import collections
import gc
import mmap
import time
import types

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.metal.pyobjc import binding
from metalloid.backends.metal.runtime import batch, device
from metalloid.backends.metal.runtime.device import open_device
from metalloid.compat import Metal
from metalloid.runtime.devices import registry

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void add_one(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }
kernel void copy(device float* y, device const float* x, uint i [[thread_position_in_grid]])
{ y[i] = x[i]; }
kernel void far(device float* x, uint i [[thread_position_in_grid]]) { x[ulong(x[i]) << 40] = 1; }
kernel void slow(device uint* x, constant uint& rounds, uint i [[thread_position_in_grid]])
{ for (uint k = 0; k < rounds; ++k) x[i] = x[i] * 1664525u + 1013904223u; }
"""


def buffer(metal, values):
    return mtl.Buffer(np.array(values, np.float32), metal)


# -- memory


def test_numpy_sees_the_buffers_own_contents(metal, lib):
    x = buffer(metal, [1, 2, 3])
    view = np.asarray(x)
    lib.add_one(x, threads=3).wait()
    assert view.tolist() == [2, 3, 4]
    contents = metal.heap.by_address[x.address].buffer.contents().as_buffer(12)
    assert np.frombuffer(contents, np.float32).tolist() == [2, 3, 4]


def test_a_view_of_a_buffer_is_used_in_place(metal, lib):
    x = buffer(metal, [0] * 64)
    lib.add_one(np.asarray(x)[32:48], threads=16)
    assert np.asarray(x).tolist() == [0] * 32 + [1] * 16 + [0] * 16


def test_full_pages_are_not_copied(metal, lib, monkeypatch):
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    x = np.frombuffer(memory, np.float32)
    monkeypatch.setattr(metal.heap, "private", None)  # so that copying would fail
    lib.add_one(x, threads=x.size)
    assert (x == 1).all()


def test_arguments_that_share_memory_share_it_there(metal, lib):
    x = np.arange(40, dtype=np.float32)
    lib.copy(x[4:24], x[:20], threads=1)  # one thread, so that the order is known
    assert x.tolist() == [0, 1, 2, 3, 0, *range(5, 40)]


def test_launches_that_nobody_waited_for_share_an_array(metal, lib):
    x, y = np.zeros(50, np.float32), np.zeros(20, np.float32)
    lib.add_one(x, threads=50, wait=False)
    lib.add_one(x[10:30], threads=20, wait=False)
    event = lib.copy(y, x[10:], threads=20, wait=False)
    event.wait()
    assert y.tolist() == [2] * 20
    assert x.tolist() == [1] * 10 + [2] * 20 + [1] * 20
    assert metal.heap._loans == []


def test_launches_that_nobody_waited_for_share_pages(metal, lib):
    """Metal takes full pages without a copy, but not a part that begins within one."""
    page = mmap.PAGESIZE // 4
    memory = np.zeros(2 * page, np.float32)
    start = -memory.ctypes.data % mmap.PAGESIZE // 4
    x, y = memory[start : start + page], np.zeros(20, np.float32)
    lib.add_one(x, threads=page, wait=False)
    lib.add_one(x[10:30], threads=20, wait=False)
    lib.copy(y, x[10:], threads=20, wait=False).wait()
    assert y.tolist() == [2] * 20
    assert x[:40].tolist() == [1] * 10 + [2] * 20 + [1] * 10
    assert metal.heap._loans == []


def test_an_array_may_be_part_of_exported_memory(metal, lib):
    x = np.zeros(50, np.float32)
    lib.add_one(x[10:30], threads=20, wait=False)
    lib.add_one(x, threads=50)  # reaches further than what was exported
    assert x.tolist() == [1] * 10 + [2] * 20 + [1] * 20


def test_empty_arrays(lib):
    lib.copy(np.zeros(0, np.float32), np.zeros(0, np.float32), threads=0)
    lib.add_one(np.zeros(4, np.float32)[:0], threads=0)


def test_memory_is_given_back(metal):
    gc.collect()
    before = metal.gpu.currentAllocatedSize()
    x = mtl.Buffer(2**20, metal)
    assert metal.gpu.currentAllocatedSize() >= before + 2**20
    del x
    gc.collect()
    assert metal.gpu.currentAllocatedSize() <= before


def test_out_of_memory(metal, lib):
    with pytest.raises(mtl.OutOfMemory, match=r"cannot allocate .* a buffer at most"):
        mtl.Buffer(2**60, metal)
    lib.add_one(np.zeros(3, np.float32), threads=3)  # and the device goes on


# -- batches and events


def test_launches_are_batched(metal, lib, monkeypatch):
    monkeypatch.setattr(device, "_LONGEST_BATCH", 60.0)
    metal.synchronize()
    x, sizes = buffer(metal, [0]), []
    commit = batch.Batch.commit
    monkeypatch.setattr(
        batch.Batch, "commit", lambda self: (sizes.append(self.count), commit(self))
    )
    events = [lib.add_one(x, threads=1) for _ in range(150)]
    assert sizes == [64, 64]
    assert events[-1].wait().done
    assert sizes == [64, 64, 22]
    assert np.asarray(x).tolist() == [150]
    assert events[0].seconds == pytest.approx(events[1].seconds)


def test_a_batch_does_not_wait_for_ever(metal, lib, monkeypatch):
    monkeypatch.setattr(device, "_LONGEST_BATCH", 0.0)
    metal.synchronize()
    lib.add_one(buffer(metal, [0]), threads=1)
    assert metal._open is None


def test_a_barrier_stands_between_launches_that_meet(metal, lib, monkeypatch):
    monkeypatch.setattr(device, "_LONGEST_BATCH", 60.0)
    metal.synchronize()
    barriers = []
    encoder = type(metal.queue.commandBuffer().computeCommandEncoder())
    barrier = encoder.memoryBarrierWithScope_
    monkeypatch.setattr(
        encoder,
        "memoryBarrierWithScope_",
        lambda self, scope: (barriers.append(scope), barrier(self, scope)),
    )
    x, y, z = (buffer(metal, [k]) for k in range(3))
    lib.copy(y, x, threads=1)
    lib.copy(z, x, threads=1).wait()  # both read x
    assert barriers == []
    lib.copy(y, x, threads=1)
    lib.copy(z, y, threads=1)  # reads what was written
    lib.copy(y, x, threads=1)  # writes what is read
    lib.copy(y, x, threads=1).wait()  # writes what is written
    assert barriers == [Metal.MTLBarrierScopeBuffers] * 3


def test_a_missing_barrier_would_be_reported(metal, lib, monkeypatch):
    encoder = type(metal.queue.commandBuffer().computeCommandEncoder())
    monkeypatch.setattr(encoder, "memoryBarrierWithScope_", lambda self, scope: None)
    metal.synchronize()
    x, y = buffer(metal, [0]), buffer(metal, [1])
    monkeypatch.setattr(device, "_LONGEST_BATCH", 60.0)
    lib.copy(y, x, threads=1)
    event = lib.copy(x, y, threads=1)
    with pytest.raises(Metal.FailedAssertion, match="a memory barrier is missing"):
        event.wait()
    with pytest.raises(mtl.KernelFault, match="it was not encoded"):
        event.wait()  # no wait is endless


def test_a_wait_can_end_early(metal, lib):
    x = mtl.Buffer(np.zeros(100, np.uint32), metal)
    event = lib.slow(x, 20_000_000, threads=100)
    with pytest.raises(TimeoutError, match=r"\[slow\] still running after 0.001 s"):
        event.wait(0.001)
    assert not event.done
    assert event.wait().done
    assert event.seconds > 0.001


# -- errors


def test_a_fault_is_told_at_the_wait_and_the_device_goes_on(metal, lib):
    x = buffer(metal, [1])
    event = lib.far(x, threads=1)
    with pytest.raises(mtl.KernelFault, match=r"\[far\] \S+:\d+: write to index"):
        event.wait()
    with pytest.raises(mtl.KernelFault):
        np.asarray(x)  # raised once more, where the buffer is used
    lib.add_one(x, threads=1).wait()
    assert np.asarray(x).tolist() == [2]


def test_the_faulty_launch_of_a_batch_is_not_known(metal, lib):
    x = buffer(metal, [1])
    lib.far(x, threads=1)
    event = lib.add_one(buffer(metal, [1]), threads=1)
    with pytest.raises(mtl.KernelFault, match=r"\(or in far, which ran with it\)|\[far\]"):
        event.wait()


def test_doubles_are_refused(metal):
    with pytest.raises(mtl.CompileError, match=r"2:15: error: 'double' is not supported in Metal"):
        mtl.library("// double\nkernel void k(double device* x) {}", device=metal)["k"]
    with pytest.raises(mtl.UnsupportedType, match=r"no arrays of float64 on metal"):
        mtl.zeros(3, dtype=mtl.float64, device=metal)
    with pytest.raises(mtl.UnsupportedType, match=r"no arrays of complex128 on metal"):
        mtl.asarray(np.zeros(3, np.complex128), device=metal)


def test_errors_of_metals_own_compiler_are_at_the_users_lines(metal, monkeypatch):
    def refused(self, source, options, error):
        text = "Compilation failed: \n\nprogram_source:2:3: error: no such luck\n  x;\n  ^\n"
        return None, types.SimpleNamespace(localizedDescription=lambda: text)

    monkeypatch.setattr(type(metal.gpu), "newLibraryWithSource_options_error_", refused)
    with pytest.raises(mtl.CompileError) as caught:
        mtl.library("kernel void k(\n  device int* y) {}", device=metal)["k"]
    assert str(caught.value) == (
        "program_source:2:3: error: no such luck\n  device int* y) {}\n  ^"
    )
    assert (caught.value.lineno, caught.value.offset) == (2, 3)


# -- what goes to Metal's compiler


def test_the_text_is_the_authors(lib):
    assert lib.add_one.asm["metal"] == SOURCE


def test_included_files_are_inlined(metal, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "one.h").write_text(
        '#pragma once\n#include <metal_stdlib>\n#include "deep/two.h"\n#include <three.h>\n'
    )
    (tmp_path / "deep" / "two.h").write_text("#define TWO 2\n")
    (tmp_path / "three.h").write_text("#ifndef T\n#define T 3\n#endif\n")
    main = '#include <metal_stdlib>\n#include "one.h"\n#include "one.h"\n'
    main += "kernel void k(device int* x) { *x = TWO + T + __LINE__; }\n"
    (tmp_path / "main.metal").write_text(main)
    lib = mtl.library(path=tmp_path / "main.metal", include_dirs=[tmp_path], device=metal)
    x = np.zeros(1, np.int32)
    lib.k(x, threads=1)
    assert x[0] == 2 + 3 + 4  # lines are the author's
    text = lib.k.asm["metal"]
    assert text.count("#include <metal_stdlib>") == 2  # Metal has that
    assert text.count("__CLANG_REWRITTEN_INCLUDES") == 3  # what is not Metal's
    assert f'# 4 "{tmp_path / "main.metal"}"' in text


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
    [
        ("float", 0.1, np.float32(0.1)), ("half", 1.5, np.float16(1.5)), ("bool", True, True),
        ("int", -7, np.int32(-7)), ("uint", 2**32 - 1, np.uint32(2**32 - 1)),
        ("short", -3, np.int16(-3)), ("uchar", 200, np.uint8(200)),
        ("long", -(2**40), np.int64(-(2**40))), ("ulong", 2**63, np.uint64(2**63)),
        ("float", float("inf"), np.float32("inf")), ("float", -float("inf"), np.float32("-inf")),
    ],
)  # fmt: skip
def test_function_constants_of_every_type(metal, declared, given, expected):
    lib = mtl.library(
        f"constant {declared} c [[function_constant(3)]];\n"
        f"kernel void k(device {declared}* x) {{ *x = c; }}",
        device=metal,
    )
    x = np.zeros(1, np.array(expected).dtype)
    lib.function("k", {"c": given})(x, threads=1)
    assert x[0] == expected


def test_vectors_among_function_constants(metal):
    lib = mtl.library(
        "constant metal::float3 c [[function_constant(0)]];\n"
        "constant bool d = is_function_constant_defined(c);\n"
        "kernel void k(device float* x) { x[0] = c.x; x[1] = c.y; x[2] = c.z; x[3] = d; }",
        device=metal,
    )
    x = np.zeros(4, np.float32)
    lib.function("k", {0: (1, 2, 3)})(x, threads=1)
    assert x.tolist() == [1, 2, 3, 1]


def test_devices_with_full_threadgroups_only_refuse_other_grids(metal, lib, monkeypatch):
    monkeypatch.setattr(metal, "is_exact", False)
    x = np.zeros(96, np.float32)
    lib.add_one(x, threads=96, group_size=32)
    assert (x == 1).all()
    with pytest.raises(mtl.LaunchError, match=r"whole threadgroups only: \(90, 1, 1\) threads"):
        lib.add_one(x, threads=90, group_size=32)


def test_families_decide_about_partial_threadgroups():
    gpu = types.SimpleNamespace(supportsFamily_=lambda family: family == Metal.MTLGPUFamilyApple3)
    assert not device._runs_partial_threadgroups(gpu, Metal)
    gpu = types.SimpleNamespace(supportsFamily_=lambda family: family == Metal.MTLGPUFamilyApple4)
    assert device._runs_partial_threadgroups(gpu, Metal)


# -- which devices there are


@pytest.fixture
def empty_registry(monkeypatch):
    cpu = registry.get_device("cpu")  # other tests have it, too
    monkeypatch.setattr(registry, "_open", {"cpu": cpu, "cpu:0": cpu})


@pytest.mark.usefixtures("empty_registry")
def test_the_software_device_is_asked_for_by_name_only(monkeypatch):
    with mtl.config.scope(metal_binding="metalloid.compat.Metal", device=""):
        assert mtl.default_device().name == "cpu"
        names = [device.name for device in mtl.devices()]
        assert names.index("metal") < names.index("cpu")
        assert mtl.Device("metal:0") is mtl.Device("metal")
        with pytest.raises(
            mtl.DeviceUnavailable, match=r"no such device 'metal:9': this machine has \d device"
        ):
            mtl.Device("metal:9")
        for name in ("metal:x", "metal:", "metal:-1"):
            with pytest.raises(mtl.DeviceUnavailable, match="unknown kind of device"):
                mtl.Device(name)
    with mtl.config.scope(metal_binding="metalloid.compat.Metal", device="metal"):
        assert mtl.default_device().name == "metal"


def test_two_gpus(monkeypatch, metal):
    other = types.SimpleNamespace(registryID=lambda: 99)
    monkeypatch.setattr(Metal, "MTLCopyAllDevices", lambda: (other, metal.gpu))
    assert device._gpus(metal.binding) == [metal.gpu, other]
    with mtl.config.scope(metal_binding="metalloid.compat.Metal"):
        assert device.count_devices() == 2
        assert open_device(0).name == "metal"


def test_validation_is_switched_on_before_metal_is_loaded(monkeypatch):
    monkeypatch.delenv("MTL_SHADER_VALIDATION", raising=False)
    monkeypatch.setenv("MTL_DEBUG_LAYER", "0")
    binding._open.cache_clear()
    binding._open("metalloid.compat.Metal", "linux", True)
    import os

    assert os.environ["MTL_SHADER_VALIDATION"] == "1"
    assert os.environ["MTL_DEBUG_LAYER"] == "0"  # what the user says counts
    monkeypatch.delenv("MTL_SHADER_VALIDATION")


def test_nothing_is_left_alive(metal, lib):
    def count():
        gc.collect()
        metal.gpu.currentAllocatedSize()  # the software device forgets what has ended
        return collections.Counter(type(thing).__name__ for thing in metal.gpu.alive)

    metal.synchronize()
    lib.add_one(np.zeros(3000, np.float32), threads=3000)
    before = count()
    for _ in range(20):
        x = buffer(metal, [1, 2, 3])
        lib.add_one(x, threads=3)
        lib.add_one(np.zeros(3000, np.float32), threads=3000, wait=False)
    metal.synchronize()
    del x
    assert count() == before


def test_the_devices_own_code_costs_little():
    """A launch takes less time than 600 calls of abs() in a loop, on any machine (300 are usual)."""
    import launch

    def seconds():
        began = time.process_time()
        for _ in range(100):
            [abs(k) for k in range(1000)]
        return (time.process_time() - began) / 100

    ratios = []
    for _ in range(3):  # as other processes may slow down either
        ratios.append(max(launch.metal_device()) / min(seconds() for _ in range(15)))
        if ratios[-1] < 0.6:
            return
    raise AssertionError(ratios)
