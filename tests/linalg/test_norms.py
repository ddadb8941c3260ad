"""Norms against NumPy's in double precision, of every order, along every axis."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as shapes
from stacks import ANY, TYPES, near, random, rounded_once, steps_of, wide

import metalloid as mtl

#: Types that do as the narrower ones do.
WIDE = ("float64", "complex128")
REAL = {"complex64": "float32", "complex128": "float64"}
ORDERS = (2, 1, 0, 3, 0.5, -1, -2, math.inf, -math.inf)


@given(shapes.array_shapes(max_dims=3, max_side=6), st.sampled_from(TYPES), st.sampled_from(ORDERS),
       st.booleans(), st.data())  # fmt: skip
@settings(max_examples=8)
def test_vector_norm(shape, dtype, order, keepdims, data):
    axes = st.none() | st.integers(-len(shape), len(shape) - 1)
    if len(shape) > 1:
        axes |= st.permutations(range(len(shape))).map(lambda order: tuple(order[:2]))
    axis = data.draw(axes)
    x = random(np.random.default_rng(len(shape)), shape, dtype)
    got = mtl.linalg.vector_norm(mtl.asarray(x), axis=axis, keepdims=keepdims, ord=order)
    assert got.dtype == REAL.get(dtype, dtype)
    want = np.linalg.vector_norm(wide(x), axis=axis, keepdims=keepdims, ord=order)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=64 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf, None])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        pytest.param(shape, dtype, marks=[pytest.mark.slow] * (dtype in WIDE and shape in ANY[1:]))
        for shape in ANY
        if 0 not in shape[-2:]
        for dtype in TYPES
    ],
)
@pytest.mark.sample(2, per="order")
def test_matrix_norm(rng, shape, dtype, order):
    x = random(rng, shape, dtype)
    want = np.linalg.matrix_norm(wide(x), ord="fro" if order is None else order)
    for keepdims in (False, True):
        got = mtl.linalg.matrix_norm(mtl.asarray(x), ord=order, keepdims=keepdims)
        assert got.dtype == REAL.get(dtype, dtype)
        assert got.shape == (*shape[:-2], *(1, 1) * keepdims)
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(got.numpy().reshape(want.shape), want, rtol=16 * eps)


def test_norms_of_nothing_are_zero():
    for order in (0, 1, 2, 3, math.inf):
        assert float(mtl.linalg.vector_norm(mtl.zeros(0), ord=order)) == 0
    for order in ("fro", "nuc", 1, 2, math.inf):
        assert mtl.linalg.matrix_norm(mtl.zeros((2, 0, 3)), ord=order).tolist() == [0, 0]
    assert mtl.linalg.vector_norm(mtl.zeros((0, 3)), axis=1, ord=math.inf).shape == (0,)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (2, 0), (-1, -3)])
@pytest.mark.parametrize("order", [None, 1, 2, -2, math.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norm_is_numpys(rng, axis, order, keepdims):
    x = random(rng, (4, 3, 5), "float32")
    if axis is None:
        x = x[0] if order is not None else x
    got = mtl.linalg.norm(mtl.asarray(x), order, axis, keepdims)
    near(got, np.linalg.norm(wide(x), order, axis, keepdims), 16)


def test_half_floats_are_squared_in_single_precision():
    for dtype in (mtl.float16, mtl.bfloat16):
        x = mtl.asarray([300.0, 400.0], dtype=dtype)
        norm = mtl.linalg.vector_norm(x)
        assert norm.dtype == dtype
        assert float(norm) == 500  # 300 squared is beyond float16


def test_integers_are_taken_as_float32():
    assert mtl.linalg.vector_norm(mtl.asarray([3, 4], dtype=mtl.int8)).dtype == mtl.float32
    assert float(mtl.linalg.matrix_norm(mtl.asarray([[100, 100]], dtype=mtl.int8), ord=1)) == 100


def test_norms_fuse():
    x = mtl.ones((64, 64))
    assert steps_of(mtl.linalg.vector_norm(x * 2 + 1, axis=1)) == ["kernel"]
    assert steps_of(mtl.linalg.vector_norm(x - 1, axis=1, ord=3) * 2) == ["kernel"]
    mtl.eval(x)
    assert steps_of(mtl.linalg.matrix_norm(x, ord=2)) == ["svdvals", "kernel"]


def test_one_rounding_of_singular_values(rng):
    x = random(rng, (3, 3), "float32")
    want = np.linalg.matrix_norm(wide(x), ord=2)
    rounded_once(mtl.linalg.matrix_norm(mtl.asarray(x), ord=2), want)
