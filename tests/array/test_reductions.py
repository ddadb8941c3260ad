"""Reductions against NumPy in double precision, over shapes, axes, orders and types."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl

DTYPES = ["int8", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64", "bool"]
LIKE_OTHERS = ("uint8", "int16", "uint32")
RNG = np.random.default_rng(7)


@st.composite
def layouts(draw):
    """A NumPy array in any order: reversed, strided, transposed, repeated."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    x = np.random.default_rng(draw(st.integers(0, 99))).standard_normal([2 * n for n in shape])
    x = x.astype(np.float32)[
        tuple(slice(None, None, draw(st.sampled_from([2, -2]))) for _ in shape)
    ]
    x = x.transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        x = np.broadcast_to(x, (3, *x.shape))
    return x


@settings(max_examples=4, deadline=None)
@given(x=layouts(), data=st.data())
def test_any_axes_of_any_layout(x, data):
    own = (
        mtl.from_dlpack(np.ascontiguousarray(x.T)).T if data.draw(st.booleans()) else mtl.asarray(x)
    )
    axes = data.draw(st.sets(st.sampled_from(range(x.ndim)))) or None
    axis = None if axes is None else tuple(axes)
    keepdims = data.draw(st.booleans())
    exact = x.astype(np.float64)
    for name in ("sum", "max", "mean", "var"):
        got = np.asarray(getattr(mtl, name)(own, axis=axis, keepdims=keepdims))
        expected = getattr(np, name)(exact, axis=axis, keepdims=keepdims)
        assert got.shape == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype", [pytest.param(t, marks=[pytest.mark.slow] * (t in LIKE_OTHERS)) for t in DTYPES]
)
@pytest.mark.parametrize("axis", [0, pytest.param(1, marks=pytest.mark.slow), None])
@pytest.mark.sample(2)
def test_every_type(dtype, axis):
    x = (RNG.standard_normal((40, 50)) * 5).astype(dtype)
    own = mtl.asarray(x)
    wide = np.float64 if "float" in dtype else None
    np.testing.assert_allclose(
        np.asarray(own.sum(axis=axis)), x.sum(axis=axis, dtype=wide),
        rtol=2e-3 if dtype == "float16" else 1e-6, atol=0.05 if dtype == "float16" else 1e-4,
    )  # fmt: skip
    np.testing.assert_array_equal(np.asarray(own.max(axis=axis)), x.max(axis=axis))
    np.testing.assert_array_equal(np.asarray(own.min(axis=axis)), x.min(axis=axis))
    np.testing.assert_array_equal(np.asarray(own.argmax(axis=axis)), x.argmax(axis=axis))
    np.testing.assert_array_equal(np.asarray(own.argmin(axis=axis)), x.argmin(axis=axis))
    np.testing.assert_array_equal(np.asarray(own.any(axis=axis)), x.any(axis=axis))
    np.testing.assert_array_equal(np.asarray(own.all(axis=axis)), x.all(axis=axis))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((150, 300), "float32"),  # two blocks of rows; a last group of fewer columns
        *(
            pytest.param(shape, dtype, marks=pytest.mark.slow)
            for shape in ((70, 4100), (5, 20, 70), (2000, 1000))
            for dtype in ("float32", "float64", "float16", "int32")
        ),
    ],
)
def test_lanes_with_multiple_columns(shape, dtype):
    x = (RNG.standard_normal(shape) * (1 if dtype == "float16" else 8)).astype(dtype)
    scale = np.arange(shape[-1]).astype(dtype)
    own, axis = mtl.asarray(x), len(shape) - 2
    got = np.asarray(mtl.max(mtl.abs(own), axis=axis) * scale + mtl.max(own, axis=axis))
    expected = np.abs(x).max(axis=axis) * scale + x.max(axis=axis)
    np.testing.assert_allclose(got, expected, rtol=2e-3 if dtype == "float16" else 1e-6)
    wide = x.astype("float64" if "float" in dtype else dtype)
    got = np.asarray(mtl.sum(own * own, axis=axis)).astype(wide.dtype)
    error = {"float16": 2e-3, "float32": 1e-5}.get(dtype, 1e-12)
    np.testing.assert_allclose(got, (wide * wide).sum(axis=axis), rtol=error)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(5001, 16), *(pytest.param(*case, marks=pytest.mark.slow) for case in
                   ((8195, 8), (16387, 4), (10000, 16), (10001, 32), (5003, 24), (40001, 2)))],
)  # fmt: skip
def test_a_vector_by_a_matrix_of_few_columns(rows, columns):
    vector, matrix = RNG.random(rows, np.float32), RNG.random((rows, columns), np.float32)
    exact = vector.astype(float) @ matrix
    x, y = mtl.asarray(vector), mtl.asarray(matrix)
    np.testing.assert_allclose(np.asarray(x @ y), exact, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(y.T @ x), exact, rtol=1e-5)
    shifted = np.asarray(mtl.sum(y * x[::-1, None] + y[0], axis=0))
    exact = (matrix * vector[::-1, None].astype(float) + matrix[0]).sum(axis=0)
    np.testing.assert_allclose(shifted, exact, rtol=1e-5)


def test_integers_wrap():
    x = mtl.asarray(np.array([2**62, 2**62, 2**62], np.int64))
    assert int(x.sum()) == 3 * 2**62 - 2**64
    assert mtl.sum(x, dtype=mtl.int8).dtype == np.int8


@pytest.mark.parametrize("n", [1000, 5000, 2**16 + 3, 2**22 + 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.sample(2)
def test_the_error_of_sums_grows_slowly(n, axis):
    """Terms added one after the other would be off by hundreds of units here."""
    x = RNG.random((n, 1) if axis == 0 else (1, n), np.float32) + np.float32(0.1)
    got = float(mtl.asarray(x).sum(axis=axis)[0])
    exact = float(np.sum(x, dtype=np.float64))
    assert abs(got - exact) <= 4 * np.log2(n) * 2**-24 * exact


def test_nan_and_ties():
    x = mtl.asarray([1.0, float("nan"), 3.0, float("nan")])
    assert np.isnan(float(x.max()))
    assert np.isnan(float(x.min()))
    assert int(x.argmax()) == 1
    assert int(mtl.argmax(mtl.asarray([2, 7, 7, 1]))) == 1
    assert int(mtl.argmin(mtl.asarray([2, -7.5, -7.5, 1]))) == 1
    assert int(mtl.argmax(mtl.asarray([-np.inf, -np.inf]))) == 0


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_nothing_to_add(shape):
    x = np.zeros(shape, np.float32)
    own = mtl.asarray(x)
    for axis in range(x.ndim):
        np.testing.assert_array_equal(np.asarray(own.sum(axis=axis)), x.sum(axis=axis))
        np.testing.assert_array_equal(np.asarray(own.prod(axis=axis)), x.prod(axis=axis))
    with pytest.raises(ValueError, match="there are no elements"):
        own.max()


def test_32_axes():
    shape = (1, 2) * 5 + (1,) * 22
    x = np.arange(32, dtype=np.float32).reshape(shape)
    own = mtl.asarray(x) * 2
    np.testing.assert_array_equal(np.asarray(own.sum(axis=(1, 5))), (x * 2).sum(axis=(1, 5)))
    np.testing.assert_array_equal(np.asarray(mtl.flip(own)), np.flip(x * 2))


@pytest.mark.parametrize("shape", [(7, 33), (300, 5), (5, 3000), (2, 70_000)])
@pytest.mark.sample(1)
def test_rows_that_are_normalised(shape):
    x = RNG.standard_normal(shape).astype(np.float32)
    own, exact = mtl.asarray(x), x.astype(np.float64)
    e = mtl.exp(own - own.max(axis=1, keepdims=True))
    soft = np.exp(exact - exact.max(1, keepdims=True))
    np.testing.assert_allclose(
        np.asarray(e / e.sum(axis=1, keepdims=True)), soft / soft.sum(1, keepdims=True), rtol=1e-5
    )
    normal = (own - own.mean(axis=1, keepdims=True)) / own.std(axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.asarray(normal), (exact - exact.mean(1, keepdims=True)) / exact.std(1, keepdims=True),
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip
    np.testing.assert_allclose(
        np.asarray(mtl.log(mtl.sum(mtl.exp(own), axis=1))), np.log(np.exp(exact).sum(1)), rtol=1e-5
    )


SEARCHED = {
    "ties": lambda x: np.round(x * 3),
    "all the same": lambda x: np.zeros_like(x),
    "nothing above": lambda x: np.full_like(x, -np.inf),
    "nothing below": lambda x: np.full_like(x, np.inf),
    "NaN": lambda x: np.where(np.abs(x) > 2.5, np.nan, x),
    "NaN at the end": lambda x: np.concatenate([x.ravel()[:-1], [np.nan]]).reshape(x.shape),
}


@pytest.mark.parametrize("values", SEARCHED)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((5,), None), ((100_003,), None), ((3, 70), 1), ((70, 3), 0), ((40, 5), 1), ((2, 90_000), 1),
     ((90_000, 2), 0), ((4, 30, 5), 1)],
)  # fmt: skip
@pytest.mark.sample(1, per="shape")
def test_indices_of_the_first_of_all(values, shape, axis):
    x = SEARCHED[values](np.random.default_rng(7).standard_normal(shape)).astype(np.float32)
    own = mtl.asarray(x)
    np.testing.assert_array_equal(own.argmax(axis=axis), x.argmax(axis=axis))
    np.testing.assert_array_equal(own.argmin(axis=axis), x.argmin(axis=axis))
    flipped = mtl.flip(own + 0)
    np.testing.assert_array_equal(flipped.argmax(axis=axis), np.flip(x).argmax(axis=axis))


@pytest.mark.parametrize(
    "dtype",
    ["bool", "float16", *(pytest.param(t, marks=pytest.mark.slow) for t in ("uint64", "float64"))],
)
@pytest.mark.sample(1)
def test_indices_in_other_types(dtype):
    x = np.random.default_rng(8).integers(0, 9, (3, 50_000)).astype(dtype)
    own = mtl.asarray(x)
    for axis in (1, None):
        np.testing.assert_array_equal(own.argmax(axis=axis), x.argmax(axis=axis))
        np.testing.assert_array_equal((~own if dtype == "bool" else -own).argmin(axis=axis),
                                      (~x if dtype == "bool" else 0 - x).argmin(axis=axis))  # fmt: skip


def test_a_search_fused_with_a_sum():
    """One kernel for both, whose sums are added up in blocks."""
    x = np.random.default_rng(9).integers(0, 1000, (600, 5000)).astype(np.float32)
    own = mtl.asarray(x)
    got = own.sum(axis=1) + own.argmax(axis=1).astype(mtl.float32)
    if not own.device.traits.is_simt:  # they add less each
        assert got.msl().count("block_end") > 0
    assert got.msl().count("kernel void") == 1
    np.testing.assert_array_equal(got, x.sum(1) + x.argmax(1))


@pytest.mark.parametrize(("name", "dtype"), [
    ("max", "float64"),
    *(pytest.param(name, dtype, marks=pytest.mark.slow) for name, dtype in [
        ("min", "float64"), ("max", "float32"), ("min", "float16"), ("max", "bfloat16")]),
])  # fmt: skip
def test_extremes_of_long_rows_with_nan(name, dtype):
    """The rows are searched with several accumulators; 20,002 is no multiple of their steps."""
    for location in None, 0, 40, 127, 128, 9999, 20001:
        rows = np.random.default_rng(0).standard_normal((2, 20_002)).astype("float16")
        rows[1] = -np.inf if name == "max" else np.inf
        if location is not None:
            rows[:, location] = np.nan
        x = mtl.asarray(rows).astype(getattr(mtl, dtype))
        exact = x.astype(mtl.float64).numpy()
        for axis in 1, None:
            got = getattr(mtl, name)(x, axis=axis).astype(mtl.float64)
            np.testing.assert_array_equal(got.numpy(), getattr(np, name)(exact, axis=axis))
