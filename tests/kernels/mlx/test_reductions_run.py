"""MLX's softmax, logsumexp, cross entropy, and reductions, launched as MLX does."""

import numpy as np
import pytest
import scipy.special
from mlx_headers import kernel
from mlx_tree.agreement import (
    BFLOAT,
    FLOAT,
    HALF,
    NAMES,
    SIZES,
    assert_within,
    ceildiv,
    roundoff,
    sum_error,
)

SIMD = 32
READS = 4  # values that a thread reads at once
MAX_THREADS = 1024
#: Rows longer than this take the looped kernels.
LOOPED_LIMIT = 4096
#: A value goes through this many additions in simd_sum, then once more across the simdgroups.
TWO_SIMD_SUMS = 2 * (SIMD - 1)
DTYPES = pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)


def row_group(size):
    """Threads that read a row four values at a time, in whole simdgroups."""
    return SIMD * ceildiv(ceildiv(size, READS), SIMD)


def fast_exp_error(x):
    """Relative error of fast::exp(x) rounded arguments included: 3 + 2|x| ulps (specification)."""
    x = np.where(np.isfinite(x), x, 0)
    return (3 + np.floor(np.abs(2 * x)) + np.abs(x)) * 2.0**-23


def row_sizes(looped):
    return [5000, 9999] if looped else SIZES


@DTYPES
@pytest.mark.parametrize("looped", [False, True], ids=["single_row", "looped"])
def test_softmax(looped, dtype, rng):
    name = "looped" if looped else "single_row"
    suffix = NAMES[dtype] if dtype == FLOAT else f"precise_{NAMES[dtype]}"
    for size in row_sizes(looped):
        if not looped and size > LOOPED_LIMIT:
            continue
        x = rng.normal(scale=4, size=(3, size)).astype(dtype)
        out = np.empty_like(x)
        group = MAX_THREADS if looped else row_group(size)
        run = kernel("softmax", f"softmax_{name}_{suffix}")
        run(x, out, size, threads=3 * group, group_size=group)
        wide = x.astype(np.float64)
        exact = scipy.special.softmax(wide, axis=1)
        below_max = wide - wide.max(axis=1, keepdims=True)
        each = fast_exp_error(below_max)
        # The sum errs by the errors of its terms, by their additions, and in the looped kernel by
        # three factors exp(old max - new max); reciprocal and product are rounded.
        additions = ceildiv(size, group) + TWO_SIMD_SUMS + (ceildiv(size, READS * group) + 2)
        factors = 3 * fast_exp_error(below_max.min()) if looped else 0
        total = np.sum(exact * each, axis=1, keepdims=True)
        relative = each + total + (additions + 2) * roundoff(FLOAT) + factors
        assert_within(out, exact, exact * (relative + roundoff(dtype)) + smallest(dtype))


def smallest(dtype):
    """Half the distance of the smallest numbers, for results that are subnormal."""
    return {FLOAT: 2.0**-149, HALF: 2.0**-25, BFLOAT: 2.0**-134}[dtype]


def test_softmax_in_16_bits(rng):
    """Without `precise` all arithmetic is in the type itself."""
    for dtype in (HALF, BFLOAT):
        x = rng.normal(size=(3, 33)).astype(dtype)
        out = np.empty_like(x)
        run = kernel("softmax", f"softmax_single_row_{NAMES[dtype]}")
        run(x, out, 33, threads=3 * SIMD, group_size=SIMD)
        wide = x.astype(np.float64)
        exact = scipy.special.softmax(wide, axis=1)
        # A difference that is rounded before exp, exp itself, three additions in a thread, two
        # simd_sums (computed in float or as a tree of five levels), a reciprocal and a product.
        unit = roundoff(dtype)
        spread = np.max(np.ptp(wide, axis=1))
        relative = 2 * (spread + 1) * unit + (3 + 5 + 5) * unit + 2 * unit
        assert_within(out, exact, exact * relative)


def test_softmax_of_infinities():
    x = np.array([[-np.inf, 0, -np.inf, 1], [0, 0, 0, np.nan]], np.float32)
    out = np.empty_like(x)
    kernel("softmax", "softmax_single_row_float")(x, out, 4, threads=64, group_size=32)
    assert_within(out[0], scipy.special.softmax(x[0].astype(np.float64)), 1e-6)
    assert np.isnan(out[1]).all()


@DTYPES
@pytest.mark.parametrize("looped", [False, True], ids=["single_row", "looped"])
def test_logsumexp(looped, dtype, rng):
    name = "logsumexp_looped" if looped else "logsumexp"
    for size in row_sizes(looped):
        if not looped and size > LOOPED_LIMIT:
            continue
        x = rng.normal(scale=4, size=(3, size)).astype(dtype)
        out = np.empty(3, dtype)
        group = MAX_THREADS if looped else row_group(size)
        run = kernel("logsumexp", f"{name}_{NAMES[dtype]}")
        run(x, out, size, threads=3 * group, group_size=group)
        wide = x.astype(np.float64)
        exact = scipy.special.logsumexp(wide, axis=1)
        assert_within(out, exact, logsumexp_error(wide, group, looped) + unit_of(exact, dtype))


def logsumexp_error(x, group, looped=True):
    """Absolute error of log(sum) + max before the result is rounded."""
    below_max = x - x.max(axis=1, keepdims=True)
    weights = scipy.special.softmax(x, axis=1)
    additions = ceildiv(x.shape[1], group) + TWO_SIMD_SUMS + 3
    relative = np.sum(weights * fast_exp_error(below_max), axis=1) + additions * roundoff(FLOAT)
    if looped:
        relative += 3 * fast_exp_error(below_max.min())
    logarithm = scipy.special.logsumexp(below_max, axis=1)
    # The logarithm turns the relative error into an absolute one and adds 4 ulps; the sum rounds.
    return (
        relative + 4 * 2.0**-23 * np.abs(logarithm) + 2.0**-24 * np.abs(logarithm + x.max(axis=1))
    )


def unit_of(exact, dtype):
    return roundoff(dtype) * np.abs(exact) if dtype != FLOAT else 0


def test_logsumexp_of_infinities():
    x = np.array([[-np.inf, -np.inf, -np.inf], [np.inf, 0, 0], [-np.inf, 1, -np.inf]], np.float32)
    out = np.empty(3, np.float32)
    kernel("logsumexp", "logsumexp_float")(x, out, 3, threads=96, group_size=32)
    np.testing.assert_array_equal(out, [-np.inf, np.inf, 1])


@DTYPES
def test_cross_entropy(dtype, rng):
    for size in (*SIZES, 9999):
        x = rng.normal(scale=4, size=(3, size)).astype(dtype)
        targets = rng.integers(-size, size, 3).astype(np.int32)
        group = min(MAX_THREADS, row_group(size))
        loss = np.empty(3, np.float32)
        run = kernel("cross_entropy", f"cross_entropy_{NAMES[dtype]}")
        run(x, targets, loss, size, threads=3 * group, group_size=group)
        wide = x.astype(np.float64)
        chosen = wide[np.arange(3), targets]
        exact = scipy.special.logsumexp(wide, axis=1) - chosen
        error = logsumexp_error(wide, group) + 2.0**-23 * (np.abs(chosen) + np.abs(exact))
        assert_within(loss, exact, error)
        cotangent = rng.normal(size=3).astype(np.float32)
        gradient = np.empty_like(x)
        run = kernel("cross_entropy", f"cross_entropy_vjp_{NAMES[dtype]}")
        run(x, targets, loss, cotangent, gradient, size, threads=3 * group, group_size=group)
        softmax = scipy.special.softmax(wide, axis=1)
        exact = softmax.copy()
        exact[np.arange(3), targets] -= 1
        exact *= cotangent[:, None]
        # exp of a logarithm: its absolute error becomes relative.
        logarithm = np.abs(wide - chosen[:, None]) + np.abs(loss[:, None])
        relative = fast_exp_error(np.log(softmax)) + error[:, None] + 2.0**-23 * logarithm
        bound = np.abs(cotangent[:, None]) * (softmax * relative + 2.0**-23)
        bound += roundoff(dtype) * np.abs(exact) + smallest(dtype)
        assert_within(gradient, exact, bound)


# -- reductions: name in the driver, type, oracle, and arguments whose exact result fits

REDUCTIONS = [
    pytest.param("Sum_float", FLOAT, np.sum, id="sum_float"),
    pytest.param("Max_bfloat", BFLOAT, np.max, id="max_bfloat"),
    pytest.param("Min_int", np.dtype(np.int32), np.min, id="min_int"),
    pytest.param("And_bool", np.dtype(bool), np.all, id="and_bool"),
    pytest.param("Sum_half", HALF, np.sum, id="sum_half", marks=pytest.mark.slow),
    pytest.param(
        "Prod_int64", np.dtype(np.int64), np.prod, id="prod_int64", marks=pytest.mark.slow
    ),
]
EACH_REDUCTION = pytest.mark.parametrize(("name", "dtype", "oracle"), REDUCTIONS)


def reduction_argument(dtype, shape, rng):
    if dtype.kind == "b":
        return rng.random(shape) < 1 - 1 / max(2, shape[-1])
    if dtype.kind == "i":
        return rng.choice([-1, 1, 2, 3], shape, p=[0.1, 0.88, 0.01, 0.01]).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def check_reduction(out, x, oracle, axis, additions):
    if oracle is not np.sum:
        np.testing.assert_array_equal(out, oracle(x, axis=axis).astype(out.dtype))
        return
    wide = x.astype(np.float64)
    exact = np.sum(wide, axis=axis)
    # simd_sum of half may be rounded in the end only; each addition by itself is the worst case.
    assert_within(out, exact, sum_error(wide, additions, x.dtype, axis=axis))


@EACH_REDUCTION
def test_all_reduce(name, dtype, oracle, rng):
    run = kernel("reduce", f"all_reduce_{name}")
    for size in SIZES:
        x = reduction_argument(dtype, (size,), rng)
        out = np.empty(1, dtype)
        group = min(MAX_THREADS, row_group(size))
        run(x, out, size, size, threads=(group, 1, 1), group_size=(group, 1, 1))
        check_reduction(out[0], x, oracle, None, ceildiv(size, group) + READS + TWO_SIMD_SUMS)


@EACH_REDUCTION
def test_all_reduce_in_two_passes(name, dtype, oracle, rng):
    run = kernel("reduce", f"all_reduce_{name}")
    size, rows, group = 40_001, 32, 128
    x = reduction_argument(dtype, (size,), rng)
    partial, out = np.empty(rows, dtype), np.empty(1, dtype)
    run(x, partial, size, ceildiv(size, rows), threads=(group, rows, 1), group_size=(group, 1, 1))
    run(partial, out, rows, rows, threads=(SIMD, 1, 1), group_size=(SIMD, 1, 1))
    additions = ceildiv(ceildiv(size, rows), group) + 2 * READS + 2 * TWO_SIMD_SUMS
    check_reduction(out[0], x, oracle, None, additions)


@EACH_REDUCTION
def test_row_reduce(name, dtype, oracle, rng):
    run = kernel("reduce", f"row_reduce_simple_{name}")
    for size in SIZES:
        x = reduction_argument(dtype, (6, size), rng)  # groups of four rows: the last ones overlap
        out = np.empty(6, dtype)
        group = min(MAX_THREADS, row_group(size))
        run(x, out, size, 6, threads=(group, 2, 1), group_size=(group, 1, 1))
        check_reduction(out, x, oracle, 1, ceildiv(size, group) + READS + TWO_SIMD_SUMS)


@EACH_REDUCTION
def test_row_reduce_with_other_axes(name, dtype, oracle, rng):
    """Axes 0 and 2 of three: rows of the last axis, gathered by strides."""
    for outer, kept, size in ((3, 5, 7), (40, 3, 33), (2, 4, 1000)):
        x = reduction_argument(dtype, (outer, kept, size), rng)
        out = np.empty(kept, dtype)
        arguments = (
            x, out, size, outer, np.array([kept], np.int32), np.array([size], np.int64), 1,
            np.array([outer], np.int32), np.array([kept * size], np.int64), 1,
        )  # fmt: skip
        additions = outer * size
        group = min(MAX_THREADS, row_group(size))
        run = kernel("reduce", f"row_reduce_looped_{name}")
        run(*arguments, threads=(group, kept, 1), group_size=(group, 1, 1))
        check_reduction(out, x, oracle, (0, 2), min(additions, 1000))
        if size <= 64:
            out[...] = 0
            run = kernel("reduce", f"row_reduce_small_{name}")
            in_simdgroups = not ((outer < 32 and size <= 8) or outer <= 8)
            threads = (SIMD, kept, 1) if in_simdgroups else (kept, 1, 1)
            group_size = (SIMD, 1, 1) if in_simdgroups else (kept, 1, 1)
            run(*arguments, threads=threads, group_size=group_size)
            check_reduction(out, x, oracle, (0, 2), min(additions, 1000))


@EACH_REDUCTION
def test_column_reduce(name, dtype, oracle, rng):
    for outer, rows, columns in ((1, 5, 33), (3, 40, 31), (2, 1000, 130)):
        x = reduction_argument(dtype, (outer, rows, columns), rng)
        out = np.empty((outer, columns), dtype)
        arguments = (
            rows, columns, np.array([outer], np.int32), np.array([rows * columns], np.int64), 1,
            np.array([rows], np.int32), np.array([columns], np.int64), 1, 1,
        )  # fmt: skip
        quarter = ceildiv(columns, READS)
        width = max(d for d in range(1, SIMD + 1) if quarter % d == 0)
        run = kernel("reduce", f"col_reduce_small_{name}")
        for depth in (1, 8):
            out[...] = 0
            grid = (quarter, outer * depth, 1)
            run(x, out, *arguments, threads=grid, group_size=(width, depth, 1))
            check_reduction(out, x, oracle, 1, ceildiv(rows, depth) + depth)
        for form, block in (("looped", 32), ("looped_8_128", 128)):
            out[...] = 0
            run = kernel("reduce", f"col_reduce_{form}_{name}")
            grid = (256 * ceildiv(columns, block), outer, 1)
            run(x, out, *arguments, 0, threads=grid, group_size=(256, 1, 1))
            check_reduction(out, x, oracle, 1, ceildiv(rows, 8) + SIMD)


@pytest.mark.usefixtures("lenient_barriers")
def test_column_reduce_where_threads_return_before_the_barrier(rng):
    """The threads beyond the last column return at once; the others meet at a barrier."""
    rows, columns = 40, 31
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    out = np.empty(columns, np.float32)
    kernel("reduce", "col_reduce_small_Sum_float")(
        x, out, rows, columns, np.array([1], np.int32), np.array([0], np.int64), 1,
        np.array([rows], np.int32), np.array([columns], np.int64), 1, 1,
        threads=(SIMD, 8, 1), group_size=(SIMD, 8, 1),
    )  # fmt: skip
    check_reduction(out, x, np.sum, 0, rows)


@EACH_REDUCTION
def test_column_reduce_in_two_passes(name, dtype, oracle, rng):
    rows, columns, blocks = 5000, 70, 32
    x = reduction_argument(dtype, (1, rows, columns), rng)
    partial, out = np.empty((blocks, columns), dtype), np.empty(columns, dtype)
    one, shape = np.array([1], np.int32), np.array([rows], np.int32)
    strides, nothing = np.array([columns], np.int64), np.array([0], np.int64)
    grid = 256 * ceildiv(columns, 32)
    kernel("reduce", f"col_reduce_2pass_{name}")(
        x, partial, rows, columns, one, nothing, 1, shape, strides, 1, 1, 0, 1,
        threads=(grid, blocks, 1), group_size=(256, 1, 1),
    )  # fmt: skip
    kernel("reduce", f"col_reduce_looped_{name}")(
        partial, out, blocks, columns, one, nothing, 1, np.array([blocks], np.int32), strides, 1,
        1, 0, threads=(grid, 1, 1), group_size=(256, 1, 1),
    )  # fmt: skip
    check_reduction(out, x[0], oracle, 0, ceildiv(rows, blocks * 32) + 2 * SIMD)


@EACH_REDUCTION
def test_reduce_of_long_columns(name, dtype, oracle, rng):
    rows, columns, blocks = 3001, 17, 4
    x = reduction_argument(dtype, (rows, columns), rng)
    partial = np.empty((blocks, columns), dtype)
    kernel("reduce", f"col_reduce_longcolumn_{name}")(
        x, partial, rows, columns, np.array([1], np.int32), np.array([0], np.int64), 1,
        np.array([rows], np.int32), np.array([columns], np.int64), 1, 1, columns,
        threads=(columns, 32, blocks), group_size=(columns, 32, 1),
    )  # fmt: skip
    for block in range(blocks):
        mine = np.arange(rows) // 32 % blocks == block
        check_reduction(partial[block], x[mine], oracle, 0, ceildiv(rows, 32 * blocks) + 32)


def test_sums_of_complex(rng):
    x = (rng.normal(size=(6, 1000)) + 1j * rng.normal(size=(6, 1000))).astype(np.complex64)
    out = np.empty(6, np.complex64)
    run = kernel("reduce_complex", "row_reduce_simple_Sum_complex")
    run(x, out, 1000, 6, threads=(256, 2, 1), group_size=(256, 1, 1))
    for part, numbers in ((out.real, x.real), (out.imag, x.imag)):
        wide = numbers.astype(np.float64)
        assert_within(part, wide.sum(axis=1), sum_error(wide, 4 + TWO_SIMD_SUMS, axis=1))


def test_initial_values():
    for name, dtype, value in (("Sum_float", FLOAT, 0), ("Max_bfloat", BFLOAT, -np.inf),
                               ("Min_int", np.dtype(np.int32), 2**31 - 1)):  # fmt: skip
        out = np.empty((5, 7), dtype)
        kernel("reduce", f"init_reduce_{name}")(out, threads=(7, 5))
        assert (out == value).all()
