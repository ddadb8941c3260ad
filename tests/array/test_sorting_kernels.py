"""Sorts, searches and counts by the package's kernels, against NumPy's stable ones."""

import functools
import math
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.arrays.execution import compilation, evaluate
from metalloid.arrays.lowering.sort_dispatch import by_kernels
from metalloid.runtime.devices.traits import FEW_CORES

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "bfloat16", "float32", "float64"]  # fmt: skip
SIZES = ["uint8", "float16", "int32", "float64"]  # one for each number of bytes
SPECIALS = [0.0, -0.0, 1.0, math.nan, -math.nan, math.inf, -math.inf, 1e-7, -1e-7, 5.0, -5.0]


@pytest.fixture(autouse=True)
def kernels():
    with mtl.config.scope(sorting="kernels"):
        yield


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def elements(name, shape, seed, kinds=40):
    """Numbers of which many are equal, those that are special, and the limits of integers."""
    rng, dtype = np.random.default_rng(seed), dtype_of(name)
    if name == "bool":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        pool = rng.integers(limits.min, limits.max, kinds, dtype, endpoint=True)
        pool = np.concatenate([pool, np.array([0, 1, limits.min, limits.max], dtype)])
    else:
        pool = np.array([*SPECIALS, *(rng.standard_normal(kinds) * 100)]).astype(dtype)
    return rng.choice(pool, shape)


def order_of(x, axis=-1, descending=False):
    """Indices in NumPy's stable order, which for descending ones is stable, too."""
    x = comparable(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    flipped = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(flipped, axis)


def comparable(x):
    """NumPy sorts bfloat16 wrongly where there is NaN."""
    return x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x


def bits(x):
    """The bits of values, which show the sign of a zero."""
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def check_sorts(x, own, axis=-1, descending=False):
    order = order_of(x, axis, descending)
    result = mtl.argsort(own, axis=axis, descending=descending)
    assert result.dtype == np.int64
    np.testing.assert_array_equal(np.asarray(result), order)
    values = mtl.sort(own, axis=axis, descending=descending)
    assert values.dtype == x.dtype
    expected = np.take_along_axis(x, order, axis)
    # Equal ones are interchangeable.
    np.testing.assert_array_equal(comparable(np.asarray(values)), comparable(expected))


SHAPES = st.one_of(
    st.tuples(st.integers(0, 300)),
    st.tuples(st.integers(0, 5), st.integers(0, 140)),
    st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(0, 9)),
)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", DTYPES)
@settings(max_examples=2)
@given(shape=SHAPES, descending=st.booleans(), seed=st.integers(0, 99), kinds=st.integers(0, 300))
def test_rows(name, shape, descending, seed, kinds):
    x = elements(name, shape, seed, kinds)
    check_sorts(x, mtl.asarray(x), -1, descending)


@settings(max_examples=4)
@given(data=st.data(), shape=st.tuples(*[st.integers(1, 12)] * 2), descending=st.booleans())
def test_views(data, shape, descending):
    view = data.draw(st.sampled_from([
        lambda a: a[::-1], lambda a: a[:, ::-2], lambda a: a[1:, :-1], lambda a: a[:, None, ::3],
    ]))  # fmt: skip
    x = elements("float32", shape, 3)
    axis = data.draw(st.integers(-2, 1))
    check_sorts(view(x), view(mtl.asarray(x)), axis, descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.sample(1)
def test_rows_that_many_simdgroups_sort(name, descending):
    x = elements(name, (2, 17_001), 5)
    check_sorts(x, mtl.asarray(x), -1, descending)


@pytest.mark.parametrize("name", ["float64", "int32"])
@pytest.mark.sample(1)
def test_chunks_whose_high_digits_are_not_enough(name):
    rng = np.random.default_rng(3)
    highs, lows = rng.integers(0, 9, 70_001), rng.integers(0, 200, 70_001)
    x = np.ldexp(1.0 + lows * 2.0**-52, 200 * highs - 800) * rng.choice([-1, 1], 70_001)
    x = x if name == "float64" else (highs * 2**28 - 2**30 + lows).astype(name)
    check_sorts(x, mtl.asarray(x), -1, True)


def test_columns_and_expressions():
    x = elements("float32", (70, 3, 50), 1)
    check_sorts(x, mtl.asarray(x), 0)
    computed = np.asarray(mtl.asarray(x) * 2 + 1)  # GPUs forget the bits of NaN
    check_sorts(computed, mtl.asarray(x) * 2 + 1, 1)
    repeated = np.broadcast_to(x[0], (4, 3, 50))
    check_sorts(repeated, mtl.broadcast_to(mtl.asarray(x[0]), (4, 3, 50)), -1, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", DTYPES)
def test_millions(name):
    x = elements(name, (2**21 + 3,), 5, 2**20)
    check_sorts(x, mtl.asarray(x), -1, False)
    check_sorts(x, mtl.asarray(x), -1, True)


@pytest.mark.parametrize("name", ["int64", "uint32", "int32"])
@pytest.mark.parametrize(("low", "high"), [(0, 0), (5, 300), (-300, 70_000), (None, None)])
@pytest.mark.slow  # the sorts of SIMT devices, which test_simt_device.py runs by default
def test_integers_are_sorted_by_the_digits_they_have(name, low, high):
    limits = np.iinfo(name)
    low = limits.min if low is None else max(low, limits.min)
    high = limits.max if high is None else high
    x = np.random.default_rng(2).integers(low, high, 20_000, name, endpoint=True)
    x[:2] = low, high
    check_sorts(x, mtl.asarray(x), -1, True)
    check_sorts(x.reshape(10, -1), mtl.asarray(x).reshape(10, -1), -1, True)
    check_top(x, 90)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("n", [9, 100, pytest.param(5000, marks=pytest.mark.slow)])
def test_the_reference_engine_agrees(monkeypatch, n):
    compiled = functools.cache(compilation._compiled.__wrapped__)
    monkeypatch.setattr(compilation, "_compiled", compiled)
    monkeypatch.setattr(evaluate, "_plans", {})
    x = elements("float32", (3, n), 8)
    with mtl.config.scope(cpu_engine="reference"):
        check_sorts(x, mtl.asarray(x), -1, True)
    assert compiled.cache_info().misses > 1


# -- the largest


def check_top(x, k, axis=-1):
    own_values, own_indices = mtl.top_k(mtl.asarray(x), k, axis=axis)
    indices = np.take(order_of(x, axis, True), np.arange(min(k, x.shape[axis])), axis)
    np.testing.assert_array_equal(np.asarray(own_indices), indices)
    values = np.take_along_axis(x, indices, axis)
    np.testing.assert_array_equal(bits(np.asarray(own_values)), bits(values))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.sample(1)
def test_top_k(name):
    x = elements(name, (5, 110), 4)
    for k in (0, 1, 7, 109, 110, 130):
        check_top(x, k)
        check_top(x[:, :30], k)
    check_top(x, 3, axis=0)


@pytest.mark.parametrize("k", [1, pytest.param(20, marks=pytest.mark.slow), 6000, 40_000])
def test_top_k_of_long_rows_in_iterations(k):
    check_top(elements("float32", (2, 40_001), 6, 2 * k), k)


@pytest.mark.parametrize("how", ["kernels", "host"])
def test_top_k_takes_the_first_of_equal_ones(how):
    with mtl.config.scope(sorting=how):
        values, indices = mtl.top_k(mtl.asarray([1.0, -0.0, 0.0, -1.0, 0.0]), 3)
        assert indices.tolist() == [0, 1, 2]
        assert np.signbit(np.asarray(values)).tolist() == [False, True, False]


def test_top_k_of_less_than_nothing():
    with pytest.raises(ValueError, match=r"\[top_k\] k must not be negative, got -1"):
        mtl.top_k(mtl.zeros(3), -1)


# -- searches and sets


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.sample(1, per="name")
def test_searchsorted(name, side):
    values = elements(name, (3, 50), 2)
    for count in (0, 1, 2, 31, 32, 33, 1000):
        among = elements(name, count, count)
        among = among[order_of(among)]
        exact = np.searchsorted(comparable(among), comparable(values), side)
        result = mtl.searchsorted(mtl.asarray(among), mtl.asarray(values), side=side)
        np.testing.assert_array_equal(np.asarray(result), exact)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.sample(1, per="name")
def test_searchsorted_of_many_values(name, side):
    """With a table of buckets on a few cores: all in one, infinite limits, neighbours of floats."""
    rng, dtype = np.random.default_rng(5), dtype_of(name)
    even = np.linspace(1, 99, 40)
    lists = [elements(name, 40, 1), even, even // 30, np.zeros(40)]
    if dtype.kind not in "iu":
        numbers = elements(name, 40, 2)
        lists += [np.where(np.isfinite(numbers), numbers, 7), np.where(even > 60, np.inf, even)]
        lists += [np.where(even > 60, np.nan, even), np.append(even[:39] * 1e-5, 1), -even]
    for among in lists:
        among = np.asarray(among).astype(dtype)
        among = among[order_of(among)]
        values = rng.choice(among, 700)
        if dtype.kind in "iu":
            values = values + rng.integers(0, 3, 700).astype(dtype)
        else:
            towards = rng.choice(np.array([-np.inf, np.inf], dtype), 700)
            values = np.where(rng.random(700) < 0.5, values, np.nextafter(values, towards))
            values[: len(SPECIALS)] = SPECIALS
        exact = np.searchsorted(comparable(among), comparable(values), side)
        result = mtl.searchsorted(mtl.asarray(among), mtl.asarray(values), side=side)
        np.testing.assert_array_equal(np.asarray(result), exact)


def test_searchsorted_of_python_integers():
    for dtype, numbers in ("uint64", (0, 2**63)), ("int8", (-2, 300)), ("float32", (3,)):
        x = np.asarray([0, 1, 3, 100], dtype)
        for number in numbers:
            result = mtl.searchsorted(mtl.asarray(x), number)
            assert result.shape == ()
            assert int(result) == np.searchsorted(x, number)


def test_searchsorted_promotes_as_comparisons_do():
    among = mtl.asarray([1, 3, 5])
    assert int(mtl.searchsorted(among, 3)) == 1
    assert int(mtl.searchsorted(among, 3.5)) == 2
    assert mtl.searchsorted(among, mtl.asarray([0.5, 9.0])).tolist() == [0, 3]
    with pytest.raises(
        ValueError, match=r"\[searchsorted\] x1 must have one axis, got shape \(1, 3\)"
    ):
        mtl.searchsorted(among.reshape(1, 3), 1)


def test_searchsorted_of_views():
    among, values = np.sort(elements("int32", 900, 1)), elements("int32", 900, 1, 300)
    result = mtl.searchsorted(mtl.asarray(among)[::3], mtl.asarray(values)[::-3])
    np.testing.assert_array_equal(np.asarray(result), np.searchsorted(among[::3], values[::-3]))


def test_searchsorted_by_a_sorter():
    x = elements("float32", 300, 1)
    order = mtl.argsort(mtl.asarray(x))
    result = mtl.searchsorted(mtl.asarray(x), mtl.asarray(x), sorter=order)
    np.testing.assert_array_equal(np.asarray(result), np.searchsorted(np.sort(x), x))


@pytest.mark.parametrize("name", ["uint8", "int64", "float16", "float32"])
@pytest.mark.sample(1)
def test_isin(name):
    x = elements(name, (20, 30), 1, 300)
    for others in (elements(name, (7, 9), 1, 300), x[:0], x[0, :1]):
        for invert in (False, True):
            result = mtl.isin(mtl.asarray(x), mtl.asarray(others), invert=invert)
            np.testing.assert_array_equal(np.asarray(result), np.isin(x, others, invert=invert))
    assert bool(mtl.isin(3, mtl.asarray([1, 3])))
    assert not bool(mtl.isin(mtl.asarray(2), 3))


UNIQUE = [("float32", (40, 50)), ("float32", (3, 0)), ("int64", (300,)), ("int64", ())]
SLOW = [("float16", (2, 3, 50)), ("bool", (0,)), ("bool", (40, 50)), ("uint8", (1,))]


@pytest.mark.parametrize(
    ("name", "shape"), [*UNIQUE, *(pytest.param(*row, marks=pytest.mark.slow) for row in SLOW)]
)
@pytest.mark.sample(1)
def test_unique(name, shape):
    x = np.asarray(elements(name, shape, 3))
    own = mtl.asarray(x)
    exact = np.unique_all(x)
    result = mtl.unique_all(own)
    for mine, numpys in zip(result, exact, strict=True):
        assert mine.shape == numpys.shape
        np.testing.assert_array_equal(np.asarray(mine), numpys)
    counts = mtl.unique_counts(own)
    np.testing.assert_array_equal(np.asarray(counts.values), exact.values)
    np.testing.assert_array_equal(np.asarray(counts.counts), exact.counts)
    np.testing.assert_array_equal(np.asarray(mtl.unique_values(own)), exact.values)


@pytest.mark.parametrize("how", ["kernels", "host"])
def test_bfloats_with_nan(how):
    x = elements("bfloat16", 100, 2)
    own, wide = mtl.asarray(x), x.astype(np.float32)
    with mtl.config.scope(sorting=how):
        np.testing.assert_array_equal(np.asarray(mtl.argsort(own)), order_of(x))
        np.testing.assert_array_equal(np.asarray(mtl.sort(own), np.float32), np.sort(wide))
        np.testing.assert_array_equal(np.asarray(mtl.isin(own, own[:9])), np.isin(wide, wide[:9]))
        result = np.asarray(mtl.unique_values(own), np.float32)
        np.testing.assert_array_equal(result, np.unique_values(np.sort(wide)))
        result = mtl.searchsorted(mtl.sort(own), own)
        np.testing.assert_array_equal(np.asarray(result), np.searchsorted(np.sort(wide), wide))


# -- choice of the kernels


def test_results_of_launches_that_nobody_waited_for():
    x = elements("float32", 100_000, 0)
    sorted_ = mtl.sort(mtl.asarray(x))
    mtl.async_eval(sorted_)
    more = mtl.argsort(sorted_[::-1]) + 1
    mtl.async_eval(more)
    np.testing.assert_array_equal(np.asarray(sorted_), np.sort(x))
    np.testing.assert_array_equal(np.asarray(more), order_of(np.sort(x)[::-1]) + 1)


def test_searches_selections_and_counts_are_launches():
    """A compiled function has no function of the host, and repeats for other values."""
    x = elements("float32", (2, 20_001), 7)

    def f(a):
        values, indices = mtl.top_k(a[:, ::-1], 5)
        counts = mtl.histogram(a, bins=7, range=(-9, 9))[0]
        return values, indices, mtl.searchsorted(mtl.sort(a[0]), a[1, ::2]), counts

    compiled = mtl.compile(f)
    for each in (x, x[::-1].copy()):
        own = mtl.asarray(each)
        assert "host" not in mtl.explain(*f(own))
        values, indices, points, counts = map(np.asarray, compiled(own))
        order = order_of(each[:, ::-1], -1, True)[:, :5]
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(
            bits(values), bits(np.take_along_axis(each[:, ::-1], order, 1))
        )
        np.testing.assert_array_equal(points, np.searchsorted(np.sort(each[0]), each[1, ::2]))
        finite = each[np.isfinite(each)]
        np.testing.assert_array_equal(counts, np.histogram(finite, 7, (-9, 9))[0])


@pytest.mark.needs("the CPU")
def test_the_setting_decides():
    x = mtl.arange(10)
    for how in ("host", "auto", "kernels"):
        with mtl.config.scope(sorting=how):
            is_by_kernel = "a kernel of the library" in mtl.explain(mtl.sort(x))
            assert is_by_kernel == (how != "host")


def test_the_rule():
    cpu, other, many = mtl.Device("cpu"), SimpleNamespace(name="metal"), 2**20
    float32, int16, complex64 = map(dtype_of, ("f4", "i2", "c8"))
    assert by_kernels("sort", float32, other, 10, "auto")
    assert by_kernels("argsort", float32, cpu, many, "auto")
    assert by_kernels("argsort", float32, cpu, 10, "auto")
    assert by_kernels("argsort", int16, cpu, 1000, "auto")
    assert not by_kernels("argsort", int16, cpu, many, "auto")
    assert not by_kernels("argsort", complex64, cpu, many, "auto")
    assert not by_kernels("argsort", float32, cpu, many, "host")
    assert by_kernels("argsort", float32, other, many, "host")


@pytest.mark.parametrize(
    ("name", "row", "total", "changes", "expected"),
    [
        ("f8", 2**20, 0, {}, False),
        ("f4", 1000, 2**16, {}, False),
        ("f8", 2**20, 0, {"vector_bytes": 32}, True),
        ("f8", 2**20, 0, {"cores": 2}, True),
        ("f8", 2**12, 2**12, {"cores": 2}, False),
        ("f8", 2**12, 2**14, {"cores": 2}, True),
        ("f2", 2**20, 0, {}, True),
        ("i8", 2**20, 0, {}, False),
        ("i8", 2**10, 2**20, {}, False),
        ("f8", 2**5, 0, {}, False),
        ("f8", 2**5 - 1, 2**20, {}, True),
        ("f4", 99, 2**20, {}, True),
    ],
)
def test_sorts_by_avx512_of_one_core_are_numpys(name, row, total, changes, expected):
    traits = FEW_CORES._replace(**{"cores": 1, "vector_bytes": 64} | changes)
    cpu = SimpleNamespace(name="cpu", traits=traits)
    with mtl.config.scope(num_threads=None):
        assert by_kernels("sort", dtype_of(name), cpu, row, "auto", total) == expected
        assert by_kernels("argsort", dtype_of(name), cpu, row, "auto", total)
        assert by_kernels("sort", dtype_of(name), cpu, row, "kernels", total)
