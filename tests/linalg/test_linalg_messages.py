"""Messages of linear algebra about operands that it cannot take, word for word."""

import numpy as np
import pytest
from stacks import steps_of

import metalloid as mtl

la = mtl.linalg
AT_ONCE = {
    "a vector": (lambda: la.det(mtl.ones(3)), ValueError,
        "[det] expected matrices along the last two axes, got shape (3,)."),
    "not square": (lambda: la.inv(mtl.ones((2, 2, 3))), ValueError,
        "[inv] expected square matrices, got shape (2, 2, 3)."),
    "not square, solved": (lambda: la.solve(mtl.ones((3, 2)), mtl.ones(3)), ValueError,
        "[solve] expected square matrices, got shape (3, 2). See lstsq."),
    "rows that differ": (lambda: la.solve(mtl.ones((3, 3)), mtl.ones((2, 1))), ValueError,
        "[solve] incompatible shapes (3, 3) and (2, 1)."),
    "stacks that differ": (lambda: la.solve(mtl.ones((2, 3, 3)), mtl.ones((4, 3, 1))), ValueError,
        "[solve] the shapes (2,) and (4,) do not broadcast."),
    "no numbers": (lambda: la.cholesky("text"), TypeError,
        "[cholesky] expected numeric data, got str: 'text'."),
    "mode of qr": (lambda: la.qr(mtl.ones((2, 2)), mode="full"), ValueError,
        "[qr] mode must be 'reduced' or 'complete', got 'full'."),
    "order": (lambda: la.matrix_norm(mtl.ones((2, 2)), ord=3), ValueError,
        "[matrix_norm] ord must be 'fro', 'nuc', 1, -1, 2, -2, inf, -inf or None, got 3."),
    "order of a vector": (lambda: la.norm(mtl.ones(2), "nuc"), ValueError,
        "[norm] 'nuc' is a matrix norm and requires two axes; got axis None of shape (2,)."),
    "axes of a norm": (lambda: la.norm(mtl.ones((2, 2, 2)), 1), ValueError,
        "[norm] expected one or two axes, got 3 of shape (2, 2, 2). Pass axis."),
    "nothing to choose from": (lambda: la.vector_norm(mtl.zeros(0), ord=-mtl.inf), ValueError,
        "[min] there are no elements along the axes of shape (0,)."),
    "tolerance": (lambda: la.pinv(mtl.ones((2, 2)), rtol=mtl.asarray(1)), TypeError,
        "[pinv] rtol must be a float or float array, got int64."),
    "tolerances": (lambda: la.matrix_rank(mtl.ones((3, 2, 2)), rtol=mtl.ones(2)), ValueError,
        "[matrix_rank] the shapes (2,) and (3,) do not broadcast."),
    "too many tolerances": (lambda: la.matrix_rank(mtl.ones((2, 2)), rtol=mtl.ones(2)), ValueError,
        "[matrix_rank] rtol has shape (2,), the stack of matrices ()."),
    "vectors of two": (lambda: la.cross(mtl.ones(2), mtl.ones(2)), ValueError,
        "[cross] expected 3 elements along axis -1, got shapes (2,) and (2,)."),
    "axis of cross": (lambda: la.cross(mtl.ones((2, 3)), mtl.ones(3), axis=-2), ValueError,
        "[cross] invalid axis -2 for shapes (2, 3) and (3,)."),
    "outer of matrices": (lambda: la.outer(mtl.ones((2, 2)), mtl.ones(2)), ValueError,
        "[outer] Input arrays must be one-dimensional, got shapes (2, 2) and (2,)."),
    "diagonal of a vector": (lambda: la.diagonal(mtl.ones(2)), ValueError,
        "[diagonal] expected matrices along the last two axes, got shape (2,)."),
    "trace of a vector": (lambda: la.trace(mtl.ones(2)), ValueError,
        "[trace] expected matrices along the last two axes, got shape (2,)."),
    "axes of tensordot": (lambda: la.tensordot(mtl.ones(2), mtl.ones(2), axes=2), ValueError,
        "[tensordot] 2 axes exceed shapes (2,) and (2,)."),
}  # fmt: skip

NAN = float("nan")
WHEN_COMPUTED = {
    "singular": (lambda: la.inv(mtl.zeros((2, 2))),
        "[inv] the matrix of shape (2, 2) is singular."),
    "singular in a stack": (
        lambda: la.inv(mtl.stack([mtl.eye(2), mtl.zeros((2, 2)), mtl.zeros((2, 2))])),
        "[inv] matrix (1,) of shape (3, 2, 2) is singular."),
    "equations": (lambda: la.solve(mtl.ones((1, 2, 3, 3)), mtl.ones(3)),
        "[solve] matrix (0, 0) of shape (1, 2, 3, 3) is singular."),
    "not definite": (lambda: la.cholesky(-mtl.eye(3)),
        "[cholesky] the matrix of shape (3, 3) is not positive definite."),
    "eig of NaN": (lambda: la.eig(NAN * mtl.eye(2)).eigenvectors,
        "[eig] the matrix of shape (2, 2) has eigenvalues that were not found, as with infinities "
        "and NaNs."),
    "svd of NaN": (lambda: la.svdvals(NAN * mtl.eye(2)),
        "[svdvals] the matrix of shape (2, 2) has singular values that were not found, as with "
        "NaNs."),
    "pinv of NaN": (lambda: la.pinv(NAN * mtl.ones((2, 3, 3))),
        "[pinv] matrix (0,) of shape (2, 3, 3) has singular values that were not found, as with "
        "NaNs."),
    "pinv with tolerances": (
        lambda: la.pinv(mtl.stack([mtl.eye(2), NAN * mtl.eye(2)]), rtol=mtl.asarray([0.1, 0.2])),
        "[pinv] matrix (1,) of shape (2, 2, 2) has singular values that were not found, as with "
        "NaNs."),
    "lstsq of NaN": (lambda: la.lstsq(NAN * mtl.ones((3, 2)), mtl.ones(3)).solution,
        "[lstsq] the matrix of shape (3, 2) has singular values that were not found, as with "
        "NaNs."),
}  # fmt: skip


@pytest.mark.parametrize("case", AT_ONCE)
def test_shapes_are_refused_at_once(case):
    call, error, message = AT_ONCE[case]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("case", WHEN_COMPUTED)
def test_values_are_refused_when_they_are_looked_at(case):
    call, message = WHEN_COMPUTED[case]
    result = call()  # nothing is computed here
    for _ in range(2):  # and the expression stays what it was
        with pytest.raises(la.LinAlgError) as caught:
            mtl.eval(result)
        assert str(caught.value) == message


def test_results_of_one_decomposition_are_computed_once():
    u, s, vh = la.svd(mtl.ones((3, 3)))
    assert steps_of(u, s, vh).count("svd") == 1
    mtl.eval(s)
    assert steps_of(u, vh) == []


def test_a_decomposition_is_part_of_an_expression():
    x = mtl.ones((3, 3))
    values = la.eigvalsh(x + x.mT) * 2 + 1
    assert steps_of(values) == ["kernel", "eigvalsh", "kernel"]


SQUARE_ONLY = ("cholesky", "det", "inv", "eigvalsh", "slogdet", "eigh")


@pytest.mark.parametrize("name", [*SQUARE_ONLY, "pinv", "svdvals", "svd", "qr", "lu"])
@pytest.mark.parametrize("given", [mtl.int8, mtl.uint64, mtl.bool, mtl.float16, mtl.bfloat16])
def test_types(name, given):
    x = mtl.eye(3, dtype=given)
    results = getattr(la, name)(x)
    want = given if given in (mtl.float16, mtl.bfloat16) else mtl.float32
    for result in results if isinstance(results, tuple) else (results,):
        assert result.dtype == want
        assert np.isfinite(result.numpy().astype(np.float64)).all()


@pytest.mark.parametrize("given", [mtl.int8, mtl.float16, mtl.bfloat16])
def test_complex_types(given):
    for result in la.eig(mtl.eye(3, dtype=given)):
        assert result.dtype == mtl.complex64


def test_every_name_has_a_docstring_and_is_offered():
    for name in la.__all__:
        assert getattr(la, name).__doc__, name


def test_numpys_functions_find_ours():
    x = 2 * mtl.eye(3)
    assert isinstance(np.linalg.inv(x), mtl.Array)
    assert isinstance(np.fft.rfft(x), mtl.Array)
    assert isinstance(np.einsum("ij,jk", x, x), mtl.Array)
    assert float(np.linalg.det(x)) == 8
