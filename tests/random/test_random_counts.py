"""The Poisson distribution against SciPy's, with fixed keys."""

import numpy as np
import pytest
from scipy import stats

import metalloid as mtl
from metalloid.random.keys import threefry

COUNT = 2**18
UNLIKELY = 1e-3


def key(n=0):
    return mtl.random.fold_in(mtl.random.key(2027), n)


@pytest.mark.parametrize("mean", [0.01, 0.7, 3.5, 9.99, 10, 12.5, 30, 1000, 1e5, 2.5e7])
@pytest.mark.sample(2)
def test_the_distribution(mean):
    x = np.asarray(mtl.random.poisson(mean, COUNT, key=key()), np.float64)
    exact = stats.poisson(float(np.float32(mean)))
    middle = np.linspace(exact.ppf(1e-4), exact.ppf(1 - 1e-4), 40)
    edges = np.unique([*np.floor(middle), exact.ppf(1 - 1e-4) + 1]) + 0.5
    expected = np.diff([0, *exact.cdf(edges), 1]) * COUNT
    observed = np.histogram(x, [-1, *edges, np.inf])[0]
    is_rare = expected < 8
    expected = [*expected[~is_rare], expected[is_rare].sum()]
    observed = [*observed[~is_rare], observed[is_rare].sum()]
    if expected[-1] < 1:
        expected, observed = expected[:-1], observed[:-1]
    expected = np.array(expected) * (sum(observed) / sum(expected))
    assert stats.chisquare(observed, expected).pvalue > UNLIKELY
    assert abs(x.mean() - exact.mean()) < 5 * np.sqrt(mean / COUNT)
    assert abs(x.var() - mean) < 5 * mean * np.sqrt((1 / mean + 2) / COUNT)


def test_means_may_be_arrays():
    means = mtl.asarray([0.0, 5.0, 5000.0])
    x = np.asarray(mtl.random.poisson(means, (1000, 3), key=key()))
    assert (x[:, 0] == 0).all()
    np.testing.assert_allclose(x[:, 1:].mean(0), [5, 5000], rtol=0.08)
    assert mtl.random.poisson(means, key=key()).shape == (3,)
    assert mtl.random.poisson(means, dtype=mtl.uint16).dtype == mtl.uint16


def test_large_numbers_have_no_gaps():
    x = np.asarray(mtl.random.poisson(2.0**40, 1000, key=key()))
    assert 400 < (x % 2).sum() < 600


def test_small_means_by_hand():
    """As many numbers from the key of the index as keep their product above exp(-mean)."""
    words = tuple(key().tolist())
    expected = []
    for index in range(50):
        own, product, count = threefry(words, (0, index)), np.float32(1), 0
        while True:
            word = threefry(own, (0, count // 2))[count % 2]
            product *= min(np.float32(word) * np.float32(2**-32), np.float32(1 - 2**-24))
            if product <= np.exp(np.float32(-7)):
                break
            count += 1
        expected.append(count)
    assert mtl.random.poisson(7, 50, key=key()).tolist() == expected


def test_what_is_no_mean():
    with pytest.raises(ValueError, match=r"means must be between 0 and 2\*\*60, got -1"):
        mtl.random.poisson(-1)
    with pytest.raises(ValueError, match="got nan"):
        mtl.random.poisson(float("nan"))
    with pytest.raises(TypeError, match="expected an integer type, got float32"):
        mtl.random.poisson(1, dtype=mtl.float32)
    means = mtl.asarray([-1.0, float("nan"), 1e30, 1.0])
    assert (mtl.random.poisson(means, key=key()) == -1).tolist() == [True, True, True, False]
