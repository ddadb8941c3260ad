"""Whole numbers: their range, their frequencies, and the exact rule they follow."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

import metalloid as mtl

KEY = mtl.random.key(77)
TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@st.composite
def ranges(draw):
    dtype = draw(st.sampled_from(TYPES))
    limits = np.iinfo(dtype)
    low = draw(st.integers(int(limits.min), int(limits.max)))
    return dtype, low, draw(st.integers(low, int(limits.max))) + 1


@settings(max_examples=5)
@given(ranges())
@example(("int64", -1, 2**63 - 1))
@example(("int64", -(2**63), 2**63 - 1))
def test_the_upper_half_of_a_product(case):
    dtype, low, high = case
    source = mtl.random.bits(20, mtl.uint64, KEY).tolist()
    expected = [low + (bits * (high - low) >> 64) for bits in source]
    numbers = mtl.random.randint(low, high, 20, dtype, KEY)
    assert numbers.dtype == np.dtype(dtype)
    assert numbers.tolist() == expected
    if high <= np.iinfo(dtype).max:
        limits = mtl.asarray(low, dtype=dtype), mtl.asarray(high, dtype=dtype)
        assert mtl.random.randint(*limits, 20, dtype, KEY).tolist() == expected


@pytest.mark.parametrize("span", [2, 6, 1000, 2**16])
def test_frequencies(span):
    x = np.asarray(mtl.random.randint(-5, span - 5, 2**20, key=KEY))
    assert stats.chisquare(np.bincount(x + 5, minlength=span)).pvalue > 1e-3


def test_limits_may_be_arrays():
    low, high = mtl.asarray([0, 10, 7]), mtl.asarray([[3], [20]])
    x = np.asarray(mtl.random.randint(low, high, (500, 2, 3), key=KEY))
    assert np.all(x >= np.asarray(low))
    empty = np.asarray(high) <= np.asarray(low)
    assert np.all((x < np.asarray(high)) | empty)
    assert np.all((x == np.asarray(low)) | ~empty)
    assert mtl.random.randint(0, high).shape == (2, 1)


@pytest.mark.parametrize("shape", [(), 0, (0,), 3, (2, 0), (2, 3)])
@pytest.mark.sample(2)
def test_shapes(shape):
    expected = np.zeros(shape).shape
    assert mtl.random.randint(0, 9, shape).shape == expected
    assert mtl.random.randint(mtl.asarray(0), 9, shape).shape == expected


def test_errors():
    with pytest.raises(ValueError, match="high must be above low, got 3 and 3"):
        mtl.random.randint(3, 3, 4)
    with pytest.raises(OverflowError, match="int8 does not hold 0 to 128"):
        mtl.random.randint(0, 129, 4, mtl.int8)
    with pytest.raises(TypeError, match="expected an integer type, got float32"):
        mtl.random.randint(0, 3, 4, mtl.float32)
