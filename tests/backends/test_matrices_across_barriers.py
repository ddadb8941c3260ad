"""Matrices that live across barriers have room in the state of their simdgroup."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.compiler.vectorize.workgroup.frame_layout import slot_bytes

SOURCE = """
#include <metal_stdlib>
using namespace metal;

// C = A * B, each simdgroup with four accumulators, and the tiles of A and B by way of shared memory.
kernel void product(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]],
                    device T *c [[buffer(2)]], constant uint &n [[buffer(3)]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]],
                    uint index [[thread_index_in_threadgroup]])
{
  threadgroup T tile_a[32 * 8], tile_b[8 * 32];
  simdgroup_matrix<T, 8, 8> sums[4];
  for (int k = 0; k < 4; ++k) {
    sums[k] = make_filled_simdgroup_matrix<T, 8, 8>(T(k));
  }
  for (uint step = 0; step < n; step += 8) {
    for (uint i = index; i < 256; i += 128) {
      tile_a[i] = a[(i / 8) * n + step + i % 8];
      tile_b[i] = b[(step + i / 32) * 32 + i % 32];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_matrix<T, 8, 8> left, right;
    simdgroup_load(left, tile_a + simdgroup * 64, 8);
    for (int k = 0; k < 4; ++k) {
      simdgroup_load(right, tile_b + k * 8, 32);
      simdgroup_multiply_accumulate(sums[k], left, right, sums[k]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int k = 0; k < 4; ++k) {
    simdgroup_store(sums[k], c + simdgroup * 8 * 32 + k * 8, 32);
  }
}
"""


@pytest.mark.parametrize(("name", "dtype"), [("float", np.float32), ("half", np.float16)])
def test_products_by_four_simdgroups(name, dtype):
    rng = np.random.default_rng(2)
    n = 40
    a, b = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((32, n), (n, 32)))
    c = np.zeros((32, 32), dtype)
    kernel = mtl.library(SOURCE, defines={"T": name})["product"]
    kernel(a, b, c, n, threads=128, group_size=128)
    first = np.repeat(np.arange(4), 8)
    np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float) + first)


@pytest.mark.parametrize(
    ("type", "size"),
    [("<32 x float>", 128), ("<32 x i1>", 4), ("[8 x <8 x float>]", 256), ("[3 x i16]", 6),
     ("ptr", 8), ("<32 x ptr>", 256)],
)  # fmt: skip
def test_slot_size_of_a_value(type, size):
    assert slot_bytes(type) == size
