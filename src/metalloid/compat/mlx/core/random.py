"""Random numbers with MLX's keys and bits."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.arrays.ir.node import BUFFER, apply
from metalloid.compat.mlx.core import dtypes
from metalloid.compat.mlx.core.array import array, created, operand, wrap
from metalloid.compat.mlx.core.dtypes import Dtype, as_dtype, bfloat16, dtype_of, float16, float32
from metalloid.compat.mlx.core.ops.shapes import broadcast_shapes, text
from metalloid.compat.mlx.core.ops.wrapping import next_key, normalized_axis, with_stream
from metalloid.random.keys import KEY_WORD, threefry, words_of

Shape = Sequence[int]
_BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))
_LARGEST = float(np.float32(2**32 - 1))


class _State(list[array]):
    """The key of the default sequence, as a list of one array."""

    def __getitem__(self, index: Any) -> Any:
        if not super().__len__():
            self.append(key(time.time_ns()))
        return super().__getitem__(index)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[array]:
        return iter([self[0]])


state = _State()


def seed(seed: int) -> None:
    """Restart the default sequence of keys."""
    state[:] = [key(seed)]


def key(seed: int) -> array:
    """A key for a number."""
    return _key(words_of(int(seed)))


def _key(words: tuple[int, int]) -> array:
    return wrap(mtl.asarray(np.array(words, np.uint32)))


def _next() -> mtl.Array:
    """The next key of the default sequence."""
    current = state[0]._a
    if current._node.kind is BUFFER:  # its words are known: the host is faster than a kernel
        first, second = (int(word) for word in np.asarray(current))
        (a, c), (b, d) = threefry((first, second), (0, 2)), threefry((first, second), (1, 3))
        state[:] = [_key((a, b))]
        return _key((c, d))._a
    keys = _bits((2, 2), state[0])
    state[:] = [wrap(keys[0])]
    return keys[1]


next_key.append(lambda: wrap(_next()))


def _checked_key(value: Any) -> mtl.Array:
    if value is None:
        return _next()
    if not isinstance(value, array):
        raise TypeError(f"incompatible function arguments: {value!r} is no key.")
    if value.dtype is not dtypes.uint32:
        raise ValueError(f"[bits] Expected key type uint32 but received {value.dtype._name}.")
    if value.shape != (2,):
        raise ValueError(f"[bits] Expected key shape (2) but received {text(value.shape)}.")
    return value._a


def _bits(shape: Shape, key: Any) -> mtl.Array:
    """32 random bits for each element, in MLX's order: halves of blocks lie half an array apart."""
    shape = tuple(shape)
    if any(n < 0 for n in shape):
        raise ValueError("[bits] Negative dimensions not allowed.")
    words = _checked_key(key)
    count = math.prod(shape)
    half, odd = divmod(count, 2)
    index = mtl.arange(count, dtype=mtl.int64)
    if odd:
        in_first = index <= half
        first = mtl.where(in_first, index, index - half - 1)
        second = mtl.where(index < half, index + half + 1, mtl.where(index == half, 0, index))
    else:
        in_first = index < half
        first = mtl.where(in_first, index, index - half)
        second = mtl.where(in_first, index + half, index)
    operands = mtl.broadcast_arrays(
        words[0], words[1], first * 2**32 + second, mtl.where(in_first, 0, 1)
    )
    node = apply(KEY_WORD, mtl.uint32, *(x._node for x in operands))
    return mtl.Array(node).reshape(shape)


@with_stream
def split(key: array, num: int = 2) -> array:
    """New keys from a key."""
    return wrap(_bits((num, 2), key))


def _checked_shape(shape: Any, where: str) -> tuple[int, ...]:
    try:
        return (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    except TypeError:
        raise TypeError(
            f"{where}(): incompatible function arguments: {shape!r} is no shape."
        ) from None


def _uniform(low: Any, high: Any, shape: Shape, dtype: Dtype, key: Any) -> mtl.Array:
    if not dtypes.is_float(dtype):
        raise ValueError(
            "[uniform] Can only generate uniform numbers with real floating point type."
        )
    if dtype is dtypes.float64:
        raise ValueError("[uniform] Unsupported type.")
    lo, hi = (operand(v).astype(dtype.numpy) for v in (low, high))
    span = hi - lo
    shape = tuple(shape)
    if broadcast_shapes(shape, span.shape) != shape:
        raise ValueError(
            f"[uniform] Cannot generate random values of shape {text(shape)} from broadcasted "
            f"shape {text(broadcast_shapes(shape, span.shape))}."
        )
    limit = {float16: 1 - 2.0**-11, bfloat16: 1 - 2.0**-8}.get(dtype, _BELOW_ONE)
    unit = mtl.minimum(_bits(shape, key).astype(mtl.float32) / _LARGEST, limit).astype(dtype.numpy)
    return span * unit + lo


@with_stream
def uniform(low: Any = 0, high: Any = 1, shape: Shape = (), dtype: Dtype | None = float32,
            key: array | None = None) -> array:  # fmt: skip
    """Uniform numbers in a half-open interval."""
    return wrap(_uniform(low, high, _checked_shape(shape, "uniform"),
                         as_dtype(dtype or float32, "uniform"), key))  # fmt: skip


def _symmetric(shape: Shape, key: Any) -> mtl.Array:
    return _uniform(-_BELOW_ONE, 1.0, shape, float32, key)


@with_stream
def normal(shape: Shape = (), dtype: Dtype | None = float32, loc: Any = None, scale: Any = None,
           key: array | None = None) -> array:  # fmt: skip
    """Normal numbers."""
    shape, own = _checked_shape(shape, "normal"), as_dtype(dtype or float32, "normal")
    if own is dtypes.complex64:
        pairs = mtl.erfinv(_symmetric((*shape, 2), key))
        samples = pairs[..., 0] + pairs[..., 1] * 1j
        samples = samples if scale is None else operand(scale) * samples
        return wrap(samples if loc is None else operand(loc) + samples)
    if not dtypes.is_float(own):
        raise ValueError("[normal] Only floating point and complex64 types are supported.")
    factor: Any = math.sqrt(2)
    if scale is not None:
        factor = mtl.asarray(factor, own.numpy) * operand(scale).astype(own.numpy)
    samples = factor * mtl.erfinv(_symmetric(shape, key)).astype(own.numpy)
    return wrap(samples if loc is None else operand(loc).astype(own.numpy) + samples)


@with_stream
def multivariate_normal(mean: Any, cov: Any, shape: Shape = (), dtype: Dtype | None = float32,
                        key: array | None = None) -> array:  # fmt: skip
    """Vectors of jointly normal numbers."""
    if dtype not in (None, float32):
        raise ValueError("[multivariate_normal] dtype must be float32.")
    m, c = operand(mean), operand(cov).astype(mtl.float32)
    if m.ndim < 1:
        raise ValueError("[multivariate_normal] mean must have at least one dimension.")
    if c.ndim < 2:
        raise ValueError("[multivariate_normal] cov must have at least two dimensions.")
    if c.shape[-1] != c.shape[-2]:
        raise ValueError("[multivariate_normal] last two dimensions of cov must be equal.")
    if m.shape[-1] != c.shape[-1]:
        raise ValueError("[multivariate_normal] mean and cov must have compatible shapes.")
    batch = broadcast_shapes(c.shape[:-2], m.shape[:-1], tuple(shape))
    left, values, right = mtl.linalg.svd(c)
    root = mtl.matmul(left * mtl.expand_dims(mtl.sqrt(values), -2), right)
    samples = normal((*batch, m.shape[-1]), key=key)._a
    return wrap(m + mtl.matmul(mtl.expand_dims(samples, -2), root).squeeze(-2))


@with_stream
def randint(low: Any, high: Any, shape: Shape = (), dtype: Dtype | None = dtypes.int32,
            key: array | None = None) -> array:  # fmt: skip
    """Integers in a half-open interval."""
    own = as_dtype(dtype or dtypes.int32, "randint")
    if dtypes.is_inexact(own):
        raise ValueError("[randint] randint only accepts integer dtypes and bool.")
    lo, hi = operand(low), operand(high)
    drawn = mtl.floor(_uniform(wrap(lo), wrap(hi), _checked_shape(shape, "randint"), float32, key))
    largest = (hi - mtl.ones((), dtype=hi.dtype)).astype(own.numpy)
    drawn = drawn.astype(own.numpy)
    if own is dtypes.bool_:
        return wrap(mtl.logical_or(mtl.logical_and(drawn, largest), lo.astype(mtl.bool)))
    return wrap(mtl.maximum(mtl.minimum(drawn, largest), lo.astype(own.numpy)))


@with_stream
def bernoulli(p: Any = 0.5, shape: Shape | None = None, key: array | None = None) -> array:
    """Truth values that are true with a probability."""
    chance = operand(p)
    if not dtypes.is_float(dtype_of(chance.dtype)):
        raise ValueError("[bernoulli] bernoulli probability `p` must be a float type.")
    target = chance.shape if shape is None else _checked_shape(shape, "bernoulli")
    if broadcast_shapes(target, chance.shape) != target:
        raise ValueError("[bernoulli] shape of `p` is incompatible with argument `shape`.")
    limit = chance.astype(mtl.float32) * float(np.nextafter(np.float32(_LARGEST), np.float32(1e38)))
    return wrap(_bits(target, key).astype(mtl.float32) < limit)


@with_stream
def truncated_normal(lower: Any, upper: Any, shape: Shape | None = None,
                     dtype: Dtype | None = float32, key: array | None = None) -> array:  # fmt: skip
    """Normal numbers within limits."""
    own = as_dtype(dtype or float32, "truncated_normal")
    if not dtypes.is_float(own):
        raise ValueError("[trunc_normal] trunc_normal only accepts floating point dtypes.")
    lo, hi = (operand(v).astype(own.numpy) for v in (lower, upper))
    target = broadcast_shapes(lo.shape, hi.shape) if shape is None else tuple(shape)
    root = mtl.asarray(math.sqrt(2), own.numpy)
    drawn = _uniform(wrap(mtl.erf(lo / root)), wrap(mtl.erf(hi / root)), target, own, key)
    return wrap(mtl.maximum(mtl.minimum(hi, root * mtl.erfinv(drawn)), lo))


@with_stream
def gumbel(shape: Shape = (), dtype: Dtype | None = float32, key: array | None = None) -> array:
    """Numbers with the Gumbel distribution."""
    own = as_dtype(dtype or float32, "gumbel")
    drawn = _uniform(0.0, 1.0, _checked_shape(shape, "gumbel"), own, key)
    return wrap(-mtl.log(-mtl.log(drawn)))


@with_stream
def laplace(shape: Shape = (), dtype: Dtype | None = float32, loc: float = 0.0, scale: float = 1.0,
            key: array | None = None) -> array:  # fmt: skip
    """Numbers with the Laplace distribution."""
    own = as_dtype(dtype or float32, "laplace")
    if not dtypes.is_float(own):
        raise ValueError("[laplace] Only real floating point types are supported.")
    drawn = _symmetric(_checked_shape(shape, "laplace"), key)
    samples = (mtl.sign(drawn) * mtl.log1p(-mtl.abs(drawn))).astype(own.numpy)
    samples = samples if scale == 1.0 else scale * samples
    return wrap(samples if loc == 0.0 else loc + samples)


@with_stream
def categorical(logits: Any, axis: int = -1, shape: Shape | None = None,
                num_samples: int | None = None, key: array | None = None) -> array:  # fmt: skip
    """Indices that are drawn with the probabilities of logits."""
    x = operand(logits)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"[categorical] Invalid axis {axis} for logits with {x.ndim} dimensions.")
    if shape is not None and num_samples is not None:
        raise ValueError("[categorical] At most one of shape or num_samples can be specified.")
    k = axis % x.ndim
    if num_samples is not None:
        x = mtl.expand_dims(x, -1)
        target = (*x.shape[:k], *x.shape[k + 1 : -1], num_samples)
    else:
        reduced = x.shape[:k] + x.shape[k + 1 :]
        target = reduced if shape is None else tuple(shape)
        if broadcast_shapes(target, reduced) != target:
            raise ValueError(
                f"[categorical] Requested shape {text(target)} is not broadcast compatible with "
                f"reduced logits shape{text(reduced)}."
            )
    count = x.shape[k]
    if count and x.size == count and target:
        return wrap(_by_inverse(x.reshape(count), target, key))
    position = k + len(target) - x.ndim + 1
    drawn = gumbel((*target[:position], count, *target[position:]), key=key)._a
    return wrap(mtl.argmax(drawn + x, axis=position).astype(mtl.uint32))


def _by_inverse(logits: mtl.Array, shape: tuple[int, ...], key: Any) -> mtl.Array:
    """Indices by the inverse of the distribution function."""
    x = logits.astype(mtl.float32)
    top = x.max()
    weights = mtl.where(mtl.isinf(top), (x == top).astype(mtl.float32), mtl.exp(x - top))
    totals = mtl.cumulative_sum(weights)
    before = mtl.concat([mtl.zeros(1, dtype=mtl.float32), totals[:-1]])
    drawn = _uniform(0.0, 1.0, shape, float32, key) * weights.sum()
    rows = mtl.searchsorted(before, drawn.reshape(-1), side="right").reshape(shape)
    return rows.astype(mtl.uint32) - mtl.ones((), dtype=mtl.uint32)


@with_stream
def permutation(x: Any, axis: int = 0, key: array | None = None) -> array:
    """A random order of the numbers below `x`, or of the slices of an array."""
    if isinstance(x, int):
        bits = _bits((x,), key)
        return wrap(mtl.argsort(bits).astype(mtl.uint32))
    a = created(x)
    k = normalized_axis(axis, a.ndim, "permutation")
    order = mtl.argsort(_bits((a.shape[k],), key))
    return wrap(mtl.take(a, order, axis=k))
