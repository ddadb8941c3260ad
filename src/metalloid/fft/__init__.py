"""Discrete Fourier transforms."""

from typing import TYPE_CHECKING, Any

from metalloid.errors import unknown_attribute
from metalloid.fft import rules as _rules  # noqa: F401 - registers them
from metalloid.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from metalloid.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


if not TYPE_CHECKING:  # for checkers, other names are errors

    def __getattr__(name: str) -> Any:
        raise unknown_attribute(__name__, name, __all__)
