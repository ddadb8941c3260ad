"""Reductions of short rows, which each thread keeps in registers, against NumPy in float64."""

import numpy as np
import pytest

import metalloid as mtl

RNG = np.random.default_rng(8)


def softmax(xp, x):
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


@pytest.mark.parametrize("length", [1, 2, 7, 10, 15, 16, 17])
@pytest.mark.sample(1)
def test_rows_up_to_the_limit(length):
    x = RNG.standard_normal((100, length)).astype(np.float32)
    own = mtl.asarray(x)
    np.testing.assert_allclose(
        np.asarray(softmax(mtl, own)), softmax(np, x.astype(np.float64)), rtol=4e-6
    )
    results = own.argmax(axis=1), own.min(axis=1), own.var(axis=1)
    mtl.eval(*results)
    np.testing.assert_array_equal(np.asarray(results[0]), x.argmax(axis=1))
    np.testing.assert_array_equal(np.asarray(results[1]), x.min(axis=1))
    np.testing.assert_allclose(np.asarray(results[2]), x.astype(float).var(axis=1), rtol=2e-6)


def test_rows_along_two_axes_and_strides():
    x = RNG.standard_normal((64, 5, 6, 2)).astype(np.float32)
    own = mtl.asarray(x)
    got = mtl.sum(own[:, ::2, 1:4], axis=(1, 2)) + mtl.sum(own[:, :3, :3], axis=(1, 2))
    want = x[:, ::2, 1:4].astype(float).sum((1, 2)) + x[:, :3, :3].astype(float).sum((1, 2))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)


def test_the_row_is_read_before_it_is_overwritten():
    x = mtl.asarray(np.arange(640, dtype=np.float32).reshape(64, 10))
    exact = np.asarray(x) / np.asarray(x).sum(axis=1, keepdims=True)
    x /= x.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(x), exact, rtol=1e-6)


def test_loops_over_a_short_row_are_written_out():
    x = mtl.zeros((100, 10)) + mtl.asarray(np.ones((100, 10), np.float32))
    text = softmax(mtl, x).msl()
    assert "for (" not in text[text.index("kernel void") :] or x.device.traits.is_simt
    assert text.count("exp(v") >= 10 or x.device.traits.is_simt


@pytest.mark.parametrize(("count", "length"), [(8, 16), (3, 5), (16, 2)])
@pytest.mark.sample(1)
def test_rows_that_share_operands(count, length):
    x = RNG.standard_normal((77, length)).astype(np.float32)
    c = RNG.standard_normal((count, length)).astype(np.float32)
    own = mtl.asarray(x), mtl.asarray(c)

    def distances(xp, x, c):
        return xp.sum((x[:, None, :] - c[None, :, :]) ** 2, axis=2)

    exact = distances(np, x.astype(np.float64), c.astype(np.float64))
    compiled = mtl.compile(lambda x, c: mtl.argmin(distances(mtl, x, c), axis=1))
    np.testing.assert_allclose(np.asarray(distances(mtl, *own)), exact, rtol=2e-6)
    np.testing.assert_array_equal(np.asarray(compiled(*own)), exact.argmin(axis=1))
    shifted = mtl.exp(own[0][:, None] - own[1]) / mtl.sum(
        mtl.exp(own[0][:, None] - own[1]), axis=2, keepdims=True
    )
    e = np.exp(x[:, None].astype(np.float64) - c)
    np.testing.assert_allclose(np.asarray(shifted), e / e.sum(2, keepdims=True), rtol=4e-6)


@pytest.mark.parametrize("length", [17, 32, 64, 100])
@pytest.mark.sample(2)
def test_eight_rows_of_a_simdgroup(length):
    x = RNG.standard_normal((3, 45, length + 1)).astype(np.float32)
    w = RNG.standard_normal(length).astype(np.float32)
    own, weights = mtl.asarray(x)[:, 1:, :length], mtl.asarray(w)
    exact = x[:, 1:, :length].astype(np.float64)
    got = (own * weights + own[:, :, :1]).sum(axis=2) - own[:, :, 3], own.max(axis=2) > 2
    want = (exact * w + exact[:, :, :1]).sum(2) - exact[:, :, 3]
    np.testing.assert_allclose(np.asarray(got[0]), want, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(np.asarray(got[1]), exact.max(2) > 2)
    np.testing.assert_array_equal(np.asarray(own[:, :7].sum(axis=2)), own.sum(axis=2)[:, :7])
    np.testing.assert_allclose(np.asarray(own[0] @ weights), exact[0] @ w, rtol=1e-5, atol=1e-4)
