"""The passes take less than a second for 5,000 instructions; twice that where others are at work."""

import time

import pytest

import metalloid as mtl
from metalloid.backends.cpu import vector

pytestmark = pytest.mark.needs("the CPU")


def test_stores_behind_many_branches(monkeypatch):
    seconds, lower = [], vector.lower

    def timed(*args):
        started = time.process_time()
        lowered = lower(*args)
        seconds.append(time.process_time() - started)
        return lowered

    monkeypatch.setattr(vector, "lower", timed)
    steps = "".join(
        f"a = a * x[i + {k}] + (b > a ? b : x[{k}]); b = b * a - {k}.5f; if (b > {k}) y[i + {k}] = a;"
        for k in range(263)
    )
    text = f"""kernel void f(device float* y, device const float* x, uint i [[thread_position_in_grid]])
    {{ float a = x[i], b = 1; {steps} y[i] = a + b; }}"""
    with mtl.config.scope(cache_bytes=0, cpu_engine="simd"):
        assert mtl.library(text).f.engine.startswith("simd")
    assert sum(seconds) < 2
