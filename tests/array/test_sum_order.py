"""The order of a sum's additions is that of the sum alone, whatever is computed with it."""

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.planning.schedule import MaterializeReason


def transposed(x):
    """An array with the same elements in column-major order."""
    return mtl.asarray(np.ascontiguousarray(x.T)).T


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((9, 200), None),  # kernels of their own
        # One axis, or two of which the inner one is short.
        pytest.param((3, 4), None, marks=pytest.mark.slow),
        pytest.param((5, 2, 3), (1, 2), marks=pytest.mark.slow),
        # Rows of one operand and columns of the other one.
        pytest.param((40, 50), 1, marks=pytest.mark.slow),
        # Lanes with several columns.
        pytest.param((70, 300), 0, marks=pytest.mark.slow),
    ],
)
def test_fused_sums_are_added_in_the_order_of_each_alone(shape, axis):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, *shape)).astype(np.float32)
    b = rng.standard_normal(np.sum(x, axis=axis, keepdims=True).shape).astype(np.float32)

    def first(x, b):
        return mtl.sum(mtl.sin(x) + b, axis=axis, keepdims=True)

    def second(y):
        return mtl.sum(y * y, axis=axis, keepdims=True)

    arguments = mtl.asarray(x), transposed(y), mtl.asarray(b)
    alone = np.asarray(first(arguments[0], arguments[2])), np.asarray(second(arguments[1]))
    fused = mtl.compile(lambda x, y, b: (first(x, b) + second(y), y - second(y)))(*arguments)
    np.testing.assert_array_equal(np.asarray(fused[0]), alone[0] + alone[1])
    np.testing.assert_array_equal(np.asarray(fused[1]), y - alone[1])
    np.testing.assert_allclose(alone[1], (y.astype(float) ** 2).sum(axis, keepdims=True), rtol=1e-5)


@pytest.mark.needs("the CPU")  # a thread of a GPU adds several elements of one layout at once
@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 64)])
def test_short_rows_are_added_in_the_order_of_their_indices(shape):
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    columns = transposed(x)
    assert float(mtl.sum(columns)) == float(mtl.sum(mtl.asarray(x)))


def test_a_sum_in_another_order_is_materialized():
    x = mtl.asarray(np.ones((9, 200), np.float32))
    y = transposed(np.ones((9, 200), np.float32))
    assert MaterializeReason.ADDITIONS.value in mtl.explain(mtl.sum(x) + mtl.sum(y))
    assert MaterializeReason.ADDITIONS.value not in mtl.explain(mtl.sum(x) + mtl.sum(x * x))
