"""Solutions, inverses and determinants against SciPy's in double precision."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from stacks import ANY, SQUARE, TYPES, invertible, mapped, near, random, rounded_once, wide

import metalloid as mtl

REAL = {"complex64": "float32", "complex128": "float64"}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_determinants(rng, shape, dtype):
    x = invertible(rng, shape, dtype)
    det = mtl.linalg.det(mtl.asarray(x))
    sign, size = result = mtl.linalg.slogdet(mtl.asarray(x))
    assert result.sign is sign
    assert result.logabsdet is size
    assert det.dtype == sign.dtype == dtype
    assert size.dtype == REAL.get(dtype, dtype)
    assert det.shape == sign.shape == size.shape == shape[:-2]
    want = mapped(scipy.linalg.det, x)
    if want is not None:
        rounded_once(det, want)
        near(sign, want / np.abs(want))
        near(size, np.log(np.abs(want)), 8)


def test_determinant_of_a_singular_matrix():
    sign, size = mtl.linalg.slogdet(mtl.zeros((2, 2)))
    assert (float(sign), float(size)) == (0, -np.inf)
    assert float(mtl.linalg.det(mtl.zeros((2, 2)))) == 0


def test_a_determinant_beyond_the_type():
    x = 1e30 * mtl.eye(4)
    assert float(mtl.linalg.det(x)) == np.inf
    assert float(mtl.linalg.slogdet(x).logabsdet) == pytest.approx(120 * np.log(10), rel=1e-7)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_inverse(rng, shape, dtype):
    x = invertible(rng, shape, dtype)
    got = mtl.linalg.inv(mtl.asarray(x))
    assert (got.dtype, got.shape) == (dtype, shape)
    want = mapped(scipy.linalg.inv, x) if x.size else None
    if want is not None:
        rounded_once(got, want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("a", "b"), [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (3, 4)),
    ((4, 1, 3, 3), (2, 3, 1)), ((3, 3), (2, 3, 0)), ((0, 0), (0,)), ((0, 3, 3), (3, 2)),
])  # fmt: skip
def test_solve(rng, a, b, dtype):
    x1, x2 = invertible(rng, a, dtype), random(rng, b, dtype)
    got = mtl.linalg.solve(mtl.asarray(x1), mtl.asarray(x2))
    assert got.dtype == dtype
    matrix = x2[:, None] if x2.ndim == 1 else x2
    stack = np.broadcast_shapes(a[:-2], matrix.shape[:-2])
    want = np.zeros((*stack, *matrix.shape[-2:]), np.complex128)
    left = np.broadcast_to(wide(x1), (*stack, *a[-2:]))
    right = np.broadcast_to(wide(matrix), want.shape)
    for k in np.ndindex(stack):
        if right[k].size:
            want[k] = scipy.linalg.solve(left[k], right[k])
    if np.dtype(dtype).kind == "f":
        want = want.real
    rounded_once(got, want[..., 0] if x2.ndim == 1 else want)


def test_types_of_a_system_are_promoted(rng):
    a, b = invertible(rng, (3, 3), "float32"), random(rng, (3,), "complex128")
    assert mtl.linalg.solve(mtl.asarray(a), mtl.asarray(b)).dtype == mtl.complex128
    assert mtl.linalg.solve(mtl.asarray(a), mtl.asarray([1, 2, 3])).dtype == mtl.float32
    assert mtl.linalg.solve(mtl.asarray(a, dtype=mtl.float16), mtl.ones(3)).dtype == mtl.float32


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", ANY)
def test_pseudo_inverse(rng, shape, dtype):
    x = random(rng, shape, dtype)
    got = mtl.linalg.pinv(mtl.asarray(x))
    assert got.dtype == dtype
    assert got.shape == (*shape[:-2], shape[-1], shape[-2])
    want = mapped(scipy.linalg.pinv, x) if x.size else None
    if want is not None:
        rounded_once(got, want)


def test_tolerances(rng):
    x = mtl.asarray(np.diag([1.0, 1e-3, 1e-9]).astype(np.float32)) * mtl.ones((2, 1, 1))
    assert mtl.linalg.matrix_rank(x).tolist() == [2, 2]
    assert mtl.linalg.matrix_rank(x, rtol=1e-2).tolist() == [1, 1]
    assert mtl.linalg.matrix_rank(x, rtol=mtl.asarray([1e-2, 1e-12])).tolist() == [1, 3]
    got = mtl.linalg.pinv(x, rtol=mtl.asarray([1e-2, 1e-5])).numpy()
    np.testing.assert_allclose(got[0], np.diag([1, 0, 0]), rtol=1e-6)
    np.testing.assert_allclose(got[1], np.diag([1, 1e3, 0]), rtol=1e-6)
    np.testing.assert_allclose(mtl.linalg.pinv(x, rtol=0.5).numpy()[1], np.diag([1, 0, 0]))


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.sampled_from(TYPES))
@settings(max_examples=40)
def test_rank(rows, columns, rank, dtype):
    rng = np.random.default_rng(rank)
    rank = min(rank, rows, columns)
    x = random(rng, (2, rows, rank), dtype) @ random(rng, (2, rank, columns), dtype)
    got = mtl.linalg.matrix_rank(mtl.asarray(x))
    assert got.dtype == mtl.int64
    assert got.tolist() == [rank, rank]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("a", "b"), [
    ((5, 3), (5,)), ((3, 5), (3, 2)), ((4, 4), (4, 1)), ((2, 5, 3), (5, 2)), ((2, 1, 3, 2), (3, 3, 1)),
    ((0, 3), (0, 2)), ((3, 0), (3,)),
])  # fmt: skip
def test_least_squares(rng, a, b, dtype):
    x1, x2 = random(rng, a, dtype), random(rng, b, dtype)
    got = mtl.linalg.lstsq(mtl.asarray(x1), mtl.asarray(x2))
    assert got.solution.dtype == dtype
    assert got.residuals.dtype == got.singular_values.dtype == REAL.get(dtype, dtype)
    matrix = x2[:, None] if x2.ndim == 1 else x2
    stack = np.broadcast_shapes(a[:-2], matrix.shape[:-2])
    left = np.broadcast_to(wide(x1), (*stack, *a[-2:]))
    right = np.broadcast_to(wide(matrix), (*stack, *matrix.shape[-2:]))
    solution = got.solution.numpy().reshape(*stack, a[-1], -1 if x1.size else right.shape[-1])
    residuals = got.residuals.numpy().reshape(*stack, right.shape[-1])
    for k in np.ndindex(stack):
        want, *_ = np.linalg.lstsq(left[k], right[k], rcond=None)
        rounded_once(solution[k], want)
        distance = np.linalg.norm(left[k] @ want - right[k], axis=0) ** 2
        np.testing.assert_allclose(residuals[k], distance, rtol=1e-5, atol=1e-20)
    assert got.rank.shape == a[:-2]
    assert (got.rank.numpy() == min(a[-2:])).all()
    rounded_once(got.singular_values, np.linalg.svd(wide(x1), compute_uv=False))


def test_least_squares_without_full_rank_is_the_shortest(rng):
    x = np.ones((4, 3), np.float32)
    got = mtl.linalg.lstsq(mtl.asarray(x), mtl.asarray([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(got.solution.numpy(), [2.5 / 3] * 3, rtol=1e-6)
    assert int(got.rank) == 1
    assert float(got.residuals) == pytest.approx(5, rel=1e-6)
    assert int(mtl.linalg.lstsq(mtl.eye(2) + 0.5, mtl.ones(2), rtol=0.9).rank) == 1
