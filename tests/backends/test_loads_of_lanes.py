"""Processors whose gathers are slow load lane by lane, but not in textures."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu import host

pytestmark = pytest.mark.needs("the CPU")

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void strided(device float *y, device const float *x, constant uint &step,
                    uint i [[thread_position_in_grid]]) { y[i] = x[i * step]; }
kernel void sampled(device float *y, texture2d<float> t, uint i [[thread_position_in_grid]]) {
  constexpr sampler s(coord::pixel, filter::linear);
  y[i] = t.sample(s, float2(i) / 3).x;
}
"""


@pytest.fixture(params=[False, True], ids=["loads", "gathers"])
def gathers(request, monkeypatch):
    cpu = mtl.Device("cpu")
    monkeypatch.setattr(cpu, "target", cpu.target._replace(gathers=request.param))
    with mtl.config.scope(cache_bytes=0, cpu_engine="simd"):
        yield request.param


def function(name, gathers):
    """A kernel of its own name, as compiled code is shared by targets of one machine."""
    return mtl.library(TEXT.replace(name, f"{name}_{gathers}"))[f"{name}_{gathers}"]


def test_elements_at_a_distance(gathers):
    x, y = np.arange(5000, dtype=np.float32), np.zeros(700, np.float32)
    kernel = function("strided", gathers)
    kernel(y, x, 7, threads=700)
    np.testing.assert_array_equal(y, x[: 7 * 700 : 7])
    if host.vector_extension() in ("AVX2", "AVX-512"):
        assert ("+prefer-no-gather" in kernel.asm["ll"]) != gathers
        assert ("vgather" in kernel.asm["x86"]) == gathers


def test_textures_are_gathered(gathers):
    y = np.zeros(64, np.float32)
    kernel = function("sampled", gathers)
    kernel(y, np.arange(25, dtype=np.float32).reshape(5, 5), threads=64)
    assert y[-1] == 24
    assert "+prefer-no-gather" not in kernel.asm["ll"]
