"""Partitions of long rows, whose elements are moved between pivots, against NumPy's sorts."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import metalloid.numpy as own
from metalloid.arrays.library import order_statistics, partition
from metalloid.arrays.library.order_statistics import LONG_ROW
from metalloid.backends.cuda.runtime.geometry import launches_of

COUNT = LONG_ROW + 1007
SAMPLE = 2048  # of order_statistics.metal


def elements(dtype):
    rng = np.random.default_rng(0)
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, COUNT, dtype)
    x = rng.standard_normal(COUNT).astype(dtype)
    for step, value in ((97, np.nan), (31, -np.inf), (29, np.inf), (5, 0.0), (15, -0.0)):
        x[::step] = value
    return x


def check(x, kth, axis=-1):
    """Each element at a position of `kth` is that of the sorted array, and lies between others."""
    array = own.asarray(x)
    indices = np.asarray(own.argpartition(array, kth, axis))
    results = np.asarray(own.partition(array, kth, axis)), np.take_along_axis(x, indices, axis)
    ordered = np.moveaxis(np.sort(x, axis), axis, -1)
    for result in results:
        rows = np.moveaxis(result, axis, -1)
        ends = [0, *sorted({int(k) % x.shape[axis] for k in np.atleast_1d(kth)}), x.shape[axis]]
        for k in ends[1:-1]:
            np.testing.assert_array_equal(rows[..., k], ordered[..., k])
        for first, end in itertools.pairwise(ends):
            between = np.sort(rows[..., first:end], -1)
            np.testing.assert_array_equal(between, ordered[..., first:end])


def test_few_elements():
    check(np.array([3, 1, 2, 1]), [1, -1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "float16", "int32", "float32", "uint64", "float64"]
)
def test_types(dtype):
    x = elements(dtype)
    check(x, 7)
    check(x, [COUNT // 2, 5, -1, -9])
    check(np.sort(x), COUNT // 3)


@pytest.mark.slow
def test_equal_elements():
    check(np.zeros(COUNT), [5, 9])
    check(np.repeat([1.0, 0.0, 2.0], COUNT // 3), [5, 9, COUNT // 2])


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_rows(axis):
    x = elements("float64")
    check(np.stack([x, x[::-1], -x], 1 - axis), [5, COUNT // 4], axis)


@pytest.mark.slow
@pytest.mark.parametrize("value", [-1e300, 0.0, 1e300])
def test_elements_that_the_sample_does_not_have(value):
    """The positions of the sample all have one value, below, between or above the others."""
    x = elements("float64")
    k = np.arange(SAMPLE, dtype=np.uint64)
    first, end = k * COUNT // SAMPLE, (k + 1) * COUNT // SAMPLE
    random = ((k + 1) * 0x9E3779B9) % 2**32
    x[first + (random * (end - first) >> 32)] = value
    check(x, [7, COUNT // 8, COUNT // 2, -9])


def test_grids_of_many_rows():
    """CUDA's grids have at most 65,535 threadgroups along y, so that some launches are several."""
    rows, length = 70_000, LONG_ROW
    dtype = np.dtype(np.float64)
    calls = (
        order_statistics._call(order_statistics._Selection(dtype, rows, length, 2, 2**11, 8)),
        partition._call(partition._Partition(dtype, rows, length, 2, 2**11, False)),
    )
    for launch in (launch for call in calls for launch in call.launches):
        covered = 0
        for sub_grid in launches_of(launch.threads, launch.group_size or (32, 1, 1)):
            assert max(sub_grid.dimensions[1:3]) < 2**16
            assert sub_grid.data[7] == covered  # the first threadgroup along y
            covered += sub_grid.dimensions[1]
        assert covered == launch.threads[1]


def test_more_counters_than_indices():
    device = SimpleNamespace(traits=SimpleNamespace(is_simt=True))
    few, many = (
        SimpleNamespace(
            dtype=np.dtype(np.float64), shape=(rows, LONG_ROW), size=rows * LONG_ROW, device=device
        )
        for rows in (2**17, 2**18 - 1)
    )
    assert order_statistics.has_launches(few, 3)
    assert order_statistics.has_launches(many, 2)
    assert not order_statistics.has_launches(many, 3)
