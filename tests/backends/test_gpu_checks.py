"""Checks of accesses in kernels for GPUs, where they are asked for."""

import ctypes
import struct

import numpy as np
import pytest
from test_cuda_fast_launch import Card, native  # noqa: F401 (a fixture)

import metalloid as mtl

TEXT = """
#include <metal_stdlib>
using namespace metal;
struct Row { int n; device int *p; };
kernel void gather(device int *y, device const int *at, constant Row &row,
                   uint i [[thread_position_in_grid]]) {
  y[i] = row.p[at[i]];
}
kernel void plain(device int *y, device const int *at, device const int *p,
                  uint i [[thread_position_in_grid]]) {
  y[i] = p[at[i]];
}
"""
ACCESS = TEXT.splitlines().index("  y[i] = row.p[at[i]];") + 1


class Kernel(Card):
    """A GPU whose launches write into their records what a kernel would."""

    def __init__(self, native):  # noqa: F811
        super().__init__(native)
        self.faults, self.passed = [], []
        self.timer.free += [(mark, mark + 1) for mark in range(100, 140, 2)]
        self.words = 2 * 4 + 2 * 1 + 1  # four parameters, a pointer in memory, the record

    def _launch(self, function, *rest):
        status = super()._launch(function, *rest)
        words = self.notes[-1][-1]
        self.passed.append(words)
        if self.faults and (fault := self.faults.pop(0)):
            ctypes.memmove(words[-1], struct.pack("=3I4x3I3IqQ", 1, *fault), 56)
        return status


#: Three more threads; the second site; threadgroup and thread; offset and extent.
def fault_of(kernel, others=3):
    bounds = kernel._program._bounds
    site = next(n for n, s in enumerate(bounds.sites) if s["slot"] >= 0)
    return (others, site, 2, 0, 0, 7, 0, 0, 4 * 20, 4 * 16)


@pytest.fixture
def card(native):  # noqa: F811
    return Kernel(native)


@pytest.fixture
def kernel(card):
    return mtl.library(TEXT, device=card, bounds="checked").gather


def arguments(card):
    y, at, p = (mtl.Buffer(nbytes, device=card) for nbytes in (256, 512, 64))
    return y, at, {"n": 1, "p": p}


def test_a_launch_passes_extents_and_a_record(kernel, card):
    y, at, row = arguments(card)
    kernel(y, at, row, threads=64, group_size=32)
    (words,) = card.passed
    assert words[:2] == (y.address, at.address)
    assert words[4:7] == (256, 512, 16)
    assert words[8:10] == (0, 64)
    assert bytes(ctypes.string_at(words[-1], 64)) == bytes(64)


def test_a_failed_access_is_raised_by_wait_and_by_reads_of_what_the_launch_wrote(kernel, card):
    y, at, row = arguments(card)
    card.faults = [None, fault_of(kernel), fault_of(kernel, 0)]
    good, bad, single = (
        kernel(buffer, at, row, threads=64, group_size=16)
        for buffer in (mtl.Buffer(256, device=card), y, mtl.Buffer(256, device=card))
    )
    assert good.wait().done
    with pytest.raises(mtl.KernelFault) as raised:
        bad.wait()
    assert str(raised.value).startswith(
        f"[gather] program_source:{ACCESS}: read of index 20 of 'row.p', which has 16 elements, "
        "in thread (7, 0, 0) of threadgroup (2, 0, 0), and in at least 3 more threads.\n"
        "      y[i] = row.p[at[i]];\n"
    )
    error = raised.value
    assert (error.kernel, error.line, error.thread, error.threadgroup) == (
        "gather", ACCESS, (7, 0, 0), (2, 0, 0),
    )  # fmt: skip
    with pytest.raises(mtl.KernelFault, match="index 20"):
        np.asarray(y)
    with pytest.raises(mtl.KernelFault, match=r"of threadgroup \(2, 0, 0\)\.\n"):
        single.wait()


def test_an_event_that_the_program_drops_still_tells(kernel, card):
    y, at, row = arguments(card)
    card.faults = [fault_of(kernel)]
    kernel(y, at, row, threads=64, group_size=16)
    with pytest.raises(mtl.KernelFault, match="index 20"):
        np.asarray(y)


def test_records_are_reused(kernel, card):
    y, at, row = arguments(card)
    for _ in range(3):
        card.faults = [fault_of(kernel)]
        with pytest.raises(mtl.KernelFault):
            kernel(y, at, row, threads=64, group_size=16, wait=True)
        kernel(y, at, row, threads=64, group_size=16, wait=True)
        card.in_flight.clear()
    assert len({words[-1] for words in card.passed}) <= 4


def test_launches_take_the_path_that_has_a_record(kernel, card):
    assert kernel._fast_launch is None
    launch = kernel.sized(64, 32)(arguments(card))
    assert card.repeater([launch], [], []) is None
    unchecked = mtl.library(TEXT, device=card, bounds="unchecked").gather
    assert unchecked._fast_launch is not None
    assert card.repeater([unchecked.sized(64, 32)(arguments(card))], [], []) is not None


def ptx(bounds=None):
    return mtl.library(TEXT, target="cuda:sm_80", bounds=bounds)["gather"].asm["ptx"]


def test_checks_are_compiled_where_they_are_asked_for(monkeypatch):
    monkeypatch.delenv("METALLOID_BOUNDS", raising=False)
    with mtl.config.scope():
        mtl.config._values.pop("bounds", None)
        plain = ptx()
        assert "atom" not in plain  # the count of failed threads
        assert plain == ptx("unchecked")
        checked = ptx("checked")
        assert "atom.global.exch" in checked
        for value, expected in (("checked", checked), ("unchecked", plain)):
            mtl.config.bounds = value
            assert ptx() == expected
            del mtl.config._values["bounds"]
            monkeypatch.setenv("METALLOID_BOUNDS", value)
            assert ptx() == expected
            monkeypatch.delenv("METALLOID_BOUNDS")


def test_metal_kernels_record_whether_checks_are_requested(monkeypatch):
    monkeypatch.delenv("METALLOID_BOUNDS", raising=False)
    explicit = mtl.metal_kernel(
        name="g", input_names=["at"], output_names=["y"], bounds="checked",
        source="y[thread_position_in_grid.x] = at[at[thread_position_in_grid.x]];",
    )  # fmt: skip
    assert explicit._bounds == "checked"
    assert mtl.metal_kernel(name="h", input_names=["x"], output_names=["y"],
                            source="y[0] = x[0];")._bounds == "default"  # fmt: skip


@pytest.mark.needs("checks on GPUs")
def test_a_gpu_raises_at_once_later_and_in_graphs():
    kernel = mtl.library(TEXT, bounds="checked").gather
    at = np.zeros(64, np.int32)
    y, p, good = mtl.Buffer(4 * 64), mtl.Buffer(np.arange(16, dtype=np.int32)), mtl.Buffer(at)
    at[40] = 20
    bad, row = mtl.Buffer(at), {"n": 1, "p": p}
    first = kernel(y, bad, row, threads=64, group_size=32)
    second = kernel(mtl.Buffer(4 * 64), good, row, threads=64, group_size=32)
    second.wait()
    message = (
        r"index 20 of 'row.p', which has 16 elements, in thread \(8, 0, 0\) of threadgroup \(1"
    )
    for read in (first.wait, lambda: np.asarray(y)):
        with pytest.raises(mtl.KernelFault, match=message):
            read()
    plain = mtl.library(TEXT, bounds="checked").plain
    with mtl.Graph() as graph:
        plain(y, good, p, threads=64, group_size=32)
        plain(y, bad, p, threads=64, group_size=32)
    for _ in range(2):
        with pytest.raises(mtl.KernelFault, match=message.replace("row.p", "p")):
            graph.launch().wait()
    kernel(y, good, row, threads=64, group_size=32).wait()
    assert not np.asarray(y).any()


@pytest.mark.needs("checks on GPUs")
@pytest.mark.parametrize("threads", [(70, 3, 1), (33, 5, 2)])
def test_a_gpu_names_the_thread_at_the_edges_of_a_grid(threads):
    """Threadgroups at the edges are smaller, and their threads are numbered without gaps."""
    lib = mtl.library("""
        kernel void f(device int *y, device const uint *wild, uint3 i [[thread_position_in_grid]],
                      uint3 size [[threads_per_grid]]) {
          uint at = i.x + size.x * (i.y + size.y * i.z);
          y[i.x == wild[0] && i.y == wild[1] && i.z == wild[2] ? 1000 : at] = 1;
        }""", bounds="checked")  # fmt: skip
    group = (16, 2, 1)
    x, y, z = threads
    out = mtl.Buffer(4 * x * y * z)
    for wild in ((0, 0, 0), (x - 1, y - 1, z - 1), (x - 1, 0, 0), (3, y - 1, 0)):
        with pytest.raises(mtl.KernelFault) as raised:
            lib.f(out, np.array(wild, np.uint32), threads=threads, group_size=group, wait=True)
        assert raised.value.threadgroup == tuple(w // g for w, g in zip(wild, group, strict=True))
        assert raised.value.thread == tuple(w % g for w, g in zip(wild, group, strict=True))


@pytest.mark.needs("checks in PTX")
def test_a_gpu_ends_threads_between_barriers_and_simdgroup_functions():
    """Others do not wait for threads that have ended."""
    lib = mtl.library("""
        #include <metal_stdlib>
        using namespace metal;
        kernel void f(device float *y, device const int *at, uint i [[thread_position_in_grid]],
                      uint l [[thread_position_in_threadgroup]]) {
          threadgroup float t[64];
          t[l] = 1;
          threadgroup_barrier(mem_flags::mem_threadgroup);
          float v = t[at[i]];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          t[l] = simd_sum(v);
          threadgroup_barrier(mem_flags::mem_threadgroup);
          y[i] = t[63 - l];
        }""", bounds="checked")  # fmt: skip
    at = np.zeros(256, np.int32)
    y = mtl.Buffer(4 * 256)
    lib.f(y, mtl.Buffer(at), threads=256, group_size=64).wait()
    assert (np.asarray(y).view(np.float32) == 32).all()
    at[::3] = 64
    with pytest.raises(mtl.KernelFault, match=r"of 't', which has 64 .* at least \d+ more threads"):
        lib.f(y, mtl.Buffer(at), threads=256, group_size=64).wait(10.0)


@pytest.mark.needs("checks in PTX")
def test_a_gpu_passes_barriers_in_divergent_code_without_threads_that_have_ended():
    lib = mtl.library("""
        #include <metal_stdlib>
        using namespace metal;
        kernel void f(device float *y, device const int *at, uint i [[thread_position_in_grid]],
                      uint l [[thread_position_in_threadgroup]]) {
          threadgroup float t[64];
          t[l] = 1;
          threadgroup_barrier(mem_flags::mem_threadgroup);
          if (l % 32 < 20) {
            float v = t[at[i]];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            y[i] = v;
          }
        }""", bounds="checked")  # fmt: skip
    at, y = np.zeros(64, np.int32), mtl.Buffer(4 * 64)
    lib.f(y, mtl.Buffer(at), threads=64, group_size=64).wait(10.0)
    assert np.asarray(y).view(np.float32).sum() == 40
    at[0] = -1
    with pytest.raises(mtl.KernelFault, match="index -1 of 't'"):
        lib.f(y, mtl.Buffer(at), threads=64, group_size=64).wait(10.0)
