"""metalcompute's document: its kernels."""

import os
import runpy
from array import array
from pathlib import Path

import numpy as np
import pytest

SEEDS = Path(__file__).parent / "seeds" / "metalcompute"


def test_seed_hello(capsys):
    assert runpy.run_path(str(SEEDS / "hello.py"))["C_view"].tolist() == [
        i * (i + 10.0) for i in range(10)
    ]
    assert capsys.readouterr().out == "11.0\n"


def test_seed_runs_without_gaps(dev):
    """The document's hundred launches in a list, on a million numbers."""
    source = runpy.run_path(str(SEEDS / "hello.py"))["kernel"]
    helloABC, count = dev.kernel(source).function("helloABC"), 1_000_000
    A, B = (array("f", range(at, at + count)) for at in (0, 10))
    C = dev.buffer(count * 4)
    [helloABC(count, A, B, C) for _ in range(100)][-1]
    assert (np.frombuffer(C, "f") == np.float32(A) * np.float32(B)).all()


@pytest.mark.slow
def test_seed_a_billion(dev):
    """The document's larger count, in buffers: 12 GB."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < 14e9:
        pytest.skip(f"14 GB of free memory are missing: there are {free / 1e9:.1f}")
    source = runpy.run_path(str(SEEDS / "hello.py"))["kernel"]
    count = 1_000_000_000
    A, B, C = (dev.buffer(count * 4) for _ in range(3))
    a, b, c = (np.frombuffer(memory, "f") for memory in (A, B, C))
    parts = [slice(at, at + 10_000_000) for at in range(0, count, 10_000_000)]
    for part in parts:
        a[part] = np.arange(part.start, part.stop)
        b[part] = np.arange(part.start + 10, part.stop + 10)
    dev.kernel(source).function("helloABC")(count, A, B, C)
    assert all(np.array_equal(c[part], a[part] * b[part]) for part in parts)


def test_seed_flops(dev):
    source = runpy.run_path(str(SEEDS / "flops.py"))["kernel"]
    count = 1_000_000
    a, b = np.random.default_rng(1).uniform(-0.05, 0.05, (2, count)).astype("f")
    out = dev.buffer(count * 4)
    dev.kernel(source).function("helloABC")(count, a, b, out)
    sample = slice(None, None, 50)
    x, y = a[sample].astype(np.float64), b[sample].astype(np.float64)
    d, e, f, g = x, y, x + y, x - y
    scale = abs(d) + abs(e) + abs(f) + abs(g)
    for _ in range(400):
        d = d + x * g
        e = e + y * f
        f = f + x * e
        g = g + y * d
        scale = np.maximum(scale, abs(d) + abs(e) + abs(f) + abs(g))
    # 1600 roundings, each of at most half an ULP of what was the largest sum
    error = abs(np.frombuffer(out, "f")[sample] - (d + e + f + g))
    assert (error <= 1600 * 2.0**-24 * scale).all()


GLSL = """
#include <metal_stdlib>
using namespace metal;
#define vec2 float2
#define vec3 float3
#define vec4 float4
#define main() julia(constant float &time [[buffer(0)]], device float4 *image [[buffer(1)]], \\
                     uint id [[thread_position_in_grid]])
#define gl_FragCoord float4(id % 256 + 0.5, id / 256 + 0.5, 0, 1)
#define gl_FragColor image[id]
kernel
"""


ROUNDING = 8 * 2.0**-24  # of a few operations in float


def julia():
    """The same in NumPy, at time 0: colours, and what roundings in float may change about them."""
    position = (np.arange(256) + 0.5 - 128) / 256
    c, z = 0.8j, (position + 1j * position[:, None]) * 4
    error = np.zeros(z.shape)
    iterations, inside = np.zeros(z.shape), np.ones(z.shape, bool)
    for _ in range(100):
        roundings = ROUNDING * (abs(z) ** 2 + abs(c))
        grown = np.minimum(2 * abs(z) * error + error**2 + roundings, 1e30)
        error = np.where(inside, grown, error)
        z = np.where(inside, z * z + c, z)
        inside = inside & (abs(z) <= 100)
        iterations += inside
    away = abs(abs(z) - 100) > error
    with np.errstate(invalid="ignore", divide="ignore"):
        smooth = iterations - (np.log2(np.log(abs(z)) / np.log(100.0)) - 1)
        doubt = error / abs(z) / np.log(abs(z)) / smooth * 8 * 0.4 * 0.71 / np.log(2) ** 2
        hue = 8 * np.log2(smooth)
        colours = [0.5 + 0.4 * np.sin(k * hue) for k in (0.31, 0.53, 0.71)]
    outside = (iterations < 100) & away
    return np.stack([*colours, np.ones(z.shape)], axis=-1), np.where(outside, doubt, np.inf)


def test_seed_julia(dev):
    image = dev.buffer(256 * 256 * 16)
    source = f"{GLSL}{(SEEDS / 'julia.glsl').read_text()}"
    dev.kernel(source).function("julia")(256 * 256, array("f", [0]), image)
    pixels = np.frombuffer(image, "f").reshape(256, 256, 4)
    expected, doubt = julia()
    sure = doubt < 1e-3
    assert sure.mean() > 0.9
    difference = abs(pixels - expected).max(axis=-1)
    assert (difference[sure] <= doubt[sure] + 2**-13).all()
