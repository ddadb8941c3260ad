"""Dot products, few results whose depth is split, and products that are sums of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from product_oracles import check, random

import metalloid as mtl


@settings(max_examples=4, deadline=None)
@given(
    rows=st.sampled_from([1, 3, 70]),
    columns=st.sampled_from([1, 5, 37]),
    depth=st.sampled_from([0, 1, 31, 64, 133]),
    dtype=st.sampled_from(["float32", "float64", "bfloat16", "int8"]),
    batch=st.sampled_from([(), (2,)]),
)
def test_dot_products(rows, columns, depth, dtype, batch):
    a, b = random((*batch, rows, depth), dtype), random((columns, depth), dtype)
    with mtl.config.scope(products="dots"):
        product = mtl.asarray(a) @ mtl.asarray(b).T
        if rows > 1 and columns > 1 and depth > 1:
            assert "multiply_in_dots" in mtl.explain(product)
    check(product, a, b.T)


@pytest.mark.needs("the CPU")
def test_dot_products_of_pairs_of_bfloats():
    """Pairs need not be aligned, and the last ones do not fill a register."""
    a, b = random((67, 2 * 70 + 1), "bfloat16"), random((37, 2 * 70 + 1), "bfloat16")
    with mtl.config.scope(products="dots"):
        product = mtl.asarray(a)[:, 1:] @ mtl.asarray(b)[:, :-1].T
        has_pairs = mtl.default_device().traits.has_bfloat_dots
        assert ("read_pair" in mtl.explain(product)) == has_pairs
    check(product, a[:, 1:], b[:, :-1].T)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("dtype", ["float16", "int8", "bfloat16"])
def test_few_rows_are_sums(dtype):
    a, b = random((2, 300), dtype), random((300, 200), dtype)
    product = mtl.asarray(a) @ mtl.asarray(b)
    assert "_sum ->" in mtl.explain(product) or "_sum_astype ->" in mtl.explain(product)
    check(product, a, b)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8"])
@pytest.mark.sample(1)
def test_a_row_times_a_matrix(dtype):
    """Columns are those of a threadgroup, and all numbers of columns that are left over."""
    for columns, stack in ((512, ()), (128 + 64, ()), (256 + 97, ()), (128 + 33, (3,))):
        a, b = random((*stack, 1, 130), dtype), random((130, columns), dtype)
        with mtl.config.scope(products="panels"):  # BLAS may take less time
            product = mtl.asarray(a) @ mtl.asarray(b)
            reversed_product = mtl.asarray(a) @ mtl.asarray(b[::-1].copy())[::-1]
        assert "multiply_in_strips" in mtl.explain(product) or stack
        check(product, a, b)
        check(reversed_product, a, b)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.sample(1)
def test_few_columns_are_dot_products(dtype, columns):
    for rows, depth in ((64, 256), (67, 301)):
        a, b = random((rows, depth), dtype), random((depth, columns), dtype)
        product = mtl.asarray(a) @ mtl.asarray(b)
        assert "multiply_in_dots" in mtl.explain(product)
        check(product, a, b)


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_contiguous_vectors_are_multiplied_by_dot_products(dtype):
    a, x, b = random((500, 300), dtype), random(300, dtype), random((40, 300), dtype)
    vector, matrix = mtl.asarray(a) @ mtl.asarray(x), mtl.asarray(a[:4]) @ mtl.asarray(b).T
    for product, left, right in ((vector, a, x), (matrix, a[:4], b.T)):
        assert "multiply_in_dots" in mtl.explain(product)
        check(product, left, right)


def test_errors_grow_slowly_with_the_depth():
    """Steps of 32 are added up on their own."""
    a, b = abs(random((3, 6000), "float32")), abs(random((6000, 3), "float32"))
    with mtl.config.scope(products="registers"):
        check(mtl.asarray(a) @ mtl.asarray(b), a, b, additions=32 + 6000 // 32 + 1)


@pytest.mark.parametrize("depth", [6000, 4099])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.sample(1)
def test_few_deep_results_are_sums_of_products(rng, dtype, depth):
    x, y = (rng.random((depth, columns)).astype(dtype) for columns in (40, 31))
    own = mtl.asarray(x), mtl.asarray(y)
    product = own[0].T @ own[1]
    if not product.device.traits.is_simt:
        assert "a function of its own" not in mtl.explain(product)
    exact = x.astype(np.float64).T @ y.astype(np.float64)
    rtol = 2e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(np.asarray(product), exact, rtol=rtol)
    left = mtl.asarray(np.ascontiguousarray(x.T))
    np.testing.assert_allclose(np.asarray(left @ own[1]), exact, rtol=rtol)
    np.testing.assert_allclose(np.asarray(own[1][::-1].T @ own[0][::-1]), exact.T, rtol=rtol)


@pytest.mark.parametrize("rows", [1000, 9001])
def test_a_column_major_matrix_times_a_vector_is_a_sum_of_rows(rng, rows):
    x, v = rng.random((rows, 40)).astype(np.float32), rng.random(rows).astype(np.float32)
    own = mtl.asarray(x), mtl.asarray(v)
    exact = v.astype(np.float64) @ x
    np.testing.assert_allclose(np.asarray(own[0].T @ own[1]), exact, rtol=2e-6)
    np.testing.assert_allclose(np.asarray(own[1] @ own[0]), exact, rtol=2e-6)
    half = mtl.asarray(x.astype(np.float16)), mtl.asarray(v.astype(np.float16))
    np.testing.assert_allclose(np.asarray(half[1] @ half[0]), exact, rtol=2e-3)
