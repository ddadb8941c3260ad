"""Values that are loaded under a mask, before stores under the same mask to the same address.

LLVM 22 folds ``select(mask, masked.load(p, mask, x), y)`` into a load at the position of the select,
which may be after such a store (llvm/llvm-project#215453).
"""

import numpy as np
import pytest

import metalloid as mtl

pytestmark = pytest.mark.needs("the CPU")

SWAP = """
kernel void swap(device T *a, device const T *b, device T *out, device const int *c,
                 uint i [[thread_position_in_grid]]) {
    T kept = T(7);
    if (c[i] > 0) {
        kept = a[i];
        a[i] = b[i];
    }
    out[i] = kept;
}
"""

#: A private array that each iteration reads, then writes, while ever fewer lanes go on.
SHIFTED = """
#include <metal_stdlib>
using namespace metal;
kernel void k0(device int* out, device float* fout, device const int* in, device const float* fin, constant int& u, uint2 gid [[thread_position_in_grid]], uint2 grid [[threads_per_grid]], uint lid [[thread_index_in_threadgroup]], uint2 p [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]], uint3 size3 [[threads_per_threadgroup]]) {
  threadgroup int shared[1024];
  int i = gid.x + gid.y * grid.x;
  int a = i, b = in[i & 63], c = u;
float f = fin[i & 63], g = 1.5f;
float4 v = float4(f, g, a, b);
  half halves[6] = {};
float4 vs[3] = {v, v.wzyx, float4(1)};
  float series[8];
for (int k = 0; k < 8; ++k) series[k] = fin[(i + k) & 63];
if (lid == 0) for (int k = 0; k < 1024; ++k) shared[k] = 0;
threadgroup_barrier(mem_flags::mem_threadgroup);
for (int n4 = 0; n4 < (3); ++n4) {
for (int n5 = 0; n5 < (int(lid) & 3); ++n5) {
f = (g - series[u & 7]);
for (int k = 1; k < (u & 7); ++k) series[k] += series[k - 1] * float(i & 15);
series[(((int(lid) >> (28 & 7)) & 3) + 1)] = series[17 & 7];
}
fout[i * 8 + 3 + (int(char(i) + 0) & 3)] = (float(i & 15) - v.w);
if (((c >> (b & 7)) != (u / (1 + (i & 15))))) {
out[i * 8 + 2 + (((0.039f > float(i & 15)) ? u : b) & 3)] = int(short(20) / short(3));
}
halves[u % 6] = half((i ^ i) & 255);
}
  for (int k = 1; k < 8; ++k) g += series[k - 1] * float(halves[k % 6]) + vs[k & 1].z;
  fout[i * 8] = f;
fout[i * 8 + 1] = g;
}
"""


@pytest.mark.parametrize("engine", ["reference", "simd"])
@pytest.mark.parametrize("type_", ["float", "int", "half", "long", "uchar"])
def test_a_value_loaded_before_it_is_overwritten_is_the_old_one(engine, type_, rng):
    with mtl.config.scope(cpu_engine=engine):
        lib = mtl.library(SWAP, defines={"T": type_})
        dtype = {"float": "f4", "int": "i4", "half": "f2", "long": "i8", "uchar": "u1"}[type_]
        a = rng.integers(1, 100, 1000).astype(dtype)
        b = (a + 100).astype(dtype)
        out, c = np.zeros_like(a), rng.integers(0, 2, a.size, dtype=np.int32)
        loaded, swapped = np.where(c > 0, a, 7), np.where(c > 0, b, a)
        lib.swap(a, b, out, c, threads=a.size)
    np.testing.assert_array_equal(out, loaded)
    np.testing.assert_array_equal(a, swapped)


def test_the_last_iteration_of_a_lane_reads_before_it_writes(rng):
    ints = np.random.default_rng(5).integers(-50, 50, 64, dtype=np.int32)
    floats = rng.normal(size=64).astype(np.float32)
    results = []
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            out, floats_out = np.zeros(560, np.int32), np.zeros(560, np.float32)
            kernel = mtl.library(SHIFTED).k0
            kernel(out, floats_out, ints, floats, 3, threads=70, group_size=45)
            results.append(np.concatenate([out.view(np.uint32), floats_out.view(np.uint32)]))
            assert kernel.engine.startswith(engine)
    np.testing.assert_array_equal(*results)
