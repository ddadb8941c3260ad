"""Tables of complex numbers for the Fourier kernels, computed in more than double precision."""

from __future__ import annotations

import functools

import numpy as np

from metalloid.arrays.ir.dtypes import DType
from metalloid.fft.factors import radices_of

_PI = np.arccos(np.longdouble(-1))


@functools.lru_cache(maxsize=64)
def twiddles(length: int, around: int) -> tuple[np.ndarray, int, int, int]:
    """Twiddle factors of a length, of each stage, and of `around`, coarse and fine.

    Returns
    -------
    factors : ndarray
    coarse, fine : int
        Where those of `around` begin.
    bits : int
        Of the index of the fine ones.
    """
    tables, bits, done = [unit_roots(np.arange(length), length)], 0, 1
    for radix in radices_of(length) or ():
        steps = np.arange(1, radix)[:, None] * np.arange(done)
        tables.append(unit_roots(steps.reshape(-1), radix * done))
        done *= radix
    coarse = fine = sum(map(len, tables))
    if around:
        bits = (around - 1).bit_length() // 2
        tables += [
            unit_roots(np.arange(0, around, 2**bits), around),
            unit_roots(np.arange(2**bits), around),
        ]
        fine += len(tables[-2])
    return np.concatenate(tables), coarse, fine, bits


def unit_roots(steps: np.ndarray, around: int) -> np.ndarray:
    """Return the powers of the first root of unity, in more than double precision."""
    angle = 2 * _PI * steps / around
    return np.asarray(np.cos(angle) - 1j * np.sin(angle), complex)


@functools.lru_cache(maxsize=16)
def chirp(n: int, m: int) -> np.ndarray:
    """The transform of the chirp that rows are convolved with, divided by `m`."""
    indices = np.arange(n)
    wave = np.conj(unit_roots(indices * indices % (2 * n), 2 * n))
    around = np.zeros(m, complex)
    around[:n], around[m - n + 1 :] = wave, wave[:0:-1]
    return np.asarray(np.fft.fft(around) / m)


def components(values: np.ndarray, real: DType) -> np.ndarray:
    """Complex numbers as pairs of real ones."""
    return np.stack([values.real, values.imag], axis=-1).astype(real)
