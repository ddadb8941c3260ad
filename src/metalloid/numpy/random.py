"""Random numbers, with the interface of ``numpy.random``.

The numbers are those of `metalloid.random`, which are functions of a key and of their index. Seeds
therefore give other numbers than in NumPy, of the same distributions.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from metalloid import random as base
from metalloid.arrays.array import Array, as_array
from metalloid.arrays.functions import elementwise as ew
from metalloid.arrays.functions.creation import zeros
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import as_dtype, bool_, default_float, int64
from metalloid.arrays.ir.operands import is_number
from metalloid.arrays.ir.substitute import is_traced
from metalloid.errors import unknown_attribute
from metalloid.numpy import tabulated
from metalloid.numpy.array import store
from metalloid.numpy.distributions import ByRejection, Size, checked, shape_of
from metalloid.numpy.known_draws import known_draw

SeedSequence = np.random.SeedSequence


#: Seeds of so many bits are keys.
_KEY_BITS = 64


def _seeded(sequence: np.random.SeedSequence) -> base.Generator:
    """The keys of a seed: an integer of 64 bits itself, or a hash of others."""
    seed: Any = sequence.entropy
    is_key = isinstance(seed, int | np.integer) and int(seed).bit_length() <= _KEY_BITS
    if sequence.spawn_key or not is_key:
        (seed,) = sequence.generate_state(1, np.uint64)
    return base.Generator(int(seed))


class BitGenerator:
    """Sequence of keys: ``Generator(PCG64(seed))`` takes one.

    The names of NumPy's algorithms are synonyms, as numbers are functions of a key and an index.

    Parameters
    ----------
    seed : int, sequence of int or SeedSequence, optional

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> np.random.Generator(np.random.PCG64(1)).random(2).shape
    (2,)
    """

    capsule = None  # by which Dask tells bit generators from seeds

    def __init__(self, seed: Any = None) -> None:
        self.seed_seq = seed if isinstance(seed, SeedSequence) else SeedSequence(seed)
        self._seed_seq = self.seed_seq  # as Dask calls it
        self.keys = _seeded(self.seed_seq)

    def spawn(self, n_children: int) -> list[BitGenerator]:
        """Return new bit generators, independent of each other and of this one."""
        return [type(self)(child) for child in self.seed_seq.spawn(n_children)]

    def generator(self) -> Generator:
        """Return a `Generator` of this namespace."""
        return Generator(self)


MT19937 = PCG64 = PCG64DXSM = Philox = SFC64 = BitGenerator


def _is_scale(value: Any) -> Any:
    return ~np.signbit(value) | np.isnan(value)  # NaN yields NaN


def _parts_of_mean(lam: Any) -> list[Any]:
    """Means whose Poisson numbers add up to those of `lam`, and which are nearly float32."""
    if isinstance(lam, Array) and is_traced(lam._node):
        return [lam]
    mean = np.asarray(lam, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        single = mean.astype(np.float32)
        if not (np.abs(mean - single) > 1e-4 * np.sqrt(mean)).any():
            return [lam]
        low = np.where(single > mean, np.nextafter(single, np.float32(0)), single)
    return [low, mean - low]


_of_arrays = functools.partial(known_draw, arrays=1)


class Generator(ByRejection):
    """Random number generator with the methods of ``numpy.random.Generator``.

    Every call uses the next key of a sequence. Most distributions are computed from uniform numbers
    by the kernel that uses them.

    Parameters
    ----------
    seed : int, sequence of int, SeedSequence or BitGenerator, optional

    Examples
    --------
    >>> import metalloid.numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rng.random(3).shape
    (3,)
    """

    def __init__(self, seed: Any = None) -> None:
        bits = seed if isinstance(seed, BitGenerator) else BitGenerator(seed)
        self._bits, self._base = bits, bits.keys

    @property
    def bit_generator(self) -> BitGenerator:
        """The keys of the numbers, which generators may share."""
        return self._bits

    def spawn(self, n_children: int) -> list[Generator]:
        """Return new generators, independent of each other and of this one."""
        return [Generator(child) for child in self._bits.spawn(n_children)]

    def _uniform(self, size: Size, *parameters: Any) -> Any:
        """Numbers in (0, 1)."""
        unit = self._base.uniform(0.0, 1.0, shape_of(size, *parameters), default_float())
        return unit + (2.0**-54 if unit.dtype.itemsize == 8 else 2.0**-25)

    @known_draw
    def random(self, size: Size = None, dtype: Any = None, out: Any = None) -> Any:
        """Draw uniform numbers in [0, 1)."""
        numbers = self._base.random(shape_of(size, out), dtype or default_float())
        return store(numbers, out, "random", "no")

    @known_draw
    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None) -> Any:
        """Draw uniform numbers between limits."""
        checked("uniform", lambda a, b: ~(b < a), "low <= high", low, high)
        if is_number(low) and is_number(high) and math.isinf(high - low):
            raise OverflowError(f"[random.uniform] the range from {low} to {high} is too large.")
        return self._base.uniform(low, high, shape_of(size, low, high), default_float())

    @known_draw
    def standard_normal(self, size: Size = None, dtype: Any = None, out: Any = None) -> Any:
        """Draw normally distributed numbers with mean 0 and standard deviation 1."""
        numbers = self._base.standard_normal(shape_of(size, out), dtype or default_float())
        return store(numbers, out, "standard_normal", "no")

    @known_draw
    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Draw normally distributed numbers."""
        checked("normal", _is_scale, "a scale of at least 0", scale)
        return self._base.normal(loc, scale, shape_of(size, loc, scale), default_float())

    @known_draw
    def exponential(self, scale: Any = 1.0, size: Size = None) -> Any:
        """Draw exponentially distributed numbers."""
        checked("exponential", _is_scale, "a scale of at least 0", scale)
        return self._base.exponential(scale, shape_of(size, scale), default_float())

    @known_draw
    def standard_exponential(self, size: Size = None, dtype: Any = None, method: str = "zig",
                             out: Any = None) -> Any:  # fmt: skip
        """Draw exponentially distributed numbers with mean 1."""
        numbers = self._base.standard_exponential(shape_of(size, out), dtype or default_float())
        return store(numbers, out, "standard_exponential", "no")

    @known_draw
    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Draw from the Gumbel distribution."""
        checked("gumbel", _is_scale, "a scale of at least 0", scale)
        return self._base.gumbel(loc, scale, shape_of(size, loc, scale), default_float())

    @known_draw
    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Draw from the Laplace distribution."""
        checked("laplace", _is_scale, "a scale of at least 0", scale)
        return self._base.laplace(loc, scale, shape_of(size, loc, scale), default_float())

    @known_draw
    def integers(self, low: Any, high: Any = None, size: Size = None, dtype: Any = int64,
                 endpoint: bool = False) -> Any:  # fmt: skip
        """Draw integers from `low` to `high`, or from 0 to `low`."""
        low, high = (0, low) if high is None else (low, high)
        low, high = (as_array(x, "integers") if np.ndim(x) else x for x in (low, high))
        shape = shape_of(size, low, high)
        if 0 in shape:
            return zeros(shape, dtype)
        drawn = int64 if as_dtype(dtype) == bool_ else dtype
        return self._base.integers(low, high, shape, drawn, endpoint).astype(as_dtype(dtype))

    @known_draw
    def poisson(self, lam: Any = 1.0, size: Size = None) -> Any:
        """Draw from the Poisson distribution."""
        checked("poisson", _is_scale, "a mean of at least 0", lam)
        shape = shape_of(size, lam)
        numbers = tabulated.drawn("poisson", self._base, shape, lam)
        if numbers is not None:
            return numbers
        means = _parts_of_mean(lam)
        return sum((self._base.poisson(mean, shape) for mean in means[1:]),
                   self._base.poisson(means[0], shape))  # fmt: skip

    # -- by the inverse of the distribution function

    @known_draw
    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Size = None) -> Any:
        """Draw numbers whose logarithm is normally distributed."""
        checked("lognormal", _is_scale, "a sigma of at least 0", sigma)
        return ew.exp(self.normal(mean, sigma, size))

    @known_draw
    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
        """Draw from the logistic distribution."""
        checked("logistic", _is_scale, "a scale of at least 0", scale)
        u = self._uniform(size, loc, scale)
        return (ew.log(u) - ew.log1p(-u)) * scale + loc

    @known_draw
    def rayleigh(self, scale: Any = 1.0, size: Size = None) -> Any:
        """Draw from the Rayleigh distribution."""
        checked("rayleigh", _is_scale, "a scale of at least 0", scale)
        return ew.sqrt(self.exponential(1.0, shape_of(size, scale)) * 2) * scale

    @known_draw
    def weibull(self, a: Any, size: Size = None) -> Any:
        """Draw from the Weibull distribution."""
        checked("weibull", _is_scale, "a shape of at least 0", a)
        shape = as_array(a, "weibull")
        numbers = self.exponential(1.0, shape_of(size, a)) ** (1 / shape)
        return where(ew.equal(shape, 0), 0, numbers)

    @known_draw
    def pareto(self, a: Any, size: Size = None) -> Any:
        """Draw from the Lomax distribution, Pareto's of the second kind."""
        checked("pareto", lambda a: a > 0, "a shape above 0", a)
        return ew.expm1(self.exponential(1.0, shape_of(size, a)) / a)

    @known_draw
    def power(self, a: Any, size: Size = None) -> Any:
        """Draw from the power distribution on [0, 1]."""
        checked("power", lambda a: a > 0, "a shape above 0", a)
        u = -ew.expm1(-self.exponential(1.0, shape_of(size, a)))
        return u ** (1 / as_array(a, "power"))

    @known_draw
    def standard_cauchy(self, size: Size = None) -> Any:
        """Draw from the Cauchy distribution."""
        return ew.tan((self._uniform(size) - 0.5) * math.pi)

    @known_draw
    def triangular(self, left: Any, mode: Any, right: Any, size: Size = None) -> Any:
        """Draw from the triangular distribution."""
        checked("triangular", lambda a, m, b: (a <= m) & (m <= b) & (a < b),
                "left <= mode <= right and left < right", left, mode, right)  # fmt: skip
        u = self._uniform(size, left, mode, right)
        width = ew.subtract(right, left)
        share = ew.divide(ew.subtract(mode, left), width)
        rising = ew.add(left, ew.sqrt(u * share) * width)
        falling = ew.subtract(right, ew.sqrt((1 - u) * (1 - share)) * width)
        return where(u < share, rising, falling)

    @known_draw
    def geometric(self, p: Any, size: Size = None) -> Any:
        """Draw numbers of trials up to the first success."""
        checked("geometric", lambda p: (p > 0) & (p <= 1), "a probability in (0, 1]", p)
        e = self.exponential(1.0, shape_of(size, p))
        trials = ew.ceil(-e / ew.log1p(-as_array(p, "geometric").astype(e.dtype)))
        return ew.maximum(trials, 1).astype(int64)

    @known_draw
    def wald(self, mean: Any, scale: Any, size: Size = None) -> Any:
        """Draw from the inverse Gaussian distribution (Michael, Schucany and Haas, 1976)."""
        checked("wald", lambda m, s: (m > 0) & (s > 0), "parameters above 0", mean, scale)
        shape = shape_of(size, mean, scale)
        y = ew.square(self.standard_normal(shape)) * mean
        ratio = ew.divide(mean, ew.multiply(2, scale))
        x = mean + ratio * (y - ew.sqrt(y * (y + ew.multiply(4, scale))))
        is_small = self._uniform(shape) <= ew.divide(mean, mean + x)
        return where(is_small, x, ew.divide(ew.square(mean * (x * 0 + 1)), x))

    # -- orders and samples

    def bytes(self, length: int) -> Any:
        """Return random bytes."""
        return self._base.bytes(length)

    @_of_arrays
    def choice(self, a: Any, size: Size = None, replace: bool = True, p: Any = None, axis: int = 0,
               shuffle: bool = True) -> Any:  # fmt: skip
        """Draw elements along an axis, or integers below an int."""
        a = a if np.ndim(a) else operator.index(a)
        if p is not None:
            checked("choice", _is_scale, "probabilities of at least 0", p)
        return self._base.choice(a, shape_of(size), replace, p, axis, shuffle)

    @_of_arrays
    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Return the elements along an axis in random order."""
        return self._base.permutation(x, axis)

    @_of_arrays
    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """Return the elements in random order, with independent orders along an axis."""
        return store(self._base.permuted(x, axis=axis), out, "permuted")

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle the elements along an axis in place."""
        if isinstance(x, list):
            x[:] = [x[k] for k in self._base.permutation(len(x)).tolist()]
        else:
            x[...] = self.permutation(x, axis)


class RandomState(Generator):
    """A generator with the older methods of ``numpy.random.RandomState``."""

    def seed(self, seed: int | None = None) -> None:
        """Restart the sequence."""
        super().__init__(seed)

    def rand(self, *shape: int) -> Any:
        """Draw uniform numbers in [0, 1)."""
        return self.random(shape or None)

    def randn(self, *shape: int) -> Any:
        """Draw normally distributed numbers."""
        return self.standard_normal(shape or None)

    def randint(self, low: Any, high: Any = None, size: Size = None, dtype: Any = int64) -> Any:
        """Draw integers from `low` to `high`, which is excluded, or from 0 to `low`."""
        return self.integers(low, high, size, dtype)

    def random_integers(self, low: int, high: int | None = None, size: Size = None) -> Any:
        """Draw integers from `low` to `high`, which is included, or from 1 to `low`."""
        return self.integers(*((1, low) if high is None else (low, high)), size, endpoint=True)

    def tomaxint(self, size: Size = None) -> Any:
        """Draw non-negative integers of 63 bits."""
        return self.integers(0, np.iinfo(np.int64).max, size, endpoint=True)

    def random_sample(self, size: Size = None) -> Any:
        """Draw uniform numbers in [0, 1)."""
        return self.random(size)


def default_rng(seed: Any = None) -> Generator:
    """Return a `Generator` with a seed; a generator is returned unchanged."""
    return seed if isinstance(seed, Generator) else Generator(seed)


_global = RandomState()


def seed(seed: int | None = None) -> None:
    """Restart the sequence of the functions of this module."""
    _global.seed(seed)


def _function(name: str, method: str) -> Callable[..., Any]:
    def function(*args: Any, **options: Any) -> Any:
        return getattr(_global, method)(*args, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"See `RandomState.{method}`."
    return function


_METHODS = [
    name
    for generator in (ByRejection, Generator, RandomState)
    for name in vars(generator)
    if not name.startswith("_") and name not in ("bit_generator", "integers", "seed", "spawn")
]
_SYNONYMS = {"ranf": "random", "sample": "random"}
globals().update({name: _function(name, name) for name in _METHODS})
globals().update({name: _function(name, method) for name, method in _SYNONYMS.items()})

__all__ = ["BitGenerator", "Generator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "RandomState",
           "SFC64", "SeedSequence", "default_rng", "seed", *_SYNONYMS, *_METHODS]  # fmt: skip


if not TYPE_CHECKING:  # for checkers, other names are errors

    def __getattr__(name: str) -> Any:
        raise unknown_attribute(__name__, name, __all__)
