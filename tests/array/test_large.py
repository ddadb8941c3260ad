"""Arrays whose offsets do not fit 31 or 32 bits: the class of mistakes that users report most."""

import numpy as np
import pytest

import metalloid as mtl

_BEYOND_31 = 2**31 + 100
_BEYOND_32 = 2**32 + 100


def test_reductions_of_more_elements_than_32_bits_count():
    one = mtl.broadcast_to(mtl.asarray(np.ones(1, np.uint8)), (_BEYOND_32 // 4, 4))
    (first, *_) = mtl.explain(mtl.sum(one, dtype=mtl.int64)).split("kernel void")
    assert "ulong row0" in first


@pytest.mark.parametrize("extent", [2**40, 2**62])
def test_more_than_there_is_memory_for(extent):
    with pytest.raises(mtl.OutOfMemory):
        mtl.eval(mtl.zeros(extent) + 1)


@pytest.mark.slow
def test_an_axis_beyond_32_bits():
    x = mtl.zeros(_BEYOND_32, dtype=mtl.uint8)
    x[-3] = 7
    y = x + 1  # 4 GB each
    mtl.eval(y)
    assert np.asarray(y[-5:]).tolist() == [1, 1, 8, 1, 1]
    assert int(mtl.sum(y, dtype=mtl.int64)) == _BEYOND_32 + 7
    assert np.asarray((y[::-1] * 2)[:4]).tolist() == [2, 2, 16, 2]
    assert [int(index) for index in mtl.nonzero(x)[0]] == [_BEYOND_32 - 3]
    running = mtl.cumulative_sum(x, dtype=mtl.uint8)
    assert np.asarray(running[-4:]).tolist() == [0, 7, 7, 7]
    del running
    narrow = y[:-4].reshape((-1, 4))[:, :3] + 1
    assert np.asarray(narrow[-1]).tolist() == [2, 2, 2]


@pytest.mark.slow
def test_sums_beyond_32_bits():
    one = mtl.asarray(np.ones(1, np.uint8))
    assert int(mtl.sum(mtl.broadcast_to(one, (_BEYOND_32,)), dtype=mtl.int64)) == _BEYOND_32
    wide = mtl.broadcast_to(one, (70_000, 70_000))
    assert int(mtl.sum(wide, dtype=mtl.int64)) == 70_000**2


@pytest.mark.slow
def test_elements_beyond_31_bits():
    x = mtl.zeros(_BEYOND_31, dtype=mtl.int8)
    mtl.eval(x)
    x[_BEYOND_31 - 3] = 7
    y = x + 1
    mtl.eval(y)
    assert np.asarray(y[-5:]).tolist() == [1, 1, 8, 1, 1]
    assert int(mtl.argmax(y)) == _BEYOND_31 - 3
    assert np.asarray(y[::-1][:4]).tolist() == [1, 1, 8, 1]
    assert np.asarray(y[mtl.asarray([_BEYOND_31 - 3, 0])]).tolist() == [8, 1]
    strided = mtl.asarray(y[:: 2**20])
    assert int(strided.sum()) == strided.size


@pytest.mark.slow
def test_columns_beyond_32_bits():
    x = mtl.broadcast_to(mtl.asarray(np.ones((1, 1), np.int8)), (70_000, 65_000))
    y = mtl.asarray(np.ones(1, np.int8)) + x  # 4.5 GB in memory
    mtl.eval(y)
    assert np.asarray(y[-1, -3:]).tolist() == [2, 2, 2]
    assert int(y[-2:].sum()) == 2 * 2 * 65_000
