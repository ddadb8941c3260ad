"""MLX's scans and sorts, launched as MLX does."""

import ml_dtypes
import numpy as np
import pytest
from mlx_headers import kernel
from mlx_tree.agreement import SIZES, assert_within, ceildiv, element_strides, sum_error

SIMD = 32
READS = 4
MAX_THREADS = 1024

SCANS = {
    "CumSum_float": (np.float32, np.add, 0),
    "CumProd_float": (np.float32, np.multiply, 1),
    "CumMax_float": (np.float32, np.maximum, -np.inf),
    "CumMin_float": (np.float32, np.minimum, np.inf),
    "CumLogaddexp_float": (np.float32, np.logaddexp, -np.inf),
    "CumSum_bfloat": (ml_dtypes.bfloat16, np.add, 0),
    "CumMax_half": (np.float16, np.maximum, -np.inf),
    "CumSum_int64": (np.int64, np.add, 0),
    "CumProd_int": (np.int32, np.multiply, 1),
}
BACKWARD_SCANS = {
    "CumSum_float": SCANS["CumSum_float"],
    "CumMax_int": (np.int32, np.maximum, -(2**31)),
}
BOTH = pytest.mark.parametrize("inclusive", [True, False], ids=["inclusive", "exclusive"])


def scan_argument(name, shape, rng):
    dtype = SCANS.get(name, BACKWARD_SCANS.get(name))[0]
    if name == "CumProd_float":  # mostly signs, lest long products leave the range of float
        return rng.choice([1, -1, 1.5, 0.5], shape, p=[0.49, 0.49, 0.01, 0.01]).astype(dtype)
    if name == "CumProd_int":
        return rng.choice([1, -1, 3], shape).astype(dtype)
    if dtype in (np.int64, np.int32):
        return rng.integers(-1000, 1000, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def exact_scan(x, oracle, initial, inclusive, reverse):
    """Along the last axis, in the widest type of the kind (integers wrap as in the kernel)."""
    wide = x if x.dtype.kind == "i" else x.astype(np.float64)
    wide = wide[..., ::-1] if reverse else wide
    result = oracle.accumulate(wide, axis=-1, dtype=wide.dtype)
    if not inclusive:
        start = np.full((*wide.shape[:-1], 1), initial, wide.dtype)
        result = np.concatenate([start, result[..., :-1]], axis=-1)
    return result[..., ::-1] if reverse else result


def check_scan(out, x, name, inclusive, reverse=False, additions=None):
    _, oracle, initial = (BACKWARD_SCANS if reverse else SCANS)[name]
    exact = exact_scan(x, oracle, initial, inclusive, reverse)
    if oracle in (np.maximum, np.minimum) or x.dtype.kind == "i":
        np.testing.assert_array_equal(out, exact.astype(x.dtype))
    elif oracle is np.multiply:
        # As many rounded products as factors that are no powers of two.
        factors = np.cumsum(np.abs(x) == 1.5, axis=-1)
        assert_within(out, exact, np.abs(exact) * (factors + 1) * 2.0**-24 * 1.01 + 2.0**-149)
    elif oracle is np.logaddexp:
        # Each step adds at most 3 ulps of its result, and passes earlier errors on undiminished.
        magnitude = np.maximum.accumulate(np.abs(np.where(np.isfinite(exact), exact, 0)), axis=-1)
        assert_within(out, exact, (magnitude + 1) * 3 * 2.0**-23 * additions)
    else:
        terms = np.abs(x.astype(np.float64))
        sums = np.cumsum(terms[..., ::-1] if reverse else terms, axis=-1)
        sums = sums[..., ::-1] if reverse else sums
        assert_within(out, exact, sum_error(sums[..., None], additions, x.dtype))


def run_contiguous_scan(name, x, inclusive, reverse=False):
    rows, size = x.shape
    out = np.empty_like(x)
    group = min(MAX_THREADS, SIMD * ceildiv(size, READS * SIMD))
    direction = ("inclusive" if inclusive else "exclusive") + ("_reverse" if reverse else "")
    run = kernel("scan", f"contiguous_scan_{direction}_{name}")
    run(x, out, size, threads=(group, rows, 1), group_size=(group, 1, 1))
    # Within a thread, up a simdgroup (five levels), up the simdgroups, and once each for the parts
    # that are put together, in each of the blocks that make up the row.
    blocks = ceildiv(size, group * READS)
    return out, READS + 2 * 5 + 3 + 3 * blocks


@BOTH
@pytest.mark.parametrize("name", SCANS)
def test_contiguous_scan(name, inclusive, rng):
    # A sum of bfloat cannot be bounded usefully over long rows.
    for size in (*SIZES, 9999) if name != "CumSum_bfloat" else (1, 31, 33, 100):
        x = scan_argument(name, (3, size), rng)
        out, additions = run_contiguous_scan(name, x, inclusive)
        check_scan(out, x, name, inclusive, additions=additions)


@BOTH
@pytest.mark.parametrize("name", BACKWARD_SCANS)
def test_contiguous_scan_backwards(name, inclusive, rng):
    for size in (*SIZES, 9999):
        x = scan_argument(name, (3, size), rng)
        out, additions = run_contiguous_scan(name, x, inclusive, reverse=True)
        check_scan(out, x, name, inclusive, reverse=True, additions=additions)


def test_scan_of_nan():
    x = np.zeros((1, 100), np.float32)
    x[0, 40] = np.nan
    for name in ("CumMax_float", "CumMin_float", "CumSum_float"):
        out, _ = run_contiguous_scan(name, x, True)
        np.testing.assert_array_equal(np.isnan(out[0]), np.arange(100) >= 40)


@BOTH
@pytest.mark.parametrize(
    ("name", "reverse"),
    [("CumSum_float", False), ("CumSum_float", True), ("CumMax_half", False), ("CumMax_int", True)],
)
def test_strided_scan(name, reverse, inclusive, rng):
    for rows, stride in ((1, 1), (31, 33), (33, 4), (1000, 31), (100, 130)):
        x = scan_argument(name, (2, rows, stride), rng)
        out = np.empty_like(x)
        blocks = ceildiv(stride, SIMD)
        group = SIMD * SIMD // READS
        direction = ("inclusive" if inclusive else "exclusive") + ("_reverse" if reverse else "")
        run = kernel("scan", f"strided_scan_{direction}_{name}")
        grid = (group, 2 * blocks, 1)
        run(x, out, rows, stride, blocks, threads=grid, group_size=(group, 1, 1))
        columns, results = np.moveaxis(x, 1, -1), np.moveaxis(out, 1, -1)
        check_scan(results, columns, name, inclusive, reverse, 5 + ceildiv(rows, SIMD))


# -- sorts

ELEMENTS_PER_THREAD = 8
BLOCK_SORTS = [("float_32", np.float32), ("float_256", np.float32),
               ("bfloat_128", ml_dtypes.bfloat16), ("int_128", np.int32)]  # fmt: skip


def sort_argument(dtype, shape, rng):
    """Numbers with many ties, so that argsort has to be stable."""
    x = rng.integers(-50, 50, shape).astype(dtype)
    if x.dtype.kind != "i" and x.size > 4:
        x.reshape(-1)[::7] = np.nan  # NaN comes last
    return x


def assert_same(actual, expected):
    if expected.dtype.kind == "V":  # NumPy does not know where a bfloat is NaN
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(actual, expected)


def stable_order(x):
    return np.argsort(x.astype(np.float64) if x.dtype.kind == "V" else x, axis=-1, kind="stable")


@pytest.mark.parametrize(("name", "dtype"), BLOCK_SORTS, ids=[row[0] for row in BLOCK_SORTS])
def test_block_sort(name, dtype, rng):
    group = int(name.split("_")[1])
    most = group * ELEMENTS_PER_THREAD
    for size in sorted({size for size in SIZES if size < most} | {most - 1, most}):
        x = sort_argument(dtype, (3, size), rng)
        arguments = (size, 1, 1, size, size)
        launch = {"threads": (group, 3, 1), "group_size": (group, 1, 1)}
        out = np.empty_like(x)
        kernel("sort", f"block_sort_{name}")(x, out, *arguments, **launch)
        order = stable_order(x)
        assert_same(out, np.take_along_axis(x, order, -1))
        indices = np.empty(x.shape, np.uint32)
        kernel("sort", f"block_sort_arg_{name}")(x, indices, *arguments, **launch)
        np.testing.assert_array_equal(indices, order)


def test_block_sort_of_a_view(rng):
    """The middle axis of three, in an array whose axes are in another order."""
    base = rng.normal(size=(5, 33, 7)).astype(np.float32)
    view = base.transpose(2, 1, 0)
    out, indices = np.empty(view.shape, np.float32), np.empty(view.shape, np.uint32)
    shape = np.array([7, 5], np.int32)
    strides, back = element_strides(view), element_strides(out)
    arguments = (33, int(strides[1]), int(back[1]), 2, shape, strides[[0, 2]], back[[0, 2]])
    launch = {"threads": (32, 35, 1), "group_size": (32, 1, 1)}
    kernel("sort", "block_sort_nc_float_32")(base, out, *arguments, **launch)
    np.testing.assert_array_equal(out, np.sort(view, axis=1))
    kernel("sort", "block_sort_nc_arg_float_32")(base, indices, *arguments, **launch)
    np.testing.assert_array_equal(indices, np.argsort(view, axis=1, kind="stable"))


@pytest.mark.parametrize(("name", "dtype"), [("float", np.float32), ("int64", np.int64)])
@pytest.mark.parametrize("size", [1025, 4097, 10_000])
def test_multi_block_sort(name, dtype, size, rng):
    """Blocks are sorted, then merged in pairs, in pairs of pairs, and so on."""
    rows, group = 2, 128
    x = sort_argument(dtype, (rows, size), rng)
    blocks = ceildiv(size, group * ELEMENTS_PER_THREAD)
    values, indices = np.empty((2, rows, size), dtype), np.empty((2, rows, size), np.uint32)
    partitions = np.empty((rows, blocks + 1), np.uint32)
    grid = {"threads": (blocks * group, rows, 1), "group_size": (group, 1, 1)}
    kernel("sort", f"mb_block_sort_{name}")(
        x, values[0], indices[0], size, 1, 1, np.array([rows], np.int32),
        np.array([size], np.int64), **grid,
    )  # fmt: skip
    now, tiles = 0, 2
    while tiles // 2 < blocks:
        kernel("sort", f"mb_block_partition_{name}")(
            partitions, values[now], indices[now], size, tiles, blocks,
            threads=(blocks + 1, rows, 1), group_size=(blocks + 1, 1, 1),
        )  # fmt: skip
        kernel("sort", f"mb_block_merge_{name}")(
            partitions, values[now], indices[now], values[1 - now], indices[1 - now], size, tiles,
            blocks, **grid,
        )  # fmt: skip
        now, tiles = 1 - now, tiles * 2
    order = stable_order(x)
    assert_same(values[now], np.take_along_axis(x, order, -1))
    np.testing.assert_array_equal(indices[now], order)
