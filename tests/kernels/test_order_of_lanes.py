"""Threads keep their numbers in kernels that multiply matrices.

On NVIDIA GPUs such kernels deal out threads to lanes in another order, which no result may show.
"""

import numpy as np
import pytest

import metalloid as mtl

PRODUCTS = """
  if (multiplies) {
    simdgroup_matrix<half, 8, 8> a(half(2)), b(half(3));
    simdgroup_matrix<float, 8, 8> c(1.0f);
    simdgroup_multiply_accumulate(c, a, b, c);
    value += c.thread_elements()[0];
  }
"""
TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void f(device uint* result, constant bool& multiplies,
              uint3 place [[thread_position_in_threadgroup]], uint3 at [[thread_position_in_grid]],
              uint3 size [[threads_per_grid]], uint index [[thread_index_in_threadgroup]],
              uint lane [[thread_index_in_simdgroup]], uint quad [[quadgroup_index_in_threadgroup]],
              uint in_quad [[thread_index_in_quadgroup]],
              uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  float value = float(index * 7 %% 13);
  %s
  threadgroup uint shared[128];
  shared[index] = index * 3;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const ulong votes = (ulong)simd_ballot(index %% 3 == 0);
  const uint whole = popcount(uint((ulong)simd_ballot(true))) == 32;  // else some have no source
  const uint found[] = {
    place.x, place.y, index, lane, quad, in_quad, simdgroup, shared[index / 2 * 2],
    whole * simd_shuffle(index, ushort(lane * 5 %% 32)), whole * simd_shuffle_up(index, 3),
    whole * simd_shuffle_down(index, 5), whole * simd_shuffle_xor(index, 6), whole * simd_shuffle_rotate_up(index, 2),
    whole * quad_shuffle(index, ushort(3 - in_quad)), whole * quad_broadcast(index, 1), whole * simd_broadcast(index, 9),
    simd_broadcast_first(index), uint(votes), simd_sum(index), quad_sum(index),
    simd_prefix_exclusive_sum(index), simd_prefix_inclusive_sum(index * index),
    quad_prefix_exclusive_sum(index), uint(simd_prefix_inclusive_sum(value)),
    index %% 2 ? simd_broadcast_first(index) : simd_max(index), uint((ulong)simd_active_threads_mask()) & 1};
  const uint own = (at.y * size.x + at.x) * 26;
  for (uint k = 0; k < 26; ++k) result[own + k] = found[k];
}
"""


@pytest.mark.parametrize("grid", [(128, 1), (16, 8), (100, 1), (37, 5)])
@pytest.mark.parametrize("group", [(64, 1), (8, 8), (128, 1)])
@pytest.mark.sample(3)
def test_nobody_notices(grid, group):
    results = []
    for products in ("", PRODUCTS):
        kernel = mtl.library(TEXT % products).f
        result = np.zeros((grid[1], grid[0], 26), np.uint32)
        kernel(result, False, threads=grid, group_size=group)
        results.append(result)
    assert np.array_equal(*results)


@pytest.mark.parametrize(
    ("kind", "result"),
    [("half", "float"), ("half", "half"), ("bfloat", "float"), ("bfloat", "bfloat")],
)
@pytest.mark.parametrize("depth", [8, pytest.param(16, marks=pytest.mark.slow), 40])
@pytest.mark.sample(2)
def test_products_of_small_numbers(kind, result, depth):
    """Exact in any order of addition: 3 x 2 matrices of sums over `depth`."""
    text = f"""
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* c, device const float* a, device const float* b) {{
  simdgroup_matrix<{result}, 8, 8> sums[3][2];
  for (uint i = 0; i < 3; ++i)
    for (uint j = 0; j < 2; ++j) sums[i][j] = make_filled_simdgroup_matrix<{result}, 8, 8>(1);
  for (uint k = 0; k < {depth}; k += 8)
    for (uint j = 0; j < 2; ++j) {{
      simdgroup_matrix<float, 8, 8> wide;
      simdgroup_matrix<{kind}, 8, 8> left, right;
      simdgroup_load(wide, b + k * 16 + 8 * j, 16);
      right.thread_elements() = vec<{kind}, 2>(wide.thread_elements());
      for (uint i = 0; i < 3; ++i) {{
        simdgroup_load(wide, a + 8 * i * {depth} + k, {depth});
        left.thread_elements() = vec<{kind}, 2>(wide.thread_elements());
        simdgroup_multiply_accumulate(sums[i][j], left, right, sums[i][j]);
      }}
    }}
  for (uint i = 0; i < 3; ++i)
    for (uint j = 0; j < 2; ++j) {{
      simdgroup_matrix<float, 8, 8> wide;
      wide.thread_elements() = float2(sums[i][j].thread_elements());
      simdgroup_store(wide, c + 8 * i * 16 + 8 * j, 16);
    }}
}}"""
    rng = np.random.default_rng(depth)
    a = rng.integers(-1, 2, (24, depth)).astype(np.float32)
    b = rng.integers(-1, 2, (depth, 16)).astype(np.float32)
    c = np.zeros((24, 16), np.float32)
    mtl.library(text).f(c, a, b, threads=32)
    assert np.array_equal(c, a @ b + 1)


@pytest.mark.parametrize("kind", ["half", "bfloat"])
@pytest.mark.parametrize("transposed", ["true", "false", "flag"])
@pytest.mark.sample(2)
def test_transposed_loads(kind, transposed):
    """a b' with b in the threadgroup's memory, transposed while it is loaded, and what was loaded."""
    text = f"""
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* product, device float* loaded, device const float* a,
              device const float* b, constant bool& flag,
              uint t [[thread_index_in_threadgroup]]) {{
  threadgroup {kind} shared[2][8 * 10];
  for (uint k = t; k < 64; k += 32) {{
    shared[0][k / 8 * 10 + k % 8] = {kind}(a[k]);
    shared[1][k / 8 * 10 + k % 8] = {kind}(b[k]);
  }}
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_matrix<{kind}, 8, 8> left, right;
  simdgroup_load(left, shared[0], 10);
  simdgroup_load(right, shared[1], 10, ulong2(0), {transposed});
  simdgroup_matrix<float, 8, 8> sums(0.0f);
  simdgroup_multiply_accumulate(sums, left, right, sums);
  simdgroup_store(sums, product, 8);
  sums.thread_elements() = float2(right.thread_elements());
  simdgroup_store(sums, loaded, 8);
}}"""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (8, 8)).astype(np.float32) for _ in range(2))
    product, loaded = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32)
    kernel = mtl.library(text).f
    for flag in (True, False):
        kernel(product, loaded, a, b, flag, threads=32)
        right = b.T if transposed == "true" or (transposed == "flag" and flag) else b
        assert np.array_equal(loaded, right)
        assert np.array_equal(product, a @ right)
