"""Functions that compute large arrays by other kernels than small ones, against NumPy."""

import warnings

import numpy as np
import pytest

import metalloid as mtl
import metalloid.numpy as own


def slow(value):
    """A parameter that only slow tests take."""
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("dtype", "start", "width"),
    [
        ("float32", -1, 3.3),
        ("float64", 1e-300, 3e-308),
        pytest.param("float64", 0.1, 7.3, marks=pytest.mark.slow),
        pytest.param("int16", -40, 99, marks=pytest.mark.slow),
    ],
)
def test_histograms_of_even_bins(dtype, start, width):
    """Elements on the edges of the bins, and next to them."""
    edges = np.linspace(start, start + width, 126)
    next_to = np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)
    inside = np.random.default_rng(0).random(500) * width + start
    x = np.concatenate([inside, edges, *next_to]).astype(dtype)
    for limits in (None, (start, start + width)):
        expected = np.histogram(x, 125, limits)
        for result, exact in zip(own.histogram(x, 125, limits), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(result), exact)


def test_grid_of_even_and_given_bins():
    x = np.random.default_rng(0).random((1000, 2))
    bins = 7, [0.1, 0.2, 0.9]
    expected = np.histogramdd(x, bins)
    result = own.histogramdd(x, bins)
    np.testing.assert_array_equal(np.asarray(result[0]), expected[0])


@pytest.mark.parametrize("options", [{"aweights": True}, {"rowvar": False}])
def test_covariances_of_few_variables(options):
    rng = np.random.default_rng(0)
    x = rng.random((3, 50_000)) + 1e4
    if "aweights" in options:
        options = {"aweights": rng.random(50_000)}
    x = x if options.get("rowvar", True) else x.T
    np.testing.assert_allclose(np.asarray(own.cov(x, **options)), np.cov(x, **options), 1e-9)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("complex64", marks=pytest.mark.slow)])
def test_products_of_long_vectors(dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, 100_001).astype(dtype) for _ in range(2))
    assert complex(own.dot(x, y)) == np.dot(x.astype(complex), y.astype(complex))


@pytest.mark.parametrize("end", [-2, None])  # fewer values than points, or more
def test_interpolation_between_infinite_points(end):
    points = [-np.inf, 0.0, 1.0, 1.0, 2.0, 3.0, 4.0, np.inf]
    heights = [1.0, 2.0, np.inf, -np.inf, -np.inf, 5.0, 5.0, 7.0]
    x = np.array([-9.0, 0.0, 0.5, 1.0, 3.5, 9.0, np.nan, 2.5, 1.5])
    x = x if end is None else x[:end]
    expected = np.interp(x, points, heights)
    np.testing.assert_array_equal(np.asarray(own.interp(x, points, heights)), expected)
    expected = np.interp(x, [2.0], [3.0], left=1.0)
    np.testing.assert_array_equal(np.asarray(own.interp(x, [2.0], [3.0], left=1.0)), expected)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("int32", marks=pytest.mark.slow)])
def test_extremes_of_long_vectors_by_blocks(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1000, 40_003).astype(dtype)  # with equal extremes in several blocks
    array = own.asarray(x)
    for values, own_values in ((x, array), (x[::-1], array[::-1]), (np.sort(x), own.sort(array))):
        assert int(own.argmax(own_values)) == values.argmax()
        assert own.argmin(own_values, keepdims=True).tolist() == [values.argmin()]
    if dtype == "float64":
        x[[30_000, 39_000]] = np.nan
        assert int(own.asarray(x).argmin()) == 30_000


def test_extremes_of_rows_with_nan():
    x = np.random.default_rng(0).random((3, 1003))
    x[1, [5, 1002]] = np.nan
    np.testing.assert_array_equal(np.asarray(own.max(own.asarray(x), axis=1)), x.max(1))
    np.testing.assert_array_equal(np.asarray(own.argmin(own.asarray(x), axis=1)), x.argmin(1))


@pytest.mark.parametrize("dtype", [None, np.int32, np.float32])
def test_evenly_spaced_numbers_are_those_of_numpy(dtype):
    for limits in ((-3, 2**15), (0.1, 7e4), (2.5, -1e5)):
        expected = np.linspace(*limits, 20_000, dtype=dtype)
        result = own.linspace(*limits, 20_000, dtype=dtype)
        np.testing.assert_array_equal(np.asarray(result), expected, strict=True)
    expected = np.arange(7, 60_000, 3, dtype=dtype or float)
    np.testing.assert_array_equal(
        np.asarray(own.arange(7, 60_000, 3, dtype=dtype or float)), expected
    )
    steps = 0.3 + 0.7 * np.arange(own.arange(0.3, 2e4, 0.7).size)
    np.testing.assert_array_equal(np.asarray(own.arange(0.3, 2e4, 0.7)), steps)


@pytest.mark.parametrize("count", [slow(31), 100])
def test_polynomial_of_many_roots(count):
    """More coefficients than lanes, and not a multiple of them; the same roundings as NumPy's."""
    roots = np.random.default_rng(0).random(count)
    np.testing.assert_array_equal(np.asarray(own.poly(roots)), np.poly(roots))


@pytest.mark.parametrize("k", [-2, *map(slow, [-5, 0, 2, 6])])
def test_indices_of_triangles(k):
    for rows, columns in ((4, 4), (3, 6), (6, 3), (0, 2), (2, 0)):
        for name in ("tril_indices", "triu_indices"):
            expected = getattr(np, name)(rows, k, columns)
            result = getattr(own, name)(rows, k, columns)
            for one, exact in zip(result, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(one), exact)


def test_indices_of_a_large_triangle():
    rows, columns = own.tril_indices(3000)
    expected = np.repeat(np.arange(3000), np.arange(1, 3001))
    np.testing.assert_array_equal(np.asarray(rows), expected)
    np.testing.assert_array_equal(np.asarray(columns)[-3000:], np.arange(3000))


@pytest.mark.parametrize("axis", [None, slow(0), 1])
@pytest.mark.parametrize("name", ["nanmin", slow("nanmax")])
def test_extremes_of_long_rows_with_nan(name, axis):
    x = np.random.default_rng(0).standard_normal((3, 70_001))
    x[x > 1] = np.nan
    x[:, :2], x[1] = [np.nan, np.inf], np.nan
    if axis is None:
        np.testing.assert_array_equal(np.asarray(getattr(own, name)(x)), getattr(np, name)(x))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows without numbers
        expected = getattr(np, name)(x, axis)
    np.testing.assert_array_equal(np.asarray(getattr(own, name)(x, axis)), expected)


@pytest.mark.parametrize("order", [slow("big"), "little"])
@pytest.mark.parametrize("first", [0, 1])
def test_bits_of_bytes(first, order):
    """From aligned memory and others, and along an axis of a length that is no multiple of 8."""
    flags = np.random.default_rng(0).random(1000) < 0.5
    array = own.asarray(flags)
    own.eval(array)
    expected = np.packbits(flags[first : first + 800], bitorder=order)
    result = own.packbits(array[first : first + 800], bitorder=order)
    np.testing.assert_array_equal(np.asarray(result), expected)
    plane = flags[:900].reshape(9, 100)
    expected = np.packbits(plane, 0, order)
    np.testing.assert_array_equal(np.asarray(own.packbits(plane, 0, order)), expected)
    for count in (None, 9, 40, -3):
        unpacked = own.unpackbits(expected, 0, count, order)
        exact = np.unpackbits(expected, 0, count, order)
        np.testing.assert_array_equal(np.asarray(unpacked), exact)


def test_bits_of_traced_rows():
    """Traced arrays have no kernel of the library."""
    x = np.random.default_rng(0).random((3, 16)) < 0.5
    rows = mtl.vmap(lambda row: own.unpackbits(own.packbits(row)))(mtl.asarray(x))
    np.testing.assert_array_equal(np.asarray(rows), x)


@pytest.mark.parametrize("columns", [16, 17])  # products, and powers
def test_powers_of_a_vandermonde_matrix(columns):
    x = np.random.default_rng(0).standard_normal(9)
    np.testing.assert_allclose(np.asarray(own.vander(x, columns)), np.vander(x, columns), 1e-13)
