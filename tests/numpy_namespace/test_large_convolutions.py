"""Convolutions and correlations of large vectors, which Fourier transforms compute."""

import numpy as onp
import pytest

import metalloid as mtl
import metalloid.numpy as np
from metalloid.numpy.functions import convolution

LONG, SHORT = 6000, 4500


def vectors(dtype):
    rng = onp.random.default_rng(3)
    values = [rng.standard_normal(n) + 1j * rng.standard_normal(n) for n in (LONG, SHORT)]
    return [v.astype(dtype) if onp.iscomplexobj(dtype(0)) else v.real.astype(dtype) for v in values]


@pytest.fixture
def transforms(monkeypatch):
    """The calls that transforms have computed."""
    calls, compute = [], convolution._by_transforms

    def observed(*arguments):
        calls.append(arguments)
        return compute(*arguments)

    monkeypatch.setattr(convolution, "_by_transforms", observed)
    return calls


@pytest.mark.parametrize("dtype", [onp.float32, onp.complex128])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_values_in_all_modes(name, dtype, transforms):
    x, y = vectors(dtype)
    wide = onp.complex128 if onp.iscomplexobj(x) else onp.float64
    for mode in ("full", "same", "valid"):
        for a, b in ((x, y), (y, x)):
            exact = getattr(onp, name)(a.astype(wide), b.astype(wide), mode)
            result = onp.asarray(getattr(np, name)(np.asarray(a), np.asarray(b), mode))
            assert result.dtype == a.dtype
            assert result.shape == exact.shape
            bound = 8 * onp.finfo(dtype).eps * onp.linalg.norm(x) * onp.linalg.norm(y)
            assert abs(result - exact).max() <= bound
    # Complete overlaps are few: real numbers are multiplied directly there.
    assert len(transforms) == (6 if wide is onp.complex128 else 4)


def test_direct_sums(transforms):
    x, y = vectors(onp.float32)
    np.convolve(x, y[:64])
    np.convolve(x.astype(int), y.astype(int))
    assert not transforms


def test_gradients(transforms):
    x, y = vectors(onp.float64)
    weights = onp.random.default_rng(5).standard_normal(LONG + SHORT - 1)
    of_x, of_y = mtl.grad(lambda a, b: (np.convolve(a, b) * weights).sum(), (0, 1))(
        np.asarray(x), np.asarray(y)
    )
    assert transforms
    onp.testing.assert_allclose(of_x, onp.correlate(weights, y, "valid"), rtol=0, atol=1e-10)
    onp.testing.assert_allclose(of_y, onp.correlate(weights, x, "valid"), rtol=0, atol=1e-10)
