"""Arrays as chunks of Dask's arrays: functions, creation, kernels over blocks, and workers."""

import os
import pickle
import time

import numpy as np
import pytest

import metalloid as mtl

dask = pytest.importorskip("dask", reason="dask is missing: pip install 'metalloid[dask]'")
da = pytest.importorskip("dask.array")

SHIFT = """
#include <metal_stdlib>
using namespace metal;
kernel void blur(device float* y, device const float* x, constant uint2& shape,
                 uint2 at [[thread_position_in_grid]]) {
  const uint columns = shape.y, i = at.y * columns + at.x;
  const bool is_inside = at.y > 0 && at.y + 1 < shape.x;
  y[i] = is_inside ? (x[i - columns] + x[i] + x[i + columns]) / 3 : x[i];
}
"""

FUNCTIONS = {
    "elementwise": lambda x: da.exp(x) * 2 - x,
    "sum of rows": lambda x: x.sum(axis=1),
    "mean": lambda x: x.mean(),
    "standard deviation": lambda x: x.std(axis=0),
    "argmax": lambda x: x.argmax(axis=1),
    "product": lambda x: x @ x.T,
    "rows by indices": lambda x: x[[1, 5, 7], ::2],
    "concatenation": lambda x: da.concatenate([x, x]),
    "running sum": lambda x: x.cumsum(axis=0),
    "where": lambda x: da.where(x > 0.5, x, 0),
    "percentiles": lambda x: da.percentile(x[:, 0], [10, 50, 90]),
}
MORE_FUNCTIONS = {
    "transpose": lambda x: x.T,
    "zeros_like": lambda x: da.zeros_like(x, shape=(5, 4)),
    "assignment": lambda x: assigned(x),
    "map_blocks": lambda x: x.map_blocks(lambda block: block * 2),
    "maximum": lambda x: x.max(),
    "variance": lambda x: x.var(),
    "tensordot": lambda x: da.tensordot(x, x.T, 1),
    "einsum": lambda x: da.einsum("ij,kj->ik", x, x),
    "mask": lambda x: x[:, 0][x[:, 0] > 0.5],
    "stack": lambda x: da.stack([x, x]),
    "rechunk": lambda x: x.rechunk((7, 30)),
    "topk": lambda x: da.topk(x, 3, axis=1),
    "unique": lambda x: da.unique((x * 10).astype("int32")),
    "median": lambda x: da.median(x, axis=1),
    "qr": lambda x: abs(da.linalg.qr(x.rechunk((20, 30)))[1]),
    "svd": lambda x: da.linalg.svd(x.rechunk((20, 30)))[1],
    "fft": lambda x: da.fft.fft(x.rechunk((20, 30)), axis=1),
    "map_overlap": lambda x: x.map_overlap(lambda block: block + 1, depth=1),
    "full_like": lambda x: da.full_like(x, 3, shape=(4, 4)),
    "histogram": lambda x: da.histogram(x, bins=5, range=(0, 1))[0],
    "isin": lambda x: da.isin((x * 10).astype("int32"), [1, 2]),
    "pad": lambda x: da.pad(x, 1),
    "roll": lambda x: da.roll(x, 3, axis=0),
    "diff": lambda x: da.diff(x, axis=0),
    "nansum": lambda x: da.nansum(x),
    "round": lambda x: da.round(x, 1),
    "clip": lambda x: da.clip(x, 0.2, 0.5),
    "norm": lambda x: da.linalg.norm(x),
    "gradient": lambda x: da.gradient(x)[0],
    "digitize": lambda x: da.digitize(x, np.array([0.2, 0.5], np.float32)),
    "bincount": lambda x: da.bincount((x[:, 0] * 10).astype("int32"), minlength=11),
}


def assigned(x):
    y = x.copy()
    y[y > 0.5] = 0
    y[3] = 7
    return y


@pytest.fixture(autouse=True)
def registered():
    import metalloid.dask

    with dask.config.set(scheduler="synchronous"):
        yield metalloid.dask


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [*FUNCTIONS, *map(slow, MORE_FUNCTIONS)])
def test_functions(name, rng):
    function = (FUNCTIONS | MORE_FUNCTIONS)[name]
    values = rng.random((40, 30), np.float32)
    result = function(da.from_array(mtl.asarray(values), chunks=(20, 10))).compute()
    expected = function(da.from_array(values, chunks=(20, 10))).compute()
    assert isinstance(result, mtl.Array)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=2e-4, atol=1e-5)


def test_arrays_are_created_by_a_setting():
    with dask.config.set({"array.backend": "metalloid"}):
        arrays = da.ones((4, 4), chunks=2), da.full(3, 7.5), da.arange(10, chunks=3)
    values = [array.compute() for array in arrays]
    assert all(isinstance(value, mtl.Array) for value in values)
    np.testing.assert_array_equal(np.asarray(values[0]), np.ones((4, 4)))
    np.testing.assert_array_equal(np.asarray(values[1]), [7.5, 7.5, 7.5])
    np.testing.assert_array_equal(np.asarray(values[2]), np.arange(10))


def test_chunks_are_converted(registered):
    array = registered.MetalloidBackend.to_backend(da.ones((4, 4), chunks=2))
    assert isinstance(array.compute(), mtl.Array)
    assert type(array.to_backend("numpy").compute()) is np.ndarray


def test_sizes_are_those_of_the_elements():
    from dask.sizeof import sizeof

    x = mtl.zeros((100, 100), dtype=mtl.float32)
    assert sizeof(x) == 40_000  # as Dask counts NumPy's arrays


def test_names_are_those_of_the_contents():
    x = mtl.asarray([1.0, 2.0])
    assert dask.base.tokenize(x) == dask.base.tokenize(mtl.asarray([1.0, 2.0]))
    assert dask.base.tokenize(x) != dask.base.tokenize(x + 1)


def test_elements_are_sent_without_a_copy():
    buffers = []
    x = mtl.asarray(np.arange(1000, dtype=np.float32))
    data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 1000
    assert [buffer.raw().nbytes for buffer in buffers] == [4000]
    np.testing.assert_array_equal(np.asarray(pickle.loads(data, buffers=buffers)), np.arange(1000))


def blurred(block, kernel):
    y = np.empty_like(block)
    kernel(
        y, np.ascontiguousarray(block), np.array(block.shape, np.uint32), threads=block.shape[::-1]
    )
    return y


def exact_blur(x):
    y = x.copy()
    y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return y


def test_a_kernel_over_blocks(rng):
    x = rng.random((60, 8), np.float32)
    kernel = mtl.library(SHIFT).blur
    blocks = da.from_array(x, chunks=(15, 8))
    result = blocks.map_overlap(
        blurred, depth={0: 1}, boundary="none", dtype=x.dtype, kernel=kernel
    )
    np.testing.assert_allclose(result.compute(), exact_blur(x), rtol=1e-6)


def killed_once(block, path, block_id):
    """The block, plus 1; the process of the first call for one block dies."""
    if block_id == (2, 0) and not os.path.exists(path):
        with open(path, "w"):
            pass
        os._exit(1)
    time.sleep(0.01)
    return mtl.asarray(block) + 1


@pytest.mark.slow
def test_a_worker_that_dies(tmp_path, rng):
    distributed = pytest.importorskip("distributed")
    x = rng.random((800, 100), np.float32)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        blocks = da.from_array(x, chunks=(100, 100))
        path = str(tmp_path / "killed")
        total = blocks.map_blocks(killed_once, path=path, meta=mtl.asarray(x[:0])).sum()
        value = float(total.compute(scheduler="distributed"))
    assert os.path.exists(path)
    assert value == pytest.approx((x.astype(np.float64) + 1).sum(), rel=1e-6)


@pytest.mark.slow
def test_xarray(rng):
    xarray = pytest.importorskip("xarray")
    values = rng.random((6, 4), np.float32)
    data = xarray.DataArray(mtl.asarray(values), dims=("time", "place"))
    result = (data * 2).mean("time")
    assert isinstance(result.data, mtl.Array)
    np.testing.assert_allclose(np.asarray(result.data), 2 * values.mean(0), rtol=1e-6)
