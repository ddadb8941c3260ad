"""Integers of distributions with few values, found in a table of the distribution function.

One uniform number is searched for each integer, where rejection takes several of them and
logarithms. The tables are for parameters that are numbers, in float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metalloid import random as base
from metalloid.arrays.array import Array
from metalloid.arrays.functions import searching
from metalloid.arrays.ir.dtypes import default_float, float64
from metalloid.arrays.ir.host_arrays import table
from metalloid.arrays.ir.operands import is_scalar
from metalloid.runtime.devices.device import Device

#: Maximum number of values; and the probability of those that are left out at both ends, which is
#: below the resolution of a uniform number.
_MAX_VALUES, _NEGLIGIBLE = 2**12, 2.0**-60

#: The smallest value, and the probability of being at most it, and each of those that follow.
Table = tuple[int, np.ndarray]


def drawn(name: str, generator: base.Generator, shape: tuple[int, ...], *parameters: Any
          ) -> Array | None:  # fmt: skip
    """Draw integers by the table of a distribution; None if it has none for the parameters."""
    if default_float() != float64 or not all(map(is_scalar, parameters)):
        return None
    entry = _TABLES[name](*map(float, parameters))
    if entry is None:
        return None
    first, _ = entry
    uniform = generator.random(shape, float64)
    limits = _limits(name, tuple(map(float, parameters)), uniform.device)
    return searching.searchsorted(limits, uniform, side="right") + first


@functools.lru_cache(maxsize=256)
def _limits(name: str, parameters: tuple[float, ...], device: Device) -> Array:
    """The distribution function of a table, but for its last number."""
    entry = _TABLES[name](*parameters)
    assert entry is not None
    return Array(table(entry[1][:-1], device))


def _tabulated(first: int, ratios: np.ndarray) -> Table:
    """The table of probabilities with given ratios of each to the one before it."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    start = int(np.searchsorted(np.cumsum(chances), _NEGLIGIBLE, "right"))
    rest = int(np.searchsorted(np.cumsum(chances[::-1]), _NEGLIGIBLE, "right"))
    return first + start, np.cumsum(chances[start : len(chances) - rest])


@functools.lru_cache(maxsize=256)
def _hypergeometric(good: float, bad: float, sample: float) -> Table | None:
    first, last = max(0.0, sample - bad), min(good, sample)
    if last - first >= _MAX_VALUES or any(n % 1 for n in (good, bad, sample)):
        return None
    k = np.arange(first, last)
    ratios = (good - k) * (sample - k) / ((k + 1) * (bad - sample + k + 1))
    return _tabulated(int(first), ratios)


@functools.lru_cache(maxsize=256)
def _binomial(n: float, p: float) -> Table | None:
    if n >= _MAX_VALUES or n % 1 or not 0 < p < 1:
        return None
    k = np.arange(n)
    return _tabulated(0, (n - k) / (k + 1) * (p / (1 - p)))


@functools.lru_cache(maxsize=256)
def _poisson(mean: float) -> Table | None:
    values = mean + 13 * math.sqrt(mean) + 50  # beyond which the probability is negligible
    if mean <= 0 or values > _MAX_VALUES:
        return None
    return _tabulated(0, mean / np.arange(1, int(values)))


@functools.lru_cache(maxsize=256)
def _negative_binomial(n: float, p: float) -> Table | None:
    # Ratios approach 1 - p from above, or from below if n is less than 1.
    k = np.arange(_MAX_VALUES - 1)
    ratios = (k + n) / (k + 1) * (1 - p)
    is_short = p < 1 and np.log(ratios).sum() + math.log(_MAX_VALUES) < math.log(_NEGLIGIBLE) - 10
    return _tabulated(0, ratios) if is_short and ratios[-1] < 0.9999 else None


@functools.lru_cache(maxsize=256)
def _logseries(p: float) -> Table | None:
    if not 0 < p < 1 or _MAX_VALUES * math.log(p) > math.log(_NEGLIGIBLE) - 10:
        return None
    k = np.arange(1, _MAX_VALUES)
    return _tabulated(1, p * k / (k + 1))


_TABLES: dict[str, Callable[..., Table | None]] = {
    "binomial": _binomial,
    "hypergeometric": _hypergeometric,
    "logseries": _logseries,
    "negative_binomial": _negative_binomial,
    "poisson": _poisson,
}
