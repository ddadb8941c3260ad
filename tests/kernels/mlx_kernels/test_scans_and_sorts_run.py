"""MLX's scans and sorts, launched as MLX does."""

import ml_dtypes
import numpy as np
import pytest
from mlx_headers import kernel
from mlx_tree import scan, sort

READS = 4  # as in drivers/scan.metal
PER_THREAD = 8  # as in drivers/sort.metal

SCANS = {
    "CumSum_float": np.float32, "CumProd_float": np.float32, "CumMax_float": np.float32,
    "CumMin_float": np.float32, "CumLogaddexp_float": np.float32,
    "CumSum_bfloat": ml_dtypes.bfloat16, "CumMax_half": np.float16, "CumSum_int64": np.int64,
    "CumProd_int": np.int32,
}  # fmt: skip
BACKWARD_SCANS = {"CumSum_float": np.float32, "CumMax_int": np.int32}
ALL = pytest.mark.parametrize(
    ("name", "dtype", "reverse"),
    [*((name, dtype, False) for name, dtype in SCANS.items()),
     *((name, dtype, True) for name, dtype in BACKWARD_SCANS.items())],
)  # fmt: skip
BOTH = pytest.mark.parametrize("inclusive", [True, False], ids=["inclusive", "exclusive"])


def scan_of(kind, name, inclusive, reverse=False):
    """A kernel of the driver, and what it does."""
    direction = ("inclusive" if inclusive else "exclusive") + ("_reverse" if reverse else "")
    op = name.split("_")[0].removeprefix("Cum").lower()
    run = kernel("scan", f"{kind}_scan_{direction}_{name}")
    return run, scan.Scan(op, inclusive, reverse)


@BOTH
@ALL
@pytest.mark.sample(2)
def test_contiguous_scan(name, dtype, reverse, inclusive, rng):
    run, meaning = scan_of("contiguous", name, inclusive, reverse)
    scan.check_rows(run, meaning, dtype, dtype, READS, rng)


@BOTH
@ALL
@pytest.mark.sample(1)
def test_strided_scan(name, dtype, reverse, inclusive, rng):
    run, meaning = scan_of("strided", name, inclusive, reverse)
    scan.check_columns(run, meaning, dtype, dtype, READS, rng)


def test_scan_of_nan():
    x = np.zeros((1, 100), np.float32)
    x[0, 40] = np.nan
    for name in ("CumMax_float", "CumMin_float", "CumSum_float"):
        run, _ = scan_of("contiguous", name, True)
        out, _ = scan.scan_rows(run, x, np.float32, READS)
        np.testing.assert_array_equal(np.isnan(out[0]), np.arange(100) >= 40)


BLOCK_SORTS = [("float_32", np.float32), ("float_256", np.float32),
               ("bfloat_128", ml_dtypes.bfloat16), ("int_128", np.int32)]  # fmt: skip
#: Rows that take the same paths as the others.
LIKE_OTHERS = ("float_256", "bfloat_128")


@pytest.mark.parametrize(
    "indices", [pytest.param(False, marks=pytest.mark.slow), True], ids=["sort", "argsort"]
)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [pytest.param(*row, id=row[0], marks=[pytest.mark.slow] * (row[0] in LIKE_OTHERS))
     for row in BLOCK_SORTS],
)  # fmt: skip
@pytest.mark.sample(1)
def test_block_sort(name, dtype, indices, rng):
    group = int(name.split("_")[1])
    for form, check in (("", sort.check_rows), ("nc_", sort.check_view)):
        run = kernel("sort", f"block_sort_{form}{'arg_' * indices}{name}")
        check(run, dtype, indices, group, PER_THREAD, rng)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("float", np.float32), pytest.param("int64", np.int64, marks=pytest.mark.slow)],
)
def test_multi_block_sort(name, dtype, rng):
    kernels = {
        part: kernel("sort", f"mb_block_{part}_{name}") for part in ("sort", "partition", "merge")
    }
    sort.check_blocks(kernels, dtype, 128, PER_THREAD, rng)
    for size in (1025, 4097):
        x = sort.argument(dtype, (2, size), rng)
        values, indices = sort.sort_blocks(kernels, x, 128, PER_THREAD)
        sort.assert_sorted(values, x)
        sort.assert_sorted(indices, x, indices=True)
