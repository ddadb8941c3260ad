"""Fourier transforms by cuFFT."""

import numpy as np
import pytest
from nvidia_libraries import TYPES, assert_near, on, random, some, wide

import metalloid as mtl


@pytest.mark.parametrize("norm", some(1, "forward", "backward", "ortho"))
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", some(2, "irfft", "ihfft", "fft", "ifft", "rfft", "hfft"))
def test_transforms_along_an_axis(device, rng, name, dtype, norm):
    if name in ("rfft", "ihfft") and np.dtype(dtype).kind == "c":
        dtype = dtype.replace("complex64", "float32").replace("complex128", "float64")
    x = random(rng, (3, 8, 5), dtype)
    for n, axis in ((None, -1), (12, 0), (7, 2)):
        got = getattr(mtl.fft, name)(on(device, x), n=n, axis=axis, norm=norm)
        want = getattr(np.fft, name)(wide(x), n=n, axis=axis, norm=norm)
        assert got.dtype == getattr(np.fft, name)(x, n=n, axis=axis, norm=norm).dtype
        assert_near(got.numpy(), want, 8)


@pytest.mark.parametrize("name", some(1, "irfftn", "fftn", "ifftn", "rfftn"))
@pytest.mark.parametrize("dtype", some(1, "float32", "complex128"))
def test_transforms_along_multiple_axes(device, rng, name, dtype):
    if name == "rfftn":
        dtype = "float32"
    x = random(rng, (4, 3, 2, 6, 5), dtype)
    for s, axes in ((None, None), ((3, 4, 6), (2, 1, 3))):
        got = getattr(mtl.fft, name)(on(device, x), s=s, axes=axes).numpy()
        assert_near(got, getattr(np.fft, name)(wide(x), s=s, axes=axes), 16)


def test_what_is_transformed_stays_as_it_was(device, rng):
    x = random(rng, (4, 9), "complex64")
    a = on(device, x)
    for function in (mtl.fft.fft, mtl.fft.irfft, mtl.fft.ifft2):
        function(a).numpy()
    assert np.array_equal(a.numpy(), x)
    view = a[1:, 1:]  # begins at an odd address
    assert_near(mtl.fft.fft(view).numpy(), np.fft.fft(wide(x)[1:, 1:]), 8)


@pytest.mark.slow
def test_half_floats_are_transformed_in_single_precision(device, rng):
    x = random(rng, (16,), "float16")
    got = mtl.fft.rfft(on(device, x)).numpy()
    assert got.dtype == np.complex64
    assert_near(got, np.fft.rfft(wide(x)), 8)
