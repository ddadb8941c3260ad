"""Matrices with fewer columns than a simdgroup has lanes, against NumPy in float64."""

import numpy as np
import pytest

import metalloid as mtl

RNG = np.random.default_rng(26)


def standardised(xp, x):
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


@pytest.mark.parametrize("columns", [2, 3, 7, 10, 16, 31, 32, 33, 63])
@pytest.mark.sample(1)
def test_columns_of_few(columns):
    rows = 2**16 // columns + 41
    x = RNG.standard_normal((rows, columns)).astype(np.float32)
    own, exact = mtl.asarray(x), x.astype(np.float64)
    eager = np.asarray(standardised(mtl, own))
    np.testing.assert_allclose(eager, standardised(np, exact), rtol=2e-5, atol=2e-5)
    compiled = mtl.compile(lambda x: standardised(mtl, x))
    np.testing.assert_array_equal(np.asarray(compiled(own)), eager)
    np.testing.assert_allclose(np.asarray(own.sum(axis=0)), exact.sum(0), rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(np.asarray(own.max(axis=0)), x.max(0))
    x[rows // 2 :] = np.round(x[rows // 2 :] * 2)  # ties
    np.testing.assert_array_equal(np.asarray(mtl.argmin(mtl.asarray(x), axis=0)), x.argmin(0))
    deviation = np.square(exact - exact[0]).sum(0)
    np.testing.assert_allclose(np.asarray(((own - own[0]) ** 2).sum(axis=0)), deviation, rtol=1e-5)


@pytest.mark.parametrize("rows", [16_385, 16_384, 16_381])
@pytest.mark.sample(1)
def test_chunks_of_any_length(rows):
    x = RNG.integers(-9, 9, (rows, 12)).astype(np.int32)
    own = mtl.asarray(x)
    np.testing.assert_array_equal(np.asarray(own.sum(axis=0)), x.sum(0))
    np.testing.assert_array_equal(
        np.asarray(mtl.sum(own * own[:, :1], axis=0)), (x * x[:, :1]).sum(0)
    )
    np.testing.assert_array_equal(np.asarray(own[::-1, ::2].sum(axis=0)), x[::-1, ::2].sum(0))
    np.testing.assert_array_equal(np.asarray(own.T.reshape((12, rows)).sum(axis=1)), x.sum(0))


@pytest.mark.parametrize("columns", [2, 5, 16, 40, 56, 63])
@pytest.mark.parametrize("rows", [7, 900])
@pytest.mark.sample(1)
def test_each_row_with_the_same_operand(rows, columns):
    x = RNG.random((3, rows, columns), np.float32) + 1
    own, exact = mtl.asarray(x), x.astype(np.float64)
    shared, scale = own[0, 0], own[:, :, :1]
    got = (own - mtl.sqrt(shared)) * scale + own[:, :1] / own[1, 2], own[0] - shared
    want = (exact - np.sqrt(exact[0, 0])) * exact[:, :, :1] + exact[:, :1] / exact[1, 2]
    np.testing.assert_allclose(np.asarray(got[0]), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(got[1]), exact[0] - exact[0, 0], rtol=1e-6, atol=1e-6)
    strided = own[:, ::2, 1:] + own[0, 0, 1:]
    np.testing.assert_allclose(np.asarray(strided), exact[:, ::2, 1:] + exact[0, 0, 1:], rtol=1e-6)
    order = mtl.asarray(np.arange(columns)[::-1].copy())
    np.testing.assert_allclose(
        np.asarray(own[0] * own[0][:, order] + own[1, 1][order]),
        exact[0] * exact[0, :, ::-1] + exact[1, 1, ::-1], rtol=1e-6,
    )  # fmt: skip


def test_what_all_rows_share_is_computed_before_the_loop():
    x = mtl.asarray(np.ones((1000, 16), np.float32))
    text = (x - mtl.exp(mtl.asarray(np.ones(16, np.float32)))).msl()
    if not x.device.traits.is_simt:
        body = text[text.index("kernel void") :]
        assert 0 < body.index("exp(v") < body.index("for (")
