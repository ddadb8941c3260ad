"""Discrete Fourier transforms, with the arguments of ``numpy.fft``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metalloid import fft as base
from metalloid.arrays.array import Array, as_array
from metalloid.numpy.array import numpy_function, store


def _along_axis(name: str) -> Callable[..., Any]:
    function = getattr(base, name)

    @numpy_function
    def transform(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None,
                  out: Any = None) -> Any:  # fmt: skip
        return store(
            function(a, n=n, axis=axis, norm="backward" if norm is None else norm), out, name
        )

    return _documented(transform, name)


def _along_axes(name: str, default: Any) -> Callable[..., Any]:
    function = getattr(base, name)

    @numpy_function
    def transform(a: Any, s: Any = None, axes: Any = default, norm: str | None = None,
                  out: Any = None) -> Any:  # fmt: skip
        if axes is not None and not len(axes):
            if "r" in name:
                raise IndexError(f"[{name}] expected at least one axis.")
            return store(a if isinstance(a, Array) else as_array(a, name), out, name)
        return store(
            function(a, s=s, axes=axes, norm="backward" if norm is None else norm), out, name
        )

    return _documented(transform, name)


def _documented(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"See `metalloid.fft.{name}`, with the arguments of ``numpy.fft.{name}``."
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(
    _along_axis, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
)
fft2, ifft2, rfft2, irfft2 = (
    _along_axes(name, (-2, -1)) for name in ("fft2", "ifft2", "rfft2", "irfft2")
)
fftn, ifftn, rfftn, irfftn = (
    _along_axes(name, None) for name in ("fftn", "ifftn", "rfftn", "irfftn")
)


@numpy_function
def fftfreq(n: int, d: Any = 1.0, device: Any = None) -> Array:
    """Frequencies of the elements of `fft`."""
    return base.fftfreq(n, d=d, device=device)


@numpy_function
def rfftfreq(n: int, d: Any = 1.0, device: Any = None) -> Array:
    """Frequencies of the elements of `rfft`."""
    return base.rfftfreq(n, d=d, device=device)


@numpy_function
def fftshift(x: Any, axes: Any = None) -> Array:
    """Move the zero frequency to the middle."""
    return base.fftshift(x, axes=axes)


@numpy_function
def ifftshift(x: Any, axes: Any = None) -> Array:
    """Undo `fftshift`."""
    return base.ifftshift(x, axes=axes)


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
