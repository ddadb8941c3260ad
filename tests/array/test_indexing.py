"""Indexing, updates and movements of arrays, against NumPy."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import metalloid as mtl

SHAPES = st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple)


@st.composite
def keys(draw, shape, arrays=True):
    """An index that fits a shape: numbers, slices, new axes, an ellipsis, arrays."""
    items, axis = [], 0
    while axis < len(shape):
        n = shape[axis]
        kinds = ["slice", "none", "end"] + ["int"] * (n > 0) + ["array"] * (n > 0 and arrays)
        kind = draw(st.sampled_from(kinds))
        if kind == "end":
            items.append(Ellipsis)
            break
        if kind == "none":
            items.append(None)
            if sum(item is None for item in items) > 2:
                break
            continue
        if kind == "slice":
            items.append(draw(st.slices(n)))
        elif kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        else:
            count = draw(st.sampled_from([(3,), (2, 3)]))
            indices = st.lists(st.integers(-n, n - 1), min_size=6, max_size=6)
            items.append(np.array(draw(indices)[: int(np.prod(count))]).reshape(count))
        axis += 1
    return tuple(items)


def ours(key):
    """An index with our arrays in it."""
    return tuple(mtl.asarray(k) if isinstance(k, np.ndarray) else k for k in key)


@settings(max_examples=8, deadline=None)
@given(shape=SHAPES, data=st.data(), is_lazy=st.booleans())
def test_getting(shape, data, is_lazy):
    key = data.draw(keys(shape))
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    own = mtl.asarray(x)
    got = np.asarray((own * 2 if is_lazy else own)[ours(key)])
    expected = (x * 2 if is_lazy else x)[key]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)


@settings(max_examples=8, deadline=None)
@given(shape=SHAPES, data=st.data())
def test_setting(shape, data):
    key = data.draw(keys(shape))
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    own, before = mtl.asarray(x), mtl.asarray(x)
    alias = own + 0
    value = np.arange(x[key].size, dtype=np.int32).reshape(x[key].shape) + 100
    own[ours(key)] = mtl.asarray(value)
    x[key] = value
    np.testing.assert_array_equal(np.asarray(own), x)
    np.testing.assert_array_equal(np.asarray(alias), np.asarray(before))


def test_masks():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    own, mask = mtl.asarray(x), x % 3 == 0
    np.testing.assert_array_equal(np.asarray(own[mtl.asarray(mask)]), x[mask])
    np.testing.assert_array_equal(np.asarray(own[mtl.asarray(mask[:, 0])]), x[mask[:, 0]])
    own[own > 5] = -1.0
    x[x > 5] = -1.0
    np.testing.assert_array_equal(np.asarray(own), x)
    own[mtl.asarray(mask)] = mtl.arange(int(mask.sum()), dtype=mtl.float32)
    x[mask] = np.arange(mask.sum())
    np.testing.assert_array_equal(np.asarray(own), x)


@pytest.mark.parametrize(
    ("name", "function"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("min", np.minimum),
     ("max", np.maximum)],
)  # fmt: skip
def test_updates_count_every_index(name, function):
    x = np.arange(5, dtype=np.float32) + 1
    index, value = np.array([0, 2, 2, 4]), np.array([3, 1, 5, 2], np.float32)
    got = getattr(mtl.asarray(x).at[mtl.asarray(index)], name)(mtl.asarray(value))
    expected = x.copy()
    function.at(expected, index, value)
    np.testing.assert_array_equal(np.asarray(got), expected)


@pytest.mark.needs("the process's memory")
def test_filling_piece_by_piece_writes_the_pieces_only():
    x = mtl.zeros(1000)
    mtl.eval(x)
    memory = x._node.memory
    del memory
    address = np.asarray(x).__array_interface__["data"][0]
    for k in range(0, 1000, 100):
        x[k : k + 100] = float(k)
    assert np.asarray(x).__array_interface__["data"][0] == address
    np.testing.assert_array_equal(np.asarray(x), np.repeat(np.arange(0, 1000, 100), 100))


def test_what_others_see_does_not_change():
    x = mtl.asarray(np.zeros(4, np.float32))
    view, later, shown = x[1:], x + 0, np.asarray(x)
    x[2] = 7
    assert np.asarray(view).tolist() == [0, 0, 0]
    assert np.asarray(later).tolist() == [0, 0, 0, 0]
    assert shown.tolist() == [0, 0, 0, 0]
    assert np.asarray(x).tolist() == [0, 0, 7, 0]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (4, "4 is out of range for axis 0 of extent 4"),
        ((0, 0, 0), "too many indices: got 3 for an array with 2 axes"),
        ((slice(None), mtl.asarray([0, 9])), "9 is out of range for axis 1 of extent 3"),
        (mtl.asarray([True, False]), r"a mask of shape \(2,\) does not match axes of \(4,\)"),
        (1.5, "expected integers or masks"),
    ],
)
def test_indices_that_do_not_fit(key, error):
    with pytest.raises(IndexError, match=error):
        np.asarray(mtl.zeros((4, 3))[key])


@settings(max_examples=20)
@given(data=st.data(), shape=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
       dtype=st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]),
       is_lazy=st.booleans())  # fmt: skip
def test_indices_of_every_type_are_right_or_refused(data, shape, dtype, is_lazy):
    """As by NumPy: the same elements, or an IndexError that names an index and the extent."""
    axis = data.draw(st.integers(0, len(shape) - 1))
    limits, extent = np.iinfo(dtype), shape[axis]
    inside = st.integers(max(-extent, int(limits.min)), extent - 1)
    numbers = inside | st.integers(int(limits.min), int(limits.max)) if data.draw(
        st.booleans()) else inside  # fmt: skip
    wide = data.draw(hnp.arrays(object, hnp.array_shapes(max_dims=2, min_side=0), elements=numbers))
    index = wide.astype(dtype)
    x = np.arange(int(np.prod(shape))).reshape(shape)
    key = (slice(None),) * axis
    own_index = mtl.asarray(index) | mtl.asarray(0, dtype=dtype) if is_lazy else mtl.asarray(index)
    wrong = [n for n in wide.ravel() if not -extent <= n < extent]
    own = mtl.asarray(x)
    if wrong:
        with pytest.raises(IndexError) as caught:
            np.asarray(own[(*key, own_index)])
        match = re.fullmatch(
            rf"\[index\] (-?\d+) is out of range for axis {axis} of extent {extent}\.",
            str(caught.value),
        )
        assert int(match[1]) in wrong
        if min(wrong) >= -(2**63) and max(wrong) < 2**63:
            with pytest.raises(IndexError):
                x[(*key, index)]
        return
    np.testing.assert_array_equal(np.asarray(own[(*key, own_index)]), x[(*key, index)])
    np.testing.assert_array_equal(
        np.asarray(mtl.take(own, own_index, axis=axis)), np.take(x, index, axis)
    )


def test_wrong_indices_among_many(rng):
    """Where only one of 100,000 is wrong, at either end and in either direction."""
    x = mtl.asarray(rng.random(1000))
    for position in (0, 1, 50_000, 99_998, 99_999):
        for wrong in (1000, -1001, 2**62, -(2**62)):
            index = rng.integers(-1000, 1000, 100_000)
            index[position] = wrong
            with pytest.raises(IndexError, match=f" {wrong} is out of range for axis 0 of extent"):
                np.asarray(x[mtl.asarray(index)])


def test_indices_are_checked_when_they_are_written_down():
    """At the line that has the mistake, unless a device has memory of its own."""
    is_deferred = mtl.default_device().memory == "own"
    x, index = mtl.zeros((4, 3)), mtl.arange(5) + mtl.asarray([0, 0, 0, 0, 1])
    for use in (
        lambda: x[index],
        lambda: x.at[index].add(1),
        lambda: x.at[index].get(),
        lambda: mtl.take(x, index, axis=0),
        lambda: mtl.take_along_axis(x, mtl.broadcast_to(index[:, None], (5, 3)), axis=0),
        lambda: mtl.searchsorted(mtl.arange(4), mtl.asarray(2), sorter=index[1:]),
    ):
        with pytest.raises(IndexError, match="5 is out of range for axis 0 of extent 4"):
            np.asarray(use()) if is_deferred else use()
    if is_deferred:
        return
    with pytest.raises(IndexError, match="5 is out of range for axis 0 of extent 4"):
        x[index] = 1
    assert np.asarray(x).tolist() == [[0.0] * 3] * 4


def test_counts_are_known_to_fit():
    """`take_along_axis` makes indices for the other axes: these take no memory."""
    x = np.arange(24).reshape(2, 3, 4)
    index = np.array([[[2], [-3]]]).reshape(2, 1, 1)
    np.testing.assert_array_equal(
        np.asarray(mtl.take_along_axis(mtl.asarray(x), mtl.asarray(index), axis=1)),
        np.take_along_axis(x, np.broadcast_to(index, (2, 1, 4)), 1),
    )
    with pytest.raises(IndexError, match="3 is out of range for axis 0 of extent 3"):
        np.asarray(mtl.zeros(3)[mtl.arange(4)])
    np.testing.assert_array_equal(np.asarray(mtl.asarray(x)[mtl.arange(2)]), x)


def test_values_that_do_not_fit():
    x = mtl.zeros((4, 3))
    with pytest.raises(
        ValueError, match=r"\[setitem\] the shapes \(2,\) and \(3,\) do not broadcast"
    ):
        x[0] = mtl.zeros(2)
    assert np.asarray(x).tolist() == [[0.0] * 3] * 4
