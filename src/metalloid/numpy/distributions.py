"""Distributions of ``numpy.random`` that follow from gamma variates and other rejection methods."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from metalloid import linalg
from metalloid import random as base
from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.creation import full
from metalloid.arrays.functions.manipulation import concat
from metalloid.arrays.functions.select import where
from metalloid.arrays.functions.tensor_contractions import matmul
from metalloid.arrays.ir.dtypes import default_float, int64
from metalloid.arrays.ir.operands import is_scalar
from metalloid.arrays.ir.substitute import is_traced
from metalloid.kernels.strides import broadcast_shape
from metalloid.numpy import tabulated
from metalloid.numpy.array import store
from metalloid.numpy.known_draws import known_draw
from metalloid.random import rejection

Size = Any


def shape_of(size: Size, *parameters: Any) -> tuple[int, ...]:
    """The shape that a size or the parameters determine."""
    if size is not None:
        return (int(size),) if np.ndim(size) == 0 else tuple(size)
    return broadcast_shape("random", *(np.shape(p) for p in parameters))


def checked(where_: str, is_valid: Any, condition: str, *values: Any) -> None:
    """Refuse numbers outside of a domain, and evaluate arrays for it.

    Elements of traced arrays that are outside yield NaN or -1.
    """
    if any(isinstance(value, Array) and is_traced(value._node) for value in values):
        return
    if not np.all(is_valid(*map(np.asarray, values))):
        raise ValueError(f"[random.{where_}] expected {condition}, got {values}.")


class ByRejection:
    """Methods of `Generator`."""

    _base: base.Generator

    def _log_gamma(self, shape: Any, size: tuple[int, ...]) -> Array:
        return rejection.log_gamma(shape, size, default_float(), self._base._keys.next())

    @known_draw
    def standard_gamma(self, shape: Any, size: Size = None, dtype: Any = None, out: Any = None
                       ) -> Any:  # fmt: skip
        """Draw from the gamma distribution of the scale 1."""
        checked("standard_gamma", lambda a: ~(a < 0), "a shape of at least 0", shape)
        numbers = ew.exp(self._log_gamma(shape, shape_of(size, shape)))
        return store(numbers.astype(dtype or default_float()), out, "standard_gamma", "no")

    @known_draw
    def gamma(self, shape: Any, scale: Any = 1.0, size: Size = None) -> Any:
        """Draw from the gamma distribution."""
        checked(
            "gamma", lambda a, b: ~((a < 0) | (b < 0)), "parameters of at least 0", shape, scale
        )
        return ew.exp(self._log_gamma(shape, shape_of(size, shape, scale))) * scale

    @known_draw
    def chisquare(self, df: Any, size: Size = None) -> Any:
        """Draw from the chi-square distribution."""
        checked("chisquare", lambda n: n > 0, "degrees of freedom above 0", df)
        return self._chisquare(df, shape_of(size, df))

    def _chisquare(self, df: Any, shape: tuple[int, ...]) -> Array:
        return ew.exp(self._log_gamma(ew.divide(df, 2), shape)) * 2

    @known_draw
    def noncentral_chisquare(self, df: Any, nonc: Any, size: Size = None) -> Any:
        """Draw from the noncentral chi-square distribution.

        It is the sum of a square of a normal number and a central one of one degree less, which
        draws numbers of one shape; below that a mixture of central ones.
        """
        checked("noncentral_chisquare", lambda n, c: (n > 0) & (c >= 0),
                 "degrees of freedom > 0 and a noncentrality >= 0", df, nonc)  # fmt: skip
        shape = shape_of(size, df, nonc)
        if is_scalar(df) and df > 1:
            shifted = self._base.standard_normal(shape, default_float()) + ew.sqrt(nonc)
            return self._chisquare(df - 1, shape) + ew.square(shifted)
        pairs = self._base.poisson(ew.divide(nonc, 2), shape)
        return self._chisquare(pairs * 2 + df, shape)

    @known_draw
    def f(self, dfnum: Any, dfden: Any, size: Size = None) -> Any:
        """Draw from the F distribution."""
        shape = shape_of(size, dfnum, dfden)
        quotient = self.chisquare(dfnum, shape) / self.chisquare(dfden, shape)
        return quotient * ew.divide(dfden, dfnum)

    @known_draw
    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Size = None) -> Any:
        """Draw from the noncentral F distribution."""
        shape = shape_of(size, dfnum, dfden, nonc)
        quotient = self.noncentral_chisquare(dfnum, nonc, shape) / self.chisquare(dfden, shape)
        return quotient * ew.divide(dfden, dfnum)

    @known_draw
    def standard_t(self, df: Any, size: Size = None) -> Any:
        """Draw from Student's t distribution."""
        shape = shape_of(size, df)
        mean_square = self.chisquare(df, shape) / df
        return self._base.standard_normal(shape, default_float()) / ew.sqrt(mean_square)

    @known_draw
    def beta(self, a: Any, b: Any, size: Size = None) -> Any:
        """Draw from the beta distribution: the share of one of two gamma variates."""
        checked("beta", lambda a, b: (a > 0) & (b > 0), "parameters above 0", a, b)
        shape = shape_of(size, a, b)
        return 1 / (1 + ew.exp(self._log_gamma(b, shape) - self._log_gamma(a, shape)))

    @known_draw
    def dirichlet(self, alpha: Any, size: Size = None) -> Any:
        """Draw from the Dirichlet distribution: the shares of gamma variates."""
        parameters = np.asarray(alpha, float)
        if parameters.ndim != 1 or (parameters < 0).any():
            raise ValueError(f"[random.dirichlet] expected one axis of numbers >= 0, got {alpha}.")
        logs = self._log_gamma(alpha, (*shape_of(size), parameters.size))
        if not parameters.any():
            return ew.exp(logs)  # zeros, as the limit depends on the parameters
        shares = ew.exp(logs - logs.max(-1, keepdims=True))
        return shares / shares.sum(-1, keepdims=True)

    @known_draw
    def vonmises(self, mu: Any, kappa: Any, size: Size = None) -> Any:
        """Draw from the von Mises distribution: angles in [-pi, pi]."""
        checked("vonmises", lambda k: ~(k < 0), "a concentration of at least 0", kappa)
        shape = shape_of(size, mu, kappa)
        key = self._base._keys.next()
        angle = rejection.von_mises(kappa, shape, default_float(), key) + mu
        return ew.remainder(angle + np.pi, 2 * np.pi) - np.pi

    @known_draw
    def binomial(self, n: Any, p: Any, size: Size = None) -> Any:
        """Draw from the binomial distribution."""
        checked("binomial", lambda n, p: (n >= 0) & (p >= 0) & (p <= 1),
                 "trials of at least 0 and a probability in [0, 1]", n, p)  # fmt: skip
        shape = shape_of(size, n, p)
        numbers = tabulated.drawn("binomial", self._base, shape, n, p)
        return self._binomial(n, p, shape) if numbers is None else numbers

    def _binomial(self, n: Any, p: Any, shape: tuple[int, ...]) -> Array:
        return rejection.binomial(n, p, shape, default_float(), self._base._keys.next())

    @known_draw
    def negative_binomial(self, n: Any, p: Any, size: Size = None) -> Any:
        """Draw from the negative binomial distribution: Poisson numbers of gamma-variate means."""
        checked("negative_binomial", lambda n, p: (n > 0) & (p > 0) & (p <= 1),
                 "successes above 0 and a probability in (0, 1]", n, p)  # fmt: skip
        shape = shape_of(size, n, p)
        numbers = tabulated.drawn("negative_binomial", self._base, shape, n, p)
        if numbers is not None:
            return numbers
        mean = ew.exp(self._log_gamma(n, shape)) * ew.divide(ew.subtract(1, p), p)
        return self._base.poisson(mean, shape)

    @known_draw
    def multinomial(self, n: Any, pvals: Any, size: Size = None) -> Any:
        """Draw from the multinomial distribution, by binomial numbers of what remains."""
        shares = np.asarray(pvals, float)
        if (shares < 0).any() or (shares[..., :-1].sum(-1) > 1 + 1e-12).any():
            raise ValueError(f"[random.multinomial] expected probabilities, got {pvals}.")
        outer = shape_of(size, n, shares[..., 0])
        left = ew.add(as_array(n, "multinomial").astype(int64), np.zeros(outer, np.int64))
        rest = np.maximum(np.cumsum(shares[..., ::-1], -1)[..., ::-1], 1e-300)
        counts = []
        for k in range(shares.shape[-1] - 1):
            probability = np.minimum(shares[..., k] / rest[..., k], 1)
            counts.append(self._binomial(left, as_array(probability, "multinomial"), outer))
            left = left - counts[-1]
        return concat([count[..., None] for count in (*counts, left)], -1)

    @known_draw
    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Size = None) -> Any:
        """Draw from the hypergeometric distribution."""
        checked("hypergeometric",
                lambda g, b, n: (g >= 0) & (b >= 0) & (n >= 0) & (n <= g + b) & (g < 10**9)
                & (b < 10**9), "numbers of at least 0 and below 10**9, and at most ngood + nbad "
                "samples", ngood, nbad, nsample)  # fmt: skip
        shape = shape_of(size, ngood, nbad, nsample)
        numbers = tabulated.drawn("hypergeometric", self._base, shape, ngood, nbad, nsample)
        return self._hypergeometric(ngood, nbad, nsample, shape) if numbers is None else numbers

    def _hypergeometric(self, good: Any, bad: Any, sample: Any, shape: tuple[int, ...]) -> Array:
        key = self._base._keys.next()
        return rejection.hypergeometric(good, bad, sample, shape, default_float(), key)

    @known_draw
    def multivariate_hypergeometric(self, colors: Any, nsample: int, size: Size = None,
                                    method: str = "marginals") -> Any:  # fmt: skip
        """Draw from the multivariate hypergeometric distribution.

        Parameters
        ----------
        method
            Ignored: hypergeometric numbers of what remains are drawn, color by color.
        """
        numbers = np.asarray(colors)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or (numbers < 0).any():
            raise ValueError("[random.multivariate_hypergeometric] expected numbers of at least 0, "
                             f"got {colors}.")  # fmt: skip
        if not 0 <= operator.index(nsample) <= numbers.sum() or numbers.sum() >= 10**9:
            raise ValueError(
                "[random.multivariate_hypergeometric] expected less than 10**9 elements, and at "
                f"most as many samples, got {colors} and {nsample}."
            )
        shape = shape_of(size)
        left = full(shape, nsample, int64)
        counts = []
        for k, number in enumerate(numbers[:-1].tolist()):
            others = int(numbers[k + 1 :].sum())
            counts.append(self._hypergeometric(number, others, left, shape))
            left = left - counts[-1]
        rest = [left] if numbers.size else []
        counts = [count[..., None] for count in (*counts, *rest)]
        return concat(counts, -1) if counts else full((*shape, 0), 0, int64)

    @known_draw
    def logseries(self, p: Any, size: Size = None) -> Any:
        """Draw from the logarithmic series distribution (A. W. Kemp, 1981)."""
        checked("logseries", lambda p: (p >= 0) & (p < 1), "a probability in [0, 1)", p)
        shape = shape_of(size, p)
        numbers = tabulated.drawn("logseries", self._base, shape, p)
        if numbers is not None:
            return numbers
        chance = as_array(p, "logseries").astype(default_float())
        e, logs = (-self._base.standard_exponential(shape, default_float()) for _ in range(2))
        q = -ew.expm1(ew.log1p(-chance) * ew.exp(e))
        return ew.maximum(ew.floor(1 + logs / ew.log(q)), 1).astype(int64)

    @known_draw
    def zipf(self, a: Any, size: Size = None) -> Any:
        """Draw from the Zipf distribution."""
        checked("zipf", lambda a: a > 1, "an exponent above 1", a)
        return rejection.zipf(a, shape_of(size, a), default_float(), self._base._keys.next())

    @known_draw
    def multivariate_normal(self, mean: Any, cov: Any, size: Size = None,
                            check_valid: str = "warn", tol: float = 1e-8, *, method: str = "svd"
                            ) -> Any:  # fmt: skip
        """Draw from the multivariate normal distribution.

        Parameters
        ----------
        check_valid : "warn", "raise" or "ignore"
            What to do if the covariance matrix is not symmetric and positive semidefinite.
        method
            Ignored: the eigenvectors of the covariance matrix transform independent numbers.
        """
        center, matrix = (np.asarray(x, float) for x in (mean, cov))
        if center.ndim != 1 or matrix.shape != (center.size, center.size):
            raise ValueError(
                f"[random.multivariate_normal] expected a vector and a square matrix of its size, "
                f"got shapes {center.shape} and {matrix.shape}."
            )
        covariance = as_array(matrix, "multivariate_normal").astype(default_float())
        values, vectors = linalg.eigh(covariance)
        if check_valid != "ignore":
            is_symmetric = np.allclose(matrix, matrix.T, tol, tol)
            if not is_symmetric or float(values.min()) < -tol * max(1.0, float(values.max())):
                message = "covariance is not symmetric positive-semidefinite."
                if check_valid == "raise":
                    raise ValueError(f"[random.multivariate_normal] {message}")
                warnings.warn(message, RuntimeWarning, stacklevel=3)
        shape = (*shape_of(size), center.size)
        numbers = self._base.standard_normal(shape, default_float())
        spread = ew.sqrt(where(ew.greater(values, 0), values, 0)) * vectors
        return matmul(numbers, spread.T) + as_array(center, "multivariate_normal")
