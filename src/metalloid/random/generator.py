"""NumPy's interface to random numbers: an object with a sequence of keys."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.functions.creation import asarray
from metalloid.arrays.functions.searching import take_along_axis
from metalloid.arrays.functions.sorting import argsort
from metalloid.arrays.ir.dtypes import float32, int64, uint64
from metalloid.random import counts, distributions, integers, sampling
from metalloid.random.integers import Shape
from metalloid.random.keys import KeySequence


class Generator:
    """Random number generator with the methods of ``numpy.random.Generator``.

    Every call uses the next key of a sequence. Results are arrays of this package, float32 by
    default. Create it by `default_rng`.

    Parameters
    ----------
    seed : int, optional
        Equal seeds give equal numbers; by default the seed is OS entropy.

    Examples
    --------
    >>> import metalloid as mtl
    >>> rng = mtl.random.default_rng(42)
    >>> rng.random(3)
    array([0.53026086, 0.31336218, 0.90153027], dtype=float32)
    """

    def __init__(self, seed: int | None = None) -> None:
        self._keys = KeySequence(seed)

    def spawn(self, n_children: int) -> list[Generator]:
        """Return new generators, independent of each other and of this one."""
        words = [self._keys.next_words() for _ in range(n_children)]
        return [Generator(high << 32 | low) for high, low in words]

    def random(self, size: Shape = (), dtype: Any = float32) -> Array:
        """Draw uniform numbers in [0, 1)."""
        return distributions.uniform(0, 1, size, dtype, self._keys.next())

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Shape | None = None,
                dtype: Any = float32) -> Array:  # fmt: skip
        """See `metalloid.random.uniform`."""
        return distributions.uniform(low, high, size, dtype, self._keys.next())

    def standard_normal(self, size: Shape = (), dtype: Any = float32) -> Array:
        """Draw normally distributed numbers with mean 0 and standard deviation 1."""
        return distributions.normal(size, dtype, key=self._keys.next())

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Shape | None = None,
               dtype: Any = float32) -> Array:  # fmt: skip
        """See `metalloid.random.normal`."""
        return distributions.normal(size, dtype, loc, scale, self._keys.next())

    def exponential(self, scale: Any = 1.0, size: Shape | None = None,
                    dtype: Any = float32) -> Array:  # fmt: skip
        """See `metalloid.random.exponential`."""
        return distributions.exponential(size, dtype, scale, self._keys.next())

    def standard_exponential(self, size: Shape = (), dtype: Any = float32) -> Array:
        """Draw exponentially distributed numbers with mean 1."""
        return distributions.exponential(size, dtype, key=self._keys.next())

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Shape | None = None,
               dtype: Any = float32) -> Array:  # fmt: skip
        """See `metalloid.random.gumbel`."""
        return distributions.gumbel(size, dtype, loc, scale, self._keys.next())

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Shape | None = None,
                dtype: Any = float32) -> Array:  # fmt: skip
        """See `metalloid.random.laplace`."""
        return distributions.laplace(size, dtype, loc, scale, self._keys.next())

    def integers(self, low: Any, high: Any = None, size: Shape | None = None, dtype: Any = int64,
                 endpoint: bool = False) -> Array:  # fmt: skip
        """Draw integers from `low` to `high`, which is included if `endpoint`.

        With one limit only, the integers are below `low`, starting from 0.
        """
        if high is None:
            low, high = 0, low
        if endpoint:
            high = high + 1
        return integers.randint(low, high, size, dtype, self._keys.next())

    def poisson(self, lam: Any = 1.0, size: Shape | None = None) -> Array:
        """See `metalloid.random.poisson`."""
        return counts.poisson(lam, size, key=self._keys.next())

    def bytes(self, length: int) -> builtins.bytes:
        """Return random bytes."""
        words = integers.bits(-(-length // 8), uint64, self._keys.next()).numpy()
        return words.view(np.uint8)[:length].tobytes()

    def choice(self, a: Any, size: Shape = (), replace: bool = True, p: Any = None,
               axis: int = 0, shuffle: bool = True) -> Array:  # fmt: skip
        """See `metalloid.random.choice`; the order is random regardless of `shuffle`."""
        return sampling.choice(a, size, replace, p, axis, self._keys.next())

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """See `metalloid.random.permutation`."""
        return sampling.permutation(x, axis, self._keys.next())

    def permuted(self, x: Any, *, axis: int | None = None) -> Array:
        """Return the elements in random order, with independent orders along an axis.

        Parameters
        ----------
        axis : int, optional
            By default the flattened elements are permuted.

        Examples
        --------
        >>> import metalloid as mtl
        >>> x = mtl.arange(8).reshape(2, 4)
        >>> mtl.random.default_rng(0).permuted(x, axis=1)
        array([[1, 2, 0, 3],
               [4, 7, 5, 6]], dtype=int64)
        """
        elements = asarray(x)
        if axis is None:
            return self.permutation(elements.reshape(-1)).reshape(elements.shape)
        order = argsort(integers.bits(elements.shape, uint64, self._keys.next()), axis=axis)
        return take_along_axis(elements, order, axis=axis)

    def shuffle(self, x: Array | np.ndarray, axis: int = 0) -> None:
        """Shuffle the elements along an axis in place.

        Parameters
        ----------
        x : Array or numpy.ndarray
            An Array is rebound to a new value; other references to the old one do not change.
        """
        x[...] = self.permutation(x, axis)


def default_rng(seed: int | Generator | None = None) -> Generator:
    """Return a `Generator` with a seed; a generator is returned unchanged.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.default_rng(0).integers(10, size=5)
    array([9, 3, 6, 9, 2], dtype=int64)
    """
    generator: Any = getattr(seed, "generator", None)  # of a bit generator of `metalloid.numpy`
    if generator is not None:
        return generator()  # type: ignore[no-any-return]
    return seed if isinstance(seed, Generator) else Generator(seed)


__all__ = ["Generator", "default_rng"]
