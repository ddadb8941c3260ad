"""MLX's copy, select, arange, divmod, indexing and search kernels: exact results."""

import ml_dtypes
import numpy as np
import pytest
from mlx_headers import kernel
from mlx_tree.agreement import SIZES, ceildiv, element_strides, strides_of

SHAPES = {1: (33,), 2: (5, 31), 3: (3, 5, 7)}
BFLOAT = ml_dtypes.bfloat16


def two_dimensional(threads, per_thread):
    """A grid of three rows. Kernels that do one element a thread check no bounds."""
    rows = 3 if per_thread > 1 or threads % 3 == 0 else 1
    return ceildiv(threads, rows), rows


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("float_float", np.float32, np.float32), ("float_half", np.float32, np.float16),
     ("half_bfloat", np.float16, BFLOAT), ("bool_float", bool, np.float32),
     ("float_complex", np.float32, np.complex64), ("complex_bool", np.complex64, bool)],
)  # fmt: skip
def test_contiguous_copy(name, source, target, rng):
    for size in SIZES:
        x = (rng.integers(-3, 3, size) * 0.7).astype(source)
        per_thread = 8 // np.dtype(target).itemsize
        threads = ceildiv(size, per_thread)
        # A conversion to bool asks for the bits, so that NaN and tiny numbers are true.
        expected = x.astype(np.float32).astype(target) if target is BFLOAT else x.astype(target)
        for form, grid, value in (
            ("v", threads, expected),
            ("s", threads, np.full(size, expected[0])),
            ("v2", two_dimensional(threads, per_thread), expected),
            ("s2", two_dimensional(threads, per_thread), np.full(size, expected[0])),
        ):
            out = np.empty(size, target)
            kernel("copy", f"copy_{form}_{name}")(x, out, size, threads=grid)
            np.testing.assert_array_equal(out, value, err_msg=form)


@pytest.mark.parametrize("ndim", SHAPES)
@pytest.mark.parametrize(
    ("name", "source", "target"),
    [("float_float", np.float32, np.float32), ("int_bfloat", np.int32, BFLOAT)],
)
def test_strided_copy(name, source, target, ndim, rng):
    shape = SHAPES[ndim]
    base = rng.integers(-128, 128, shape[::-1]).astype(source)
    view = base.T
    expected = view.astype(target)
    grid = shape[::-1]
    strides = element_strides(view)
    back = strides_of(shape)
    if ndim == 1:
        strides, back = int(strides[0]), int(back[0])
    out = np.zeros(shape, target)
    kernel("copy", f"copy_g_nd{ndim}_{name}")(base, out, strides, threads=grid)
    np.testing.assert_array_equal(out, expected)
    out = np.zeros(shape, target)
    kernel("copy", f"copy_gg_nd{ndim}_{name}")(base, out, strides, back, threads=grid)
    np.testing.assert_array_equal(out, expected)
    out = np.zeros(base.size + 5, target)
    dynamic = kernel("copy", f"copy_gg_dynamic_nd{ndim}_{name}")
    dynamic(np.append(np.zeros(3, source), base), out, strides, back, 3, 5, threads=grid)
    np.testing.assert_array_equal(out[5:].reshape(shape), expected)


def test_general_copy(rng):
    base = rng.normal(size=(9, 7, 5, 3)).astype(np.float32)
    view = base.transpose(2, 0, 3, 1)
    shape = np.array(view.shape, np.int32)
    outer = view.shape[0] * view.shape[1]
    for form, work in (("g", 1), ("g_n2", 2), ("gg", 1), ("gg_n2", 2), ("gg_dynamic", 1)):
        out = np.zeros(view.shape, np.float32)
        grid = (ceildiv(view.shape[3], work), view.shape[2], outer)
        to = (strides_of(view.shape),) if "gg" in form else ()
        offsets = (0, 0) if "dynamic" in form else ()
        run = kernel("copy", f"copy_{form}_float_float")
        run(base, out, shape, element_strides(view), *to, 4, *offsets, threads=grid)
        np.testing.assert_array_equal(out, view, err_msg=form)


@pytest.mark.parametrize(
    ("name", "dtype"), [("float", np.float32), ("bfloat", BFLOAT), ("complex", np.complex64)]
)
def test_select(name, dtype, rng):
    per_thread = 8 // np.dtype(dtype).itemsize
    for size in SIZES:
        condition = rng.integers(0, 2, size).astype(bool)
        x, y = rng.normal(size=(2, size)).astype(dtype)
        threads = ceildiv(size, per_thread)
        for form, grid, first, second in (
            ("v", threads, x, y),
            ("v_scalar_b", threads, x[:1].copy(), y),
            ("v2", two_dimensional(threads, per_thread), x, y),
            ("v2_scalar_c", two_dimensional(threads, per_thread), x, y[:1].copy()),
        ):
            out = np.empty(size, dtype)
            run = kernel("ternary", f"ternary_{form}_{name}")
            run(condition, first, second, out, size, threads=grid)
            np.testing.assert_array_equal(out, np.where(condition, first, second), err_msg=form)


@pytest.mark.parametrize("form", ["g_nd1", "g_nd2", "g_nd3", "g", "g_n2"])
def test_strided_select(form, rng):
    shape = SHAPES[int(form[-1]) if "nd" in form else 3]
    condition = rng.integers(0, 2, shape[::-1]).astype(bool).T
    x = np.broadcast_to(rng.normal(size=shape[-1]).astype(np.float32), shape)
    y = rng.normal(size=shape).astype(np.float32)
    strides = [element_strides(operand) for operand in (condition, x, y)]
    grid = shape[::-1]
    if form == "g_nd1":
        arguments = [int(s[0]) for s in strides]
    elif "nd" in form:
        arguments = strides
    else:
        arguments = [np.array(shape, np.int32), *strides, len(shape)]
    if form == "g_n2":
        grid = (ceildiv(grid[0], 2), *grid[1:])
    out = np.empty(shape, np.float32)
    row = np.ascontiguousarray(x.reshape(-1, shape[-1])[0])
    run = kernel("ternary", f"ternary_{form}_float")
    run(condition.T.reshape(-1), row, y, out, *arguments, threads=grid)
    np.testing.assert_array_equal(out, np.where(condition, x, y))


@pytest.mark.parametrize(
    ("name", "dtype", "start", "step"),
    [("float", np.float32, 0.25, 0.5), ("half", np.float16, 3, -0.25),
     ("int64", np.int64, 2**40, -7), ("bfloat", BFLOAT, -1, 0.5), ("uchar", np.uint8, 3, 2)],
)  # fmt: skip
def test_arange(name, dtype, start, step):
    for size in (1, 31, 33, 1000):
        out = np.empty(size, dtype)
        kernel("arange", f"arange_{name}")(start, step, out, threads=size)
        # start + index * step, in the type: bfloat and half round twice, uchar wraps.
        if np.dtype(dtype).kind in "iu":
            expected = (start + np.arange(size) * step).astype(dtype)
        else:
            products = (np.arange(size).astype(dtype) * dtype(step)).astype(dtype)
            expected = (dtype(start) + products).astype(dtype)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("name", "dtype"), [("float", np.float32), ("int", np.int32)])
def test_divmod(name, dtype, rng):
    x, y = rng.integers(-99, 99, (2, 1000)).astype(dtype)
    y[y == 0] = 3
    quotient, remainder = np.empty_like(x), np.empty_like(x)
    run = kernel("binary_two", f"binary_vv_DivMod_{name}")
    run(x, y, quotient, remainder, x.size, threads=x.size // 2)
    np.testing.assert_array_equal(quotient, x // y)
    np.testing.assert_array_equal(remainder, x % y)


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
    places = (np.cumsum(mask) - mask).astype(np.uint32)
    source = rng.normal(size=1000).astype(np.float32)
    out = np.zeros(1000, np.float32)
    kernel("indexing", "masked_assign_impl_float")(
        mask, places, source, out, np.array([1000], np.int32), np.array([1], np.int64), 1, 1000,
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


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side, rng):
    for size in SIZES:
        table = np.sort(rng.integers(0, size, size)).astype(np.float32)
        values = rng.integers(-1, size + 1, (7, 11)).astype(np.float32)
        out = np.empty(values.shape, np.uint32)
        run = kernel("searchsorted", f"searchsorted_{side}_float")
        run(table, values, out, size, 1, threads=(11, 7))
        np.testing.assert_array_equal(out, np.searchsorted(table, values, side))
