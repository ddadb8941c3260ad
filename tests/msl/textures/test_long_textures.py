"""Textures of ulong: 64 bits in the two components of rg32uint, with atomic_min and atomic_max."""

import functools

import numpy as np
import pytest

import metalloid as mtl
from metalloid.errors import ArgumentError, CompileError

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"


@functools.cache
def kernels():
    return mtl.library(
        HEADER
        + f"""
kernel void update(texture2d<ulong, access::read_write> least, texture2d<ulong, access::read_write> most,
                   device const ulong* values, device const uint2* at, {ID}) {{
  least.atomic_min(at[i], ulong4(values[i]));
  most.atomic_max(at[i], values[i]);
}}
kernel void layers(texture2d_array<ulong, access::read_write> t, {ID})
{{ t.atomic_max(uint2(i % 2, 0), i % 3, ulong4(ulong(i) << 32)); }}
kernel void copy(texture2d<ulong, access::read> in, texture2d<ulong, access::write> out,
                 uint2 p [[thread_position_in_grid]]) {{ out.write(in.read(p) + 1, p.yx); }}
kernel void components(texture2d<ulong, access::read> t, device ulong4* y, {ID})
{{ y[i] = t.read(uint2(i, 0)); }}
"""
    )


def as_words(x):
    """Two 32-bit components, the lower half first."""
    return np.stack([x & 0xFFFFFFFF, x >> 32], -1).astype(np.uint32)


@pytest.mark.parametrize("form", ["array", "texture"])
def test_atomic_min_and_max(rng, form):
    shape, count = (3, 5), 5000
    values = rng.integers(0, 2**64, count, np.uint64, endpoint=False)
    x, y = rng.integers(0, 7, count), rng.integers(0, 4, count)  # some are outside
    least, greatest = np.full(shape, 2**63, np.uint64), np.full(shape, 2**63, np.uint64)
    expected = least.copy(), greatest.copy()
    inside = (x < shape[1]) & (y < shape[0])
    for update, result in zip((np.minimum, np.maximum), expected, strict=True):
        update.at(result, (y[inside], x[inside]), values[inside])
    at = np.stack([x, y], -1).astype(np.uint32)
    given = [least, greatest]
    if form == "texture":
        given = [mtl.Texture(as_words(t), format="rg32uint") for t in given]
    kernels().update(*given, values, at, threads=count)
    for got, extremes in zip(given, expected, strict=True):
        if form == "texture":
            np.testing.assert_array_equal(got.numpy(), as_words(extremes))
        else:
            np.testing.assert_array_equal(got, extremes)


def test_layers():
    t = np.zeros((3, 1, 2), np.uint64)
    kernels().layers(t, threads=1000)
    i = np.arange(1000)
    for layer in range(3):
        for x in range(2):
            assert t[layer, 0, x] == int(i[(i % 3 == layer) & (i % 2 == x)].max()) << 32


def test_read_and_write(rng):
    source = rng.integers(0, 2**64, (4, 6), np.uint64, endpoint=False)
    target = np.zeros((6, 4), np.uint64)
    kernels().copy(source, target, threads=(6, 4))
    np.testing.assert_array_equal(target, source.T + np.uint64(1))
    y = np.full((8, 4), 7, np.uint64)
    kernels().components(source, y, threads=8)
    np.testing.assert_array_equal(y[:6], [[v, 0, 0, 1] for v in source[0]])
    np.testing.assert_array_equal(y[6:], [[0, 0, 0, 1]] * 2)


def test_other_arrays_are_refused():
    y = np.zeros((4, 4), np.uint64)
    for x, words in (
        (np.zeros((2, 2), np.uint32), "components of uint64"),
        (np.zeros((2, 2, 2), np.uint64), "one channel"),
        (mtl.Texture((2, 2), "r32uint"), "textures of ulong read rg32uint"),
    ):
        with pytest.raises(ArgumentError, match=words):
            kernels().components(x, y, threads=4)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("t.atomic_fetch_add(uint2(0), 1ul)", "need a texture of int or uint"),
        ("u.atomic_max(uint2(0), 1u)", "atomic_max needs a texture of ulong"),
        ("r.atomic_max(uint2(0), 1ul)", "access::read_write"),
        ("s.sample(sampler(), float2(0))", "none of ulong"),
    ],
)
def test_what_they_do_not_have(statement, words):
    text = f"""
kernel void f(texture2d<ulong, access::read_write> t, texture2d<uint, access::read_write> u,
              texture2d<ulong, access::read> r, texture2d<ulong> s) {{ {statement}; }}
"""
    with pytest.raises(CompileError, match=words):
        mtl.library(HEADER + text)
