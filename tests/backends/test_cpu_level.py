"""Code for less than the processor has."""

import platform

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu import host
from metalloid.backends.cpu.runtime.device import CpuDevice

TEXT = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 2 * x[i] + 1; }"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86-64 has levels")
def test_a_level_decides_registers_and_lanes():
    own = host.host_target()
    with mtl.config.scope(cpu_level="x86-64-v2", cpu_engine="simd"):
        device = CpuDevice()
        assert device.target.identity != own.identity
        assert device.info().description.endswith("SSE4.2")
        kernel = mtl.library(TEXT, device=device).f
        x = np.arange(100, dtype=np.float32)
        kernel(x, threads=100)
        assert np.array_equal(x, 2 * np.arange(100) + 1)
        assert kernel.engine == "simd: 8 threads at a time"
        assert "xmm" in kernel.asm["x86"]
        assert "ymm" not in kernel.asm["x86"]
    assert host.host_target() == own


def test_levels_are_known(monkeypatch):
    monkeypatch.setenv("METALLOID_CPU_LEVEL", "x86-64-v9")
    with pytest.raises(ValueError, match="METALLOID_CPU_LEVEL='x86-64-v9' is not a valid value"):
        mtl.config.cpu_level  # noqa: B018
