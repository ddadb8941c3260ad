"""Discrete Fourier transforms, with the arguments of ``numpy.fft``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from metalloid import fft as base
from metalloid.arrays.array import Array, as_array
from metalloid.errors import unknown_attribute
from metalloid.numpy.array import store
from metalloid.numpy.known_calls import structural_function


def _along_axis(name: str) -> Callable[..., Any]:
    function = getattr(base, name)

    @structural_function(1)
    def transform(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None,
                  out: Any = None) -> Any:  # fmt: skip
        return store(
            function(a, n=n, axis=axis, norm="backward" if norm is None else norm), out, name
        )

    return _documented(transform, name)


def _along_axes(name: str, default: Any) -> Callable[..., Any]:
    function = getattr(base, name)

    @structural_function(1)
    def transform(a: Any, s: Any = None, axes: Any = default, norm: str | None = None,
                  out: Any = None) -> Any:  # fmt: skip
        if axes is not None and not len(axes):
            if "r" in name:
                raise IndexError(f"[{name}] expected at least one axis.")
            return store(a if isinstance(a, Array) else as_array(a, name), out, name)
        norm = "backward" if norm is None else norm
        if axes is not None and len({k % as_array(a, name).ndim for k in axes}) < len(axes):
            result = _one_by_one(name, as_array(a, name), s, axes, norm)
        else:
            result = function(a, s=s, axes=axes, norm=norm)
        return store(result, out, name)

    return _documented(transform, name)


def _one_by_one(name: str, x: Array, s: Any, axes: Any, norm: Any) -> Array:
    """Transform along axes that repeat."""
    is_inverse, of_reals, to_reals = (name.startswith(start) for start in ("i", "r", "ir"))
    lengths = [None] * len(axes) if s is None else list(s)
    lengths = [x.shape[k] if n in (None, -1) else n for n, k in zip(lengths, axes, strict=True)]
    if to_reals and (s is None or s[-1] in (None, -1)):
        lengths[-1] = 2 * (x.shape[axes[-1]] - 1)
    one = base.ifft if is_inverse else base.fft
    last = base.rfft if of_reals else base.irfft if to_reals else one
    steps = [*[(one, k) for k in range(len(axes) - 1)], (last, len(axes) - 1)]
    for function, k in steps if to_reals else steps[::-1]:
        x = function(x, n=lengths[k], axis=axes[k], norm=norm)
    return x


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


@structural_function(0)
def fftfreq(n: int, d: Any = 1.0, device: Any = None) -> Array:
    """Frequencies of the elements of `fft`."""
    return base.fftfreq(n, d=d, device=device)


@structural_function(0)
def rfftfreq(n: int, d: Any = 1.0, device: Any = None) -> Array:
    """Frequencies of the elements of `rfft`."""
    return base.rfftfreq(n, d=d, device=device)


@structural_function(1)
def fftshift(x: Any, axes: Any = None) -> Array:
    """Move the zero frequency to the middle."""
    return base.fftshift(x, axes=axes)


@structural_function(1)
def ifftshift(x: Any, axes: Any = None) -> Array:
    """Undo `fftshift`."""
    return base.ifftshift(x, axes=axes)


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


if not TYPE_CHECKING:  # for checkers, other names are errors

    def __getattr__(name: str) -> Any:
        raise unknown_attribute(__name__, name, __all__)
