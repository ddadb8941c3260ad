"""NumPy's functions and ufuncs, called on arrays. The oracle is NumPy on its own arrays."""

import numpy as np
import pytest

import metalloid as mtl

X = np.float32([[3, 1, 2], [0.5, 4, 1.5]])
N = np.float32([[1, 2, 3], [4, 5, 6]])

CALLS = {
    "shape": lambda x: np.shape(x), "ndim": lambda x: np.ndim(x), "size": lambda x: np.size(x, 1),
    "real": lambda x: np.real(x), "imag": lambda x: np.imag(x),
    "linspace": lambda x: np.linspace(0, x[1], 3), "stack": lambda x: np.stack([N, x]),
    "std": lambda x: np.std(x, ddof=1), "std by position": lambda x: np.std(x, 0, None, None, 1),
    "var": lambda x: np.var(x, 1, ddof=1, keepdims=True), "round": lambda x: np.round(x, 1),
    "where": lambda x: np.where(x > 1), "where3": lambda x: np.where(x > 1, x, 0),
    "allclose": lambda x: np.allclose(x, X), "array_equal": lambda x: np.array_equal(x, X),
    "amax": lambda x: np.amax(x, 0), "sum": lambda x: np.sum(x, 1, keepdims=True),
    "sum where": lambda x: np.sum(x, where=X > 1, initial=2),
    "median": lambda x: np.median(x, 1), "cumsum": lambda x: np.cumsum(x),
    "cumprod": lambda x: np.cumprod(x, 1), "sort": lambda x: np.sort(x, None),
    "take": lambda x: np.take(x, [5, 0]), "clip": lambda x: np.clip(x, 1, 2),
    "concatenate": lambda x: np.concatenate([N, x], 1), "transpose": lambda x: np.transpose(x),
    "reshape": lambda x: np.reshape(x, (3, 2), order="F"), "diff": lambda x: np.diff(x, 1, 0),
    "zeros_like": lambda x: np.zeros_like(x, shape=(1, 2)), "einsum": lambda x: np.einsum("ij->j", x),
    "fft": lambda x: np.fft.fft(x, None, 0), "norm": lambda x: np.linalg.norm(x, axis=0),
    "modf": lambda x: np.modf(x), "cbrt": lambda x: np.cbrt(x), "matmul": lambda x: np.matmul(N, x.T),
    "operator @": lambda x: N @ x.T, "add": lambda x: np.add(N, x),
    "power": lambda x: np.power(x, 1.5), "fmod": lambda x: np.fmod(x, 1.5),
    "outer": lambda x: np.multiply.outer(x, N[0]), "accumulate": lambda x: np.add.accumulate(x, 1),
    "reduce": lambda x: np.maximum.reduce(x), "reduce initial": lambda x: np.add.reduce(x, initial=5),
    "reduceat": lambda x: np.add.reduceat(x, [0, 1]), "ufunc where": lambda x: np.add(
        x, 1, where=X > 1, out=X * 0),
    "ufunc dtype": lambda x: np.add(x, 1, dtype=np.float64),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_numpy(name):
    expected, result = CALLS[name](X), CALLS[name](mtl.asarray(X))
    is_single = not isinstance(expected, tuple) or name == "shape"
    pairs = [(result, expected)] if is_single else zip(result, expected, strict=True)
    for own, theirs in pairs:
        np.testing.assert_allclose(own, theirs, rtol=2e-6)
        if isinstance(theirs, np.ndarray):
            assert isinstance(own, mtl.Array) or name == "ufunc where"
            assert own.dtype == theirs.dtype or name == "fft"
        elif isinstance(theirs, bool | int | tuple):
            assert type(own) is type(theirs)


def test_results_in_arrays():
    x, n = mtl.asarray(X), X.copy()
    n += x
    np.testing.assert_array_equal(n, X + X)
    assert np.add(n, x, out=n) is n
    np.testing.assert_array_equal(n, X * 3)
    assert np.add(x, 1, out=x) is x
    np.testing.assert_array_equal(x, X + 1)
    total = mtl.zeros(3)
    assert np.sum(x, 0, out=total) is total
    np.testing.assert_allclose(total, (X + 1).sum(0))
    np.add.at(n, (0, [0, 0]), mtl.asarray([1, 1], mtl.float32))
    assert n[0, 0] == 11
    old = mtl.zeros(3)
    y = old.copy()
    np.add.at(y, [0, 2, 2], 1)
    np.logical_xor.at(y, [1], 1)
    assert y.tolist() == [1, 1, 2]
    assert old.tolist() == [0, 0, 0]


def test_errors_and_other_libraries():
    class External:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "its own"

    x = mtl.asarray(X)
    assert np.fmod(x, np.float64(1.5)).dtype == mtl.float32
    assert x + External() == "its own"
    with pytest.raises(TypeError):
        np.add(x, External())
    with pytest.raises(mtl.TraceError):
        mtl.grad(lambda v: np.spacing(v).sum())(x)
    np.testing.assert_array_equal(mtl.grad(np.median)(x), [[0, 0, 0.5], [0, 0, 0.5]])
    np.copyto(x, 0)
    assert not x.any()
