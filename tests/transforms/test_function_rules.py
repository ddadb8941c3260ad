"""Derivatives and batching of sorts, searches, counts, convolution and pooling."""

import functools

import numpy as np
import pytest
from derivatives import check_derivatives, check_vmap, random

import metalloid as mtl

INDICES = np.array([3, 0, 7, 3, 1, 9])


def close(result, expected):
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)


def some(names, *fast):
    """All names; the others than the fast ones are slow, as each compiles its kernels."""
    return [pytest.param(n, marks=[pytest.mark.slow] * (n not in fast)) for n in names]


#: Functions of one array of shape (5, 6), whose result is differentiable.
DIFFERENTIABLE = {
    "sort": lambda x: mtl.sort(x, axis=0),
    "sort of rows": lambda x: mtl.sort(x[:, ::2] * 2, descending=True),
    "top_k": lambda x: mtl.top_k(x, 2, axis=0),
    "top_k of rows": lambda x: mtl.top_k(x, 9),
    "bincount with weights": lambda x: mtl.bincount(INDICES, weights=x[1] * x[2], minlength=12),
    "histogram with weights": lambda x: mtl.histogram(
        mtl.stop_gradient(x), bins=3, range=(-0.5, 1), weights=x
    )[0],
    "values at an argsort": lambda x: x[0][mtl.argsort(x[1])] * mtl.argsort(x[0]),
}
FAST = ("sort", "top_k of rows", "bincount with weights", "values at an argsort")


@pytest.mark.parametrize("name", some(DIFFERENTIABLE, *FAST))
@pytest.mark.sample(1)
def test_derivatives(name):
    check_derivatives(DIFFERENTIABLE[name], random(5, 6))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.sample(1)
def test_vmap(name):
    check_vmap(DIFFERENTIABLE[name], random(5, 6))


def searchable(x, y):
    """Integer results, as floats so that they are compared."""
    ordered = mtl.sort(x.flatten())
    return [
        part.astype(mtl.float64)
        for part in (
            mtl.searchsorted(ordered, y, side="left"),
            mtl.searchsorted(ordered, y, side="right"),
            mtl.isin(y, x),
            mtl.isin(y, x[:0], invert=True),
            mtl.histogram(y, bins=4)[0],
            mtl.histogram(y, bins=ordered)[0],
            mtl.argsort(y, axis=0, descending=True),
            mtl.top_k(y, 2)[1],
        )
    ]


@pytest.mark.parametrize("dtype", some(["float64", "int8", "bool"], "float64"))
def test_vmap_of_searches(dtype):
    def function(x, y):
        values = [(a * 2).astype(dtype) for a in (x, y)]
        return searchable(*values)[: None if dtype == "float64" else 3]

    x, y = random(2, 3), random(4, 5)
    y[:, 2] = x[0, 1]
    check_vmap(function, x, y)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searches_order_nan_last_and_complex_numbers_by_parts(side):
    special = [np.nan, np.inf, -0.0, 0.0, -np.inf, 1.0, np.nan]
    rows = np.stack([np.sort(special), np.sort(np.flip(special) * 2)])
    parts = np.random.default_rng(0).integers(0, 2, (2, 9)) + 1j * (np.arange(9) % 3)
    for stack in (rows, np.sort(parts, axis=1), np.zeros((2, 0))):
        values = stack if stack.size else rows
        search = functools.partial(mtl.searchsorted, side=side)
        result = mtl.vmap(search)(mtl.asarray(stack), mtl.asarray(values))
        expected = [np.searchsorted(a, v, side) for a, v in zip(stack, values, strict=True)]
        np.testing.assert_array_equal(np.asarray(result), expected)


def test_equal_elements_are_sorted_as_by_argsort():
    x, along = mtl.asarray([2.0, 1.0, 2.0, 1.0]), mtl.asarray([1.0, 2.0, 3.0, 4.0])

    def results(a):
        return [mtl.sort(a), mtl.sort(a, descending=True), mtl.top_k(a, 1)[0]]

    _, tangents = mtl.jvp(results, [x], [along])
    assert [t.tolist() for t in tangents] == [[2, 4, 1, 3], [1, 3, 2, 4], [1]]


def test_indices_have_no_derivative():
    x = mtl.asarray(random(6))
    gradient = mtl.grad(lambda a: (mtl.searchsorted(mtl.sort(a), a) * a).sum())(x)
    np.testing.assert_array_equal(np.asarray(gradient), np.argsort(np.argsort(np.asarray(x))))


#: Shape of an array and of weights, stride, padding, dilation, groups.
CONVOLUTIONS = {
    "plain": ((2, 5, 3), (2, 3, 3), 1, 0, 1, 1),
    "stride with a remainder": ((1, 8, 2), (4, 2, 1), 3, 1, 1, 2),
    "dilation": ((2, 9, 2), (3, 3, 2), 2, 0, 3, 1),
    "two axes": ((2, 6, 5, 4), (6, 3, 2, 2), (2, 1), (1, 0), (1, 2), 2),
    "each channel": ((1, 4, 4, 3), (6, 2, 2, 1), 1, 1, 1, 3),
    "single elements": ((2, 3, 4, 2), (3, 1, 1, 2), (2, 3), 0, 1, 1),
    "three axes": ((1, 4, 3, 5, 2), (2, 2, 3, 2, 2), (1, 1, 2), (0, 1, 0), (2, 1, 1), 1),
}


def convolution(name, **options):
    shape, filters, *numbers = CONVOLUTIONS[name]
    points = random(*shape, **options), random(*filters, **options)
    return lambda x, w: mtl.conv_general(x, w, *numbers), *points


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", some(CONVOLUTIONS, "two axes"))
def test_convolution(name, order):
    function, x, w = convolution(name)
    check_derivatives(function, x, w, order=order)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_by_one_operand(name):
    function, x, w = convolution(name)
    check_derivatives(lambda x: function(x, mtl.asarray(w)), x, order=1)
    check_derivatives(lambda w: function(mtl.asarray(x), w), w, order=1)


@pytest.mark.slow
def test_complex_convolution():
    check_derivatives(*convolution("two axes", is_complex=True), order=1)


@pytest.mark.parametrize("name", some(CONVOLUTIONS, "two axes"))
@pytest.mark.slow
def test_vmap_of_convolution(name):
    function, x, w = convolution(name)
    check_vmap(function, x, w)
    check_vmap(mtl.grad(lambda x, w: (function(x, w) ** 2).sum(), argnums=(0, 1)), x, w)


#: Size, stride, padding of windows in an array of shape (2, 7, 5, 3).
POOLS = {
    "tiles": (2, None, 0),
    "padded tiles": ((3, 2), None, 1),
    "overlapping": (3, 2, 1),
    "gaps": ((1, 2), (2, 3), 0),
    "all": ((7, 5), 1, 0),
}


@pytest.mark.parametrize("name", some(POOLS, "padded tiles", "overlapping"))
@pytest.mark.parametrize("pool", [mtl.max_pool, mtl.avg_pool])
@pytest.mark.sample(1)
def test_pooling(pool, name):
    x = random(2, 7, 5, 3)
    check_derivatives(lambda a: pool(a, *POOLS[name]), x, order=1)
    check_vmap(lambda a: pool(a, *POOLS[name]), x)
    check_vmap(mtl.grad(lambda a: (pool(a, *POOLS[name]) ** 2).sum()), x)


@pytest.mark.parametrize("stride", [2, 1])
def test_equal_maxima_share_the_gradient(stride):
    x = mtl.asarray([1.0, 3.0, 3.0, 3.0, 3.0, 0.0]).reshape(1, 6, 1)
    gradient = mtl.grad(lambda a: mtl.max_pool(a, 2, stride).sum())(x)
    expected = {2: [0, 1, 0.5, 0.5, 1, 0], 1: [0, 1.5, 1, 1, 1.5, 0]}[stride]
    close(gradient.flatten(), expected)


def test_half_floats():
    x = mtl.asarray(random(1, 6, 2), dtype=mtl.float16)
    w = mtl.asarray(random(3, 2, 2), dtype=mtl.float16)
    gradients = mtl.grad(lambda x, w: mtl.avg_pool(mtl.conv1d(x, w), 5).sum(), argnums=(0, 1))
    pairs = zip(gradients(x, w), gradients(*(a.astype(mtl.float32) for a in (x, w))), strict=True)
    for half, single in pairs:
        assert half.dtype == mtl.float16
        np.testing.assert_allclose(np.asarray(half), np.asarray(single), rtol=2e-3, atol=5e-4)


def test_no_elements():
    x, w = mtl.zeros((0, 5, 2)), mtl.ones((3, 2, 2))
    gradient = mtl.grad(lambda w: mtl.conv1d(x, w).sum() + mtl.max_pool(x, 2, 1).sum())(w)
    assert not np.asarray(gradient).any()
    stacked = mtl.vmap(lambda a: mtl.avg_pool(a, 2))(mtl.zeros((0, 1, 4, 2)))
    assert stacked.shape == (0, 1, 2, 2)


def test_compiled_programs_pass_views_of_their_inputs():
    function, x, w = convolution("two axes")

    def loss(x, w):
        pooled = mtl.max_pool(function(x, w), 2, 1)
        return (mtl.sort(pooled, axis=1) ** 2).sum() + mtl.top_k(x, 2, axis=1)[0].sum()

    gradients = mtl.grad(loss, argnums=(0, 1))
    compiled = mtl.compile(gradients)
    for _ in range(2):
        x, w = random(*x.shape), random(*w.shape)
        args = mtl.asarray(x), mtl.asarray(w)
        for result, expected in zip(compiled(*args), gradients(*args), strict=True):
            np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))
