"""The formats whose numbers are indices of a code book: iq1, iq2 and iq3."""

from __future__ import annotations

import numpy as np

from ggml_tree.bits import affine, bit_planes, halves, nibbles

HALF, BYTE, WORD = np.float16, np.uint8, np.uint16
_IQ1_DELTA = 0.125


def _entries(table: np.ndarray, indices: np.ndarray, dtype=np.uint8) -> np.ndarray:
    """The bytes of the entries, 256 a block."""
    return table[indices].view(dtype).reshape(-1, 256).astype(np.float64)


def _signs(bits: np.ndarray) -> np.ndarray:
    """+1 or -1 of each bit."""
    return 1.0 - 2.0 * bit_planes(np.ascontiguousarray(bits, np.uint8).reshape(-1, 32))


def _with_parity(seven_bits: np.ndarray) -> np.ndarray:
    """Eight signs from seven bits: an even number of them is negative."""
    seven_bits = seven_bits.astype(np.uint8)
    ones = bit_planes(seven_bits[..., None]).sum(-1)
    return seven_bits | (ones % 2 << 7).astype(np.uint8)


def _iq2_xxs(blocks, tables):
    words = np.ascontiguousarray(blocks["qs"]).view(np.uint32).reshape(-1, 8, 2)
    indices = np.ascontiguousarray(words[..., 0]).view(np.uint8)
    signs = words[..., 1, None] >> (7 * np.arange(4)).astype(np.uint32) & 127
    scales = halves(blocks["d"]) * (0.5 + (words[..., 1] >> 28)) / 4
    values = _entries(tables["iq2xxs_grid"], indices) * _signs(_with_parity(signs))
    return affine(scales.repeat(32, 1), values)


def _half_scales(blocks):
    return halves(blocks["d"]) * (0.5 + nibbles(blocks["scales"], interleaved=True)) / 4


def _iq2_xs(blocks, tables):
    signs = _signs(_with_parity(blocks["qs"] >> 9))
    values = _entries(tables["iq2xs_grid"], blocks["qs"] & 511) * signs
    return affine(_half_scales(blocks).repeat(16, 1), values)


def _iq2_s(blocks, tables):
    low, signs = blocks["qs"][:, :32].astype(np.int64), blocks["qs"][:, 32:]
    high = blocks["qh"][..., None] >> 2 * np.arange(4) & 3
    values = _entries(tables["iq2s_grid"], low | high.reshape(-1, 32) << 8) * _signs(signs)
    return affine(_half_scales(blocks).repeat(16, 1), values)


def _iq3_xxs(blocks, tables):
    words = np.ascontiguousarray(blocks["qs"][:, 64:]).view(np.uint32)
    signs = words[..., None] >> (7 * np.arange(4)).astype(np.uint32) & 127
    scales = halves(blocks["d"]) * (0.5 + (words >> 28)) / 2
    values = _entries(tables["iq3xxs_grid"], blocks["qs"][:, :64]) * _signs(_with_parity(signs))
    return affine(scales.repeat(32, 1), values)


def _iq3_s(blocks, tables):
    indices = blocks["qs"] | bit_planes(blocks["qh"]) << 8
    values = _entries(tables["iq3s_grid"], indices) * _signs(blocks["signs"])
    scales = halves(blocks["d"]) * (1 + 2 * nibbles(blocks["scales"], interleaved=True))
    return affine(scales.repeat(32, 1), values)


def _ones(scales, indices, negative, tables):
    """``scale (entry + delta)`` with entries -1, 0, 1, which kernels may hold as 0, 1, 2."""
    scales = scales.repeat(256 // scales.shape[1], 1)
    delta = np.where(negative, -_IQ1_DELTA, _IQ1_DELTA).repeat(256 // negative.shape[1], 1)
    values, _ = affine(scales, _entries(tables["iq1s_grid"], indices, np.int8), scales * delta)
    return values, 4 * np.abs(scales)


def _iq1_s(blocks, tables):
    high = blocks["qh"][..., None] >> (3 * np.arange(4)).astype(np.uint16) & 7
    indices = blocks["qs"] | high.reshape(-1, 32).astype(np.int64) << 8
    scales = halves(blocks["d"]) * (2 * (blocks["qh"] >> 12 & 7) + 1)
    return _ones(scales, indices, blocks["qh"] >> 15 == 1, tables)


def _iq1_m(blocks, tables):
    high = nibbles(blocks["qh"], interleaved=True).astype(np.int64)
    words = blocks["scales"]
    bits = (words >> 12).astype(np.int64) << 4 * np.arange(4)
    scale = bits.sum(1).astype(np.uint16).view(np.float16)
    steps = words[..., None] >> (3 * np.arange(4)).astype(np.uint16) & 7
    scales = halves(scale) * (2 * steps.reshape(-1, 16) + 1)
    return _ones(scales, blocks["qs"] | (high & 7) << 8, high >> 3 == 1, tables)


def set_iq1_m_scale(blocks: np.ndarray, scale: np.ndarray) -> None:
    """iq1_m keeps the block's scale in the top bits of four words."""
    bits = scale.astype(np.float16).view(np.uint16)[..., None] >> 4 * np.arange(4)
    blocks["scales"] = blocks["scales"] & 0x0FFF | (bits & 15).astype(np.uint16) << 12


#: Fields of a block and its decoder; all have 256 elements.
FORMATS = {
    "iq1_s": ([("d", HALF), ("qs", BYTE, 32), ("qh", WORD, 8)], _iq1_s),
    "iq1_m": ([("qs", BYTE, 32), ("qh", BYTE, 16), ("scales", WORD, 4)], _iq1_m),
    "iq2_xxs": ([("d", HALF), ("qs", WORD, 32)], _iq2_xxs),
    "iq2_xs": ([("d", HALF), ("qs", WORD, 32), ("scales", BYTE, 8)], _iq2_xs),
    "iq2_s": ([("d", HALF), ("qs", BYTE, 64), ("qh", BYTE, 8), ("scales", BYTE, 8)], _iq2_s),
    "iq3_xxs": ([("d", HALF), ("qs", BYTE, 96)], _iq3_xxs),
    "iq3_s": (
        [("d", HALF), ("qs", BYTE, 64), ("qh", BYTE, 8), ("signs", BYTE, 32), ("scales", BYTE, 4)],
        _iq3_s,
    ),
}
