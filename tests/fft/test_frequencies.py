"""Frequencies and shifts against NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.planning.plan import FusedKernel, make_plan


@given(st.integers(1, 300), st.floats(1e-3, 1e3), st.sampled_from(["float32", "float64"]))
@settings(max_examples=3)
def test_frequencies(n, d, dtype):
    for name in ("fftfreq", "rfftfreq"):
        got = getattr(mtl.fft, name)(n, d=d, dtype=dtype)
        assert got.dtype == dtype
        want = getattr(np.fft, name)(n, d)
        np.testing.assert_allclose(got.numpy(), want, rtol=2 * float(np.finfo(dtype).eps))


def test_more_samples_than_float32_can_count():
    n = 20_000_001
    got = mtl.fft.fftfreq(n)[::4999]
    assert got.dtype == mtl.float32
    np.testing.assert_allclose(got.numpy(), np.fft.fftfreq(n)[::4999], rtol=3e-7)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.data())
@settings(max_examples=4)
def test_shifts(shape, data):
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    axes = data.draw(st.none() | st.permutations(range(len(shape))).map(tuple))
    for name in ("fftshift", "ifftshift"):
        got = getattr(mtl.fft, name)(mtl.asarray(x), axes=axes)
        np.testing.assert_array_equal(got.numpy(), getattr(np.fft, name)(x, axes))
    back = mtl.fft.ifftshift(mtl.fft.fftshift(mtl.asarray(x), axes=axes), axes=axes)
    np.testing.assert_array_equal(back.numpy(), x)


def test_frequencies_fuse():
    steps = make_plan(LinearizedGraph([(mtl.fft.fftfreq(8) * 2 + 1)._node])).steps
    assert [type(step) for step in steps] == [FusedKernel]


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: mtl.fft.fftfreq(0), ValueError,
     "[fftfreq] n must be at least 1, got 0."),
    (lambda: mtl.fft.rfftfreq(4, dtype=mtl.int32), TypeError,
     "[rfftfreq] frequencies must be floats, got int32."),
    (lambda: mtl.fft.fftshift(mtl.ones(4), axes=1), ValueError,
     "[fftshift] axis 1 is out of range for an array with 1 axes."),
])  # fmt: skip
def test_messages(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
