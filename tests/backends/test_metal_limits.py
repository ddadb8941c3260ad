"""Limits of Metal, whose drivers end the process beyond them: our errors come first."""

import ctypes
import mmap
import types

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.metal.compile.limits import Limits
from metalloid.compat import Metal

SOURCE = """
#include <metal_stdlib>
using namespace metal;
struct Many { device float* p[600]; };
struct Outer { constant Many* many; device float* to; };
kernel void add_one(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }
kernel void add_first(device float* x, device uchar* b, uint i [[thread_position_in_grid]]) { x[i] += b[0]; }
kernel void add_bytes(constant uchar* b, device int* x, uint i [[thread_position_in_grid]]) { x[i] += b[i]; }
kernel void double_bytes(device uchar* b, uint i [[thread_position_in_grid]]) { b[i] *= 2; }
kernel void sum_of(constant Many& m, device float* x) { for (int i = 0; i < 600; ++i) x[0] += *m.p[i]; }
kernel void sum_below(constant Outer& o) { for (int i = 0; i < 600; ++i) *o.to += *o.many->p[i]; }
kernel void shared(device float* x, threadgroup float* given [[threadgroup(0)]],
                   uint i [[thread_index_in_threadgroup]]) {
  threadgroup float own[4000];
  own[i] = 1;
  given[i] = 2;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = own[1 - i] + given[1 - i];
}
kernel void unused(device float* x, threadgroup float* t [[threadgroup(0)]]) { x[0] += 1; }
kernel void huge(device float* x, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float own[9000];
  own[i] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[i] = own[1 - i];
}
"""

#: Kernels of the reference engine bring their threadgroup memory, as if there were no limit.
needs_vector_code = pytest.mark.skipif(
    mtl.config.cpu_engine != "simd", reason="the reference engine knows no limit of this memory"
)
HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"

COUNT = """
#include <metal_stdlib>
using namespace metal;
kernel void count(device atomic_uint& n) {
  atomic_fetch_add_explicit(&n, 1u, memory_order_relaxed);
}
"""


# -- indices


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("device float* x [[buffer(31)]]",
         r"'x' \[\[buffer\(31\)\]\]: a kernel has \[\[buffer\(0\)\]\] to \[\[buffer\(30\)\]\] on .*\. "
         r"Make them members of a struct \(an argument buffer\)"),
        (", ".join(f"device float* x{i}" for i in range(32)), r"'x31' \[\[buffer\(31\)\]\]: a kernel has"),
        ("texture2d<float> t [[texture(128)]]", r"'t' \[\[texture\(128\)\]\]: .* to \[\[texture\(127\)\]\]"),
        ("array<texture2d<float>, 130> t", r"'t' \[\[texture\(0\)\]\] and 129 behind it: .*texture\(127\)"),
        ("sampler s [[sampler(16)]]", r"'s' \[\[sampler\(16\)\]\]: .* to \[\[sampler\(15\)\]\]"),
        ("threadgroup float* t [[threadgroup(31)]]", r".* to \[\[threadgroup\(30\)\]\] on .*\. Divide one"),
    ],
)  # fmt: skip
def test_indices_end(metal, parameters, expected):
    text = HEADER + f"kernel void f({parameters}) {{}}"
    with pytest.raises(
        mtl.CompileError, match=rf"^program_source:3:1: error: {expected}"
    ) as caught:
        mtl.library(text, device=metal)["f"]
    assert caught.value.lineno == 3
    mtl.library(text, device="cpu")["f"]  # has no such limit


def test_the_last_indices_are_bound(metal):
    text = HEADER + (
        "kernel void f(device float* x [[buffer(30)]], texture2d<float> t [[texture(127)]],"
        " sampler s [[sampler(15)]], threadgroup float* g [[threadgroup(30)]])"
        " { *g = 1; *x = *g + t.sample(s, float2(0.5)).x; }"
    )
    x = np.zeros(1, np.float32)
    image = np.full((1, 1), 5, np.float32)
    memory = mtl.threadgroup_memory(4)
    mtl.library(text, device=metal)["f"](x, image, mtl.Sampler(), memory, threads=1)
    assert x[0] == 6


@pytest.mark.parametrize(
    ("families", "limit"),
    [((), 31), (("Apple4", "Apple5"), 96), (("Apple4", "Apple6"), 128), (("Mac2",), 128)],
)
def test_older_families_have_fewer_textures(families, limit):
    known = {getattr(Metal, f"MTLGPUFamily{name}") for name in families}
    gpu = types.SimpleNamespace(
        name=lambda: "G", supportsFamily_=known.__contains__,
        maxThreadsPerThreadgroup=lambda: Metal.MTLSize(512, 512, 64),
        maxThreadgroupMemoryLength=lambda: 16384,
    )  # fmt: skip
    limits = Limits(gpu, Metal)
    assert limits._indices["texture"] == limit
    assert limits.group == (512, 512, 64)
    assert limits.constant_alignment == 256


# -- threadgroups


def test_threads_of_a_threadgroup(metal, lib, monkeypatch):
    x = np.zeros(4096, np.float32)
    with pytest.raises(
        mtl.ArgumentError, match="2048 threads; a threadgroup of this kernel has at most"
    ):
        lib.add_one(x, threads=4096, group_size=2048)
    monkeypatch.setattr(metal.limits, "group", (1024, 1024, 64))
    with pytest.raises(
        mtl.ArgumentError, match=r"\(1, 1, 128\) exceeds the limit of .*: \(1024, 1024, 64\)"
    ):
        lib.add_one(x, threads=(1, 1, 128), group_size=(1, 1, 128))
    counted = np.zeros(1, np.uint32)
    count = mtl.library(COUNT, device=metal).count
    count(counted, threads=(1, 1, 4096))  # by itself it chooses what fits
    count(counted, threads=(1, 1, 64), group_size=(1, 1, 64))
    assert counted[0] == 4096 + 64


def test_grids_that_cannot_be_counted(lib):
    with pytest.raises(mtl.LaunchError, match="more than 9223372036854775807 threadgroups"):
        lib.add_one(np.zeros(1, np.float32), threads=(2**32 - 1,) * 3, group_size=1)


def test_empty_grids_are_not_dispatched(metal, lib, monkeypatch):
    metal.synchronize()
    monkeypatch.setattr(metal, "_add", None)
    for threads in (0, (3, 0), (0, 5, 5)):
        event = lib.add_one(np.zeros(1, np.float32), threads=threads)
        assert event.done
        assert event.seconds == 0


@needs_vector_code
def test_threadgroup_memory(lib):
    x = np.zeros(2, np.float32)
    lib.shared(x, mtl.threadgroup_memory(32768 - 16000 - 128), threads=2)
    assert x.tolist() == [3, 3]
    with pytest.raises(
        mtl.ArgumentError,
        match=r"\[shared\] requests 20000 bytes .* addition to the 16\d\d\d bytes of .*; .* has 32768",
    ):
        lib.shared(x, mtl.threadgroup_memory(20000), threads=2)
    with pytest.raises(mtl.ArgumentError, match="requests 40000 bytes of threadgroup memory"):
        lib.unused(x, mtl.threadgroup_memory(40000), threads=1)
    with pytest.raises(
        mtl.CompileError,
        match=r"program_source:\d+:1: error: .* huge: .*36\d\d\d\) exceeds the maximum",
    ):
        _ = lib.huge
    lib.unused(x, mtl.threadgroup_memory(0), threads=1)
    assert x[0] == 4


# -- bytes


def test_argument_buffers_that_are_too_large_for_a_command(metal, lib):
    x, sum_ = mtl.Buffer(np.ones(1, np.float32), metal), np.zeros(1, np.float32)
    lib.sum_of({"p": [x] * 600}, sum_, threads=1)
    assert sum_[0] == 600
    lib.sum_below({"many": {"p": [x] * 600}, "to": sum_}, threads=1)
    assert sum_[0] == 1200


def test_copies_are_aligned_as_the_originals(lib):
    bytes_ = np.zeros(400, np.uint8)
    bytes_ = bytes_[-bytes_.ctypes.data % 16 + 1 :]  # where no float is
    first, x = bytes_[:100], bytes_[3:43].view(np.float32)  # of one block
    first[0] = 7
    lib.add_first(x[5:], first, threads=5)
    assert x[5:].tolist() == [7] * 5


def test_constant_memory_may_begin_anywhere(metal, lib):
    held, x = mtl.Buffer(np.arange(8, dtype=np.uint8), metal), np.zeros(4, np.int32)
    view = np.asarray(held)[1:]
    lib.double_bytes(held, threads=8)  # not yet waited for
    lib.add_bytes(view, x, threads=4)
    assert x.tolist() == [2, 4, 6, 8]


def test_buffers_are_no_longer_than_metal_has_them(metal, monkeypatch):
    assert metal.heap._max_bytes == metal.gpu.maxBufferLength()
    monkeypatch.setattr(metal.heap, "_max_bytes", 4 * mmap.PAGESIZE)
    asked = []
    for name in (
        "newBufferWithLength_options_",
        "newBufferWithBytesNoCopy_length_options_deallocator_",
    ):
        monkeypatch.setattr(type(metal.gpu), name, lambda *given: asked.append(given))
    with pytest.raises(mtl.OutOfMemory, match="a buffer at most"):
        mtl.Buffer(5 * mmap.PAGESIZE, metal)
    memory = mmap.mmap(-1, 5 * mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert metal.heap.wrapped(address, len(memory)) is None
    assert asked == []


# -- the software device says no, too


@needs_vector_code
def test_what_the_software_device_asserts(metal, lib):
    gpu, max_length = metal.gpu, metal.gpu.maxBufferLength()
    with pytest.raises(
        Metal.FailedAssertion, match=r"newBufferWithLength:options:\]: .*must not exceed"
    ):
        gpu.newBufferWithLength_options_(max_length + 1, 0)
    encoder = metal.queue.commandBuffer().computeCommandEncoder()
    buffer = gpu.newBufferWithLength_options_(64, 0)
    encoder.setComputePipelineState_(lib.add_bytes._program.pipeline)
    encoder.setBuffer_offset_atIndex_(buffer, 2, 0)
    encoder.setBuffer_offset_atIndex_(buffer, 32, 1)
    with pytest.raises(
        Metal.FailedAssertion, match=r"offset\(2\) for b\[0\] must be a multiple of 4"
    ):
        encoder.dispatchThreads_threadsPerThreadgroup_((1, 1, 1), (1, 1, 1))
    pipeline = lib.shared._program.pipeline
    assert 16000 <= pipeline.staticThreadgroupMemoryLength() <= 16128
    encoder.setComputePipelineState_(pipeline)
    encoder.setBuffer_offset_atIndex_(buffer, 0, 0)
    encoder.setThreadgroupMemoryLength_atIndex_(20000, 0)
    with pytest.raises(
        Metal.FailedAssertion, match=r"Threadgroup memory size \(36\d\d\d\) exceeds"
    ):
        encoder.dispatchThreads_threadsPerThreadgroup_((1, 1, 1), (1, 1, 1))
    encoder.endEncoding()
