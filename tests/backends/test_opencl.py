"""Kernels on a device of OpenCL: launches, memory, events, reports.

Wants pyopencl and a platform that takes SPIR-V, such as Intel's runtime for CPUs
(``pip install pyopencl intel-opencl-rt intel-cmplr-lib-rt``); METALLOID_REQUIRE=opencl lets it fail
without. The suites run there by METALLOID_DEVICE=opencl.
"""

import logging
import threading

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.opencl.runtime import build, platforms, program
from metalloid.backends.opencl.runtime.device import open_device

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device float* y, device const float* x, constant float& a,
                  uint i [[thread_position_in_grid]])
{
    y[i] += a * x[i];
}

kernel void sums(device float* y, device const float* x, threadgroup float* shared,
                 uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                 uint group [[threadgroup_position_in_grid]])
{
    threadgroup float first[32];
    const float sum = simd_sum(x[i]);
    if (t % 32 == 0) { first[t / 32] = sum; shared[t / 32] = simd_sum(1.0f); }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t == 0) y[group] = first[0] + first[1] + first[2] + first[3] + shared[3];
}

kernel void place(device uint4* y, uint3 p [[thread_position_in_grid]],
                  uint3 size [[threads_per_grid]], uint3 group [[threads_per_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]])
{
    y[p.x + size.x * (p.y + size.y * p.z)] = uint4(p.x + 1, p.y, group.x * group.y * group.z, lane);
}

struct Pair { device float* values; uint count; };
kernel void through_a_struct(constant Pair& pair, device float* sum)
{
    for (uint k = 0; k < pair.count; ++k) sum[0] += pair.values[k];
}

kernel void bfloats(device bfloat* y, device const bfloat* x, uint i [[thread_position_in_grid]])
{
    y[i] = x[i] * x[i] + bfloat(1);
}

kernel void says(device int* y, uint i [[thread_position_in_grid]])
{
    if (i == 3) os_log_default.log("thread %u", i);
    y[i] = 1;
}

kernel void asserts(device int* y, uint i [[thread_position_in_grid]])
{
    assert(i != 5);
    y[i] = 1;
}
"""


@pytest.fixture(scope="module")
def lib():
    try:
        return mtl.library(SOURCE, device="opencl")
    except mtl.DeviceUnavailable as error:
        pytest.skip(f"opencl: {error}")


def test_arrays_and_numbers(lib, rng):
    x, y = rng.random(1000, np.float32), rng.random(1000, np.float32)
    expected = y + np.float32(2.5) * x
    lib.saxpy(y, x, 2.5, threads=1000)
    np.testing.assert_allclose(y, expected, rtol=2e-7)


def test_buffers_and_events(lib, rng):
    x = rng.random(1000, np.float32)
    a, b = mtl.Buffer(x, "opencl"), mtl.Buffer(np.zeros(1000, np.float32), "opencl")
    events = [lib.saxpy(b, a, 1.0, threads=1000) for _ in range(10)]
    np.testing.assert_allclose(np.asarray(b), 10 * x, rtol=1e-6)
    assert all(event.done and event.seconds >= 0 for event in events)


def test_threadgroup_memory_and_simdgroups(lib, rng):
    x, y = rng.random(1024, np.float32), np.zeros(8, np.float32)
    lib.sums(y, x, mtl.threadgroup_memory(4 * 4), threads=1024, group_size=128)
    np.testing.assert_allclose(y, x.reshape(8, 128).sum(1) + 1, rtol=1e-6)


def test_large_modules_have_subgroups_without_optimizations(lib, tmp_path, rng, monkeypatch):
    device = mtl.Buffer(4, "opencl").device
    if not platforms.compiles_without_optimizing(device.handle):
        pytest.skip("opencl: the platform optimises all modules")
    monkeypatch.setattr(build, "_MAX_OPTIMIZED_BYTES", 0)
    x, y = rng.integers(0, 9, 256).astype(np.float32), np.zeros(2, np.float32)
    for _ in range(2):  # compiled, and from the cache
        fresh = mtl.library(f"{SOURCE}// {tmp_path}", device="opencl")
        fresh.sums(y, x, mtl.threadgroup_memory(4 * 4), threads=256, group_size=128)
        assert np.array_equal(y, x.reshape(2, 128).sum(axis=1) + 1)


def test_kernels_are_compiled_for_the_forms_of_their_launches(lib, monkeypatch, tmp_path):
    modules = []
    compiled = program.build
    monkeypatch.setattr(program, "build", lambda *a: modules.append(a[0]) or compiled(*a))
    fresh = mtl.library(f"{SOURCE}// {tmp_path}", device="opencl")
    place, asserts = fresh.place, fresh.asserts
    assert not modules
    y = np.zeros((32, 2, 4), np.uint32)
    for _ in range(2):
        place(y, threads=(32, 2), group_size=(32, 2))
    assert len(modules) == 1
    place(y, threads=64)
    assert len(modules) == 2
    assert asserts.max_group_size >= 32  # the platform's answer
    assert len(modules) == 3
    with pytest.raises(mtl.ArgumentError, match="at most 1024"):
        place(y, threads=2048, group_size=2048)


def test_threads_share_the_kernel_that_the_first_of_them_compiles(lib, monkeypatch, tmp_path):
    kernels = []
    created = program.Kernel
    monkeypatch.setattr(program, "Kernel", lambda handle: kernels.append(handle) or created(handle))
    saxpy = mtl.library(f"{SOURCE}// {tmp_path}", device="opencl").saxpy
    x, y = np.ones(64, np.float32), np.zeros((8, 64), np.float32)
    begin = threading.Barrier(8)

    def work(row):
        begin.wait()
        for _ in range(20):
            saxpy(y[row], x, 1.0, threads=64)

    threads = [threading.Thread(target=work, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kernels) == 1
    assert (y == 20).all()


def test_empty_grids(lib):
    y = np.ones(4, np.float32)
    lib.saxpy(y, y, 2.0, threads=0)
    lib.place(np.ones((1, 4), np.uint32), threads=(0, 2), group_size=(1, 1))
    assert (y == 1).all()


def test_options_of_the_platforms_compiler(lib, monkeypatch):
    monkeypatch.setenv("METALLOID_OPENCL_OPTIONS", "-cl-std=nonsense")
    kernel = mtl.library(SOURCE, device=open_device(0)).saxpy
    with pytest.raises(mtl.LaunchError, match="clBuildProgram"):
        kernel(np.ones(4, np.float32), np.ones(4, np.float32), 2.0, threads=4)


@pytest.fixture
def wide(lib, monkeypatch):
    """A device with two simdgroups in a subgroup."""
    monkeypatch.setenv("METALLOID_OPENCL_SUBGROUP", "64")
    platforms.subgroup_size.cache_clear()
    try:
        if not platforms.subgroup_size(mtl.Buffer(4, "opencl").device.handle):
            pytest.skip("opencl: the device has no subgroups of 64")
        yield open_device(0)
    finally:
        monkeypatch.undo()
        platforms.subgroup_size.cache_clear()


def test_two_simdgroups_in_a_subgroup(wide):
    text = """
    #include <metal_stdlib>
    using namespace metal;
    kernel void exchange(device uint4* y, device ulong* votes, uint i [[thread_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint group [[simdgroup_index_in_threadgroup]])
    {
        if (i % 3 == 0) votes[i] = ulong(simd_ballot(i % 2 == 0));
        y[i] = uint4(simd_sum(i), simd_shuffle(i, 5), simd_prefix_exclusive_sum(i), lane + 100 * group);
    }
    """
    for size in ((160, 1), (64, 2), (32, 5), (10, 16)):  # rows of whole subgroups, and others
        y, votes = np.zeros((160, 4), np.uint32), np.zeros(160, np.uint64)
        count = size[0] * size[1]
        kernel = mtl.library(text, device=wide).exchange
        assert "SubgroupSize 64" in kernel.asm["spirv"]
        kernel(y, votes, threads=size, group_size=size)
        i = np.arange(count)
        groups = i.reshape(-1, 32)
        sums = groups.cumsum(axis=1)
        np.testing.assert_array_equal(y[:count, 0], np.repeat(groups.sum(axis=1), 32))
        np.testing.assert_array_equal(y[:count, 1], i // 32 * 32 + 5)
        np.testing.assert_array_equal(y[:count, 2], (sums - groups).ravel())
        np.testing.assert_array_equal(y[:count, 3], i % 32 + i // 32 * 100)
        for k in range(0, count, 3):
            first = k // 32 * 32
            bits = [n - first for n in range(first, first + 32) if n % 6 == 0]
            assert votes[k] == sum(1 << bit for bit in bits)


def test_stores_to_one_of_two_elements_of_an_array(lib):
    text = """
    #include <metal_stdlib>
    using namespace metal;
    kernel void store(device int* y, device const int* x, uint i [[thread_position_in_grid]])
    {
        int a = i, list[4] = {1, 2, 3, a};
        if (!(i & 3)) {
            a = popcount(a) >> 3;
            if ((x[x[i] & 63] & 3) == 2) list[a / 3] = i | 3;
        }
        y[i] = a + list[a & 3];
    }"""
    x = np.random.default_rng(5).integers(-50, 50, 100, dtype=np.int32)
    y, expected = np.zeros((2, 100), np.int32)
    mtl.library(text, device="opencl").store(y, x, threads=100, group_size=100)
    mtl.library(text, device="cpu").store(expected, x, threads=100, group_size=100)
    assert np.array_equal(y, expected)


def test_threadgroups_at_the_edges_are_smaller(lib):
    y = np.zeros((5, 7, 37, 4), np.uint32)
    lib.place(y, threads=(37, 7, 5), group_size=(16, 4, 2))
    z, j, i = np.indices(y.shape[:3])
    np.testing.assert_array_equal(y[..., 0], i + 1)
    np.testing.assert_array_equal(y[..., 1], j)
    widths, heights, depths = (np.where(k < n // s * s, s, n % s)
                               for k, n, s in ((i, 37, 16), (j, 7, 4), (z, 5, 2)))  # fmt: skip
    np.testing.assert_array_equal(y[..., 2], widths * heights * depths)
    index = i % 16 + widths * (j % 4 + heights * (z % 2))
    np.testing.assert_array_equal(y[..., 3], index % 32)


def test_pointers_in_structs(lib, rng):
    values = rng.random(100, np.float32)
    sum = np.zeros(1, np.float32)
    lib.through_a_struct({"values": mtl.Buffer(values, "opencl"), "count": 100}, sum, threads=1)
    np.testing.assert_allclose(sum, values.sum(), rtol=1e-5)


def test_bfloats_round_to_even(lib):
    x = np.arange(0x10000, dtype=np.uint16).view(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    lib.bfloats(y, x, threads=x.size)
    with np.errstate(all="ignore"):
        square = (x.astype(np.float32) * x.astype(np.float32)).astype(ml_dtypes.bfloat16)
        expected = (square.astype(np.float32) + np.float32(1)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(y.astype(np.float32), expected.astype(np.float32))


def test_messages_and_assertions(lib, caplog):
    y = mtl.Buffer(np.zeros(64, np.int32), "opencl")
    with caplog.at_level(logging.INFO):
        lib.says(y, threads=64)
    messages = [each.getMessage() for each in caplog.records if "kernels" in each.name]
    assert messages == ["[says] thread 3 (thread (3, 0, 0) of threadgroup (0, 0, 0))"]
    event = lib.asserts(y, threads=64)
    with pytest.raises(mtl.KernelFault, match=r"assertion failed: i != 5.*thread \(5, 0, 0\)"):
        event.wait()


def test_the_device_describes_itself(lib):
    device = mtl.Device("opencl")
    assert device.name == "opencl:0"
    assert "SPIR-V" in device.details()["SPIR-V"]
    assert device in mtl.devices()


def test_a_large_allocation_fails(lib):
    with pytest.raises(mtl.OutOfMemory):
        mtl.Buffer(2**60, "opencl")


def test_an_assertion_and_an_access_outside_in_one_launch(lib):
    failing = mtl.library("""
        #include <metal_stdlib>
        #include <metal_assert>
        kernel void f(device int* y, device const int* at, uint i [[thread_position_in_grid]])
        { assert(i != 3); y[at[i]] = 1; }""", device=lib.device, bounds="checked")  # fmt: skip
    y, at = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
    at[40] = 100
    with pytest.raises(mtl.KernelFault):
        failing.f(y, at, threads=64, wait=True)
    with pytest.raises(mtl.KernelFault):  # the record was cleared, and is written once more
        failing.f(y, at, threads=64, wait=True)


def test_checked_launches_fail_one_by_one(lib):
    """They do not wait for their ends, and each has its own record."""
    checked = mtl.library(
        "kernel void f(device int* y, device const int* at, uint i [[thread_position_in_grid]]) "
        "{ y[at[i]] = i; }", device=lib.device, bounds="checked",
    )  # fmt: skip
    inside = np.arange(64, dtype=np.int32)
    good, bad = (mtl.Buffer(inside + 8 * k, "opencl") for k in range(2))
    y = mtl.Buffer(np.zeros(64, np.int32), "opencl")
    events = [checked.f(y, at, threads=64, wait=False) for at in (good, bad, good)]
    with pytest.raises(mtl.KernelFault, match="of 'y', which has 64 elements"):
        events[1].wait()
    for event in (events[0], events[2]):
        event.wait()


@pytest.mark.parametrize("is_system", [True, False])
def test_usual_launches_take_the_fast_path(lib, rng, monkeypatch, is_system):
    """Also where a launch has to name its memory, which Intel's runtime takes too."""
    device = lib.device
    monkeypatch.setattr(device, "is_system", is_system)
    kernel = mtl.library(f"{SOURCE}// {is_system}", device=device).saxpy
    x = rng.random(100, np.float32)
    a, b = mtl.Buffer(x, "opencl"), mtl.Buffer(np.zeros(100, np.float32), "opencl")
    kernel(b, a, 2.0, threads=100)
    event = kernel._fast_launch((b, a, 2.0), 100, None, None)
    assert event is not None
    assert event.wait().seconds >= 0
    np.testing.assert_allclose(np.asarray(b), 4 * x, rtol=1e-6)
