"""ReductionKernel and ScanKernel against NumPy."""

import functools
import math

import numpy as np
import pytest
from builder_arrays import FLOATS, INTEGERS, ROUNDOFF, arrays, shapes
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl

total = mtl.ReductionKernel("T x", "T y", "x", "a + b", "y = a", 0, "total")
dot = mtl.ReductionKernel("T x, T w", "T y", "x * w", "a + b", "y = a", 0, "dot")
running = mtl.ScanKernel("T x", "T y", "x", "a + b", 0, name="running")
before = mtl.ScanKernel("T x", "T y", "x", "a + b", 0, inclusive=False, name="before")
BEST = "struct Best { float value; int at; };"
best = mtl.ReductionKernel(
    "float x", "int y", "Best{x, int(i)}",
    "a.value > b.value || (a.value == b.value && a.at < b.at) ? a : b", "y = a.at",
    "Best{-INFINITY, 2147483647}", "best", "Best", BEST,
)  # fmt: skip
#: The last number that is not 0: associative, not commutative.
last = mtl.ScanKernel(
    "int x", "int y", "Last{x, x != 0}", "b.seen ? b : a", "Last{0, false}", post_map_expr="y = a.v",
    scan_type="Last", preamble="struct Last { int v; bool seen; };", name="last_seen",
)  # fmt: skip


def slow(value):
    return pytest.param(value, marks=pytest.mark.slow)


def axes_of(draw, ndim):
    chosen = draw(st.lists(st.integers(0, ndim - 1), unique=True)) if ndim else []
    signed = tuple(draw(st.sampled_from([a, a - ndim])) for a in chosen)
    return draw(st.sampled_from([None, signed]))


@settings(max_examples=3, deadline=None)  # most are kernels of their own
@given(st.data(), shapes(4), st.sampled_from((*INTEGERS, *FLOATS)), st.booleans())
def test_sums(data, shape, dtype, keepdims):
    x = data.draw(arrays(shape, dtype, 0, 3))
    axis = axes_of(data.draw, len(shape))
    actual = total(x, axis=axis, keepdims=keepdims)
    expected = x.astype(np.int64).sum(axis=axis, keepdims=keepdims)
    assert actual.shape == expected.shape
    assert actual.dtype == dtype
    if dtype in INTEGERS:
        expected = expected.astype(dtype)
    bound = 8 * ROUNDOFF.get(dtype, 0) * np.abs(expected.astype(float))
    assert np.all(np.abs(actual.astype(float) - expected) <= bound)


@settings(max_examples=3, deadline=None)
@given(st.data(), shapes(3, 40))
def test_products_of_broadcast_arrays(data, shape):
    x = data.draw(arrays(shape, np.float32))
    w = data.draw(arrays(shape[1:], np.float32))
    axis = axes_of(data.draw, len(shape))
    np.testing.assert_array_equal(
        dot(x, w, axis=axis), (x.astype(np.float64) * w).sum(axis=axis)
    )  # whole numbers: no rounding


@pytest.mark.parametrize("count", [31, 32, 33, 255, 4096, 4097, 300_000])
@pytest.mark.parametrize("dtype", [np.float32, slow(np.float16), np.int64, slow(np.uint8)])
@pytest.mark.sample(2)
def test_counts_around_the_sizes_of_chunks(count, dtype):
    x = np.random.default_rng(count).integers(0, 2, count).astype(dtype)
    x[50:] *= dtype is not np.float16  # half holds whole numbers up to 2048
    expected = x.astype(np.int64).sum().astype(dtype)
    assert total(x) == expected
    table = np.stack([x, x[::-1], 0 * x], axis=1)
    assert total(table, axis=0).tolist() == [expected, expected, 0]
    assert total(table.T.copy(), axis=1).tolist() == [expected, expected, 0]


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_rounding_errors_grow_like_the_logarithm(layout):
    # One after the other these would be wrong by some thousand units of roundoff.
    x = np.full((500_000, 2), 0.1, np.float32)
    actual = total(x if layout == "columns" else np.ascontiguousarray(x.T).T, axis=0)
    exact = x.astype(np.float64).sum(axis=0)
    steps = 32 + math.log2(len(x))
    assert np.all(np.abs(actual - exact) <= steps * 2**-24 * exact)


def test_nan_and_infinities_reach_the_result():
    for at in (0, 100, 9_999):
        x = np.ones(10_000, np.float32)
        x[at] = np.nan
        assert np.isnan(total(x))
        assert np.isnan(running(x)[at:]).all()
        assert not np.isnan(running(x)[:at]).any()
        x[at] = -np.inf
        assert total(x) == -np.inf


def test_the_largest_with_its_index():
    x = np.random.default_rng(7).integers(0, 50, (7, 6_000)).astype(np.float32)
    assert best(x) == x.argmax()
    actual = best(x, axis=1)
    assert np.array_equal(actual - np.arange(7) * 6_000, x.argmax(axis=1))


def test_a_reduction_ends_with_statements():
    moments = mtl.ReductionKernel(
        "float x", "float mean, float deviation", "float2(x, x * x)", "a + b",
        "mean = a.x / n; deviation = sqrt(a.y / n - mean * mean);", "float2(0)", "moments",
        "float2", "constant float n = 4;",
    )  # fmt: skip
    mean, deviation = moments(np.float32([1, 3, 1, 3]))
    assert (mean, deviation) == (2, 1)


def test_reductions_write_where_they_are_told():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros((3, 2), np.float32)[::-1, 1]
    assert total(x, axis=1, out=out) is out
    assert out.tolist() == [6, 22, 38]
    assert total(x, out, axis=1) is out
    with pytest.raises(mtl.ArgumentError, match=r"shape \(3,\); the result has \(4,\)"):
        total(x, axis=0, out=out)
    with pytest.raises(mtl.ArgumentError, match="passed twice"):
        total(x, out, out=out)
    base = np.zeros(4, np.float32)
    base[:] = 1
    total(base, out=base[2:3].reshape(()))
    assert base.tolist() == [1, 1, 4, 1]


def test_buffers_give_buffers():
    x = mtl.Buffer(np.arange(10_000, dtype=np.int64))
    assert np.asarray(total(x)).item() == 49_995_000
    assert np.array_equal(np.asarray(running(x)), np.arange(10_000).cumsum())


@settings(max_examples=3, deadline=None)
@given(st.data(), shapes(3, 9), st.sampled_from((*INTEGERS, np.float32)), st.booleans())
def test_scans(data, shape, dtype, inclusive):
    shape = (*shape, 3)
    x = data.draw(arrays(shape, dtype, 0, 3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    actual = (running if inclusive else before)(x, axis=axis)
    expected = x.astype(np.int64).cumsum(axis=axis) - (0 if inclusive else x.astype(np.int64))
    np.testing.assert_array_equal(actual, expected.astype(dtype))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 255, 2047, 2048, 2049, 70_000])
@pytest.mark.parametrize("dtype", [np.int32, slow(np.uint8), slow(np.int64)])
@pytest.mark.sample(2)
def test_scans_around_the_sizes_of_chunks(count, dtype):
    x = np.random.default_rng(count).integers(0, 100, (2, count)).astype(dtype)
    np.testing.assert_array_equal(running(x, axis=1), x.cumsum(axis=1, dtype=dtype))
    np.testing.assert_array_equal(before(x, axis=1), x.cumsum(axis=1, dtype=dtype) - x)
    np.testing.assert_array_equal(running(x.T, axis=0), x.T.cumsum(axis=0, dtype=dtype))


def test_scans_of_three_levels():
    count = 2048 * 2048 + 5
    x = np.ones(count, np.int32)
    np.testing.assert_array_equal(running(x), np.arange(1, count + 1))


def test_scans_preserve_the_order():
    x = np.random.default_rng(3).integers(0, 3, 5_000).astype(np.int32)
    x[np.random.default_rng(4).random(5_000) < 0.9] = 0
    expected = functools.reduce(lambda seen, v: [*seen, v or seen[-1]], x[1:].tolist(), [int(x[0])])
    assert last(x).tolist() == expected


def test_errors_of_scans_grow_like_the_logarithm():
    x = np.full(300_000, 0.1, np.float32)
    exact = x.astype(np.float64).cumsum()
    assert np.all(np.abs(running(x) - exact) <= (8 + 2 * math.log2(x.size)) * 2**-24 * exact)


def test_empty():
    assert total(np.zeros((0, 3), np.float32), axis=0).tolist() == [0, 0, 0]
    assert total(np.zeros((0, 3), np.float32), axis=1).shape == (0,)
    assert running(np.zeros((0, 3), np.int32), axis=1).shape == (0, 3)
    assert total(np.zeros(0, np.int8)) == 0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: total(np.ones(3, np.float32), axis=1), "axis 1 is invalid"),
        (lambda: total(np.ones((3, 3), np.float32), axis=(0, -2)), "and occur once"),
        (lambda: total(np.ones(3, np.float32), axis="x"), "axis expects an int"),
        (lambda: total(3), "expects an array"),
        (lambda: running(np.ones((2, 2), np.float32)), "axis=None must name"),
        (lambda: mtl.ReductionKernel("T x", "T y", "", "a + b", "y = a", 0), "map_expr is empty"),
        (lambda: mtl.ReductionKernel("T a", "T y", "a", "a + b", "y = a", 0), "given twice"),
        (lambda: mtl.ScanKernel("T x", "raw T y", "x", "a + b", 0), "outputs cannot be raw"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(build, words):
    with pytest.raises(mtl.ArgumentError, match=words):
        build()


def test_errors_are_at_the_users_own_expressions():
    kernel = mtl.ReductionKernel("T x", "T y", "x", "a + q", "y = a", 0, "wrong")
    with pytest.raises(mtl.CompileError) as caught:
        kernel(np.ones(2, np.float32))
    assert (caught.value.filename, caught.value.lineno) == ("wrong.expression", 1)


def test_builders_write_portable_msl():
    x = np.ones((2, 3), np.float32)
    step = mtl.ElementwiseKernel("T x, raw T w, int n", "T y, bool z", "y = x + w[n]; z = i > 3")
    step(x.T[::-1], x, 1)
    for kernel in (total, dot, best, running, before, last):
        kernel(
            *[x.astype(np.int32 if kernel is last else np.float32)] * len(kernel.in_params), axis=1
        )
    for kernel in (step, total, dot, best, running, before, last):
        mtl.library(kernel.source, portable=True)
