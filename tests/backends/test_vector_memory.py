"""Vector code touches what the threads touch, and no more: arrays end where memory does."""

import ctypes
import mmap

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

SOURCE = """
#include <metal_stdlib>
using namespace metal;
struct two { float first; int second; };
struct wide { float a, b, c, d, e; };
struct block { float v[8]; };
#define ID uint i [[thread_position_in_grid]]
kernel void every_second(device float* y, device const float* x, ID) { y[i] = x[2 * i]; }
kernel void third_of_four(device float* y, device const float* x, ID) { y[i] = x[4 * i + 2]; }
kernel void packed(device float* y, device const packed_float3* x, ID) { y[i] = x[i].x + 2 * x[i].y + 3 * x[i].z; }
kernel void vectors(device float4* y, device const float4* x, ID) { y[i] = x[i].wzyx * 2; }
kernel void two_of_vector(device float* y, device const float4* x, ID) { y[i] = x[i].x + x[i].y; }
kernel void first_members(device float* y, device const two* x, ID) { y[i] = x[i].first; }
kernel void members_out_of_order(device float* y, device const wide* x, ID) { y[i] = x[i].d - x[i].b + x[i].a; }
kernel void neighbours(device float* y, device const float* x, constant uint& n, ID) {
    y[i] = (i > 0 ? x[i - 1] : 0) + (i + 1 < n ? x[i + 1] : 0);
}
kernel void rows_above(device float* y, device const float* x, constant uint& n, ID) {
    y[i] = (i >= n ? x[i - n] : 0) + (i / n > 1 ? x[i - 2 * n] : 0);
}
kernel void backwards(device float* y, device const float* x, constant uint& n, ID) { y[n - 1 - i] = x[i]; }
kernel void some(device float4* y, device const float4* x, ID) { if (i % 3 == 1) y[i] = x[i]; }
kernel void write_packed(device packed_float3* y, device const float* x, ID) { y[i] = packed_float3(x[i], 1, -x[i]); }
kernel void write_second(device float* y, device const float* x, ID) { y[2 * i + 1] = x[i]; }
kernel void copy_blocks(device block* y, device const block* x, ID) { y[i] = x[i]; }
kernel void move_blocks(device block* y, device const block* x, device const uint* to, ID) { y[to[i]] = x[i]; }
kernel void same_block(device block* y, device const block* x, ID) { y[i] = x[0]; }
kernel void some_blocks(device block* y, device const block* x, device const uint* to, ID) {
    if (to[i] % 3 == 1) y[to[i]] = x[i];
}
kernel void by_threadgroup(device float* y, device const block* x, uint i [[thread_index_in_threadgroup]],
                           uint n [[threads_per_threadgroup]]) {
    threadgroup block shared[64];
    shared[i] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = shared[n - 1 - i].v[i % 8];
}
kernel void windows(device float* y, device const float* x, uint i [[thread_index_in_threadgroup]]) {
    threadgroup_barrier(mem_flags::mem_device);
    y[i] = x[i / 4] + 2 * x[i % 4] + 3 * x[i % 8 / 4 * 4 + 3 - i % 4];
}
kernel void halves(device half* y, device const half* x, ID) { y[i] = x[3 * i]; }
"""

SIZES = (1, 7, 16, 37, 64)


@pytest.fixture(scope="module")
def lib():
    with mtl.config.scope(cpu_engine="simd"):
        yield mtl.library(SOURCE)


class Memory:
    """Arrays that end with a page, where the next page is not accessible."""

    def __init__(self):
        self._mappings = []

    def array(self, values):
        page = mmap.PAGESIZE
        pages = -(-values.nbytes // page)
        mapping = mmap.mmap(-1, (pages + 1) * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(start + pages * page), ctypes.c_size_t(page), 0) == 0
        self._mappings.append((mapping, start + pages * page, libc))
        bytes_ = np.frombuffer(mapping, np.uint8, values.nbytes, pages * page - values.nbytes)
        array = bytes_.view(values.dtype).reshape(values.shape)
        array[...] = values
        return array


@pytest.fixture
def memory():
    return Memory()


def floats(count):
    return np.random.default_rng(count).normal(size=count).astype(np.float32)


CASES = {
    "every_second": (lambda n: floats(2 * n - 1), lambda x, n: x[::2]),
    "third_of_four": (lambda n: floats(4 * n - 1), lambda x, n: x[2::4]),
    "packed": (lambda n: floats(3 * n), lambda x, n: x[::3] + 2 * x[1::3] + 3 * x[2::3]),
    "two_of_vector": (lambda n: floats(4 * n), lambda x, n: x[::4] + x[1::4]),
    "first_members": (lambda n: floats(2 * n), lambda x, n: x[::2]),
    "members_out_of_order": (lambda n: floats(5 * n), lambda x, n: x[3::5] - x[1::5] + x[::5]),
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(5)
def test_reads(lib, memory, name, n):
    make, expected = CASES[name]
    x = make(n)
    if name == "two_of_vector":
        x = x.reshape(n, 4)
    elif name in ("first_members", "members_out_of_order"):
        x = x.view(np.uint8)
    y = memory.array(np.zeros(n, np.float32))
    lib[name](y, memory.array(x), threads=n)
    assert lib[name].engine.startswith("simd")
    np.testing.assert_array_equal(y, expected(x.view(np.float32).reshape(-1), n))


@pytest.mark.parametrize("n", SIZES)
def test_adjacent_elements_at_the_edges(lib, memory, n):
    x, y = floats(n), memory.array(np.zeros(n, np.float32))
    lib.neighbours(y, memory.array(x), n, threads=n)
    padded = np.concatenate([[0], x, [0]]).astype(np.float32)
    np.testing.assert_array_equal(y, padded[:-2] + padded[2:])


@pytest.mark.parametrize("n", [1, 5, 12, 31, 32, 33, 100])
@pytest.mark.sample(2)
def test_rows_above(lib, memory, n):
    """The first lanes of a vector may have no row above: their index has wrapped."""
    x, y = floats(144), memory.array(np.zeros(144, np.float32))
    lib.rows_above(y, memory.array(x), n, threads=144)
    above, two_above = (np.concatenate([np.zeros(n * k, "f"), x])[:144] for k in (1, 2))
    np.testing.assert_array_equal(y, above + two_above)


@pytest.mark.parametrize("n", SIZES)
def test_writes(lib, memory, n):
    x = floats(n)
    y = memory.array(np.zeros(n, np.float32))
    lib.backwards(y, memory.array(x), n, threads=n)
    np.testing.assert_array_equal(y, x[::-1])
    y = memory.array(np.zeros((n, 3), np.float32))
    lib.write_packed(y, memory.array(x), threads=n)
    np.testing.assert_array_equal(y, np.stack([x, np.ones(n), -x], axis=1).astype(np.float32))
    y = memory.array(np.full(2 * n, 7, np.float32))
    lib.write_second(y, memory.array(x), threads=n)
    np.testing.assert_array_equal(y, np.stack([np.full(n, 7), x], axis=1).ravel().astype("f4"))


@pytest.mark.parametrize("n", SIZES)
def test_vectors(lib, memory, n):
    x = floats(4 * n).reshape(n, 4)
    y = memory.array(np.zeros((n, 4), np.float32))
    lib.vectors(y, memory.array(x), threads=n)
    np.testing.assert_array_equal(y, 2 * x[:, ::-1])
    y = memory.array(np.full((n, 4), 5, np.float32))
    lib.some(y, memory.array(x), threads=n)
    chosen = np.arange(n)[:, None] % 3 == 1
    np.testing.assert_array_equal(y, np.where(chosen, x, 5).astype(np.float32))


@pytest.mark.parametrize("n", SIZES)
def test_halves(lib, memory, n):
    x = floats(3 * n - 2).astype(np.float16)
    y = memory.array(np.zeros(n, np.float16))
    lib.halves(y, memory.array(x), threads=n)
    np.testing.assert_array_equal(y, x[::3])


@pytest.mark.parametrize("n", SIZES)
def test_copies_of_many_bytes(lib, memory, n):
    x = floats(8 * n).reshape(n, 8)
    to = np.random.default_rng(n).permutation(n).astype(np.uint32)
    moved = np.empty_like(x)
    moved[to] = x
    chosen = np.arange(n)[:, None] % 3 == 1
    expected = {
        "copy_blocks": x, "move_blocks": moved, "same_block": np.repeat(x[:1], n, 0),
        "some_blocks": np.where(chosen, moved, 5),
    }  # fmt: skip
    for name, result in expected.items():
        y = memory.array(np.full((n, 8), 5, np.float32).view(np.uint8))
        given = [memory.array(x.view(np.uint8)), memory.array(to)]
        lib[name](y, *given[: len(lib[name].signature.buffers) - 1], threads=n)
        assert lib[name].engine.startswith("simd")
        np.testing.assert_array_equal(y.view(np.float32), result.astype(np.float32))
    y = memory.array(np.zeros(n, np.float32))
    lib.by_threadgroup(y, memory.array(x.view(np.uint8)), threads=n, group_size=n)
    np.testing.assert_array_equal(y, x[::-1][range(n), np.arange(n) % 8])


@pytest.mark.parametrize("n", [8, 13, 32])
def test_small_arrays_that_lanes_read_by_row_and_column(lib, memory, n):
    x, i = floats(8), np.arange(n)
    y = memory.array(np.zeros(n, np.float32))
    lib.windows(y, memory.array(x), threads=n, group_size=n)
    expected = x[i // 4] + 2 * x[i % 4] + 3 * x[i % 8 // 4 * 4 + 3 - i % 4]
    np.testing.assert_allclose(y, expected, 1e-6)


def test_adjacent_elements_that_are_copied_to_a_private_array():
    """A thread's eight numbers, some of which are missing in the last thread: one wide load."""
    body = """
    kernel void last(device float* y, device const float* x, constant uint& n, ID) {
        float own[8] = {0};
        int left = int(n) - int(8 * i);
        if (8 * i + 8 <= n) for (int k = 0; k < 8; ++k) own[k] = x[8 * i + k];
        else for (int k = 0; k < left; ++k) own[k] = x[8 * i + k];
        float sum = 0;
        for (int k = 0; k < 8; ++k) sum += own[k];
        y[i] = sum;
    }"""
    n = 8 * 40 - 3
    x, y = np.arange(n, dtype=np.float32), np.zeros(40, np.float32)
    with mtl.config.scope(cpu_engine="simd"):
        last = mtl.library(SOURCE + body)["last"]
    last(y, x, n, threads=40)
    assert np.array_equal(y, np.append(x, np.zeros(3, np.float32)).reshape(40, 8).sum(1))
    threads = last.asm["ll"].split("define internal void @mtl_threads(")[1].split("\n}")[0]
    assert threads.count("@llvm.masked.gather") <= 2  # in the loop of the last thread
