"""ElementwiseKernel against NumPy."""

import pickle

import ml_dtypes
import numpy as np
import pytest
from builder_arrays import FLOATS, INTEGERS, arrays, broadcast_pairs, shapes
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl

difference = mtl.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * T(2)", "difference")
squared = mtl.ElementwiseKernel("float x, float y", "float z", "z = (x - y) * (x - y)", "squared")


@settings(max_examples=8, deadline=None)
@given(st.data(), broadcast_pairs(), st.sampled_from((*INTEGERS, *FLOATS)))
def test_broadcasting_and_strides(data, pair, dtype):
    # Small whole numbers: every type holds the results (unsigned ones wrap around).
    x, y = (data.draw(arrays(shape, dtype, 0, 20)) for shape in pair)
    actual = difference(x, y)
    with np.errstate(over="ignore"):
        expected = (x - y) * np.asarray(2, dtype)
    assert actual.dtype == dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected.astype(dtype))


@settings(max_examples=4, deadline=None)
@given(st.data(), shapes(), st.sampled_from((np.float32, np.int16)))
def test_outputs_are_written_in_place_whatever_their_strides(data, shape, dtype):
    def elements(memory):
        """Every third element along each axis, in reverse."""
        third = memory[(..., *(slice(1, 3 * n + 1, 3) for n in shape))]
        return third[(..., *(slice(None, None, -1) for n in shape))]

    x = data.draw(arrays(shape, dtype))
    memory, expected = (np.full([3 * n + 1 for n in shape], 77, dtype) for _ in range(2))
    out = elements(memory)
    elements(expected)[...] = x * 2
    assert difference(x, 0, out) is out
    np.testing.assert_array_equal(memory, expected)


def test_special_values():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(squared(x, x[::-1]), (x - x[::-1]) ** 2)
    negate = mtl.ElementwiseKernel("T x", "T y", "y = -x", "negate")
    numbers = x[~np.isnan(x)]  # NaN has no specified sign
    assert np.signbit(negate(numbers)).tolist() == np.signbit(-numbers).tolist()


def test_complex_numbers_are_float2():
    x = np.array([1 + 2j, 3j, -4], np.complex64)
    square = mtl.ElementwiseKernel(
        "T x, float2 w", "T y", "y = w.x * T(x.x * x.x - x.y * x.y, 2 * x.x * x.y)", "square"
    )
    np.testing.assert_array_equal(square(x[::-1], 2 + 0j), 2 * x[::-1] ** 2)


def test_bool():
    x = np.array([True, False, True])
    invert = mtl.ElementwiseKernel("bool x", "bool y", "y = !x", "invert")
    assert invert(x[::-1]).tolist() == [False, True, False]


def test_multiple_outputs_and_types():
    split = mtl.ElementwiseKernel(
        "T x, U s", "T floored, bfloat rest, bool low",
        "floored = floor(x); rest = bfloat(x - floored); low = i < s;", "split",
    )  # fmt: skip
    x = np.array([[1.5, -2.25], [0, 7]], np.float32)
    floored, rest, low = split(x, np.uint8(2))
    assert floored.tolist() == [[1, -3], [0, 7]]
    assert rest.dtype == ml_dtypes.bfloat16
    assert rest.tolist() == [[0.5, 0.75], [0, 0]]
    assert low.tolist() == [[True, True], [False, False]]


def test_raw_parameters_are_indexed_by_the_operation():
    gather = mtl.ElementwiseKernel("raw T x, int at", "T y", "y = x[at]", "gather")
    x = np.arange(12, dtype=np.float16).reshape(3, 4)
    at = np.array([[0, 11], [5, 5]], np.int32)
    np.testing.assert_array_equal(gather(x, at), x.ravel()[at])
    np.testing.assert_array_equal(gather(x.T, at), x.T.ravel()[at])  # copied: not contiguous
    scatter = mtl.ElementwiseKernel("int at", "raw T x", "x[at] = T(at) + T(i)", "scatter")
    out = np.zeros(5, np.float32)
    scatter(np.array([4, 2], np.int32), out)
    assert out.tolist() == [0, 0, 3, 0, 4]
    mirror = mtl.ElementwiseKernel("raw T x, int n", "T y", "y = x[n - 1 - i]", "mirror")
    assert mirror(np.arange(4, dtype=np.int64), 4, size=3).tolist() == [3, 2, 1]


def test_numbers_take_the_type_of_the_arrays():
    x = np.array([1, 2], np.int8)
    assert difference(x, 1).dtype == np.int8
    assert difference(3, x).tolist() == [4, 2]
    assert difference(1, 2.5).dtype == np.float32
    assert difference(3, 1).dtype == np.int32
    with pytest.raises(mtl.ArgumentError, match="outside"):
        difference(x, 300)


def test_buffers_give_buffers():
    x = mtl.Buffer(np.arange(4, dtype=np.float32))
    result = difference(x, 1)
    assert isinstance(result, mtl.Buffer)
    negated = difference(result, x)
    assert np.asarray(negated).tolist() == [-4, -2, 0, 2]
    assert np.asarray(result).dtype == np.float32


def test_an_output_that_overlaps_an_input():
    x = np.arange(6, dtype=np.float32)
    difference(x[:-1], 0, x[1:])
    assert x.tolist() == [0, 0, 2, 4, 6, 8]
    difference(x, 0, x)  # the same elements: nothing is copied
    assert x.tolist() == [0, 0, 4, 8, 12, 16]


def test_swapped_byte_orders_and_odd_strides():
    x = np.arange(5, dtype=">f4")
    np.testing.assert_array_equal(difference(x, 1), (np.arange(5) - 1) * 2)
    packed = np.zeros(4, [("a", "i1"), ("v", "<f4")])
    packed["v"] = [1, 2, 3, 4]
    np.testing.assert_array_equal(difference(packed["v"], 0), [2, 4, 6, 8])
    difference(np.float32([1, 1, 1, 1]), 0, packed["v"])
    assert packed["v"].tolist() == [2, 2, 2, 2]


def test_one_text_for_arrays_of_one_structure():
    kernel = mtl.ElementwiseKernel("T x", "T y", "y = x", "copy")
    texts = set()
    for n in (3, 5):
        kernel(np.zeros((n, 2), np.float32))
        texts.add(kernel.source)
        kernel(np.zeros((2, n), np.float32).T)
        texts.add(kernel.source)
    assert len(texts) == 2


def test_the_text_is_readable():
    squared(np.float32([1, 2]), 1)
    assert squared.source.endswith(
        """kernel void squared(
    device const float *x_memory [[buffer(0)]],
    constant float &y [[buffer(1)]],
    device float *z_memory [[buffer(2)]],
    uint i [[thread_position_in_grid]])
{
  const float x = x_memory[i];
  device float &z = z_memory[i];
z = (x - y) * (x - y);
}
"""
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.ones(2, np.float32),), "expects 2 arguments"),
        ((np.ones(2), 1), "float64, which MSL does not support"),
        ((np.ones(2, np.int32), 1), "'x' expects float32; got int32"),
        ((np.ones(2, np.float32), np.ones(3, np.float32)), r"\(2,\) and \(3,\) do not broadcast"),
        ((np.ones(2, np.float32), 1, np.ones(3, np.float32)), "do not broadcast"),
        ((np.ones(3, np.float32), 1, np.ones(1, np.float32)), r"'z' has .*\(1,\); .* \(3,\)"),
        ((np.ones(2, np.float32), "x"), "'y' expects an array"),
        ((np.ones(2, np.float32), 1, 3), "'z' is an output"),
        ((np.ones(2, np.float32), 1, np.broadcast_to(np.float32(0), 2)), "read-only"),
    ],
)
def test_arguments_that_do_not_fit(arguments, words):
    with pytest.raises(mtl.ArgumentError, match=words) as caught:
        squared(*arguments)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: mtl.ElementwiseKernel("number x", "T y", "y = x"), "not an MSL scalar type"),
        (lambda: mtl.ElementwiseKernel("float", "T y", "y = x"), "is not a parameter"),
        (lambda: mtl.ElementwiseKernel("T x", "T x", "y = x"), "given twice"),
        (lambda: mtl.ElementwiseKernel("T i", "T y", "y = x"), "given twice"),
        (lambda: mtl.ElementwiseKernel("T x", "", "y = x"), "out_params is empty"),
        (lambda: mtl.ElementwiseKernel("T x", "T y", 3), "operation expects MSL source"),
        (lambda: mtl.ElementwiseKernel("T x", "T y", "y = x", "a b"), "letters, digits"),
        (lambda: mtl.ElementwiseKernel("T x", "U y", "y = x")(1), "cannot infer the type U"),
        (lambda: mtl.ElementwiseKernel("raw T x", "T y", "y = x[i]")(np.ones(2, np.float32)),
         "as size="),
        (lambda: difference(np.ones(2, np.float32), 1, size=2), "all raw"),
        (lambda: difference(np.ones(2, np.float32), np.ones(2, np.float16)),
         "'y' expects T, which 'x' makes float32; got float16"),
    ],
)  # fmt: skip
def test_what_is_no_kernel(build, words):
    with pytest.raises(mtl.ArgumentError, match=words):
        build()


def test_errors_are_at_the_users_own_lines():
    kernel = mtl.ElementwiseKernel(
        "T x", "T y", "T z = f(x);\ny = z + q;", "wrong", "float f(float x) { return x; }"
    )
    with pytest.raises(mtl.CompileError) as caught:
        kernel(np.ones(2, np.float32))
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == (
        "wrong.operation", 2, 9,
    )  # fmt: skip


def test_calls_with_the_same_types_are_repeated_without_the_preparation(monkeypatch):
    if mtl.default_device().memory != "host":
        pytest.skip("the default device has memory of its own: calls are prepared each time")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    kernel = mtl.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * T(2)", "repeated")
    for each in (x, mtl.asarray(x)):
        kernel(each, 1.0)
        monkeypatch.setattr(kernel, "_operands", None)
        result = kernel(each + 1, 0.5)
        assert type(result) is type(each)
        np.testing.assert_array_equal(np.asarray(result), (x + 0.5) * 2)
        monkeypatch.undo()
    copied = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(copied(x, 0.5), (x - 0.5) * 2)


def test_repeated_calls_follow_their_arguments():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    unaligned = np.zeros(49, np.uint8)[1:].view(np.float32).reshape(3, 4)
    kernel = mtl.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * T(2)", "followed")
    calls = [(x, x[::-1]), (x, 2.0), (x, 3), (x, x + 1), (x.T, x.T), (x[:, ::2], 2.0), (x, x[0]),
             (x[:1], x), (x, unaligned), (x.astype(np.int16), 3), (x.astype(">f4"), 2.0),
             (x.astype(np.int64), 2**40), (x[0], np.float32(2)), (x[0, 0], 2.0), (x[:0], 2.0),
             (mtl.asarray(x), x), (x, mtl.asarray(x)[::2][:1] + 1)]  # fmt: skip
    for _ in range(2):
        for a, b in calls:
            expected = (np.asarray(a) - np.asarray(b, np.asarray(a).dtype)) * np.asarray(2, a.dtype)
            result = kernel(a, b)
            np.testing.assert_array_equal(np.asarray(result), expected)
            assert np.asarray(result).dtype == expected.dtype.newbyteorder("=")
        out = x.copy()
        assert kernel(out, out[::-1].copy(), out) is out
        np.testing.assert_array_equal(out, (x - x[::-1]) * 2)
        with pytest.raises(mtl.ArgumentError, match="got float16"):
            kernel(x, x.astype(np.float16))
        with pytest.raises(mtl.ArgumentError, match="expects 2 arguments"):
            kernel(x)
