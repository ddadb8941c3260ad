"""Derivatives of products of simdgroup matrices agree with the formulas in double precision."""

import numpy as np
import pytest
from differences import HEADER

import metalloid as mtl

SOURCE = f"""{HEADER}
#include <metal_simdgroup_matrix>
kernel void product(device const float *a, device const float *b, device float *y,
                    constant uint &n, uint2 tile [[threadgroup_position_in_grid]]) {{
  simdgroup_float8x8 left, right, sum = make_filled_simdgroup_matrix<float, 8, 8>(0.5f);
  for (uint k = 0; k < n; k += 8) {{
    simdgroup_load(left, a + tile.y * 8 * n + k, n);
    simdgroup_load(right, b, n, ulong2(k, tile.x * 8), true);
    simdgroup_multiply_accumulate(sum, left, right, sum);
  }}
  simdgroup_store(sum, y + tile.y * 8 * n + tile.x * 8, n);
}}

kernel void mixed(device const half *a, device const float *b, device float *y,
                  uint lane [[thread_index_in_simdgroup]]) {{
  threadgroup float tile[64];
  simdgroup_half8x8 left;
  simdgroup_float8x8 right, scale = simdgroup_float8x8(2), first[2];
  simdgroup_load(left, a);
  simdgroup_load(right, b);
  simdgroup_multiply(first[0], left, right);
  for (int k = 0; k < 2; k++) first[0].thread_elements()[k] = exp(first[0].thread_elements()[k]);
  simdgroup_store(first[0] * scale, tile, 8);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_load(first[1], tile, 8, 0, true);
  simdgroup_multiply_accumulate(right, first[1], first[0], right);
  simdgroup_store(right, y);
}}"""


def product(a, b):
    return a @ b.T + 0.5


def mixed(a, b):
    first = np.exp(a @ b)
    return 2 * first.T @ first + b


CASES = {
    "product": (product, 24, np.float32, {"threads": (96, 3), "group_size": (32, 1)}, 2e-6),
    "mixed": (mixed, 8, np.float16, {"threads": 32}, 4e-6),
}


@pytest.mark.parametrize("name", [pytest.param("product", marks=pytest.mark.slow), "mixed"])
@pytest.mark.parametrize("engine", ["simd", pytest.param("reference", marks=pytest.mark.slow)])
def test_products(name, engine):
    function, n, first_type, launch, bound = CASES[name]
    random = np.random.default_rng(0)
    a = random.uniform(-0.5, 0.5, (n, n)).astype(first_type)
    b, g, da, db = random.uniform(-0.5, 0.5, (4, n, n)).astype(np.float32)
    size = (n,) if name == "product" else ()
    y, dot_y, d_a, d_b = np.zeros((4, n, n), np.float32)
    with mtl.config.scope(cpu_engine=engine):
        kernel = mtl.library(SOURCE, device="cpu")[name]
        adjoint, tangent = kernel.vjp(), kernel.jvp()
        adjoint(a, b, y, *size, g, d_a, d_b, **launch)
        tangent(a, b, y, *size, da, db, dot_y, **launch)
    wide = [each.astype(np.float64) for each in (a, b)]
    assert np.abs(y - function(*wide)).max() <= 1e-6 * np.abs(y).max()
    for computed, position in ((d_a, 0), (d_b, 1)):
        exact = np.zeros((n, n))
        for index in np.ndindex(n, n):
            moved = [each.astype(complex) for each in wide]
            moved[position][index] += 1e-30j
            exact[index] = (function(*moved).imag * g).sum() * 1e30
        assert np.abs(computed - exact).max() <= bound * np.abs(exact).max(), position
    moved = [wide[0] + 1e-30j * da, wide[1] + 1e-30j * db]
    exact = function(*moved).imag * 1e30
    assert np.abs(dot_y - exact).max() <= bound * np.abs(exact).max()
    assert not adjoint.has_tape or name == "mixed"
    for text in (adjoint.source, tangent.source):
        mtl.library(text, device="cpu", portable=True)
