"""Products that BLAS computes between launches of kernels (backends/cpu/runtime/blas.py)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.backends.cpu.runtime import blas, faults, host_calls
from metalloid.backends.cpu.runtime.native_library import Outcome

pytestmark = pytest.mark.needs("the CPU")


@pytest.fixture(autouse=True)
def products_of_blas():
    with mtl.config.scope(products="host"):
        yield


@pytest.fixture
def calls(monkeypatch):
    """The jobs that are packed."""
    packed = []
    job = host_calls.HostProgram.job

    def count(self, *arguments):
        packed.append(arguments)
        return job(self, *arguments)

    monkeypatch.setattr(host_calls.HostProgram, "job", count)
    return packed


def integers(rng, shape, dtype):
    """Small integers, whose products have no rounding."""
    values = rng.integers(-4, 5, shape).astype(dtype)
    return values + 1j * rng.integers(-4, 5, shape) if values.dtype.kind == "c" else values


extents = st.integers(1, 9) | st.sampled_from([16, 33])


@given(
    dtype=st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    sizes=st.tuples(extents, extents, extents),
    are_transposed=st.tuples(st.booleans(), st.booleans()),
    batch=st.sampled_from([(), (3,), (2, 2)]),
    seed=st.integers(0, 1000),
)
def test_products_of_any_layout_are_numpys(dtype, sizes, are_transposed, batch, seed):
    rng = np.random.default_rng(seed)
    rows, depth, columns = sizes
    arrays, factors = [], []
    for shape, is_transposed in zip(((rows, depth), (depth, columns)), are_transposed, strict=True):
        values = integers(rng, (*batch, *(shape[::-1] if is_transposed else shape)), dtype)
        values = values.astype(dtype)
        array = mtl.array(values)
        arrays.append(mtl.matrix_transpose(array) if is_transposed else array)
        factors.append(values.swapaxes(-1, -2) if is_transposed else values)
    expected = np.matmul(*factors)
    for _ in range(2):  # the second run is native
        np.testing.assert_array_equal(np.asarray(arrays[0] @ arrays[1]), expected)


def test_products_and_kernels_are_one_run(calls):
    rng = np.random.default_rng(0)
    x, w, v = (integers(rng, shape, "float32") for shape in ((24, 40), (40, 24), (24, 8)))

    @mtl.compile
    def step(x, w, v):
        return mtl.maximum(x @ w + 1, 0) @ v - 2

    expected = np.maximum(x @ w + 1, 0) @ v - 2
    given = [mtl.array(a) for a in (x, w, v)]
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(step(*given)), expected)
    assert len(calls) == 2  # bound once


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_matrix_times_its_own_transpose(dtype):
    values = integers(np.random.default_rng(1), (20, 9), dtype).astype(dtype)
    x = mtl.array(values)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(x.T @ x), values.T @ values)
        np.testing.assert_array_equal(np.asarray(x @ x.T), values @ values.T)


def test_slices_are_read_in_place(calls):
    values = np.arange(400, dtype=np.float64).reshape(20, 20)
    x = mtl.array(values)
    for start in (0, 3, 5):
        got = x[start : start + 4, 1:7] @ x[2:8, start:]
        expected = values[start : start + 4, 1:7] @ values[2:8, start:]
        np.testing.assert_array_equal(np.asarray(got), expected)
    assert calls


@pytest.mark.parametrize("step", [-1, 2])
def test_layouts_that_blas_cannot_read(step):
    values = np.arange(36, dtype=np.float32).reshape(6, 6)
    x = mtl.array(values)[::step, ::step]
    for _ in range(2):
        expected = values[::step, ::step] @ values[::step, ::step]
        np.testing.assert_array_equal(np.asarray(x @ x), expected)


def test_a_product_waits_for_queued_launches():
    fill = mtl.library("""
#include <metal_stdlib>
using namespace metal;
kernel void fill(device float* x, uint i [[thread_position_in_grid]]) {
  float v = 0;
  for (int k = 0; k < 2000000; k++) v += 1;
  x[i] = v / 2000000;
}
""").fill
    product = mtl.compile(lambda a: a @ a)
    mtl.eval(product(mtl.zeros((8, 8))))
    x = mtl.zeros((8, 8))
    mtl.eval(x)
    fill(x, threads=64, wait=False)
    np.testing.assert_array_equal(np.asarray(product(x)), np.full((8, 8), 8, np.float32))


def test_profiles_show_the_product():
    product = mtl.compile(lambda a: a @ a + 1)
    x = mtl.ones((32, 32))
    for _ in range(2):
        mtl.eval(product(x))
    with mtl.profile() as profile:
        result = product(x)
        mtl.eval(result)
    assert "matmul" in str(profile)
    np.testing.assert_array_equal(np.asarray(result), np.full((32, 32), 33, np.float32))


def test_handlers_that_interrupt_a_kernel_cannot_wait_for_a_product():
    outcome = Outcome(status=faults.NESTED)
    error = blas._PROGRAM.failure(outcome, (1, 1, 1), (1, 1, 1))
    assert isinstance(error, mtl.LaunchError)
    assert "[matmul] a handler of a signal has interrupted a kernel" in str(error)


def test_without_functions_of_blas(monkeypatch):
    monkeypatch.setattr(blas, "_functions", lambda dtype: None)
    x = mtl.reshape(mtl.arange(7 * 7, dtype=mtl.float32), (7, 7))
    for _ in range(2):
        expected = np.asarray(x) @ np.asarray(x)
        np.testing.assert_array_equal(np.asarray(x @ x), expected)
