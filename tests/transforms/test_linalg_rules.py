"""Derivatives and batching of linear algebra."""

import numpy as np
import pytest
from derivatives import check_derivatives, check_vmap, like, random

import metalloid as mtl
from metalloid import TraceError

la = mtl.linalg
KINDS = pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
#: Each function compiles kernels of its own, so that most are left to the long run.
FAST = ("det", "eigvalsh", "cholesky")


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def square(*stack, is_complex=False):
    """Well conditioned, with eigenvalues that are apart."""
    x = random(*stack, 3, 3, is_complex=is_complex)
    return x / 4 + np.diag([1.0, 2.0, 3.5])


def definite(*stack, is_complex=False):
    x = square(*stack, is_complex=is_complex)
    return x @ adjoint(x) + np.eye(3)


def hermitian_directions(*points):
    return [(d + adjoint(d)) / 2 for d in map(like, points)]


def values_and_projectors(x):
    """The projectors, which are unique: products of eigenvectors with themselves."""
    values, vectors = la.eigh(x)
    return values, vectors[..., :, None, :] * mtl.conj(vectors)[..., None, :, :]


def triples(x):
    """Singular values, and products of singular vectors that do not depend on their factors."""
    u, s, vh = la.svd(x, full_matrices=False)
    return s, mtl.abs(u) ** 2, mtl.abs(vh) ** 2, (u / s[..., None, :]) @ vh


#: Functions of a square matrix.
SQUARE = {
    "det": la.det,
    "slogdet": lambda x: list(la.slogdet(x)),
    "inv": la.inv,
    "pinv": la.pinv,
    "lu": lambda x: list(la.lu(x)),
    "qr": lambda x: list(la.qr(x)),
    "qr complete": lambda x: list(la.qr(x, mode="complete")),
    "svd": triples,
    "svdvals": la.svdvals,
    "eigvals": la.eigvals,
    "eig": lambda x: list(la.eig(x)),
    "nuclear norm": lambda x: la.matrix_norm(x, ord="nuc"),
    "spectral norm": lambda x: la.matrix_norm(x, ord=2),
    "smallest": lambda x: la.matrix_norm(x, ord=-2),
    "frobenius": la.matrix_norm,
    "column sums": lambda x: la.matrix_norm(x, ord=1),
    "vector norm": lambda x: la.vector_norm(x, axis=-1),
    "3-norm": lambda x: la.vector_norm(x, ord=3),
    "cube": lambda x: la.matrix_power(x, 3),
    "inverse square": lambda x: la.matrix_power(x, -2),
    "trace": la.trace,
    "diagonal": lambda x: la.diagonal(x, offset=1),
}
HERMITIAN = {
    "cholesky": la.cholesky,
    "cholesky upper": lambda x: la.cholesky(x, upper=True),
    "eigh": values_and_projectors,
    "eigvalsh": la.eigvalsh,
}
RECTANGULAR = {
    "pinv": la.pinv,
    "svd": triples,
    "svdvals": la.svdvals,
    "lu": lambda x: list(la.lu(x)),
}
TWO = {
    "solve": la.solve,
    "solve for a vector": lambda a, b: la.solve(a, b[0, :, 0]),
    "solve a stack": lambda a, b: la.solve(a, mtl.stack([b, b * 2])[:, None]),
    "lstsq": lambda a, b: list(la.lstsq(a[..., :2], b)),
    "lstsq, underdetermined": lambda a, b: list(la.lstsq(a[..., :2, :], b[..., :2, :])),
    "cross": lambda a, b: la.cross(a, b.mT),
    "outer": lambda a, b: la.outer(a[0, 0], b[0, :, 0]),
    "tensordot": lambda a, b: la.tensordot(a[0], b[0], axes=1),
}


@pytest.mark.parametrize("name", FAST)
def test_first_derivative_and_vmap(name):
    function, x = (SQUARE | HERMITIAN)[name], definite()
    check_derivatives(function, x, directions=hermitian_directions(x), order=1)
    check_vmap(function, x)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", SQUARE)
def test_of_square_matrices(name, is_complex):
    check_derivatives(SQUARE[name], square(2, is_complex=is_complex))


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", HERMITIAN)
def test_of_hermitian_matrices(name, is_complex):
    x = definite(2, is_complex=is_complex)
    check_derivatives(HERMITIAN[name], x, directions=hermitian_directions(x))


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
@pytest.mark.parametrize("name", RECTANGULAR)
def test_of_rectangular_matrices(name, shape, is_complex):
    check_derivatives(RECTANGULAR[name], random(*shape, is_complex=is_complex))


@pytest.mark.slow
@KINDS
def test_qr_of_tall_matrices(is_complex):
    check_derivatives(lambda x: list(la.qr(x)), random(2, 4, 3, is_complex=is_complex))


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", TWO)
def test_of_two_operands(name, is_complex):
    a, b = square(1, is_complex=is_complex), random(1, 3, 2, is_complex=is_complex)
    if name == "cross":
        b = random(1, 3, 3, is_complex=is_complex)
    check_derivatives(TWO[name], a, b)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", [*SQUARE, *HERMITIAN])
def test_vmap(name, is_complex):
    x = definite(is_complex=is_complex)
    check_vmap((SQUARE | HERMITIAN)[name], x)


@pytest.mark.slow
@pytest.mark.parametrize("name", TWO)
def test_vmap_of_two_operands(name):
    b = random(1, 3, 3 if name == "cross" else 2)
    check_vmap(TWO[name], definite(1), b)


def test_equations():
    a, b = definite(), random(3, 2)
    check_derivatives(la.solve, a, b, order=1)
    stacked = mtl.vmap(la.solve, in_axes=(None, 0))(mtl.asarray(a), mtl.asarray(np.stack([b, -b])))
    expected = np.linalg.solve(a, b)
    np.testing.assert_allclose(np.asarray(stacked), [expected, -expected], rtol=1e-12)


def test_determinant_of_singular_matrices():
    x = np.array([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    gradient = mtl.grad(lambda a: la.det(a).sum())(mtl.asarray(x))
    cofactors = [[[4, -2], [-2, 1]], [[0, 0], [-1, 0]], [[0, 0], [0, 0]]]
    np.testing.assert_allclose(np.asarray(gradient), cofactors, atol=1e-12)


def test_norms_of_zero_have_the_derivative_zero():
    x = mtl.asarray([[0.0, 0.0], [3.0, 4.0]])
    gradient = mtl.grad(lambda a: la.vector_norm(a, axis=1).sum())(x)
    np.testing.assert_allclose(np.asarray(gradient), [[0, 0], [0.6, 0.8]], rtol=1e-6)
    assert not np.asarray(mtl.grad(la.matrix_norm)(mtl.zeros((2, 2)))).any()


@pytest.mark.parametrize(
    ("function", "shape", "message"),
    [
        (lambda x: la.qr(x).R, (2, 3), r"\[qr\] .*'reduced' of matrices of shape \(2, 3\)"),
        (lambda x: la.qr(x, mode="complete").R, (3, 2), r"\[qr\] .*'complete'.*\(3, 2\)"),
        (lambda x: la.svd(x).S, (3, 2), r"\[svd\] .*\(3, 2\).*full_matrices=False"),
    ],
)
def test_decompositions_without_a_derivative(function, shape, message):
    with pytest.raises(TraceError, match=message):
        mtl.grad(lambda x: function(x).sum())(mtl.ones(shape))


def test_gradients_of_half_floats_are_half_floats():
    x = mtl.asarray([[2.0, 1.0], [0.0, 4.0]], dtype="float16")
    gradient = mtl.grad(lambda a: la.inv(a).sum())(x)
    assert gradient.dtype == np.float16
