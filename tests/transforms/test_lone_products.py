"""Compiled functions that are one product of BLAS, which Python's general path does not run."""

import warnings

import numpy as np
import pytest

import metalloid as mtl
from metalloid.transforms.program import Program

pytestmark = pytest.mark.needs("the CPU")
RNG = np.random.default_rng(3)


@pytest.fixture
def on_host(monkeypatch):
    """Products of BLAS; the general path runs once for each function."""
    runs = []
    general = Program._run

    def count(self, *args):
        runs.append(self)
        return general(self, *args)

    monkeypatch.setattr(Program, "_run", count)
    with mtl.config.scope(products="host"):
        yield runs


def matrix(rows, columns, dtype):
    values = RNG.standard_normal((rows, columns))
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RNG.standard_normal((rows, columns))
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_equals_numpy(on_host, dtype, left, right):
    multiply = mtl.compile(lambda x, y: (x.mT if left else x) @ (y.mT if right else y))
    for _ in range(3):
        x = matrix(*((4, 7) if left else (7, 4)), dtype)
        y = matrix(*((5, 4) if right else (4, 5)), dtype)
        expected = (x.mT if left else x) @ (y.mT if right else y)
        result = np.asarray(multiply(mtl.asarray(x), mtl.asarray(y)))
        np.testing.assert_array_equal(result, expected)
    assert len(on_host) == 1


def test_operands_of_other_kinds(on_host):
    multiply = mtl.compile(lambda x, y: (y @ x,))
    x, y = matrix(6, 6, "float32"), matrix(6, 6, "float32")
    base = mtl.asarray(np.concatenate([x, y]))
    others = [mtl.asarray(x), mtl.asarray(x).mT, base[6:], mtl.asarray(x) + 1]
    for other in (others[0], *others, mtl.asarray(x.astype("float64"))):
        (result,) = multiply(other, mtl.asarray(y))
        np.testing.assert_allclose(np.asarray(result), y @ np.asarray(other), rtol=1e-5, atol=1e-5)


def test_one_operand_twice(on_host):
    gram = mtl.compile(lambda x: x @ x.mT)
    x = matrix(5, 3, "float64")
    first, second = (gram(mtl.asarray(x)) for _ in range(2))
    np.testing.assert_allclose(np.asarray(first), x @ x.T, rtol=1e-14)
    np.testing.assert_array_equal(np.asarray(second), np.asarray(first))


def test_overflow_is_silent_as_in_kernels(on_host):
    multiply = mtl.compile(lambda x, y: x @ y)
    x = mtl.asarray(np.full((3, 3), 3e38, np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert np.isinf(np.asarray(multiply(x, x))).all()
    assert len(on_host) == 1
