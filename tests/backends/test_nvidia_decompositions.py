"""Solvers and decompositions by cuSOLVER."""

import re

import numpy as np
import pytest
from nvidia_libraries import SHAPES, TYPES, assert_near, on, random, some, wide

import metalloid as mtl


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_solutions_and_inverses(device, rng, dtype, shape):
    x = random(rng, shape, dtype) + 4 * np.eye(shape[-1], dtype=dtype)
    for right in ((6,), (*shape[:-1], 2), (6, 2)):
        y = random(rng, right, dtype)
        got = mtl.linalg.solve(on(device, x), on(device, y)).numpy()
        assert_near(got, np.linalg.solve(wide(x), wide(y)), 32)
    assert_near(mtl.linalg.inv(on(device, x)).numpy(), np.linalg.inv(wide(x)), 32)


@pytest.mark.slow
def test_one_matrix_for_many_right_operands(device, rng):
    x, y = random(rng, (5, 5), "float64") + 3 * np.eye(5), random(rng, (4, 5, 2), "float64")
    got = mtl.linalg.solve(on(device, x), on(device, y)).numpy()
    assert_near(got, np.linalg.solve(x, y), 32)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_determinants(device, rng, dtype, shape):
    x = random(rng, shape, dtype)
    a = on(device, x)
    assert_near(mtl.linalg.det(a).numpy(), np.linalg.det(wide(x)), 32)
    sign, size = mtl.linalg.slogdet(a)
    want = np.linalg.slogdet(wide(x))
    assert_near(sign.numpy(), want.sign, 32)
    assert_near(size.numpy(), want.logabsdet, 64)


@pytest.mark.parametrize("shape", some(1, (2, 7, 4), (3, 6, 6), (6, 6), (7, 4), (4, 7)))
@pytest.mark.parametrize("dtype", TYPES)
def test_triangles(device, rng, dtype, shape):
    x = random(rng, shape, dtype)
    p, lower, upper = (part.numpy() for part in mtl.linalg.lu(on(device, x)))
    assert (p.sum(axis=-1) == 1).all()
    assert (p.sum(axis=-2) == 1).all()
    assert np.array_equal(lower, np.tril(lower))
    assert np.array_equal(upper, np.triu(upper))
    assert np.abs(lower).max() <= 1.5  # LAPACK takes |re| + |im| for the size
    assert_near((wide(p) @ wide(lower) @ wide(upper)).astype(dtype), wide(x), 16)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_cholesky(device, rng, dtype, shape, upper):
    x = random(rng, shape, dtype)
    x = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1], dtype=dtype)
    hidden = np.tril(x) if not upper else np.triu(x)  # the other triangle is not read
    got = mtl.linalg.cholesky(on(device, hidden), upper=upper).numpy()
    assert_near(got, np.linalg.cholesky(wide(x), upper=upper), 16)


@pytest.mark.parametrize("mode", some(1, "complete", "reduced"))
@pytest.mark.parametrize("shape", some(1, (2, 4, 7), (5, 5), (7, 4), (4, 7), (3, 7, 4)))
@pytest.mark.parametrize("dtype", TYPES)
def test_qr(device, rng, dtype, shape, mode):
    x = random(rng, shape, dtype)
    q, r = (part.numpy() for part in mtl.linalg.qr(on(device, x), mode=mode))
    want = np.linalg.qr(x, mode=mode)
    assert q.shape == want.Q.shape
    assert np.array_equal(r, np.triu(r))
    assert_near((wide(q) @ wide(r)).astype(dtype), wide(x), 16)
    unit = np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *[q.shape[-1]] * 2))
    assert_near((np.conj(np.swapaxes(wide(q), -1, -2)) @ wide(q)).astype(dtype), unit, 16)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvalues(device, rng, dtype, shape):
    x = random(rng, shape, dtype)
    x = x + np.conj(np.swapaxes(x, -1, -2))
    lower = on(device, np.tril(x))  # the other triangle is not read
    values, vectors = (part.numpy() for part in mtl.linalg.eigh(lower))
    want = np.linalg.eigvalsh(wide(x))
    assert_near(values, want, 16)
    assert_near((wide(x) @ wide(vectors)).astype(dtype), wide(vectors) * want[..., None, :], 32)
    assert_near(mtl.linalg.eigvalsh(lower).numpy(), want, 16)


@pytest.mark.parametrize("full", some(1, False, True))
@pytest.mark.parametrize("shape", some(1, (3, 4, 7), (5, 5), (7, 4), (4, 7), (2, 7, 4)))
@pytest.mark.parametrize("dtype", TYPES)
def test_singular_values(device, rng, dtype, shape, full):
    x = random(rng, shape, dtype)
    u, s, vh = (part.numpy() for part in mtl.linalg.svd(on(device, x), full_matrices=full))
    want = np.linalg.svd(wide(x), full_matrices=full)
    assert (u.shape, vh.shape) == (want.U.shape, want.Vh.shape)
    assert_near(s, want.S, 16)
    assert_near(mtl.linalg.svdvals(on(device, x)).numpy(), want.S, 16)
    k = min(shape[-2:])
    product = (wide(u)[..., :k] * wide(s)[..., None, :]) @ wide(vh)[..., :k, :]
    assert_near(product.astype(dtype), wide(x), 32)


@pytest.mark.slow
def test_half_floats_and_integers(device, rng):
    x = random(rng, (6, 6), "float16") + 4 * np.eye(6, dtype=np.float16)
    got = mtl.linalg.inv(on(device, x)).numpy()
    assert got.dtype == np.float16
    assert_near(got, np.linalg.inv(wide(x)), 1)
    integers = np.arange(9).reshape(3, 3) + 5 * np.eye(3, dtype=int)
    assert_near(mtl.linalg.det(on(device, integers)).numpy(), np.linalg.det(integers), 8)


@pytest.mark.parametrize("many", some(1, True, False))
@pytest.mark.parametrize(
    ("name", "bad", "fault"),
    [
        ("solve", np.ones((3, 3)), "is singular"),
        ("inv", np.zeros((3, 3)), "is singular"),
        ("cholesky", -np.eye(3), "is not positive definite"),
        ("eigh", np.full((3, 3), np.nan), "has eigenvalues that were not found"),
        ("eigvalsh", np.full((3, 3), np.nan), "has eigenvalues that were not found"),
        ("svd", np.full((3, 3), np.nan), "has singular values that were not found"),
        ("svdvals", np.full((3, 3), np.nan), "has singular values that were not found"),
    ],
)
def test_what_is_wrong_is_said_as_on_the_cpu(device, name, bad, fault, many):
    x = np.stack([np.eye(3), bad, bad]).astype(np.float32) if many else bad.astype(np.float32)
    matrix = r"matrix (1,) of shape (3, 3, 3)" if many else "the matrix of shape (3, 3)"
    said = []
    for where in (device, "cpu"):
        args = [on(where, x)] * (2 if name == "solve" else 1)
        with pytest.raises(
            mtl.linalg.LinAlgError, match=re.escape(f"[{name}] {matrix} {fault}")
        ) as e:
            np.asarray(getattr(mtl.linalg, name)(*args)[0])
        said.append(str(e.value))
    assert said[0] == said[1]


@pytest.mark.slow
def test_a_singular_matrix_has_a_determinant(device):
    a = on(device, np.ones((2, 3, 3), np.float32))
    assert mtl.linalg.det(a).tolist() == [0, 0]
    sign, size = mtl.linalg.slogdet(a)
    assert (sign.tolist(), size.tolist()) == ([0, 0], [-np.inf] * 2)


def test_what_is_decomposed_stays_as_it_was(device, rng):
    x = random(rng, (6, 6), "float32")
    a = on(device, x)
    np.asarray(a)
    for function in (mtl.linalg.inv, mtl.linalg.svdvals, mtl.linalg.eigvalsh, mtl.linalg.det):
        function(a).numpy()
    assert np.array_equal(a.numpy(), x)


def test_calls_and_kernels_are_in_turn(device, rng):
    x = random(rng, (40, 40), "float32") / 40
    a = on(device, x)
    want = wide(x)
    for _ in range(5):
        a = mtl.linalg.inv(a @ a + mtl.eye(40, device=device)) * 2 - 1
        want = np.linalg.inv(want @ want + np.eye(40)) * 2 - 1
    assert_near(a.numpy(), want, 1000)
