"""Products of simdgroup matrices: vector code gives the bits of the reference engine."""

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import vector

pytestmark = pytest.mark.needs("the CPU")

DTYPES = {"half": np.float16, "bfloat": ml_dtypes.bfloat16, "float": np.float32}
HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"

#: Sums over a loop of a row of tiles, in threadgroup memory; A and B from there by `load`.
TILES = """
kernel void f(device float* out, device const T* a, device const T* b, constant int& rounds,
              uint i [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
              uint group [[simdgroup_index_in_threadgroup]]) {
  threadgroup T ta[16 * 20], tb[16 * 36];
  simdgroup_matrix<float, 8, 8> sums[2][4];
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 4; ++n) sums[m][n] = make_filled_simdgroup_matrix<float, 8>(float(m - n));
  for (int r = 0; r < rounds; ++r) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = i; k < 16 * 16; k += 64) ta[k / 16 * 20 + k % 16] = a[k + 256 * r];
    for (uint k = i; k < 16 * 32; k += 64) tb[k / 32 * 36 + k % 32] = b[k + 512 * r];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; k < 16; k += 8) {
      simdgroup_matrix<T, 8, 8> left[2], right[4];
      for (int m = 0; m < 2; ++m) simdgroup_load(left[m], LEFT);
      for (int n = 0; n < 4; ++n) simdgroup_load(right[n], RIGHT);
      for (int m = 0; m < 2; ++m)
        for (int n = 0; n < 4; ++n)
          simdgroup_multiply_accumulate(sums[m][m ? 3 - n : n], left[m], right[m ? 3 - n : n],
                                        sums[m][m ? 3 - n : n]);
    }
  }
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 4; ++n) simdgroup_store(sums[m][n], out + 512 * group + 256 * m + 8 * n, 32);
}
"""
PLAIN = {"LEFT": "ta + 160 * m + k, 20", "RIGHT": "tb + 36 * k + 8 * n, 36"}
TRANSPOSED = {
    "LEFT": "ta + 20 * k + 8 * m, 20, ulong2(0), true",
    "RIGHT": "tb + 288 * (n % 2) + 8 * (n / 2) + k, 36, ulong2(0), true",
}

#: What takes matrices apart between products, meets branches, and loses lanes.
OTHERS = """
kernel void f(device T* out, device const T* in, constant int& u,
              uint lane [[thread_index_in_simdgroup]], uint i [[thread_index_in_threadgroup]]) {
  simdgroup_matrix<T, 8, 8> a, b, c, d;
  simdgroup_load(a, in);
  simdgroup_load(b, in + 64, 8, ulong2(0), true);
  simdgroup_load(c, in + 128, 8);
  simdgroup_multiply_accumulate(d, a, b, c);
  for (int r = 0; r < u; ++r) {
    simdgroup_multiply_accumulate(c, d, a, c);
    c.thread_elements()[0] *= T(0.5);
    if (r & 1) simdgroup_multiply(d, c, b);
    else simdgroup_multiply_accumulate(d, d, c, a);
    d.thread_elements() = simd_shuffle_xor(d.thread_elements(), 1) * T(0.125);
  }
  if (u > 2) simdgroup_multiply(b, d, d);
  simdgroup_store(d, out);
  simdgroup_store(b, out + 64);
  simdgroup_store(c, out + 128, 8, ulong2(0), true);
}
"""


def results(text, engine, arrays, out, threads, **launch):
    with mtl.config.scope(cpu_engine=engine):
        kernel = mtl.library(text).f
    out = np.zeros_like(out)
    kernel(out, *arrays, threads=threads, **launch)
    assert kernel.engine.startswith(engine)
    return out


def check(text, arrays, out, threads):
    expected, got = (
        results(text, engine, arrays, out, threads) for engine in ("reference", "simd")
    )
    assert np.isfinite(expected.astype(np.float32)).all()
    assert expected.astype(np.float32).any()
    assert got.tobytes() == expected.tobytes()
    return got


@pytest.fixture(params=[None, ((8,), 32)], ids=["own", "narrow"])
def form(request, monkeypatch):
    """The registers of this processor, and narrow ones."""
    if request.param:
        monkeypatch.setattr(vector, "lanes", lambda vectors: request.param)


@pytest.mark.parametrize("macros", [PLAIN, TRANSPOSED], ids=["plain", "transposed"])
@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.sample(1)
def test_tiles(type_, macros, form, rng):
    text = f"{HEADER}typedef {type_} T;\n{TILES}"
    for name, address in macros.items():
        text = text.replace(name, address)
    a, b = (rng.normal(size=n).astype(DTYPES[type_]) for n in (768, 1536))
    got = check(text, (a, b, 3), np.zeros(1024, np.float32), 64)
    if macros is PLAIN:  # against a third party
        a, b = (x.astype(np.float64) for x in (a.reshape(3, 16, 16), b.reshape(3, 16, 32)))
        start = np.repeat(np.repeat(np.subtract.outer(range(2), range(4)), 8, 0), 8, 1)
        exact, size = (a @ b).sum(0) + start, (np.abs(a) @ np.abs(b)).sum(0) + np.abs(start)
        assert (np.abs(got.reshape(2, 16, 32) - exact) <= size * 49 * 2**-24).all()


@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.sample(2)
def test_elements_between_products(type_, form, rng):
    text = f"{HEADER}typedef {type_} T;\n{OTHERS}"
    values = (rng.normal(size=192) * 0.25).astype(DTYPES[type_])
    for u in (1, 4):
        check(text, (values, u), np.zeros(192, DTYPES[type_]), 32)


def test_lanes_that_are_missing_hold_zeros(rng):
    text = f"{HEADER}typedef float T;\n{OTHERS}"
    values = (rng.normal(size=192) * 0.25).astype(np.float32)
    check(text, (values, 3), np.zeros(192, np.float32), 21)


@pytest.mark.parametrize("macros", [PLAIN, TRANSPOSED], ids=["plain", "transposed"])
def test_matrices_come_from_memory_row_by_row(macros):
    text = f"{HEADER}typedef float T;\n{TILES}"
    for name, address in macros.items():
        text = text.replace(name, address)
    with mtl.config.scope(cpu_engine="simd"):
        code = mtl.library(text).f.asm["ll"]
    assert "load <8 x float>" in code
    assert "llvm.masked.gather" not in code
