"""Distributions by rejection methods. Element i uses the key ``split(key, n)[i]``.

The number of random bits that an element consumes is random.
"""

from __future__ import annotations

from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir.dtypes import DType, int64
from metalloid.arrays.ir.node import apply, broadcast
from metalloid.arrays.ir.operands import to_node
from metalloid.arrays.ir.ops import NO_DERIVATIVE, Op
from metalloid.random.integers import Shape, blocks
from metalloid.random.parameters import parameter, shape_of


def _row(name: str, summary: str, cost: int, parameters: int, *doubles: str) -> Op:
    operands = ", ".join(f"{{{k}}}" for k in range(3 + parameters))
    return Op(name, f"numpy::{name}({operands})", "u", summary, 3 + parameters, cost=cost,
              file="random rejection", doubles=doubles, tangents=NO_DERIVATIVE)  # fmt: skip


_LOG_GAMMA = _row("log_gamma_variate", "The logarithm of a gamma variate", 300, 1, "exponential",
                  "trigonometric")  # fmt: skip
_VON_MISES = _row("von_mises", "An angle about 0", 500, 1, "exponential", "trigonometric",
                  "inverse")  # fmt: skip
_ZIPF = _row("zipf", "A rank", 500, 1, "exponential")
_BINOMIAL = _row("binomial", "A number of successes", 800, 2, "exponential")
_HYPERGEOMETRIC = _row("hypergeometric", "A number of good ones in a sample", 900, 3,
                       "exponential")  # fmt: skip


def _drawn(row: Op, result: DType, dtype: DType, shape: Shape | None, key: Array | None,
           *parameters: Any) -> Array:  # fmt: skip
    where = f"random.{row.name}"
    values = [parameter(where, value, dtype) for value in parameters]
    block = blocks(where, shape_of(where, shape, *values), key)
    nodes = (
        broadcast(to_node(value, where, dtype, block[0].device), block[0].shape) for value in values
    )
    return Array(apply(row, result, *block, *nodes))


def log_gamma(alpha: Any, shape: Shape | None, dtype: DType, key: Array | None = None) -> Array:
    """Draw logarithms of gamma variates of the scale 1, computed in `dtype`."""
    return _drawn(_LOG_GAMMA, dtype, dtype, shape, key, alpha)


def von_mises(kappa: Any, shape: Shape | None, dtype: DType, key: Array | None = None) -> Array:
    """Draw angles in [-pi, pi] about 0 with a concentration, computed in `dtype`."""
    return _drawn(_VON_MISES, dtype, dtype, shape, key, kappa)


def zipf(a: Any, shape: Shape | None, dtype: DType, key: Array | None = None) -> Array:
    """Draw positive integers with probabilities proportional to ``k**-a``, computed in `dtype`."""
    return _drawn(_ZIPF, int64, dtype, shape, key, a)


def binomial(n: Any, p: Any, shape: Shape | None, dtype: DType, key: Array | None = None
             ) -> Array:  # fmt: skip
    """Draw numbers of successes in `n` trials of probability `p`, computed in `dtype`."""
    return _drawn(_BINOMIAL, int64, dtype, shape, key, n, p)


def hypergeometric(good: Any, bad: Any, sample: Any, shape: Shape | None, dtype: DType,
                   key: Array | None = None) -> Array:  # fmt: skip
    """Draw numbers of good ones in samples without replacement, computed in `dtype`."""
    return _drawn(_HYPERGEOMETRIC, int64, dtype, shape, key, good, bad, sample)
