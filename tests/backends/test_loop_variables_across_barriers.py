"""Variables of loops with barriers, some of which share a slot with their next values."""

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

HEAD = """#include <metal_stdlib>
using namespace metal;
kernel void f(device float* y, device const float* x, constant uint& n,
              uint t [[thread_index_in_threadgroup]], uint2 p [[thread_position_in_grid]]) {
  threadgroup float row[64];
  uint i = p.y * 8 + p.x;
  float a = x[i], b = 1, s = 0;
"""
BODIES = {
    "a sum": ("for (uint k = 0; k < n; k++) { row[t] = a + k; WAIT s += row[(t + 1) % 64]; WAIT }"),
    "two that change places": (
        "for (uint k = 0; k < n; k++) { row[t] = a; WAIT float c = row[63 - t] - b; WAIT"
        " b = a; a = c; s += b; }"
    ),
    "what it was is needed later": (
        "for (uint k = 0; k < n; k++) { float old = s; s = s * 0.5f + a; row[t] = s; WAIT"
        " a = row[(t + k) % 64] - old; WAIT b += old; }"
    ),
    "some lanes change it": (
        "for (uint k = 0; k < n; k++) { row[t] = s; WAIT if (a > 0.25f * k) s = row[t ^ 1] + a;"
        " WAIT a = a * 0.75f + (a > 0.5f ? s : b) * 0.125f; }"
    ),
    "it is needed behind the loop": (
        "float last = 0; for (uint k = 0; k < n; k++) { last = s; row[t] = a; WAIT"
        " s = last + row[(t + 3) % 64]; WAIT if (k == 4) break; } b = last;"
    ),
    "loops in each other": (
        "for (uint k = 0; k < n; k++) { float inner = s; for (uint j = 0; j <= k; j++) {"
        " row[t] = inner; WAIT inner = row[(t + 7) % 64] * 0.5f + a; WAIT } s = s + inner; }"
    ),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(("threads", "group"), [((256, 1), (64, 1)), ((8, 32), (8, 8))])
@pytest.mark.sample(3)
def test_both_engines_agree(name, threads, group, rng):
    body = BODIES[name].replace("WAIT", "threadgroup_barrier(mem_flags::mem_threadgroup);")
    text = f"{HEAD} {body} y[i] = s + 2 * a + 3 * b; }}"
    x = rng.standard_normal(256).astype(np.float32)
    results = []
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            kernel = mtl.library(text, math_mode="safe").f
            y = np.zeros(256, np.float32)
            kernel(y, x, np.uint32(7), threads=threads, group_size=group)
        results.append(y)
        assert kernel.engine.startswith(engine)
    np.testing.assert_array_equal(*results)
    assert np.isfinite(results[0]).all()
    assert results[0].any()
