"""Indices of true elements, of all sizes: on devices of their own memory, kernels compute them."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.ir import native


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 1])
@pytest.mark.parametrize(
    "shape", [(1,), (31,), (5000,), (10**6 + 7,), (7, 9), (3, 5, 1111), (0, 3)]
)
def test_indices_of_true_elements(shape, share):
    random = np.random.default_rng(0)
    mask, values = random.random(shape) < share, random.random(shape).astype(np.float32)
    results = mtl.nonzero(mtl.asarray(mask))
    for expected, result in zip(mask.nonzero(), results, strict=True):
        assert result.dtype == np.int64
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(mtl.asarray(values)[mtl.asarray(mask)], values[mask])


def test_a_mask_that_begins_within_memory():
    mask = np.random.default_rng(1).random(4000) < 0.3
    (indices,) = mtl.nonzero(mtl.asarray(mask)[3:])
    np.testing.assert_array_equal(indices, mask[3:].nonzero()[0])


def test_a_mask_that_is_an_expression():
    x = mtl.asarray(np.random.default_rng(2).random((50, 60)).astype(np.float32))
    np.testing.assert_array_equal(mtl.nonzero((x > 0.5).T)[0], (np.asarray(x) > 0.5).T.nonzero()[0])


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "float16", "float32", "float64", "int64", "complex64", "complex128"]
)
def test_selected_elements_of_all_sizes(dtype):
    random = np.random.default_rng(3)
    values = random.integers(0, 100, (300, 400)).astype(dtype)
    mask = random.random(values.shape) < 0.4
    result = mtl.asarray(values)[mtl.asarray(mask)]
    assert result.dtype == values.dtype
    np.testing.assert_array_equal(result, values[mask])


def test_selected_elements_of_expressions_and_derivatives():
    values = np.random.default_rng(4).random((300, 400)).astype(np.float32)
    x = mtl.asarray(values)
    np.testing.assert_array_equal((x.T * 2)[(x > 0.5).T], (values.T * 2)[(values > 0.5).T])
    mask = mtl.asarray(values > 0.5)
    gradient = mtl.grad(lambda x: (x[mask] * 3).sum())(x)
    np.testing.assert_array_equal(gradient, 3 * (values > 0.5))


@pytest.mark.parametrize("library", ["native", "NumPy"])
@pytest.mark.parametrize("dtype", ["bool", "uint16", "int32", "float64", "complex128"])
def test_elements_of_short_vectors(dtype, library, monkeypatch):
    if library == "NumPy":
        monkeypatch.setattr(native, "library", lambda: None)
    random = np.random.default_rng(4)
    for size in [*range(1, 40), 1000]:
        values = random.integers(0, 100, 2 * size).astype(dtype)
        for share in (0, 0.1, 0.5, 0.9, 1):
            mask = random.random(size) < share
            x, at = mtl.asarray(values), mtl.asarray(mask)
            np.testing.assert_array_equal(x[size:][at], values[size:][mask])
            np.testing.assert_array_equal(x[::-2][at], values[::-2][mask])
            np.testing.assert_array_equal(mtl.nonzero(at)[0], np.flatnonzero(mask))
