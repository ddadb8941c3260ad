"""Products, diagonals and powers, element by element and against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as shapes
from stacks import ANY, SQUARE, TYPES, invertible, near, random, steps_of, wide

import metalloid as mtl


@given(shapes.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=5), st.integers(-7, 7))
@settings(max_examples=5)
def test_diagonal_and_trace(shape, offset):
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    got = mtl.linalg.diagonal(mtl.asarray(x), offset=offset)
    assert got.dtype == mtl.int32
    np.testing.assert_array_equal(got.numpy(), np.linalg.diagonal(x, offset=offset))
    trace = mtl.linalg.trace(mtl.asarray(x), offset=offset)
    assert trace.dtype == mtl.int64
    np.testing.assert_array_equal(trace.numpy(), np.linalg.trace(x, offset=offset))
    transposed = mtl.linalg.diagonal(mtl.asarray(x).mT, offset=offset)
    np.testing.assert_array_equal(transposed.numpy(), np.linalg.diagonal(x, offset=-offset))


def test_trace_takes_a_type():
    x = mtl.asarray([[100, 0], [0, 100]], dtype=mtl.int8)
    assert int(mtl.linalg.trace(x)) == 200
    assert mtl.linalg.trace(x, dtype=mtl.float32).dtype == mtl.float32


def test_a_diagonal_is_a_view():
    x = mtl.arange(9).reshape(3, 3)
    mtl.eval(x)
    assert steps_of(mtl.linalg.diagonal(x)) == []


@given(shapes.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4),
       st.integers(0, 3))  # fmt: skip
@settings(max_examples=3)
def test_cross(pair, axes_after):
    a, b = pair.input_shapes
    axes_after = min(axes_after, len(a), len(b))
    shape_a, shape_b = ((*s[: len(s) - axes_after], 3, *s[len(s) - axes_after :]) for s in (a, b))
    rng = np.random.default_rng(axes_after)
    x, y = rng.integers(-9, 9, shape_a), rng.integers(-9, 9, shape_b)
    axis = -1 - axes_after
    got = mtl.linalg.cross(mtl.asarray(x), mtl.asarray(y), axis=axis)
    x, y = np.broadcast_arrays(x, y)
    u, v = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    want = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
    np.testing.assert_array_equal(got.numpy(), np.moveaxis(np.array(want), 0, axis))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.sample(1)
def test_outer_and_vecdot(rng, dtype):
    a, b = random(rng, 5, dtype), random(rng, 7, dtype)
    near(mtl.linalg.outer(mtl.asarray(a), mtl.asarray(b)), wide(a)[:, None] * wide(b), 1)
    x, y = random(rng, (4, 3), dtype), random(rng, (2, 1, 3), dtype)
    got = mtl.linalg.vecdot(mtl.asarray(x), mtl.asarray(y))
    want = (np.conj(wide(x)) * wide(y)).sum(axis=-1)
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=8 * float(np.finfo(dtype).eps))
    assert got.dtype == dtype


def test_products_of_half_floats_in_single_precision():
    x = mtl.asarray([300.0, 300.0], dtype=mtl.float16)
    y = mtl.asarray([300.0, -300.0], dtype=mtl.float16)
    assert float(mtl.linalg.vecdot(x, y)) == 0  # 90000 is beyond float16


@pytest.mark.parametrize("n", [-5, -1, 0, 1, 2, 3, 10])
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.sample(3)
def test_matrix_power(rng, shape, n):
    x = (invertible(rng, shape, "float32") / 5).astype(np.float32)
    got = mtl.linalg.matrix_power(mtl.asarray(x), n)
    assert got.dtype == mtl.float32
    near(got, np.linalg.matrix_power(wide(x), n), 64)


def test_powers_of_integers_are_exact():
    fibonacci = mtl.asarray([[1, 1], [1, 0]])
    power = mtl.linalg.matrix_power(fibonacci, 90)
    assert power.dtype == mtl.int64
    assert int(power[0, 1]) == 2880067194370816120
    assert mtl.linalg.matrix_power(fibonacci, -1).dtype == mtl.float32


@given(shapes.array_shapes(max_dims=4, max_side=4), st.data())
@settings(max_examples=4)
def test_tensordot(shape, data):
    count = data.draw(st.integers(0, len(shape)))
    order = data.draw(st.permutations(range(len(shape))))
    other = (*(shape[k] for k in order[:count]), 2)
    rng = np.random.default_rng(count)
    x, y = rng.integers(-9, 9, shape), rng.integers(-9, 9, other)
    axes = (order[:count], list(range(count)))
    got = mtl.linalg.tensordot(mtl.asarray(x), mtl.asarray(y), axes=axes)
    np.testing.assert_array_equal(got.numpy(), np.tensordot(x, y, axes=axes))


@pytest.mark.parametrize("shape", ANY)
def test_transpose_is_a_view(rng, shape):
    x = random(rng, shape, "float32")
    array = mtl.asarray(x)
    got = mtl.linalg.matrix_transpose(array)
    assert steps_of(got) == []
    np.testing.assert_array_equal(got.numpy(), np.swapaxes(x, -1, -2))


def test_functions_of_arithmetic_fuse():
    x, y = mtl.ones((8, 3)), mtl.ones((8, 3))
    assert steps_of(mtl.linalg.vecdot(x + 1, y * 2)) == ["kernel"]
    assert steps_of(mtl.linalg.outer(x[0] * 2, y[0]) + 1) == ["kernel"]
    assert steps_of(mtl.linalg.trace(mtl.ones((4, 4)) * 2)) == ["kernel"]
