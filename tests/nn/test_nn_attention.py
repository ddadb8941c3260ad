"""Attention against double precision, for masks, grouped heads and sinks."""

import ml_dtypes
import numpy as np
import pytest
from derivatives import check_derivatives

import metalloid as mtl
from metalloid import nn
from metalloid.arrays.execution import known_evaluations

_rng = np.random.default_rng(11)
BOUNDS = {np.float32: 2e-6, np.float16: 2**-10, ml_dtypes.bfloat16: 2**-7}
LOWEST = np.finfo(np.float32).min


def exact(q, k, v, scale, mask=None, sinks=None):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    repeats = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, repeats, axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if isinstance(mask, str):
        mask = np.tri(q.shape[2], k.shape[2], k.shape[2] - q.shape[2], dtype=bool)
    if mask is not None:
        scores = np.where(mask, scores, LOWEST) if mask.dtype == bool else scores + mask
    if sinks is not None:
        column = np.broadcast_to(sinks[:, None, None], (*scores.shape[:-1], 1))
        scores = np.concatenate([scores, column], -1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights[..., : k.shape[2]] @ v


def operands(dtype, heads, heads_of_keys, queries, keys, depth, width, batch=2):
    shapes = (heads, queries, depth), (heads_of_keys, keys, depth), (heads_of_keys, keys, width)
    return [_rng.standard_normal((batch, *shape)).astype(dtype) for shape in shapes]


CASES = {
    "one query": ((4, 2, 1, 70, 64, 64), None),
    "one query of many keys": ((4, 2, 1, 300, 80, 40), lambda: _rng.random(300) < 0.6),
    "few queries of many features": ((6, 2, 4, 200, 256, 96), "causal"),
    "one head": ((1, 1, 5, 33, 32, 32), None),
    "odd features": ((2, 1, 3, 40, 20, 12), None),
    "causal": ((4, 4, 37, 37, 64, 64), "causal"),
    "causal after a cache": ((6, 2, 5, 50, 128, 96), "causal"),
    "more queries than keys": ((2, 2, 6, 4, 16, 16), "causal"),
    "selection": ((4, 2, 9, 40, 32, 32), lambda: _rng.random((2, 1, 9, 40)) < 0.6),
    "summand": ((4, 2, 9, 40, 32, 32), lambda: _rng.standard_normal((4, 9, 40))),
    "summand of rows": ((4, 2, 9, 40, 256, 32), lambda: _rng.standard_normal(40)),
}


@pytest.mark.parametrize("has_sinks", [False, True])
@pytest.mark.parametrize("dtype", BOUNDS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sample(2)
def test_values(case, dtype, has_sinks):
    sizes, mask = CASES[case]
    q, k, v = operands(dtype, *sizes)
    if callable(mask):
        mask = mask()
        mask = mask if mask.dtype == bool else mask.astype(dtype)
    sinks = _rng.standard_normal(sizes[0]).astype(dtype) if has_sinks else None
    result = nn.scaled_dot_product_attention(q, k, v, scale=0.125, mask=mask, sinks=sinks)
    assert result.dtype == dtype
    expected = exact(q, k, v, 0.125, mask, sinks)
    assert result.shape == expected.shape
    error = np.abs(np.asarray(result).astype(np.float64) - expected)
    assert error.max() <= BOUNDS[dtype] * max(np.abs(expected).max(), 1)


@pytest.mark.slow
def test_derivatives_and_batches():
    q, k, v = operands(np.float64, 4, 2, 3, 5, 8, 8, batch=1)
    sinks = _rng.standard_normal(4)

    def attention(q, k, v, sinks):
        return nn.scaled_dot_product_attention(q, k, v, scale=0.3, mask="causal", sinks=sinks)

    check_derivatives(attention, q, k, v, sinks)
    q, k, v = (mtl.asarray(x.astype(np.float32)) for x in (q, k, v))
    stack = mtl.stack([q, 2 * q])
    many = mtl.vmap(lambda q: nn.scaled_dot_product_attention(q, k, v, scale=0.3))(stack)
    one = nn.scaled_dot_product_attention(2 * q, k, v, scale=0.3)
    np.testing.assert_allclose(np.asarray(many)[1], np.asarray(one), atol=1e-6)


def test_rows_without_keys():
    q, k, v = operands(np.float32, 1, 1, 2, 3, 8, 8, batch=1)
    mask = np.array([[False] * 3, [True, False, False]])
    result = np.asarray(nn.scaled_dot_product_attention(q, k, v, scale=1.0, mask=mask))
    np.testing.assert_allclose(result[0, 0], [v[0, 0].mean(0), v[0, 0, 0]], rtol=1e-6)


def test_errors():
    q, k, v = operands(np.float32, 3, 2, 2, 3, 8, 8)
    with pytest.raises(ValueError, match="must be a multiple"):
        nn.scaled_dot_product_attention(q, k, v, scale=1.0)
    q = q[:, :2]
    with pytest.raises(ValueError, match="'causal' or an array, got 'left'"):
        nn.scaled_dot_product_attention(q, k, v, scale=1.0, mask="left")
    with pytest.raises(ValueError, match="does not broadcast"):
        nn.scaled_dot_product_attention(q, k, v, scale=1.0, mask=np.ones((2, 4), bool))
    with pytest.raises(ValueError, match="sinks must have shape"):
        nn.scaled_dot_product_attention(q, k, v, scale=1.0, sinks=np.ones(3))


def test_attention_with_a_growing_cache_has_one_plan():
    rng = np.random.default_rng(5)
    shape, used = (1, 2, 40, 32), 0
    caches = [mtl.zeros(shape) + mtl.asarray(0.0) for _ in range(2)]
    mtl.eval(*caches)
    rows = np.zeros((2, *shape))
    plans = set()
    for count in (7, 1, 1, 1, 1, 29):
        new = rng.standard_normal((2, 1, 2, count, 32)).astype(np.float32)
        q = rng.standard_normal((1, 4, count, 32)).astype(np.float32)
        rows[..., used : used + count, :] = new * 2.0
        for cache, values in zip(caches, new, strict=True):
            cache[..., used : used + count, :] = mtl.asarray(values) * 2
        used += count
        k, v = (cache[..., :used, :] for cache in caches)
        mask = "causal" if count > 1 else None
        result = nn.scaled_dot_product_attention(mtl.asarray(q), k, v, scale=0.2, mask=mask)
        del k, v
        values = np.asarray(result)
        del result
        scores = np.einsum("hgqd,hkd->hgqk", q.reshape(2, 2, count, 32) * 0.2, rows[0, 0, :, :used])
        last = np.arange(count)[:, None] + used - count
        weights = np.where(np.arange(used) <= last, np.exp(scores), 0)
        weights /= weights.sum(-1, keepdims=True)
        expected = np.einsum("hgqk,hkd->hgqd", weights, rows[1, 0, :, :used])
        np.testing.assert_allclose(values[0], expected.reshape(4, count, 32), atol=2e-6)
        plans.add(len(known_evaluations.plans))
    if mtl.default_device().memory != "own":
        assert len(plans) == 3  # of seven rows, of one, of 29
