"""Transforms by fourier.metal: every radix, several passes, convolutions, and how rows may lie."""

import math

import numpy as np
import pytest
from test_fourier import near, random, wide

import metalloid as mtl
from metalloid.fft import transforms
from metalloid.fft.factors import radices_of, split
from metalloid.fft.kernels import _CAPACITY_BYTES


@pytest.fixture(autouse=True)
def _by_kernels():
    with mtl.config.scope(transforms="kernels"):
        yield


@pytest.fixture
def in_place(monkeypatch):
    """Views are read where they are."""
    monkeypatch.setattr(transforms, "_MAX_COPIED_BYTES", 0)


def test_passes_are_steps_of_a_plan():
    x = mtl.asarray(random((2, 2**13), "complex64"))
    text = mtl.explain(mtl.abs(mtl.fft.fft(x * 2)))
    assert text.count(". transform_complex -> complex64") == 2
    assert "transformed_rows" not in text  # the function of the host


@pytest.mark.parametrize("radix", [2, 3, 4, 5, 7, 8, 11, 13])
@pytest.mark.sample(2)
def test_each_radix(radix):
    for n in (radix, radix**2, 6 * radix):
        x = random((3, n), "complex64", seed=n)
        near(mtl.fft.fft(mtl.asarray(x)), np.fft.fft(wide(x)), "float32")


LONG = {
    "two passes": 2**13,
    "two passes, odd": 3**4 * 5 * 11,
    "a convolution": 2003,
    "a convolution in two passes": 2053,
    "three passes": pytest.param(2**21 * 3, marks=pytest.mark.slow),
    "a convolution in three passes": pytest.param(3 * 10**6 + 17, marks=pytest.mark.slow),
}


@pytest.mark.parametrize("n", LONG.values(), ids=LONG)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.sample(1)
def test_long_rows(n, dtype):
    x = random((2, n), dtype, seed=n)
    array, want = mtl.asarray(x), np.fft.fft(wide(x))
    near(mtl.fft.fft(array), want, dtype)
    near(mtl.fft.ifft(array, norm="forward"), np.fft.ifft(wide(x), norm="forward"), dtype)
    if dtype == "float32":
        near(mtl.fft.rfft(array), want[:, : n // 2 + 1], dtype)
        near(mtl.fft.irfft(mtl.fft.rfft(array), n=n), wide(x), dtype)


@pytest.mark.parametrize("n", [60, 2**12, 67])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.sample(2)
def test_strided_rows(n, axis, in_place):
    shape = [3, 4, 5]
    shape[axis] = n
    x = random(shape, "complex64", seed=axis)
    near(mtl.fft.fft(mtl.asarray(x), axis=axis), np.fft.fft(wide(x), axis=axis), "float32")
    view = mtl.asarray(x)[::-1, :, ::-1]
    near(mtl.fft.ifft(view, axis=axis), np.fft.ifft(wide(x)[::-1, :, ::-1], axis=axis), "float32")


@pytest.mark.parametrize("n", [64, 2**12 + 2**11, 71])
def test_rows_are_cut_and_filled_up(n):
    x = random((2, n), "complex64")
    for m in (n // 2 + 1, 2 * n):
        near(mtl.fft.fft(mtl.asarray(x), n=m), np.fft.fft(wide(x), n=m), "float32")
        near(mtl.fft.irfft(mtl.asarray(x), n=m), np.fft.irfft(wide(x), n=m), "float32")


def test_one_row_for_all(in_place):
    x = random((64,), "float32")
    rows = mtl.broadcast_to(mtl.asarray(x), (5, 3, 64))
    near(mtl.fft.fft(rows), np.broadcast_to(np.fft.fft(wide(x)), (5, 3, 64)), "float32")


def test_five_axes_that_cannot_be_merged(in_place):
    x = random((2, 3, 2, 3, 8), "complex64")
    view = mtl.permute_dims(mtl.asarray(x), (3, 0, 2, 1, 4))[:, ::-1]
    want = np.fft.fft(wide(x).transpose(3, 0, 2, 1, 4)[:, ::-1])
    near(mtl.fft.fft(view), want, "float32")


def test_views_are_copied():
    x = random((6, 5, 3), "complex64")
    near(mtl.fft.ifft2(mtl.asarray(x)[::2], axes=(0, 1)), np.fft.ifft2(wide(x)[::2], axes=(0, 1)),
         "float32")  # fmt: skip


def test_nothing_to_transform():
    assert mtl.fft.fft(mtl.zeros((0, 8))).shape == (0, 8)


@pytest.mark.parametrize("max_factor", [1024, 2048])
def test_lengths_are_split(max_factor):
    for length in (1, 2, 1000, 2**11, 2**15, 3**9, 2**20, 2**24, 7**8, 13**4):
        parts = split(length, max_factor, max_factor // 4)
        assert math.prod(parts) == length
        assert max(parts) <= max_factor
        assert all(math.prod(radices_of(part)) == part for part in parts)
        if len(parts) > 1 and length & (length - 1) == 0:
            assert max(parts) <= max_factor // 4
    assert split(17, max_factor, max_factor // 4) is None


def test_too_long():
    with pytest.raises(ValueError, match="requires more than 3 passes"):
        split(2**40, _CAPACITY_BYTES // 8, _CAPACITY_BYTES // 32)
