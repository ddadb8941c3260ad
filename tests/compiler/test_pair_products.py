"""Sums of pairs of products of 16-bit integers, for which processors have an instruction."""

import platform

import numpy as np
import pytest

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void dots(device const ushort2 *w, device const short2 *x, device int *out,
                 constant int &count, uint i [[thread_position_in_grid]],
                 uint n [[threads_per_grid]]) {
  int sum = 7;
  for (int k = 0; k < count; ++k) {
    const ushort2 q = w[k * n + i];
    for (ushort e = 0; e < 16; e += 4) {
      const int2 p = int2((q >> e) & ushort(15)) * int2(x[(k * 4 + e / 4) * n + i]);
      sum += p.x + p.y;
    }
  }
  out[i] = sum;
}
"""


@pytest.mark.parametrize("n", [64, 37])
def test_pairs_of_products_are_summed(n):
    rng = np.random.default_rng(n)
    w = rng.integers(2**16, size=(3, n, 2), dtype=np.uint16)
    x = rng.integers(-(2**15), 2**15, size=(3, 4, n, 2), dtype=np.int16)
    out = np.zeros(n, np.int32)
    kernel = mtl.library(SOURCE)["dots"]
    kernel(w, x, out, 3, threads=n)
    digits = w[:, None] >> (4 * np.arange(4)[:, None, None]).astype(np.uint16) & 15
    expected = 7 + (digits.astype(np.int64) * x).sum((0, 1, 3))
    np.testing.assert_array_equal(out, expected)
    if kernel.device.name == "cpu" and platform.machine() == "x86_64":
        assert "pmaddwd" in kernel.asm["x86"] or "pdpwssd" in kernel.asm["x86"]
