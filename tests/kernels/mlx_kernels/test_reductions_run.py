"""MLX's softmax, logsumexp, cross entropy, and reductions, launched as MLX does."""

import numpy as np
import pytest
import scipy.special
from mlx_headers import kernel
from mlx_tree import reduce
from mlx_tree import reduce_launches as launches
from mlx_tree.agreement import BFLOAT, FLOAT, HALF, NAMES, SIZES, assert_within, roundoff, smallest
from mlx_tree.softmax import (
    check_logsumexp_kernel,
    check_softmax_kernel,
    exp_error,
    logsumexp_error,
)

DTYPES = pytest.mark.parametrize("dtype", [FLOAT, HALF, BFLOAT], ids=NAMES.get)
LOOPED = pytest.mark.parametrize("looped", [False, True], ids=["single_row", "looped"])


@DTYPES
@LOOPED
@pytest.mark.parametrize("precise", [False, True], ids=["", "precise"])
@pytest.mark.sample(1)
def test_softmax(precise, looped, dtype, rng):
    name = f"{'looped' if looped else 'single_row'}_{'precise_' * precise}{NAMES[dtype]}"
    if not (precise and dtype == FLOAT):  # which there is not: float is precise by itself
        run = kernel("softmax", f"softmax_{name}")
        check_softmax_kernel(run, looped, dtype, FLOAT if precise else dtype, rng)


@DTYPES
@LOOPED
@pytest.mark.sample(1)
def test_logsumexp(looped, dtype, rng):
    name = f"logsumexp_{'looped_' * looped}{NAMES[dtype]}"
    check_logsumexp_kernel(kernel("logsumexp", name), looped, dtype, rng)


@DTYPES
@pytest.mark.sample(1)
def test_cross_entropy(dtype, rng):
    for size in (*SIZES, 9999):
        x = rng.normal(scale=4, size=(3, size)).astype(dtype)
        targets = rng.integers(-size, size, 3).astype(np.int32)
        group = launches.row_group(size)
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
        relative = exp_error(np.log(softmax)) + error[:, None] + 2.0**-23 * logarithm
        bound = np.abs(cotangent[:, None]) * (softmax * relative + 2.0**-23)
        bound += roundoff(dtype) * np.abs(exact) + smallest(dtype)
        assert_within(gradient, exact, bound)


REDUCTIONS = [
    pytest.param("Sum_float", FLOAT, id="sum_float"),
    pytest.param("Max_bfloat", BFLOAT, id="max_bfloat"),
    pytest.param("Min_int", np.dtype(np.int32), id="min_int"),
    pytest.param("And_bool", np.dtype(bool), id="and_bool"),
    pytest.param("Sum_half", HALF, id="sum_half", marks=pytest.mark.slow),
    pytest.param("Prod_int64", np.dtype(np.int64), id="prod_int64", marks=pytest.mark.slow),
]
EACH_REDUCTION = pytest.mark.parametrize(("name", "dtype"), REDUCTIONS)


def operation(name):
    return name.split("_")[0].lower()


@EACH_REDUCTION
@pytest.mark.parametrize("kind", ["all_reduce", "row_reduce_simple"])
@pytest.mark.sample(1)
def test_reduce_of_matrices(kind, name, dtype, rng):
    run = kernel("reduce", f"{kind}_{name}")
    reduce.check_matrices(run, kind.split("_")[0], operation(name), dtype, rng)


@EACH_REDUCTION
@pytest.mark.sample(1)
def test_all_reduce_in_two_passes(name, dtype, rng):
    run = kernel("reduce", f"all_reduce_{name}")
    x = reduce.argument(operation(name), dtype, (1, 40_001), rng)
    out = np.empty(1, dtype)
    additions = launches.all_reduce_in_two_passes(run, run, x, out, 32)
    reduce.compare(operation(name), x, out, (1,), additions)


@EACH_REDUCTION
@pytest.mark.parametrize(
    ("form", "axes"),
    # Axes as in drivers/instantiate_reduce.h: kernels are made for so many.
    [("row_small", 1), ("row_looped", 2), ("col_small", 1), ("col_looped", 1), ("col_2pass", 1),
     ("col_longcolumn", 1)],
)  # fmt: skip
@pytest.mark.sample(2)
def test_reduce_of_axes(form, axes, name, dtype, rng):
    kind, form = form.split("_")
    kernels = [kernel("reduce", f"{kind}_reduce_{form}_{name}")]
    if form in reduce.TWO_PASSES:
        kernels.append(kernel("reduce", f"col_reduce_looped_{name}"))
    reduce.check_axes(kernels, kind, form, axes, operation(name), dtype, rng)


@EACH_REDUCTION
@pytest.mark.sample(1)
def test_column_reduce_with_wide_tiles(name, dtype, rng):
    run = kernel("reduce", f"col_reduce_looped_8_128_{name}")
    x = reduce.argument(operation(name), dtype, (2, 40, 130), rng)
    out = np.empty((2, 130), dtype)
    additions = launches.col_reduce_looped(run, x, out, [0, 2], [1], tile=128)
    reduce.compare(operation(name), x, out, (1,), additions)


def test_sums_of_complex(rng):
    run = kernel("reduce_complex", "row_reduce_simple_Sum_complex")
    reduce.check_matrices(run, "row", "sum", np.complex64, rng)


def test_initial_values():
    for name, dtype in (("Sum_float", FLOAT), ("Max_bfloat", BFLOAT), ("Min_int", np.int32)):
        reduce.check_initial(kernel("reduce", f"init_reduce_{name}"), operation(name), dtype)
