"""Distributions of `metalloid.numpy.random` against SciPy's, with 10^6 numbers each."""

import numpy
import pytest
from scipy import stats

import metalloid as mtl
import metalloid.numpy as np

COUNT = 10**6
UNLIKELY = 1e-4
CONTINUOUS = [
    ("standard_gamma", (0.3,), stats.gamma(0.3)),
    ("standard_gamma", (1,), stats.gamma(1)),
    ("standard_gamma", (300,), stats.gamma(300)),
    ("gamma", (2, 3), stats.gamma(2, scale=3)),
    ("chisquare", (3,), stats.chi2(3)),
    ("chisquare", (0.4,), stats.chi2(0.4)),
    ("noncentral_chisquare", (3, 5), stats.ncx2(3, 5)),
    ("noncentral_chisquare", (0.5, 2), stats.ncx2(0.5, 2)),
    ("f", (4, 7), stats.f(4, 7)),
    ("noncentral_f", (4, 7, 3), stats.ncf(4, 7, 3)),
    ("standard_t", (2.5,), stats.t(2.5)),
    ("beta", (2, 5), stats.beta(2, 5)),
    ("beta", (0.1, 0.2), stats.beta(0.1, 0.2)),
    ("vonmises", (0, 1e-7), stats.vonmises(1e-7)),
    ("vonmises", (0, 0.5), stats.vonmises(0.5)),
    ("vonmises", (0, 30), stats.vonmises(30)),
    ("vonmises", (0, 5e6), stats.vonmises(5e6)),
    ("lognormal", (0.5, 0.7), stats.lognorm(0.7, scale=numpy.exp(0.5))),
    ("logistic", (1, 2), stats.logistic(1, 2)),
    ("rayleigh", (2,), stats.rayleigh(scale=2)),
    ("weibull", (1.5,), stats.weibull_min(1.5)),
    ("pareto", (3,), stats.lomax(3)),
    ("power", (2.5,), stats.powerlaw(2.5)),
    ("standard_cauchy", (), stats.cauchy()),
    ("triangular", (0, 1, 5), stats.triang(0.2, scale=5)),
    ("wald", (2, 8), stats.invgauss(0.25, scale=8)),
    ("gumbel", (1, 2), stats.gumbel_r(1, 2)),
    ("laplace", (1, 2), stats.laplace(1, 2)),
    ("normal", (1, 2), stats.norm(1, 2)),
    ("exponential", (2,), stats.expon(scale=2)),
]
DISCRETE = [
    ("binomial", (10, 0.3), stats.binom(10, 0.3)),
    ("binomial", (1000, 0.7), stats.binom(1000, 0.7)),
    ("binomial", (40, 0.26), stats.binom(40, 0.26)),
    ("binomial", (10**9, 0.2), stats.binom(10**9, 0.2)),
    ("negative_binomial", (5, 0.3), stats.nbinom(5, 0.3)),
    ("negative_binomial", (0.5, 0.05), stats.nbinom(0.5, 0.05)),
    ("geometric", (0.2,), stats.geom(0.2)),
    ("poisson", (12.5,), stats.poisson(12.5)),
    ("logseries", (0.3,), stats.logser(0.3)),
    ("logseries", (0.95,), stats.logser(0.95)),
    ("zipf", (2.5,), stats.zipf(2.5)),
    ("hypergeometric", (10, 5, 7), stats.hypergeom(15, 10, 7)),
    ("hypergeometric", (300, 500, 600), stats.hypergeom(800, 300, 600)),
    ("hypergeometric", (10**8, 10**6, 10**5), stats.hypergeom(101 * 10**6, 10**8, 10**5)),
]


def drawn(name, args, count=COUNT):
    values = getattr(np.random.default_rng(2), name)(*args, size=count)
    assert isinstance(values, np.ndarray)
    return numpy.asarray(values)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "args", "exact"), CONTINUOUS)
def test_continuous_distributions(name, args, exact):
    x = drawn(name, args)
    assert x.dtype == numpy.float64
    assert stats.kstest(x, exact.cdf).pvalue > UNLIKELY


@pytest.mark.slow
@pytest.mark.parametrize(("name", "args", "exact"), DISCRETE)
def test_discrete_distributions(name, args, exact):
    x = drawn(name, args)
    assert x.dtype == numpy.int64
    limits = exact.ppf([1e-5, 1 - 1e-4])
    edges = numpy.unique(numpy.floor(numpy.linspace(*limits, 50))) + 0.5
    expected = numpy.diff([0, *exact.cdf(edges - 0.5), 1]) * COUNT
    observed = numpy.histogram(x, [-numpy.inf, *edges, numpy.inf])[0]
    is_common = expected > 8
    rest = [a[~is_common].sum() for a in (observed, expected)]
    observed, expected = (
        numpy.append(a[is_common], r) for a, r in zip((observed, expected), rest, strict=True)
    )
    if rest[1] <= 8:
        observed, expected = observed[:-1], expected[:-1]
    expected *= observed.sum() / expected.sum()
    assert stats.chisquare(observed, expected).pvalue > UNLIKELY


@pytest.mark.slow
def test_floats_of_32_bits():
    with mtl.config.scope(numpy_floats="float32"):
        for name, args, exact in CONTINUOUS[:1] + CONTINUOUS[11:12] + CONTINUOUS[14:15]:
            x = drawn(name, args, 10**5)
            assert x.dtype == numpy.float32
            assert stats.kstest(x, exact.cdf).pvalue > UNLIKELY
        x = drawn("binomial", (1000, 0.3))
        assert abs(x.mean() - 300) < 5 * (210 / COUNT) ** 0.5


@pytest.mark.slow
def test_vectors():
    rng = np.random.default_rng(5)
    x = numpy.asarray(rng.multinomial(20, [0.2, 0.3, 0.5], size=COUNT))
    assert (x.sum(1) == 20).all()
    for k, p in enumerate((0.2, 0.3, 0.5)):
        counts = numpy.bincount(x[:, k], minlength=21)
        expected = stats.binom(20, p).pmf(numpy.arange(21)) * COUNT
        common = expected > 20
        share = expected[common] * (counts[common].sum() / expected[common].sum())
        assert stats.chisquare(counts[common], share).pvalue > UNLIKELY
    x = numpy.asarray(rng.dirichlet([0.5, 1, 3], size=COUNT))
    numpy.testing.assert_allclose(x.sum(1), 1, rtol=1e-14)
    assert stats.kstest(x[:, 0], stats.beta(0.5, 4).cdf).pvalue > UNLIKELY
    x = numpy.asarray(rng.multivariate_hypergeometric([16, 8, 4], 6, size=COUNT))
    assert (x.sum(1) == 6).all()
    for k, number in enumerate((16, 8, 4)):
        expected = stats.hypergeom(28, number, 6).pmf(numpy.arange(7)) * COUNT
        common = expected > 20
        counts = numpy.bincount(x[:, k], minlength=7)
        assert stats.chisquare(counts[common], expected[common] * counts[common].sum()
                               / expected[common].sum()).pvalue > UNLIKELY  # fmt: skip
    covariance = numpy.array([[2, 0.5], [0.5, 1]])
    x = numpy.asarray(rng.multivariate_normal([1, 2], covariance, size=COUNT))
    numpy.testing.assert_allclose(x.mean(0), [1, 2], atol=0.01)
    numpy.testing.assert_allclose(numpy.cov(x.T), covariance, atol=0.02)
    assert stats.kstest(x.sum(1), stats.norm(3, 2).cdf).pvalue > UNLIKELY


def test_parameters_outside_of_the_domain():
    rng = np.random.default_rng(1)
    with pytest.raises(
        ValueError, match=r"\[random.gamma\] expected parameters of at least 0, got"
    ):
        rng.gamma(-1)
    with pytest.raises(ValueError, match="a scale of at least 0"):
        rng.normal(0, np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="a probability in"):
        rng.binomial(3, 1.5)


@pytest.mark.slow
def test_large_poisson_means():
    means = numpy.array([5, 3e7 + 1, 1e16 + 3e8])  # the last two are no float32
    x = numpy.asarray(np.random.default_rng(3).poisson(means, (10**5, 3)))
    z = (x - means) / numpy.sqrt(means)
    assert (abs(z.mean(0)) < 5e-3 * 3).all()
    numpy.testing.assert_allclose(z.std(0), 1, atol=0.01)


@pytest.mark.slow
def test_parameters_in_arrays():
    rng = np.random.default_rng(1)
    x = rng.gamma(numpy.array([numpy.nan, 0.0, numpy.inf]))
    numpy.testing.assert_array_equal(x, [numpy.nan, 0, numpy.inf])
    assert rng.binomial(numpy.array([3, 3]), numpy.array([0.0, 1.0])).tolist() == [0, 3]
    with pytest.raises(ValueError, match="a probability in"):
        rng.binomial(numpy.array([3, 3]), numpy.array([2.0, 1.0]))
    with pytest.raises(ValueError, match="an exponent above 1"):
        rng.zipf(numpy.array([0.5, 2000]))
    with pytest.warns(RuntimeWarning, match="not symmetric positive-semidefinite"):
        rng.multivariate_normal([0, 0], [[1, 2], [2, 1]])
    assert rng.multinomial(5, [[0.5, 0.5], [1, 0]]).shape == (2, 2)
    assert rng.standard_t([1, 2], (3, 2)).shape == (3, 2)
