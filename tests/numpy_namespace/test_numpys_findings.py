"""Results that NumPy's own tests showed to be wrong; the oracle is NumPy."""

import numpy
import pytest

import metalloid.numpy as np

INTEGERS = numpy.array([-1, 0, 2**60, 2**62 + 1])
UNSIGNED = numpy.array([2**64 - 1, 0, 2**60 + 1, 2**62], numpy.uint64)
POINTS = numpy.arange(12.0).reshape(3, 4)

CALLS = {
    "less": lambda np: np.less(np.asarray(INTEGERS), np.asarray(UNSIGNED)),
    "greater_equal": lambda np: np.asarray(UNSIGNED) >= np.asarray(INTEGERS),
    "equal": lambda np: np.asarray(INTEGERS) == np.asarray(UNSIGNED),
    "labels": lambda np: np.einsum(POINTS, [0, 1], POINTS, [2, 1], [2, 0]),
    "ellipsis": lambda np: np.einsum(POINTS, [Ellipsis, 1]),
    "take": lambda np: np.take_along_axis(POINTS[:, :1], np.asarray([[0, 0, 0]]), 0),
    "spiral": lambda np: np.geomspace(16j, 1000j, 4).real,
    "negative": lambda np: np.geomspace(-1, -8, 4),
    "bases": lambda np: np.logspace([1, 2], 3, 4, base=np.asarray([[2.0], [3.0]]), axis=-1),
    "windows": lambda np: np.lib.stride_tricks.as_strided(np.arange(9), (3, 4), (16, 8)),
    "fmax": lambda np: np.fmax(np.asarray([1 + 1j, numpy.nan]), np.asarray([1 + 2j, 3])),
    "nanargmin": lambda np: np.nanargmin(np.asarray([2 + 1j, numpy.nan, 1j])),
    "unique": lambda np: np.unique(np.asarray([numpy.nan, 1, numpy.nan]), axis=0),
    "rows": lambda np: np.apply_along_axis(lambda row: np.asarray(1.5), 0, np.zeros((0, 3))),
    "pad": lambda np: np.pad(np.ones((2, 0, 1)), ((0, 1), (0, 0), (0, 2)), "maximum"),
    "order": lambda np: POINTS.transpose(np.asarray([1, 0])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_results(name):
    ours, exact = CALLS[name](np), CALLS[name](numpy)
    assert ours.dtype == exact.dtype
    numpy.testing.assert_allclose(numpy.asarray(ours), exact, rtol=1e-13, strict=True)


@pytest.mark.slow
def test_put_along_axis_with_broadcast_indices():
    x, exact = np.asarray(POINTS), POINTS.copy()
    for np_, array in ((np, x), (numpy, exact)):
        np_.put_along_axis(array, numpy.array([[1], [0], [3]]), 7.0, 1)
        np_.put_along_axis(array, numpy.array([[2]]), 5.0, 0)
    numpy.testing.assert_array_equal(x, exact)


def test_sum_of_many_equal_elements():
    assert np.broadcast_to(np.asarray(0.5), (100_000,)).sum() == 50_000


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: np.einsum([1], [52]), ValueError, "labels must be integers below 52"),
        (lambda: np.pad([1], 1.5), TypeError, "must be of integral type"),
        (lambda: np.pad([1], 1, "edge", stat_length=1), ValueError, "unsupported keyword"),
        (lambda: np.pad(np.ones(0), 1, "edge"), ValueError, "can't extend empty axis 0"),
        (
            lambda: np.concatenate([[1]], out=np.ones(1), dtype=int),
            TypeError,
            "only one of out and dtype",
        ),
        (lambda: np.concatenate([[1], [2]], out=np.ones((1, 2))), ValueError, "out of shape"),
        (lambda: np.var([1, 2], ddof=1, correction=1), ValueError, "provided simultaneously"),
        (lambda: np.take_along_axis(POINTS, [1], 1), ValueError, "got indices with 1 axes"),
        (lambda: np.lib.stride_tricks.as_strided([1, 2], (3,), (8,)), IndexError, "0 to 2 of 2"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
