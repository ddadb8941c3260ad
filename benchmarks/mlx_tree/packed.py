"""Matrices in few bits a number as MLX packs them: affine, and small floats with scales."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

#: A float of 4 bits: sign, two bits of exponent, one of mantissa.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
#: Largest numbers of the two, by which MLX divides a global scale.
LARGEST_E2M1, LARGEST_E4M3 = 6.0, 448.0
#: A global scale whose quotient by those is 1/8.
GLOBAL_SCALE, GLOBAL_FACTOR = LARGEST_E2M1 * LARGEST_E4M3 / 8, 0.125


@dataclass(frozen=True)
class Packed:
    """A matrix (..., rows, columns) whose rows are packed.

    Attributes
    ----------
    words : numpy.ndarray
        uint32, the codes of a row one after the other from the lowest bit on.
    scales, biases : numpy.ndarray
        One number for each group of columns; there are no biases in the modes of small floats.
    exact, scaled, added : numpy.ndarray
        float64: the numbers, and the magnitudes ``|scale| code`` and ``|bias|`` of their two terms.
    """

    words: np.ndarray
    scales: np.ndarray
    biases: np.ndarray | None
    exact: np.ndarray
    scaled: np.ndarray
    added: np.ndarray

    def at(self, index) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The numbers and the two magnitudes of a part of it."""
        return self.exact[index], self.scaled[index], self.added[index]


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes (uint8) to the bytes that hold `bits` bits of each, the lowest first."""
    single = np.unpackbits(codes[..., None], axis=-1, count=bits, bitorder="little")
    return np.packbits(single.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def unpack(data: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of `pack`."""
    single = np.unpackbits(data, axis=-1, bitorder="little")
    codes = single.reshape(*data.shape[:-1], -1, bits)
    return np.packbits(codes, axis=-1, bitorder="little")[..., 0]


def _spread(scales: np.ndarray, group: int) -> np.ndarray:
    return np.repeat(scales.astype(np.float64), group, axis=-1)


def affine(rng, shape, dtype, group: int, bits: int) -> Packed:
    """``scale * code + bias``, each of them a number of `dtype`.

    Scales are powers of two and biases small multiples of them. So what remains are the errors of
    sums, also for kernels that compute the numbers in 16 bits.
    """
    codes = rng.integers(0, 2**bits, shape).astype(np.uint8)
    groups = (*shape[:-1], shape[-1] // group)
    scales = np.exp2(rng.integers(-3, 2, groups)) * rng.choice([-1, 1], groups)
    biases = -scales * rng.integers(0, 2 ** (bits - 1) + 1, groups)
    scaled, added = codes * _spread(scales, group), _spread(biases, group)
    return Packed(pack(codes, bits).view(np.uint32), scales.astype(dtype), biases.astype(dtype),
                  scaled + added, np.abs(scaled), np.abs(added))  # fmt: skip


def small_float_values(codes: np.ndarray, bits: int) -> np.ndarray:
    """The numbers of codes: E2M1 for 4 bits, E4M3 for 8."""
    return E2M1[codes] if bits == 4 else codes.view(E4M3).astype(np.float64)


def small_float_scales(codes: np.ndarray, group: int) -> np.ndarray:
    """The numbers of the codes of scales: E4M3 for groups of 16 (nvfp4), else powers of two."""
    if group == 16:
        return codes.view(E4M3).astype(np.float64)
    return np.exp2(codes.astype(np.float64) - 127)


def small_floats(rng, shape, group: int, bits: int) -> Packed:
    """``scale * float``: mxfp4, mxfp8 or nvfp4."""
    if bits == 4:
        codes = rng.integers(0, 16, shape).astype(np.uint8)
    else:
        codes = rng.normal(size=shape).astype(E4M3).view(np.uint8)
    groups = (*shape[:-1], shape[-1] // group)
    if group == 16:
        scales = rng.uniform(0.25, 4, groups).astype(E4M3).view(np.uint8)
    else:
        scales = rng.integers(124, 130, groups).astype(np.uint8)
    exact = small_float_values(codes, bits) * _spread(small_float_scales(scales, group), group)
    return Packed(pack(codes, bits).view(np.uint32), scales, None, exact, np.abs(exact),
                  np.zeros(shape))  # fmt: skip
