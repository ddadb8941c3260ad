"""Factors multiply to the matrix, have the form that they should, and agree with SciPy's values."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from stacks import ANY, SQUARE, TYPES, adjoint, definite, mapped, near, random, rounded_once, wide

import metalloid as mtl

REAL = {"complex64": "float32", "complex128": "float64"}


def is_orthonormal(columns, dtype):
    columns = wide(columns)
    gram = adjoint(columns) @ columns
    near(gram.astype(dtype), np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), 16)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky(rng, shape, dtype):
    x = definite(rng, shape, dtype)
    lower = mtl.linalg.cholesky(mtl.asarray(x))
    upper = mtl.linalg.cholesky(mtl.asarray(x), upper=True)
    assert lower.dtype == upper.dtype == dtype
    assert (np.triu(lower.numpy(), 1) == 0).all()
    near(upper, adjoint(wide(lower)))
    want = mapped(lambda a: scipy.linalg.cholesky(a, lower=True), x)
    if want is not None and x.size:
        rounded_once(lower, want)
    near((wide(lower) @ adjoint(wide(lower))).astype(dtype), wide(x))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", ANY)
def test_qr(rng, shape, dtype, mode):
    x = random(rng, shape, dtype)
    q, r = result = mtl.linalg.qr(mtl.asarray(x), mode=mode)
    assert result.Q is q
    assert result.R is r
    *stack, rows, columns = shape
    inner = rows if mode == "complete" else min(rows, columns)
    assert (q.shape, r.shape) == ((*stack, rows, inner), (*stack, inner, columns))
    assert q.dtype == r.dtype == dtype
    is_orthonormal(q, dtype)
    assert (np.tril(r.numpy(), -1) == 0).all()
    near((wide(q) @ wide(r)).astype(dtype), wide(x), 8)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", ANY)
def test_svd(rng, shape, dtype, full):
    x = random(rng, shape, dtype)
    u, s, vh = result = mtl.linalg.svd(mtl.asarray(x), full_matrices=full)
    assert result.U is u
    assert result.S is s
    assert result.Vh is vh
    *stack, rows, columns = shape
    small = min(rows, columns)
    assert s.shape == (*stack, small)
    assert u.shape == (*stack, rows, rows if full else small)
    assert vh.shape == (*stack, columns if full else small, columns)
    assert u.dtype == vh.dtype == dtype
    assert s.dtype == REAL.get(dtype, dtype)
    is_orthonormal(u, dtype)
    is_orthonormal(adjoint(wide(vh)), dtype)
    assert (np.diff(s.numpy(), axis=-1) <= 0).all()
    product = (wide(u)[..., :small] * wide(s)[..., None, :]) @ wide(vh)[..., :small, :]
    near(product.astype(dtype), wide(x), 8)
    want = mapped(scipy.linalg.svdvals, x) if x.size else None
    if want is not None:
        rounded_once(s, want)
        rounded_once(mtl.linalg.svdvals(mtl.asarray(x)), want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eigh(rng, shape, dtype):
    x = definite(rng, shape, dtype)
    values, vectors = result = mtl.linalg.eigh(mtl.asarray(x))
    assert result.eigenvalues is values
    assert result.eigenvectors is vectors
    assert values.dtype == REAL.get(dtype, dtype)
    assert vectors.dtype == dtype
    is_orthonormal(vectors, dtype)
    left = wide(x) @ wide(vectors)
    near((wide(vectors) * wide(values)[..., None, :]).astype(dtype), left, 16)
    want = mapped(scipy.linalg.eigvalsh, x) if x.size else None
    for got in (values, mtl.linalg.eigvalsh(mtl.asarray(x))):
        assert got.shape == shape[:-1]
        if want is not None:
            rounded_once(got, want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eig(rng, shape, dtype):
    x = random(rng, shape, dtype)
    values, vectors = result = mtl.linalg.eig(mtl.asarray(x))
    assert result.eigenvalues is values
    assert result.eigenvectors is vectors
    assert values.dtype == vectors.dtype == np.result_type(dtype, "complex64")
    assert (values.shape, vectors.shape) == (shape[:-1], shape)
    near((wide(vectors) * wide(values)[..., None, :]).astype(values.dtype),
         wide(x) @ wide(vectors), 16)  # fmt: skip
    near(np.linalg.norm(wide(vectors), axis=-2).astype(REAL[str(values.dtype)]),
         np.ones(shape[:-1]))  # fmt: skip
    near(mtl.linalg.eigvals(mtl.asarray(x)), wide(values))


def test_eigenvalues_that_are_real_are_complex_all_the_same():
    values = mtl.linalg.eigvals(mtl.asarray([[2.0, 0.0], [0.0, 3.0]]))
    assert values.dtype == mtl.complex64
    assert sorted(values.numpy()) == [2, 3]


@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 2), st.sampled_from(TYPES))
@settings(max_examples=40)
def test_lu(rows, columns, stack, dtype):
    rng = np.random.default_rng(rows * 71 + columns)
    x = random(rng, (*(3,) * stack, rows, columns), dtype)
    p, lower, upper = result = mtl.linalg.lu(mtl.asarray(x))
    assert result.P is p
    assert result.L is lower
    assert result.U is upper
    small = min(rows, columns)
    assert lower.shape == (*x.shape[:-1], small)
    assert upper.shape == (*x.shape[:-2], small, columns)
    assert p.dtype == REAL.get(dtype, dtype)
    assert (np.triu(lower.numpy(), 1) == 0).all()
    assert (np.diagonal(lower.numpy(), axis1=-2, axis2=-1) == 1).all()
    assert (np.abs(lower.numpy()) <= 1 + np.finfo(dtype).eps).all()
    assert (np.tril(upper.numpy(), -1) == 0).all()
    near((wide(p) @ wide(lower) @ wide(upper)).astype(dtype), wide(x), 8 + small)
    if x.size and dtype == "float32":  # of complex numbers LAPACK takes the largest |re| + |im|
        for got, of in ((p, 0), (lower, 1), (upper, 2)):
            near(got, mapped(lambda a, of=of: scipy.linalg.lu(a)[of], x))


def test_lu_of_singular_matrices():
    zeros = mtl.linalg.lu(mtl.zeros((2, 3, 3)))
    assert (zeros.L.numpy() == np.eye(3)).all()
    assert not zeros.U.numpy().any()
    x = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]], np.float32)
    p, lower, upper = mtl.linalg.lu(mtl.asarray(x))
    np.testing.assert_array_equal((p @ lower @ upper).numpy(), x)
    assert upper.numpy()[2, 2] == 0


def test_views_are_decomposed_like_copies(rng):
    x = random(rng, (6, 4, 4), "float32")
    view = mtl.asarray(x)[::-2, ::-1].mT
    copy = np.swapaxes(x[::-2, ::-1], -1, -2)
    np.testing.assert_array_equal(mtl.linalg.svdvals(view), mtl.linalg.svdvals(mtl.asarray(copy)))
