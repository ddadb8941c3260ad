"""Activation functions: expressions, which fuse with the expressions around them.

Formulas are those of MLX, written so that neither values nor derivatives overflow. Halves are
computed in float32 and rounded once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.functions import elementwise
from metalloid.arrays.functions.elementwise import (
    erf,
    expm1,
    logaddexp,
    maximum,
    minimum,
    tanh,
)
from metalloid.arrays.functions.select import where
from metalloid.arrays.ir.dtypes import int32
from metalloid.arrays.ir.node import apply
from metalloid.arrays.ir.operands import axes_of
from metalloid.arrays.ir.ops import Op
from metalloid.nn.primitives import as_float, call, computed_type, define_composition

_SIGMOID = Op("sigmoid", "1 / (1 + exp(-{0}))", "f", "1 / (1 + exp(-x))", cost=14, max_ulp=3,
              doubles=("exponential",), tangents=("t * (out * (1 - out))",))  # fmt: skip
#: Of `selu`, as in MLX.
_SELU_ALPHA, _SELU_SCALE = 1.67326, 1.0507


def _activation(function: Callable[..., Array]) -> Callable[..., Array]:
    """Bind one primitive for an expression of one array of floats and of numbers."""
    where = function.__name__
    name = f"nn.{where}"

    def compose(x: Array, *params: float) -> Array:
        return function(x.astype(computed_type(x.dtype)), *params).astype(x.dtype)

    define_composition(name, compose)

    @functools.wraps(function)
    def activation(x: Any, *args: Any, **named: Any) -> Array:
        array = as_float(where, x)
        params = tuple(map(float, _bound(function, args, named)))
        return call(name, [array], params, array.dtype, array.shape)

    return activation


def _bound(function: Callable[..., Array], args: Any, named: Any) -> tuple[Any, ...]:
    """The parameters after the first one, in their order."""
    defaults = function.__defaults__ or ()
    names = function.__code__.co_varnames[1 : 1 + len(defaults)]
    values = dict(zip(names, defaults, strict=True))
    if len(args) > len(names) or set(named) - set(names[len(args) :]):
        raise TypeError(
            f"[{function.__name__}] takes an array and {', '.join(names) or 'nothing else'}, got "
            f"{len(args)} more arguments and {sorted(named)}."
        )
    return tuple({**values, **dict(zip(names, args, strict=False)), **named}.values())


def _sigmoid(x: Array) -> Array:
    return Array(apply(_SIGMOID, x.dtype, x._node))


@_activation
def sigmoid(x: Array) -> Array:
    """Return ``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.sigmoid(mtl.asarray([-100.0, 0.0, 100.0]))
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _sigmoid(x)


@_activation
def log_sigmoid(x: Array) -> Array:
    """Return ``log(sigmoid(x))``, without an overflow."""
    return -logaddexp(-x, 0)


@_activation
def softplus(x: Array) -> Array:
    """Return ``log(1 + exp(x))``, without an overflow."""
    return logaddexp(x, 0)


@_activation
def silu(x: Array) -> Array:
    """Return ``x * sigmoid(x)``, also known as Swish.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.silu(mtl.asarray([0.0, 100.0]))
    array([  0., 100.], dtype=float32)
    """
    return x * _sigmoid(x)


@_activation
def relu(x: Array) -> Array:
    """Return ``maximum(x, 0)``.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.relu(mtl.asarray([-1.0, 2.0]))
    array([0., 2.], dtype=float32)
    """
    return maximum(x, 0)


@_activation
def relu2(x: Array) -> Array:
    """Return the square of ``maximum(x, 0)``."""
    return elementwise.square(maximum(x, 0))


@_activation
def relu6(x: Array) -> Array:
    """Return `x` limited to the interval from 0 to 6."""
    return minimum(maximum(x, 0), 6)


@_activation
def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """Return ``maximum(negative_slope * x, x)``."""
    return maximum(negative_slope * x, x)


@_activation
def elu(x: Array, alpha: float = 1.0) -> Array:
    """Return `x` if it is positive, otherwise ``alpha * (exp(x) - 1)``."""
    return _elu(x, alpha)


def _elu(x: Array, alpha: float) -> Array:
    # The exponential of a large number would be infinite, and zero times it no derivative.
    return where(x > 0, x, alpha * expm1(minimum(x, 0)))


@_activation
def selu(x: Array) -> Array:
    """Return `elu` with alpha 1.67326, scaled by 1.0507."""
    return _elu(x, _SELU_ALPHA) * _SELU_SCALE


@_activation
def celu(x: Array, alpha: float = 1.0) -> Array:
    """Return ``maximum(x, 0) + alpha * (exp(minimum(x, 0) / alpha) - 1)``."""
    return maximum(x, 0) + alpha * expm1(minimum(x, 0) / alpha)


@_activation
def gelu(x: Array) -> Array:
    """Return `x` times the distribution function of the normal distribution.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.nn.gelu(mtl.asarray([0.0, 10.0]))
    array([ 0., 10.], dtype=float32)
    """
    return x * (1 + erf(x * math.sqrt(0.5))) * 0.5


@_activation
def gelu_approx(x: Array) -> Array:
    """Return an approximation of `gelu` by tanh, with an absolute error below 0.0005."""
    return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@_activation
def gelu_fast_approx(x: Array) -> Array:
    """Return an approximation of `gelu`, ``x * sigmoid(1.702 * x)``; error below 0.015."""
    return x * _sigmoid(1.702 * x)


@_activation
def mish(x: Array) -> Array:
    """Return ``x * tanh(softplus(x))``."""
    return x * tanh(logaddexp(x, 0))


@_activation
def hardswish(x: Array) -> Array:
    """Return ``x * relu6(x + 3) / 6``."""
    return x * minimum(maximum(x + 3, 0), 6) / 6


@_activation
def hard_tanh(x: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """Return `x` limited to the interval from `min_val` to `max_val`."""
    return minimum(maximum(x, min_val), max_val)


@_activation
def hard_shrink(x: Array, lambd: float = 0.5) -> Array:
    """Return `x`, or 0 if its absolute value is at most `lambd`."""
    return where(abs(x) > lambd, x, 0)


@_activation
def softshrink(x: Array, lambd: float = 0.5) -> Array:
    """Return `x` moved towards 0 by `lambd`, or 0 if its absolute value is at most that."""
    return where(abs(x) > lambd, x - elementwise.sign(x) * lambd, 0)


@_activation
def softsign(x: Array) -> Array:
    """Return ``x / (1 + abs(x))``."""
    return x / (1 + abs(x))


def step(x: Any, threshold: float = 0.0) -> Array:
    """Return 1 where `x` is at least a threshold, otherwise 0, as int32."""
    return (as_float("step", x) >= threshold).astype(int32)


def prelu(x: Any, alpha: Any) -> Array:
    """Return ``maximum(x, 0) + alpha * minimum(x, 0)`` for an array `alpha`."""
    x, slope = as_float("prelu", x), as_float("prelu", alpha)
    return maximum(0, x) + slope * minimum(0, x)


def glu(x: Any, axis: int = -1) -> Array:
    """Return the first half along an axis times the `sigmoid` of the second half.

    Raises
    ------
    ValueError
        If the extent is odd.
    """
    array = as_float("glu", x)
    (along,) = axes_of("glu", axis, array.ndim)
    extent = array.shape[along]
    if extent % 2:
        raise ValueError(f"[glu] the extent of axis {axis} must be even, got shape {array.shape}.")
    lead = (slice(None),) * along
    values = array[(*lead, slice(0, extent // 2))]
    return values * sigmoid(array[(*lead, slice(extent // 2, None))])
