"""Math functions by the processor's own instructions: the same bits with any number of lanes."""

import ml_dtypes
import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import vector
from metalloid.backends.cpu.host import vector_extension

pytestmark = pytest.mark.needs("the CPU")

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* y, device const float* x, uint i [[thread_position_in_grid]]) {
  if (x[i] != 2.0f) y[i] = log(x[i]) + 3 * exp(x[i]) + 7 * log10(abs(x[i]));
}
"""
POWER = """
#include <metal_stdlib>
using namespace metal;
kernel void f(device float* y, device const float* x, constant float& power,
              uint i [[thread_position_in_grid]]) { y[i] = pow(x[i], power); }
"""
SPECIAL = [0, 1, 1e-45, 2.0**-126, 0.75, np.nextafter(np.float32(0.75), 0), 1.5, 88, 1e38, np.inf]


@pytest.mark.skipif(
    vector_extension() != "AVX-512", reason="the processor has no AVX-512, or may not use it"
)
@pytest.mark.parametrize("lanes", [2, 8, 32])
def test_any_number_of_lanes(lanes, monkeypatch, rng):
    x = rng.normal(size=1001).astype(np.float32) * 40
    x[::7] = 2
    x[1:21] = [*SPECIAL, *(-value for value in SPECIAL)]
    x[21] = np.nan
    results = []
    for engine in ("reference", "simd"):
        monkeypatch.setattr(vector, "lanes", lambda vectors: ((lanes,), 1))
        with mtl.config.scope(cpu_engine=engine):
            kernel = mtl.library(SOURCE).f
        y = np.zeros_like(x)
        kernel(y, x, threads=x.size)
        results.append(np.where(np.isnan(y), np.float32(np.nan), y))
        count = kernel.asm["ll"].count("@llvm.x86.avx512.mask.getexp")
        assert (count > 2) == (engine == "simd")
    np.testing.assert_array_equal(*results)
    finite = (x > 0) & (x < 80) & (x != 2)
    wide = x[finite].astype(np.float64)
    terms = np.stack([np.log(wide), 3 * np.exp(wide), 7 * np.log10(wide)])
    assert np.all(np.abs(y[finite] - terms.sum(0)) <= 4e-7 * np.abs(terms).sum(0))


@pytest.mark.parametrize("power", [3.0, -1.5, 0.7])
def test_powers(power, rng):
    x = (rng.normal(size=1001) * np.exp(rng.normal(size=1001) * 9)).astype(np.float32)
    x[:21] = [*SPECIAL, *(-value for value in SPECIAL), np.nan]
    results = []
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            kernel = mtl.library(POWER).f
        y = np.zeros_like(x)
        kernel(y, x, power, threads=x.size)
        results.append(np.where(np.isnan(y), np.float32(np.nan), y))
    np.testing.assert_array_equal(*results)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), np.float64(np.float32(power)))
        nearest = expected.astype(np.float32)
    finite = np.isfinite(nearest)
    errors = np.abs(y[finite] - expected[finite])
    assert np.all(errors <= 4 * np.spacing(np.abs(nearest[finite])))
    np.testing.assert_array_equal(y[~finite], nearest[~finite])


def test_a_number_of_all_threads():
    text = "#include <metal_stdlib>\nusing namespace metal;\n"
    text += (
        "kernel void f(device float* y, constant float& a, uint i [[thread_position_in_grid]]) {"
    )
    text += " y[i] *= log(a) + exp(a); }"
    with mtl.config.scope(cpu_engine="simd"):
        kernel = mtl.library(text).f
    assert kernel.engine.startswith("simd: ")
    y = np.ones(40, np.float32)
    kernel(y, 3.0, threads=y.size)
    np.testing.assert_allclose(y, np.log(3) + np.exp(3), rtol=1e-6)


@pytest.mark.parametrize("lanes", [2, 32])
def test_products_of_pairs_of_bfloats(lanes, monkeypatch, rng):
    """Both the instruction and the code instead of it add them to a float."""
    source = """
    #include <metal_stdlib>
    using namespace metal;
    kernel void f(device float* sum, device const uint* a, device const uint* b,
                  uint i [[thread_position_in_grid]]) {
      if (i % 5 != 3) sum[i] = metalloid::dot_of_bfloats(a[i], b[i], sum[i]);
    }
    """
    monkeypatch.setattr(vector, "lanes", lambda vectors: ((lanes,), 1))
    a, b = (rng.integers(-99, 99, (77, 2)).astype(ml_dtypes.bfloat16) for _ in range(2))
    sums = np.arange(77, dtype=np.float32)
    kernel = mtl.library(source, device="cpu")["f"]
    pairs = (each.view(np.uint32).reshape(-1) for each in (a, b))
    kernel(out := sums.copy(), *pairs, threads=77)
    products = (a.astype(np.float32) * b.astype(np.float32)).sum(axis=1)
    assert np.array_equal(out, np.where(sums % 5 == 3, sums, sums + products))
