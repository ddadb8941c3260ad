"""Stacks of small matrices, which kernels compute, against NumPy."""

import numpy
import pytest

import metalloid as mtl
import metalloid.numpy as np

STACK = (5, 31)
TOLERANCES = {"float32": 1e-3, "float64": 1e-10}


def stack_of(rows, columns, dtype):
    random = numpy.random.default_rng(rows)
    return random.standard_normal((*STACK, rows, columns)).astype(dtype)


def is_close(result, expected, dtype):
    limit = TOLERANCES[dtype] * max(1, numpy.abs(expected).max(initial=0))
    numpy.testing.assert_allclose(result, expected, atol=limit, rtol=0)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6, 7])
def test_systems(rows, dtype):
    a = stack_of(rows, rows, dtype)
    is_close(np.linalg.det(np.asarray(a)), numpy.linalg.det(a), dtype)
    is_close(np.linalg.inv(np.asarray(a)), numpy.linalg.inv(a), dtype)
    for columns in (0, 1, 3, 6, 8):
        b = stack_of(rows, columns, dtype)
        result = np.linalg.solve(np.asarray(a), np.asarray(b))
        is_close(result, numpy.linalg.solve(a, b), dtype)


def test_stacks_that_broadcast():
    a, b = stack_of(3, 3, "float64"), numpy.random.default_rng(0).standard_normal((3, 2))
    is_close(np.linalg.solve(np.asarray(a), np.asarray(b)), numpy.linalg.solve(a, b), "float64")


def test_determinants_of_integers_that_need_exchanges():
    a = numpy.random.default_rng(0).integers(-1, 2, (2000, 4, 4)).astype(float)
    numpy.testing.assert_allclose(np.linalg.det(np.asarray(a)), numpy.linalg.det(a), atol=1e-13)


def test_a_singular_matrix_is_named():
    a = stack_of(3, 3, "float64")
    a[2, 7] = [[1, 2, 3], [4, 8, 12], [0, 0, 5]]
    assert numpy.asarray(np.linalg.det(np.asarray(a)))[2, 7] == 0
    for function in (np.linalg.inv, lambda x: np.linalg.solve(x, np.asarray(a))):
        with pytest.raises(numpy.linalg.LinAlgError, match=r"matrix \(2, 7\) .* is singular"):
            mtl.eval(function(np.asarray(a)))


def test_nan_affects_only_its_matrix():
    a = stack_of(4, 4, "float64")
    a[1, 2, 3, 0] = numpy.nan
    inverse = numpy.asarray(np.linalg.inv(np.asarray(a)))
    is_nan = numpy.zeros(STACK, bool)
    is_nan[1, 2] = True
    numpy.testing.assert_array_equal(numpy.isnan(inverse).any((-1, -2)), is_nan)
    assert numpy.isnan(np.linalg.det(np.asarray(a))[1, 2])
