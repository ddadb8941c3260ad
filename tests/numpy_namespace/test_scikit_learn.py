"""scikit-learn's estimators fit arrays by the array API, and agree with their results for NumPy's.

`SCIPY_ARRAY_API=1` must be set before SciPy is imported: the estimators run in a process.
"""

import importlib.util
import os
import subprocess
import sys

import numpy
import pytest

import metalloid as mtl

PROGRAM = """
import sys

import numpy
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances
from sklearn.preprocessing import StandardScaler

import metalloid as mtl

rng = numpy.random.default_rng(7)
x = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + 3
heights = x @ numpy.arange(5.0) + rng.normal(size=60)
labels = (heights > numpy.median(heights)).astype(numpy.int64)


def results(xp):
    a, b, c = (xp.asarray(value) for value in (x, heights, labels))
    pca = PCA(3, svd_solver="covariance_eigh").fit(a)
    yield "PCA", pca.transform(a), pca.components_, pca.explained_variance_
    ridge = Ridge(0.5, solver="svd").fit(a, b)
    yield "Ridge", ridge.predict(a), ridge.coef_, ridge.intercept_
    lda = LinearDiscriminantAnalysis(solver="svd").fit(a, c)
    yield "LinearDiscriminantAnalysis", lda.predict(a), lda.decision_function(a)
    scaler = StandardScaler().fit(a)
    yield "StandardScaler", scaler.transform(a), scaler.mean_, scaler.var_
    yield "distances", euclidean_distances(a), cosine_similarity(a)
    guess = b + a[:, 0]
    yield "metrics", mean_squared_error(b, guess), r2_score(b, guess), accuracy_score(c, 1 - c)


exact = {name: values for name, *values in results(numpy)}
with config_context(array_api_dispatch=True):
    for name, *values in results(mtl):
        for value, want in zip(values, exact[name], strict=True):
            assert not isinstance(value, numpy.ndarray), (name, type(value))
            # squared distances of an element to itself are rounding errors, their roots 1e-7
            numpy.testing.assert_allclose(numpy.asarray(value), want, rtol=1e-8, atol=2e-7)
        print(name)
"""


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("sklearn"), reason="scikit-learn is not installed")
def test_estimators():
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True,
                         text=True, check=False)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["PCA", "Ridge", "LinearDiscriminantAnalysis", "StandardScaler",
                                  "distances", "metrics"]  # fmt: skip


@pytest.mark.slow
def test_statistics_of_columns_that_were_partly_evaluated():
    """As StandardScaler computes them: the last kernel has rows, but no reduction is left in it."""
    x = numpy.random.default_rng(0).normal(size=(30, 10))

    def is_constant(xp, values):
        before = xp.asarray(0.0, dtype=xp.float64)
        total_before = 2.0 * before
        has_nan = xp.isnan(values)
        total = xp.sum(values, axis=0)
        count = 30 - xp.sum(has_nan.astype(values.dtype), axis=0)
        counts = before + count
        mean = (total_before + total) / counts
        deviation = values - total / count
        squares = xp.sum(deviation**2, axis=0) - xp.sum(deviation, axis=0) ** 2 / count
        ratio = before / count
        squares_of_all = squares + ratio / counts * (total_before / ratio - total) ** 2
        is_first = before == 0
        squares_of_all[is_first] = squares[is_first]
        variance = squares_of_all / counts
        bool(xp.max(counts) == xp.min(counts))
        return variance <= counts[0] * 0.02 * variance + (counts[0] * mean * 0.02) ** 2

    ours = is_constant(mtl, mtl.asarray(x, dtype=mtl.float64))
    with numpy.errstate(invalid="ignore"):
        exact = is_constant(numpy, x)
    numpy.testing.assert_array_equal(numpy.asarray(ours), exact)
