"""Unpacking bits, as the block formats of ggml lay them out."""

from __future__ import annotations

import numpy as np


def nibbles(packed: np.ndarray, interleaved: bool = False) -> np.ndarray:
    """Four-bit numbers: all low halves of the bytes before the high ones, or in turns."""
    parts = packed & 15, packed >> 4
    if interleaved:
        return np.stack(parts, -1).reshape(len(packed), -1)
    return np.concatenate(parts, -1).astype(np.int64)


def bit_planes(packed: np.ndarray) -> np.ndarray:
    """The bits of each row of bytes, the lowest first."""
    return np.unpackbits(packed, axis=-1, bitorder="little").astype(np.int64)


def halves(scale: np.ndarray) -> np.ndarray:
    """A scale per block, ready to multiply its elements."""
    return scale.astype(np.float64)[:, None]


def affine(a: np.ndarray, numbers: np.ndarray, b: np.ndarray | float = 0.0):
    """``a q + b`` and its magnitude; `a` and `b` per block or per element."""
    a, b = (np.asarray(x, np.float64) for x in (a, b))
    a, b = (x[:, None] if x.ndim == 1 else x for x in (a, b))
    product = a * numbers.astype(np.float64)
    return product + b, np.abs(product) + np.abs(b)


def six_bit_scales(packed: np.ndarray) -> np.ndarray:
    """The 16 scales of a q3_K block: low halves in 8 bytes, pairs of high bits in 4."""
    low = nibbles(packed[:, :8])
    high = packed[:, None, 8:] >> (2 * np.arange(4)).reshape(4, 1) & 3
    return (low | high.reshape(-1, 16).astype(np.int64) << 4) - 32


def six_bit_pairs(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 8 scales and 8 minima of a q4_K or q5_K block.

    Four of each stand in the low six bits of the first eight bytes; of the others the low halves
    stand in the last four bytes and the high bits above the first ones.
    """
    packed = packed.astype(np.int64)
    first, second, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, rest & 15 | first >> 6 << 4], 1)
    minima = np.concatenate([second & 63, rest >> 4 | second >> 6 << 4], 1)
    return scales, minima
