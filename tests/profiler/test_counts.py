"""Operations, bytes and instructions of kernels by line, compared with what the texts say."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import metalloid as mtl
from metalloid.profiler import counting

pytestmark = pytest.mark.needs("the CPU")

TEXT = """#include <metal_stdlib>
using namespace metal;

float square(float x)
{
    return x * x;
}

kernel void collatz(device const uint *in, device float *out, uint i [[thread_position_in_grid]])
{
    uint n = in[i];
    float steps = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps += 1.5f;
    }
    out[i] = square(steps);
}

kernel void polynomial(device float4 *x, constant int &n, uint i [[thread_position_in_grid]])
{
    float4 s = 0;
    for (int k = 0; k < n; ++k)
        s = fma(s, x[i], float4(k));
    x[i] = s;
}

kernel void sum(device const float *in, device float *out, uint l [[thread_position_in_threadgroup]],
                uint i [[thread_position_in_grid]], uint g [[threadgroup_position_in_grid]])
{
    threadgroup float partial[64];
    partial[l] = in[i];
    for (uint step = 32; step > 0; step /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (l < step)
            partial[l] += partial[l + step];
    }
    if (l == 0)
        out[g] = partial[0];
}

kernel void count(device atomic_uint *bins, device const uchar *in,
                  uint i [[thread_position_in_grid]])
{
    atomic_fetch_add_explicit(&bins[in[i]], 1, memory_order_relaxed);
}
"""


@pytest.fixture(scope="module")
def lib():
    return mtl.library(TEXT, device="cpu")


def steps_of(n):
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


def row_of(lines, text):
    (row,) = [row for row in lines if text in row.text]
    return row


def test_control_flow_that_depends_on_memory(lib):
    values = np.arange(2, 302, dtype=np.uint32)
    out = np.zeros(300, np.float32)
    with mtl.profile() as p:
        lib.collatz(values, out, threads=300)
    steps = [steps_of(n) for n in range(2, 302)]
    np.testing.assert_allclose(out, (1.5 * np.array(steps)) ** 2)
    lines = p.lines("collatz")
    assert row_of(lines, "steps += 1.5f").cost.operations == sum(steps)
    assert row_of(lines, "return x * x").cost.operations == 300
    assert row_of(lines, "uint n = in[i]").cost.loaded == 1200
    assert row_of(lines, "out[i] =").cost.stored == 1200
    total = p.launches[0].counts.total
    assert total.operations == sum(steps) + 300
    # Lines: exactly the total, of which little is of no line.
    assert sum(row.cost.instructions for row in lines) == total.instructions
    assert sum(row.share for row in lines if row.file) > 0.98
    assert sum(row.seconds for row in lines) == pytest.approx(p.launches[0].device_seconds)
    # The loop has at least a division or multiplication, a selection, an addition and a comparison
    # of each number.
    assert row_of(lines, "n = n % 2").cost.instructions >= 3 * sum(steps)


@pytest.mark.parametrize(("n", "threads"), [(1000, 10), (40, 300)])
def test_instructions_of_a_loop_are_those_counted_by_hand(n, threads):
    """Marsaglia's xorshift: each step needs the one before, so that compilers keep the loop."""
    text = """kernel void mix(device uint *x, constant uint &n, uint i [[thread_position_in_grid]])
{
    uint s = x[i];
    for (uint k = 0; k < n; ++k) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
    }
    x[i] = s;
}
"""
    with mtl.profile() as p:
        mtl.library(text, device="cpu").mix(np.ones(threads, np.uint32), n, threads=threads)
    lines = p.lines("mix")
    iterations = n * threads
    for shift in ("<< 13", ">> 17", "<< 5"):  # a shift, and an exclusive or
        assert row_of(lines, shift).cost.instructions == 2 * iterations
    # An addition, a comparison and a branch.
    assert row_of(lines, "for (").cost.instructions == pytest.approx(3 * iterations, rel=0.05)
    total = p.launches[0].counts.total.instructions
    others = 30 * threads  # ids, loads and stores of each thread, at most
    assert 9 * iterations <= total <= 9 * iterations * 1.001 + others
    assert sum(row.cost.instructions for row in lines) == total


@pytest.mark.slow
def test_vectors_and_numbers(lib):
    x = np.ones((100, 4), np.float32)
    with mtl.profile() as p:
        for n in (10, 20, 10):
            lib.polynomial(x, n, threads=100)
    operations = [each.counts.total.operations for each in p.launches]
    assert operations == [2 * 4 * n * 100 for n in (10, 20, 10)]
    assert [each.counts.total.stored for each in p.launches] == [1600] * 3
    assert p.launches[0].counts is p.launches[2].counts  # counted once
    assert row_of(p.lines(), "s = fma").cost.operations == 2 * 4 * 40 * 100


def test_threadgroup_memory(lib):
    out = np.zeros(4, np.float32)
    with mtl.profile() as p:
        lib.sum(np.ones(256, np.float32), out, threads=256, group_size=64)
    assert out.tolist() == [64.0] * 4
    total = p.launches[0].counts.total
    assert total.operations == 4 * 63
    assert (total.loaded, total.stored) == (1024, 16)
    # A store of each thread; two loads and a store for each sum; a load of the result, unless the
    # compiler knows it from the last sum.
    assert 4 * (256 + 63 * 3 + 4) - 20 <= total.shared <= 4 * (256 + 4 * 63 * 3 + 4)


@pytest.mark.slow
def test_atomics(lib):
    bins, values = np.zeros(4, np.uint32), np.arange(100, dtype=np.uint8) % 4
    with mtl.profile() as p:
        lib.count(bins, values, threads=100)
    assert bins.tolist() == [25] * 4  # counted on a copy
    total = p.launches[0].counts.total
    assert (total.loaded, total.stored) == (100 + 400, 400)
    assert p.launches[0].counts.traffic == 100 + 16 + 16


@pytest.mark.slow
def test_launches_that_are_not_counted(lib):
    textures = mtl.library(
        """#include <metal_stdlib>
        using namespace metal;
        kernel void copy(texture2d<float> a, texture2d<float, access::write> b,
                         uint2 i [[thread_position_in_grid]]) { b.write(a.read(i), i); }""",
        device="cpu",
    )
    picture, result = (mtl.Texture(np.full((4, 4, 4), k, np.float32)) for k in range(2))
    with mtl.profile() as p:
        textures.copy(picture, result, threads=(4, 4))
    assert not result.numpy().any()
    assert p.launches[0].counts is None
    assert "-" in str(p).splitlines()[2]


def test_table_of_lines(lib):
    out = np.zeros(4, np.float32)
    with mtl.profile() as p:
        lib.sum(np.ones(256, np.float32), out, threads=256, group_size=64)
    text = str(p.lines("sum"))
    assert text.startswith("sum: 1 launches")
    number = 1 + TEXT.splitlines().index("            partial[l] += partial[l + step];")
    (line,) = [each for each in text.splitlines() if each.endswith("partial[l + step];")]
    assert line.split()[0] == str(number)


def test_memory_beyond_an_array_is_not_read(monkeypatch):
    x = np.arange(4096.0)
    start, end = x.ctypes.data, x.ctypes.data + x.nbytes
    own = mtl.asarray(x, copy=False)
    copied = []

    def memmove(to, source, nbytes):
        copied.append((source, source + nbytes))
        return ctypes.memmove(to, source, nbytes)

    monkeypatch.setattr(counting, "ctypes", SimpleNamespace(memmove=memmove))
    for _ in range(2):
        mtl.eval(own[4000:] + 1.0)  # a known evaluation, which passes the address of an element
    with mtl.profile() as profile:
        mtl.eval(own[4000:] + 1.0)
    assert len(profile.launches) == 1
    ends = [last for first, last in copied if start <= first < end]
    assert ends
    assert max(ends) <= end
