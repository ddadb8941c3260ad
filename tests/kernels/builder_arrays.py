"""Arrays that lie in memory in every layout: strided, reversed, transposed, broadcast, empty."""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32)
#: Unit roundoff.
ROUNDOFF = {np.float16: 2**-11, ml_dtypes.bfloat16: 2**-8, np.float32: 2**-24}


@st.composite
def shapes(draw, max_axes=3, max_extent=6):
    return tuple(draw(st.lists(st.integers(0, max_extent), max_size=max_axes)))


@st.composite
def arrays(draw, shape, dtype, low=-20, high=20):
    """An array of small whole numbers of that shape, a view of larger memory."""
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1, -2, 0])) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    # Memory with room for the steps, its axes in another order.
    extents = [shape[axis] * max(abs(steps[axis]), 1) + 1 for axis in order]
    seed = draw(st.integers(0, 2**16))
    values = np.random.default_rng(seed).integers(low, high, extents, endpoint=True)
    memory = values.astype(dtype).transpose(np.argsort(order))
    starts = [
        slice(0, abs(s) * n, abs(s)) if s else slice(n) for s, n in zip(steps, shape, strict=True)
    ]
    view = memory[(..., *starts)]
    view = view[(..., *(slice(None, None, -1 if s < 0 else 1) for s in steps))]
    for axis, step in enumerate(steps):
        if step == 0 and shape[axis]:
            view = np.broadcast_to(np.take(view, [0], axis), view.shape)
    assert view.shape == shape
    return view


@st.composite
def broadcast_pairs(draw):
    """Two shapes that broadcast."""
    shape = draw(shapes())
    other = tuple(draw(st.sampled_from([n, 1])) for n in shape)[draw(st.integers(0, len(shape))) :]
    return (shape, other) if draw(st.booleans()) else (other, shape)
