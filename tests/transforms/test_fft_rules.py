"""Derivatives and batching of Fourier transforms."""

import itertools

import numpy as np
import pytest
from derivatives import check_derivatives, check_vmap, random

import metalloid as mtl

COMPLEX = ("fft", "ifft", "irfft", "hfft")
REAL = ("fft", "rfft", "ihfft", "irfft", "hfft")
ONE = [(n, True) for n in COMPLEX] + [(n, False) for n in REAL]
MULTIPLE = [("fftn", True), ("ifft2", True), ("irfftn", True), ("rfftn", False), ("rfft2", False)]
NORMS = ("backward", "ortho", "forward")
FAST = {(None, "backward"), (9, "forward"), (4, "ortho")}
#: Lengths and axes.
REGIONS = ((None, (0, 1, 2)), ((3, 5), (0, 2)), ((6, 2), (2, 1)))
FAST_REGIONS = {(REGIONS[1], "backward")}


def some(fast, *values):
    """All combinations; those that are not fast are marked as slow."""
    return [
        pytest.param(*row, marks=() if row in fast else pytest.mark.slow)
        for row in itertools.product(*values)
    ]


@pytest.mark.parametrize(("n", "norm"), some(FAST, (None, 1, 2, 4, 5, 9), NORMS))
@pytest.mark.parametrize(("name", "is_complex"), ONE)
@pytest.mark.sample(5)
def test_along_one_axis(name, is_complex, n, norm):
    function = getattr(mtl.fft, name)
    x = random(6, 2, is_complex=is_complex)
    check_derivatives(lambda a: function(a, n=n, axis=0, norm=norm), x, order=1)


@pytest.mark.parametrize(("region", "norm"), some(FAST_REGIONS, REGIONS, NORMS))
@pytest.mark.parametrize(("name", "is_complex"), MULTIPLE)
def test_along_multiple_axes(name, is_complex, region, norm):
    function, (s, axes) = getattr(mtl.fft, name), region
    x = random(4, 3, 5, is_complex=is_complex)
    check_derivatives(lambda a: function(a, s=s, axes=axes, norm=norm), x, order=1)


@pytest.mark.parametrize(("name", "is_complex"), ONE[2::3])
@pytest.mark.sample(1)
def test_second_derivatives(name, is_complex):
    function = getattr(mtl.fft, name)
    check_derivatives(lambda a: function(a) ** 2, random(5, is_complex=is_complex))


@pytest.mark.parametrize(("name", "is_complex"), ONE)
@pytest.mark.sample(2)
def test_vmap(name, is_complex):
    function = getattr(mtl.fft, name)
    check_vmap(lambda a: function(a, n=5, axis=-2), random(4, 3, is_complex=is_complex))


@pytest.mark.parametrize(("name", "is_complex"), MULTIPLE)
def test_vmap_of_multiple_axes(name, is_complex):
    function = getattr(mtl.fft, name)
    check_vmap(lambda a: function(a, axes=(-1, 0)), random(4, 3, 5, is_complex=is_complex))


@pytest.mark.parametrize("backend", ["host", "kernels"])
def test_implementations_have_the_same_derivative(backend):
    x = mtl.asarray(random(8).astype(np.float32))
    with mtl.config.scope(transforms=backend):
        gradient = mtl.grad(lambda a: mtl.abs(mtl.fft.rfft(a)[1:3]).sum())(x)
    expected = mtl.grad(lambda a: mtl.abs(mtl.fft.fft(a)[1:3]).sum())(x)
    np.testing.assert_allclose(np.asarray(gradient), np.asarray(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_shifts():
    check_derivatives(lambda a: mtl.fft.fftshift(mtl.fft.fft(a)) * a, random(5))
    check_vmap(lambda a: mtl.fft.ifftshift(mtl.fft.ifft(a)), random(4, is_complex=True))
