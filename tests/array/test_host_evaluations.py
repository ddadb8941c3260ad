"""Repeated evaluations of one function of the host, such as LAPACK's and NumPy's transforms."""

import gc

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.execution import calls, known_evaluations

pytestmark = pytest.mark.needs("the CPU")


@pytest.fixture
def known(monkeypatch):
    """The names of functions that known evaluations have called."""
    if known_evaluations.native_evaluation() is None:
        pytest.skip("native functions are not available")
    names, run = [], known_evaluations.HostEvaluation.run

    def note(self, *args):
        names.append(self.call.name)
        return run(self, *args)

    monkeypatch.setattr(known_evaluations.HostEvaluation, "run", note)
    return names


def matrix(rng, n):
    values = rng.random((n, n))
    return values @ values.T + n * np.eye(n)


def test_decompositions_are_numpys(known):
    rng = np.random.default_rng(0)
    for n in (40, 40, 40, 41, 40):
        values = matrix(rng, n)
        x = mtl.asarray(values)
        np.testing.assert_allclose(mtl.linalg.cholesky(x), np.linalg.cholesky(values))
        np.testing.assert_allclose(mtl.linalg.inv(x), np.linalg.inv(values))
        np.testing.assert_allclose(mtl.linalg.det(x), np.linalg.det(values))
        np.testing.assert_allclose(mtl.linalg.svdvals(x), np.linalg.svd(values)[1])
    assert len(known) >= 8


def test_all_results_of_a_call_are_assigned(known):
    rng = np.random.default_rng(1)
    for _ in range(4):
        values = matrix(rng, 30)
        u, s, vh = mtl.linalg.svd(mtl.asarray(values))
        np.testing.assert_allclose(s, np.linalg.svd(values)[1])  # the others later
        np.testing.assert_allclose(np.asarray(u) * np.asarray(s) @ np.asarray(vh), values)
        (sign, logarithm), expected = (
            mtl.linalg.slogdet(mtl.asarray(values)),
            np.linalg.slogdet(values),
        )
        np.testing.assert_allclose(logarithm + 1, expected[1] + 1)
        assert float(sign) == expected[0]
    assert "svd" in known


def test_only_some_results_are_used(known):
    for k in range(4):
        values = matrix(np.random.default_rng(k), 30)
        _, vectors = mtl.linalg.eigh(mtl.asarray(values))
        gc.collect()
        vectors = np.asarray(vectors)
        np.testing.assert_allclose(vectors @ vectors.T, np.eye(30), atol=1e-12)
    assert known


def test_transforms_of_views_and_other_types(known):
    values = np.random.default_rng(2).random((4, 1009))
    x = mtl.asarray(values)
    for _ in range(3):
        for mine, theirs in ((x, values), (x[1:], values[1:]), (x[::2], values[::2])):
            np.testing.assert_allclose(mtl.fft.rfft(mine), np.fft.rfft(theirs), atol=1e-9)
            np.testing.assert_allclose(mtl.fft.rfft(mine, axis=0), np.fft.rfft(theirs, axis=0))
            single = mtl.fft.rfft(mtl.astype(mine, mtl.float32))
            assert single.dtype == mtl.complex64
            np.testing.assert_allclose(single, np.fft.rfft(theirs), rtol=1e-3, atol=1e-3)
    assert known


def test_errors_are_raised_each_time(known):
    good, singular = mtl.asarray(np.eye(40) * 2), mtl.zeros((40, 40), dtype=mtl.float64)
    for _ in range(3):
        np.testing.assert_allclose(mtl.linalg.inv(good), np.eye(40) / 2)
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            np.asarray(mtl.linalg.inv(singular))
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            mtl.eval(mtl.linalg.inv(singular))
    assert known


def test_expressions_around_a_call_are_plans(known):
    for k in range(3):
        values = matrix(np.random.default_rng(k), 33)
        x = mtl.asarray(values)
        np.testing.assert_allclose(mtl.linalg.inv(x + 1) * 2, np.linalg.inv(values + 1) * 2)
        a, b = mtl.linalg.det(x), mtl.fft.fft(x[0])
        mtl.eval(a, b)
        np.testing.assert_allclose(a, np.linalg.det(values))
        np.testing.assert_allclose(b, np.fft.fft(values[0]))


def test_a_call_does_not_hold_its_operands(known):
    for _ in range(3):
        np.asarray(mtl.linalg.cholesky(mtl.asarray(np.eye(64))))
    held = [
        e
        for e in known_evaluations.plans.values()
        if isinstance(e, known_evaluations.HostEvaluation)
    ]
    assert held
    assert all(isinstance(e.call, calls.HostCall) and not e.call.result_nodes for e in held)
