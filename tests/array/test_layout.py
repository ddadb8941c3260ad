"""Movements as strides, against NumPy's views."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metalloid.arrays.ir.layout import (
    Layout,
    ViewOp,
    apply_view,
    contiguous,
    is_contiguous,
    reach,
    viewed_shape,
)
from metalloid.kernels.strides import collapse

EXTENTS = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def view_of(layout, memory):
    """NumPy's array of a layout."""
    size = memory.itemsize
    return np.lib.stride_tricks.as_strided(
        memory[layout.offset :], layout.shape, [s * size for s in layout.strides]
    )


@st.composite
def view_ops(draw, shape):
    """A movement of an array of a shape, and the same done by NumPy."""
    kind = draw(st.sampled_from(["permute", "slice", "broadcast", "reshape"]))
    if kind == "permute":
        axes = tuple(draw(st.permutations(range(len(shape)))))
        return ViewOp(kind, axes), lambda x: x.transpose(axes)
    if kind == "slice":
        numbers, key = [], []
        for n in shape:
            index = draw(st.slices(n))
            first, stop, step = index.indices(n)
            count = len(range(first, stop, step))
            numbers += [first if count else 0, step if count > 1 else 1, count]
            key.append(index)
        return ViewOp(kind, tuple(numbers)), lambda x: x[tuple(key)]
    if kind == "broadcast":
        wide = tuple(draw(st.integers(1, 3)) if n == 1 else n for n in shape)
        wide = (*draw(st.lists(st.integers(1, 3), max_size=2)), *wide)
        return ViewOp(kind, wide), lambda x: np.broadcast_to(x, wide)
    size, new = int(np.prod(shape, dtype=int)), []
    if size == 0:
        new = list(reversed(shape))
        return ViewOp(kind, tuple(new)), lambda x: x.reshape(new)
    while size > 1:
        new.append(draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0])))
        size //= new[-1]
    return ViewOp(kind, tuple(new)), lambda x: x.reshape(new)


@given(shape=EXTENTS, data=st.data())
def test_movements_follow_each_other_as_numpy_has_them(shape, data):
    memory = np.arange(max(int(np.prod(shape, dtype=int)), 1))
    layout, view = contiguous(shape), memory[: int(np.prod(shape, dtype=int))].reshape(shape)
    for _ in range(4):
        movement, by_numpy = data.draw(view_ops(layout.shape))
        after, shown = apply_view(layout, movement), by_numpy(view)
        assert viewed_shape(layout.shape, movement) == shown.shape
        if after is None:
            assert movement.kind == "reshape"
            assert not np.shares_memory(shown, view)
            return
        layout, view = after, shown
        assert np.array_equal(view_of(layout, memory), view)
        if view.size:
            low, high = reach(layout)
            assert (low, high) == (view.min(), view.max())


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (1, 5, 1), (0, 2)])
def test_fresh_arrays_are_contiguous(shape):
    assert is_contiguous(contiguous(shape))


def test_what_is_no_longer_contiguous():
    assert not is_contiguous(Layout((2, 3), (1, 2), 0))
    assert not is_contiguous(Layout((3,), (-1,), 2))
    assert is_contiguous(Layout((1, 3), (77, 1), 5))


def offsets(extents, strides):
    """The offset of each element, in the order of the elements."""
    return [sum(s * k for s, k in zip(strides, at, strict=True)) for at in np.ndindex(*extents)]


@given(shape=EXTENTS, data=st.data())
def test_collapsed_axes_visit_the_same_elements_in_the_same_order(shape, data):
    strides = [
        tuple(data.draw(st.integers(-3, 12)) for _ in shape) if k else contiguous(shape).strides
        for k in range(2)
    ]
    extents, columns = collapse(shape, *strides)
    for before, after in zip(strides, columns, strict=True):
        if all(shape):
            assert offsets(shape, before) == offsets(extents, after)
