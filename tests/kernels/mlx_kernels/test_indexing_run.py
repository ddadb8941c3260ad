"""MLX's indexing kernels, which it compiles for each use: exact results."""

import numpy as np
import pytest
from mlx_headers import kernel
from mlx_tree.agreement import BFLOAT, strides_of


def test_gather(rng):
    """``source[rows, columns]`` with negative indices, through an array of pointers."""
    source = rng.normal(size=(9, 7, 5)).astype(np.float32)
    rows, columns = rng.integers(-9, 9, 33), rng.integers(-7, 7, 33)
    out = np.empty((33, 5), np.float32)
    kernel("indexing", "gather_two")(
        source, out, np.array(source.shape, np.int32), strides_of(source.shape), 3,
        np.array([1, 1, 5], np.int32), np.array([0, 1], np.int32), np.array([33, 33], np.int32),
        np.array([1, 1], np.int64), np.array([True, True]), 1, rows.astype(np.int32),
        columns.astype(np.int32), threads=(33, 1, 5),
    )  # fmt: skip
    np.testing.assert_array_equal(out, source[rows, columns])


def test_gather_along_axis_and_front(rng):
    source = rng.normal(size=(3, 9, 5)).astype(np.float32)
    indices = rng.integers(-9, 9, (3, 4, 5)).astype(np.int32)
    out = np.empty(indices.shape, np.float32)
    rest = np.array([3, 5], np.int32)
    kernel("indexing", "gather_axis_float")(
        source, indices, out, rest, np.array([45, 1], np.int64), np.array([20, 1], np.int64), 2,
        1, 9, 5, 5, threads=(5, 4, 3),
    )  # fmt: skip
    np.testing.assert_array_equal(out, np.take_along_axis(source, indices % 9, 1))
    table = rng.normal(size=(11, 7)).astype(np.float32)
    chosen = rng.integers(-11, 11, 33).astype(np.int32)
    out = np.empty((33, 7), np.float32)
    kernel("indexing", "gather_front_float")(table, chosen, out, 7, 11, threads=(2, 33))
    np.testing.assert_array_equal(out, table[chosen])


@pytest.mark.parametrize(
    ("name", "dtype", "update"),
    [("sum_float", np.float32, np.add), ("max_int", np.int32, np.maximum),
     ("prod_half", np.float16, np.multiply), ("none_bfloat", BFLOAT, None)],
)  # fmt: skip
@pytest.mark.sample(1)
def test_scatter(name, dtype, update, rng):
    """Atomic updates of rows; several updates of a row where the order does not matter."""
    # Atomics on 16-bit numbers work on the 32-bit words that hold them.
    words = np.zeros(46, dtype).view(np.uint32)
    out = words.view(dtype)[:45].reshape(9, 5)
    out[...] = rng.integers(1, 4, (9, 5))
    count = 33 if update is not None and update is not np.multiply else 9
    rows = rng.integers(-9, 9, count) if count == 33 else rng.permutation(9)
    updates = rng.integers(1, 4, (count, 5)).astype(dtype)
    expected = out.copy()
    if update is None:
        expected[rows] = updates
    else:
        update.at(expected, rows, updates)
    kernel("indexing", f"scatter_{name}")(
        updates, words, np.array([count, 1, 5], np.int32), np.array([5, 5, 1], np.int64), 3, 5,
        np.array(out.shape, np.int32), strides_of(out.shape), 2, np.array([0], np.int32),
        np.array([count], np.int32), np.array([1], np.int64), np.array([True]), 1, count,
        rows.astype(np.int32), threads=(5, count),
    )  # fmt: skip
    np.testing.assert_array_equal(out, expected)


def test_scatter_along_axis(rng):
    out = np.zeros((3, 9, 5), np.float32)
    indices = rng.integers(-9, 9, (3, 33, 5)).astype(np.int32)
    updates = rng.integers(-9, 9, (3, 33, 5)).astype(np.float32)
    expected = out.copy()
    a, _, c = np.indices(indices.shape)
    np.add.at(expected, (a, indices, c), updates)
    kernel("indexing", "scatter_axis_sum_float")(
        updates, indices, out, np.array([3, 5], np.int32), np.array([165, 1], np.int64),
        np.array([165, 1], np.int64), 2, 1, 9, 5, 5, threads=(5, 33, 3),
    )  # fmt: skip
    np.testing.assert_array_equal(out, expected)


def test_masked_assignment_and_slice_update(rng):
    mask = rng.integers(0, 2, 1000).astype(bool)
    offsets = (np.cumsum(mask) - mask).astype(np.uint32)
    source = rng.normal(size=1000).astype(np.float32)
    out = np.zeros(1000, np.float32)
    kernel("indexing", "masked_assign_impl_float")(
        mask, offsets, source, out, np.array([1000], np.int32), np.array([1], np.int64), 1, 1000,
        1000, threads=1000,
    )  # fmt: skip
    expected = np.zeros(1000, np.float32)
    expected[mask] = source[: mask.sum()]
    np.testing.assert_array_equal(out, expected)
    out = np.ones((9, 7), np.float32)
    patch = rng.integers(0, 9, (3, 4)).astype(np.float32)
    kernel("indexing", "slice_update_op_impl_float")(
        patch, out, np.array(patch.shape, np.int32), strides_of(patch.shape), 2, patch.size,
        np.array([14, 1], np.int64), 2 * 7 + 1, threads=(4, 3, 1),
    )  # fmt: skip
    expected = np.ones((9, 7), np.float32)
    expected[2:8:2, 1:5] += patch
    np.testing.assert_array_equal(out, expected)
