"""Results that NumPy's own tests showed to be wrong; the oracle is NumPy."""

import inspect
import math
import pickle

import numpy
import pytest

import metalloid.numpy as np

INTEGERS = numpy.array([-1, 0, 2**60, 2**62 + 1])
UNSIGNED = numpy.array([2**64 - 1, 0, 2**60 + 1, 2**62], numpy.uint64)
POINTS = numpy.arange(12.0).reshape(3, 4)
INFINITE = numpy.array([-numpy.inf, 0, 1, numpy.inf])

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
    "constants": lambda np: np.asarray(0.1, dtype="f") + np.asarray(0.0, dtype="d"),
    "sinc": lambda np: np.sinc(np.asarray([True, False])),
    "strong": lambda np: np.quantile(np.asarray([1, 2, 4], dtype="f"), numpy.float64(0.4)),
    "cov": lambda np: np.cov(POINTS, dtype=numpy.float32),
    "number": lambda np: np.sum(np.asarray(3), axis=0),
    "clip": lambda np: np.clip(np.asarray([1 + 2j, 3]), 1, 2),
    "where": lambda np: np.add([1, 2], 1, where=[1, 0], out=np.asarray([5, 5])),
    "order": lambda np: POINTS.transpose(np.asarray([1, 0])),
    "level": lambda np: np.interp(INFINITE, np.asarray([-numpy.inf, numpy.inf]), [10, 10]),
    "steep": lambda np: np.interp(INFINITE, np.asarray([-numpy.inf, numpy.inf]), [10, 11]),
    "ends": lambda np: np.interp(INFINITE, np.asarray(INFINITE), [1, 2, 4, 7]),
    "power": lambda np: np.exp2(np.asarray([1 + 2j, -0.5j, 3])),
    "mask": lambda np: np.insert(np.asarray([1, 2, 3]), np.asarray([True, False, False, True]), 9),
    "repeated": lambda np: np.fft.rfftn(np.asarray(POINTS), axes=(0, 1, 1)),
    "lengths": lambda np: np.fft.rfftn(np.asarray(POINTS), s=(3, -1, 5), axes=(1, 0, 1)),
    "real": lambda np: np.fft.irfftn(np.asarray(POINTS), axes=(0, 0, -2)),
    "inverse": lambda np: np.fft.ifft2(np.asarray(POINTS), axes=(1, -1), norm="ortho"),
    "out": lambda np: np.add([1, 2], 1, out=np.zeros((2, 2))),
    "quantile": lambda np: np.quantile(np.asarray([1.0, 2.0, 4.0]), 0.5, out=np.zeros(2)),
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


def test_integers_and_lists():
    rng = np.random.default_rng(1)
    assert rng.integers(0, 2, 3, dtype=bool).dtype == bool
    assert rng.integers([1, 2], [3, 4], endpoint=True).shape == (2,)
    assert rng.integers(0, 0, (0, 3)).shape == (0, 3)
    items = ["a", "b", "c"]
    rng.shuffle(items)
    assert sorted(items) == ["a", "b", "c"]


def test_functions_pickle():
    assert pickle.loads(pickle.dumps(np.sin)) is np.sin
    assert inspect.signature(np.add).parameters["casting"].default == "same_kind"
    assert np.add.resolve_dtypes((np.dtype("i4"), np.dtype("f4"), None))[2] == np.float64


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
        (lambda: np.diff([[1, 2]], append=np.zeros((3, 3))), ValueError, r"shape \(3, 3\)"),
        (lambda: np.random.default_rng(1).uniform(-np.inf, 0), OverflowError, "too large"),
        (lambda: np.sum(POINTS, 0, out=np.zeros((2, 4))), ValueError, r"out of shape \(2, 4\)"),
        (lambda: np.mean([1, 2], out=np.zeros(1)), ValueError, r"out of shape \(1,\)"),
        (lambda: np.median([1, 2], out=numpy.zeros(2)), ValueError, "does not fit the result's"),
        (lambda: np.add.reduce([1, 2], out=np.zeros(2, int)), ValueError, "out of shape"),
        (lambda: np.insert([1], np.asarray([[True]]), 2), ValueError, r"shape \(1, 1\)"),
        (lambda: np.delete([1, 2], [True]), ValueError, r"shape \(1,\), not \(2,\)"),
        (lambda: np.lib.stride_tricks.as_strided([1, 2], (3,), (8,)), IndexError, "0 to 2 of 2"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_results_given_by_position_are_stored():
    target = np.zeros(3)
    np.sqrt(np.asarray([1.0, 4.0, 9.0]), target)
    assert target.tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="at most 2"):
        np.sqrt(1.0, target, target)


def test_a_type_that_no_result_has_is_refused():
    with pytest.raises(TypeError, match="no result has type int64"):
        np.divide([4], 2, dtype=numpy.int64)
    with pytest.raises(TypeError, match="casting 'same_kind'"):
        np.add([4], 0.5, dtype=numpy.int64)
    assert np.equal(1, [1], dtype=bool).tolist() == [True]


@pytest.mark.parametrize("q", [0.3, numpy.float32(0.3), numpy.float64(0.3), [0.2, 0.4]])
@pytest.mark.parametrize("method", ["linear", "weibull", "nearest", "averaged_inverted_cdf"])
def test_types_of_quantiles(q, method):
    x = numpy.asarray([3, 0, -1, 7], "float32")
    result = numpy.asarray(np.quantile(np.asarray(x), q, method=method))
    expected = numpy.asarray(numpy.quantile(x, q, method=method))
    assert result.dtype == expected.dtype
    numpy.testing.assert_allclose(result, expected, 2e-6)


def test_integers_have_a_sinc_in_float64():
    x = numpy.arange(-3, 4, dtype="int8")
    numpy.testing.assert_allclose(np.sinc(x), numpy.sinc(x), atol=1e-15)
    assert np.sinc(x).dtype == numpy.float64


def test_bytes_viewed_as_truth_are_0_or_1():
    x = np.asarray([3, 0, -1], dtype="int8").view(bool)
    assert (x + np.asarray([1, 1, 1])).tolist() == [2, 1, 2]
    assert int(np.frombuffer(b"\xff\x00\x02", dtype=bool).sum()) == 2


def test_parts_of_interpolated_complex_numbers_are_infinite_independently():
    heights = numpy.asarray([0, complex(0, -numpy.inf)])
    numpy.testing.assert_equal(
        numpy.asarray(np.interp([0.5], [0, 1], heights)), numpy.interp([0.5], [0, 1], heights)
    )


@pytest.mark.parametrize("text", ["ij->ji", "ij", "ii->i", "ij->j", "..."])
def test_einsum_of_one_operand_has_numpys_type(text):
    x = numpy.asarray([[True, False], [True, True]])
    result, expected = np.einsum(text, x, dtype=float), numpy.einsum(text, x, dtype=float)
    assert result.dtype == expected.dtype
    assert result.tolist() == expected.tolist()


def test_booleans_with_other_types():
    x = numpy.asarray([[True, False], [False, True]])
    assert (np.asarray(x) > 1j).tolist() == (x > 1j).tolist()
    for result, expected in zip(divmod(np.asarray(x), True), divmod(x, True), strict=True):
        numpy.testing.assert_array_equal(result, expected)
        assert result.dtype == expected.dtype
    assert np.linalg.eigvalsh(x, UPLO="U").tolist() == [1, 1]
    assert np.asfortranarray(np.ones(())).shape == (1,)


@pytest.mark.parametrize("order", "CFAK")
def test_orders_of_transposed_arrays(order):
    x = numpy.arange(24).reshape(2, 3, 4)
    for axes in ((2, 1, 0), (1, 0, 2), (2, 0, 1)):
        expected, own_x = x.transpose(axes), np.asarray(x).transpose(axes)
        for name in ("ravel", "flatten"):
            result = getattr(own_x, name)(order)
            numpy.testing.assert_array_equal(numpy.asarray(result), getattr(expected, name)(order))
        if order != "K":
            result = np.reshape(own_x, (6, 4), order)
            numpy.testing.assert_array_equal(
                numpy.asarray(result), numpy.reshape(expected, (6, 4), order)
            )


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_unravel_index_of_narrow_types(dtype, order):
    index = numpy.array([[3, 250], [0, 77]], dtype)
    for shape in ((50, 50), (7, 9, 11), (2, 2**33)):
        result = np.unravel_index(np.asarray(index), shape, order)
        numpy.testing.assert_array_equal(result, numpy.unravel_index(index, shape, order))


@pytest.mark.parametrize(
    "name", ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"]
)
def test_joined_arrays_are_in_a_sequence(name):
    rows = numpy.arange(4.0).reshape(2, 2)
    for namespace in (numpy, np):
        with pytest.raises(TypeError, match="sequence"):
            getattr(namespace, name)(row for row in rows)
    result = getattr(np, name)(np.asarray(rows))
    numpy.testing.assert_array_equal(result, getattr(numpy, name)(rows))


def test_elements_of_broadcast_arrays_in_the_order_of_memory():
    rng = numpy.random.default_rng(5)
    for _ in range(200):
        shape = tuple(rng.integers(1, 4, rng.integers(1, 5)).tolist())
        axes = tuple(rng.permutation(len(shape)).tolist())
        x = numpy.arange(float(math.prod(shape))).reshape(shape)
        extents = [n if n > 1 else int(rng.integers(1, 4)) for n in x.transpose(axes).shape]
        to = (*rng.integers(1, 3, rng.integers(0, 2)).tolist(), *extents)
        expected = numpy.broadcast_to(x.transpose(axes), to)
        result = np.broadcast_to(np.asarray(x).transpose(axes), to)
        for order in "CFAK":
            numpy.testing.assert_array_equal(result.ravel(order), expected.ravel(order))


def test_reshape_takes_copy():
    for copy in (True, False, None):
        result = np.arange(6).reshape(2, 3, copy=copy)
        numpy.testing.assert_array_equal(result, numpy.arange(6).reshape(2, 3))


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_remainders_of_the_least_integer(dtype):
    least = numpy.iinfo(dtype).min
    x = numpy.array([least, least, least, least, 5, 7, 0], dtype)
    y = numpy.array([7, 5, 3, least or 1, 3, 7, 3], dtype)
    for sign in (1, -1) if least else (1,):
        for a, b in ((x, y), (x, y * sign), (x * sign, y)):
            numpy.testing.assert_array_equal(
                np.fmod(np.asarray(a), np.asarray(b)), numpy.fmod(a, b)
            )
            numpy.testing.assert_array_equal(
                np.remainder(np.asarray(a), np.asarray(b)), numpy.remainder(a, b)
            )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp_is_exact_or_nearest(dtype):
    info, random = numpy.finfo(dtype), numpy.random.default_rng(0)
    x = random.standard_normal(1000).astype(dtype)
    x[100:600] = numpy.ldexp(x[100:600], random.integers(info.minexp - 20, info.maxexp, 500))
    special = [
        0,
        -0.0,
        numpy.inf,
        -numpy.inf,
        numpy.nan,
        info.max,
        info.tiny,
        info.smallest_subnormal,
    ]
    x[: len(special)] = special
    for span in (5, 60, 300, 2200, 10**6):
        power = random.integers(-span, span, x.size)
        with numpy.errstate(all="ignore"):
            expected = numpy.ldexp(x, power)
        result = np.ldexp(np.asarray(x), np.asarray(power))
        numpy.testing.assert_array_equal(result, expected)
        numpy.testing.assert_array_equal(numpy.signbit(result), numpy.signbit(expected))
