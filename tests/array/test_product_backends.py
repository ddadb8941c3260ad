"""The backends of matrix products: what the cost model chooses."""

from types import SimpleNamespace

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.lowering.split_matmul import split_count
from metalloid.arrays.planning.matmul_dispatch import choose_backend, is_sum, is_transposed
from metalloid.runtime.devices.libraries import Libraries
from metalloid.runtime.devices.traits import FEW_CORES, MANY_THREADS, MATRIX_UNITS

CPU = mtl.ones(1).device


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize(
    ("dtype", "shape", "depth", "fused", "by_avx2", "by_avx512"),
    [
        ("float32", (1024, 1024), 1024, [], "panels", "host"),
        ("float32", (1024, 1024), 1024, [2**20], "panels", "host"),
        ("float32", (256, 256), 256, [2**16], "panels", "panels"),
        ("float32", (64, 16, 16), 16, [], "panels", "panels"),
        ("float32", (1000, 1), 1000, [], "dots", "dots"),
        ("float64", (512, 512), 512, [2**18], "panels", "host"),
        ("complex64", (128, 128), 128, [], "host", "host"),
        ("float16", (1024, 1024), 1024, [], "panels", "panels"),
        ("int8", (256, 256), 256, [], "panels", "panels"),
        ("int64", (256, 256), 256, [], "registers", "registers"),
        ("int32", (256, 4, 4), 4, [], "panels", "panels"),
        ("float32", (1000, 16, 16), 16, [], "panels", "panels"),
        ("float32", (1, 1024), 1024, [], "host", "panels"),
        ("float16", (16, 16), 16, [], "panels", "panels"),
    ],
)
def test_backends_by_the_kernels_of_blas(
    monkeypatch, dtype, shape, depth, fused, by_avx2, by_avx512
):
    """With the registers of AVX-512, which BLAS uses or not."""
    monkeypatch.setattr(CPU, "traits", FEW_CORES)
    for has_avx512, backend in ((False, by_avx2), (True, by_avx512)):
        monkeypatch.setattr(CPU.libraries.blas, "has_avx512", has_avx512)
        assert choose_backend(CPU, np.dtype(dtype), shape, depth, fused) == backend


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize(
    ("shape", "depth", "by_avx2", "by_avx512"),
    [((64, 64), 4096, "panels", "dots"), ((100_000, 1), 16, "host", "dots")],
)
def test_backends_of_a_column_major_factor(monkeypatch, shape, depth, by_avx2, by_avx512):
    monkeypatch.setattr(CPU, "traits", FEW_CORES)
    for has_avx512, backend in ((False, by_avx2), (True, by_avx512)):
        monkeypatch.setattr(CPU.libraries.blas, "has_avx512", has_avx512)
        chosen = choose_backend(CPU, np.dtype("float64"), shape, depth, [], (False, True))
        assert chosen == backend


def test_which_factors_are_transposed():
    x = mtl.ones((40, 50))
    for value in (x.T, x.T[:, ::2], mtl.exp(x).T, mtl.exp(x.T) + 1):
        assert is_transposed(value._node)
    for value in (x, mtl.exp(x).T.T, mtl.exp(x.T).T, x[:, ::2]):
        assert not is_transposed(value._node)


def test_on_other_devices_kernels_multiply():
    device = SimpleNamespace(name="metal", traits=MATRIX_UNITS, libraries=Libraries())
    assert choose_backend(device, np.dtype(np.float16), (9, 9), 9, []) == "simdgroups"
    assert choose_backend(device, np.dtype(np.int32), (9, 9), 9, []) == "registers"
    assert is_sum(device, np.dtype(np.float32), (1, 9), 9, False)
    device = SimpleNamespace(name="cuda:0", traits=MANY_THREADS, libraries=Libraries())
    assert choose_backend(device, np.dtype(np.float32), (9, 9), 9, []) == "registers"
    for is_first in (False, True):
        device.libraries.products = SimpleNamespace(is_first=is_first, dtypes={"float32"})
        library = "cublas" if is_first else "registers"
        assert choose_backend(device, np.dtype(np.float32), (2000, 2000), 2000, []) == library
        assert choose_backend(device, np.dtype(np.int32), (2000, 2000), 2000, []) == "registers"
        assert choose_backend(device, np.dtype(np.float32), (2000, 2000), 900, []) == "registers"
        assert choose_backend(device, np.dtype(np.float32), (9, 9), 10**8, []) == "registers"


@pytest.mark.parametrize("is_first", [False, True])
def test_the_depth_of_small_results_is_split_on_gpus(is_first):
    libraries = SimpleNamespace(products=SimpleNamespace(is_first=is_first, dtypes={"float32"}))
    device = SimpleNamespace(name="cuda:0", traits=MANY_THREADS, libraries=libraries)

    def count(rows, depth, columns):
        factors = (
            SimpleNamespace(shape=shape, dtype=np.dtype(np.float32), device=device)
            for shape in ((rows, depth), (depth, columns))
        )
        return split_count(*factors, "auto", False)

    assert count(32, 100_000, 32) == 256
    assert count(32, 100, 32) == 0
    assert count(512, 40_000, 512) == (0 if is_first else 4)
