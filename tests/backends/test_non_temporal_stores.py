"""Launches that need more than the caches hold use non-temporal stores; here caches hold nothing."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu import host

pytestmark = pytest.mark.needs("the CPU")

TEXT = """
#include <metal_stdlib>
using namespace metal;
#define ID uint i [[thread_position_in_grid]]
kernel void negated(device float* y, device const float* x, ID) { y[i] = -x[i]; }
kernel void vectors(device float4* y, device const float4* x, ID) { y[i] = x[i].wzyx * 2; }
kernel void rows_of_three(device packed_float3* y, device const float* x, ID) { y[i] = packed_float3(x[i], 1, -x[i]); }
kernel void bytes(device uchar* y, device const float* x, ID) { y[i] = uchar(x[i]); }
kernel void ones(device float* y, ID) { y[i] = 1; }
kernel void repeated(device float* y, device const float* x, ID, uint3 of [[thread_position_in_grid]]) { y[i + 199 * of.y] = x[i]; }
kernel void some(device float* y, device const float* x, ID) { if (x[i] > 40) y[i] = x[i]; else y[i] = i; }
// These do not.
kernel void in_place(device float* y, ID) { y[i] = 2 * y[i]; }
kernel void again(device float* y, device const float* x, ID) { for (int k = 0; k < int(i % 5); k++) y[i] = x[i + k]; }
kernel void counted(device float* y, device const float* x, device atomic_uint* n, ID) {
  y[i] = x[i];
  atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);
}
kernel void swapped(device float* y, device float* x, constant int& n, ID) { device float* to = n > 5 ? x : y; to[i] = i; }
"""
NON_TEMPORAL = ("negated", "vectors", "rows_of_three", "bytes", "ones", "repeated", "some")
OTHERS = ("in_place", "again", "counted", "swapped")


@pytest.fixture(autouse=True)
def caches_that_hold_nothing(monkeypatch):
    monkeypatch.setattr(host, "cache_bytes", lambda: 1)


def launched(name, engine, shift=0):
    """The kernel, and what it stores where arrays begin so many bytes after a line's."""
    with mtl.config.scope(cpu_engine=engine):
        kernel = mtl.library(TEXT)[name]
    memory = np.zeros(8192, np.uint8)
    start = -memory.ctypes.data % 64 + shift
    y = memory[start : start + 3216].view(np.uint8 if name == "bytes" else np.float32)
    given = {"y": y, "x": np.arange(800, dtype=np.float32) % 97, "n": 6}
    if name == "counted":
        given["n"] = np.zeros(1, np.uint32)
    arguments = [given[p.name] for p in kernel.signature.arguments]
    kernel(*arguments, threads=199, group_size=100)
    return kernel, memory


@pytest.mark.parametrize("shift", [0, 16, 32, 4])
@pytest.mark.parametrize("name", NON_TEMPORAL)
@pytest.mark.sample(1, per="name")
def test_what_is_stored_is_the_same(name, shift):
    if name == "vectors" and shift == 4:
        pytest.skip("not where float4s may lie")
    stored, expected = (launched(name, engine, shift)[1] for engine in ("simd", "reference"))
    start = [-memory.ctypes.data % 64 for memory in (stored, expected)]
    rows = [m[s : s + 4000] for m, s in zip((stored, expected), start, strict=True)]
    assert np.array_equal(*rows)


@pytest.mark.parametrize("name", [*NON_TEMPORAL, *OTHERS])
def test_stores_go_past_the_caches_where_nobody_looks_at_them(name):
    kernel, _ = launched(name, "simd")
    assert kernel.engine.startswith("simd")
    program = kernel._program
    assert bool(program._first.streamable) == (name in NON_TEMPORAL)
    if name in NON_TEMPORAL:
        [key] = [key for key in program._variants if key[0].streams]
        text = program._compile_variant(*key).asm()["ll"]
        assert "!nontemporal" in text
        assert ("call void @llvm.prefetch" in text) == (name not in ("vectors", "ones"))


@pytest.mark.parametrize(("name", "share"), [("negated", 5), ("ones", 1), ("repeated", 1)])
def test_small_launches_do_not(name, share, monkeypatch):
    for cache, is_large in ((share * 199 * 4 + 1, False), (share * 199 * 4, True)):
        monkeypatch.setattr(host, "cache_bytes", lambda cache=cache: cache)
        kernel, _ = launched(name, "simd")
        assert any(variant.streams for variant, _ in kernel._program._variants) == is_large
