"""ggml's quantised formats, decoded in float64 from their definitions.

Each decoder takes blocks (a structured array) and returns ``(values, magnitudes)``, row by row. A
value is a sum of a few products; its magnitude is the sum of their absolute values, which is what
rounding errors are relative to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ggml_tree import code_books
from ggml_tree.bits import affine, bit_planes, halves, nibbles, six_bit_pairs, six_bit_scales

HALF, BYTE, SIGNED = np.float16, np.uint8, np.int8
Blocks = np.ndarray
Decoded = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Format:
    """A block format.

    Attributes
    ----------
    width : int
        Elements of a block.
    fields : list
        The block's layout, as of `numpy.dtype`.
    decode : callable
        ``decode(blocks, tables)``; `tables` are ggml's code books.
    """

    width: int
    fields: list[tuple]
    decode: Callable[[Blocks, dict[str, np.ndarray]], Decoded]

    @property
    def dtype(self) -> np.dtype:
        """A block as a structured type."""
        return np.dtype(self.fields)


def _q1_0(blocks, tables):
    signs = 2.0 * bit_planes(blocks["qs"]) - 1
    return affine(blocks["d"], signs)


def _q2_0(blocks, tables):
    codes = blocks["qs"][:, :, None] >> (2 * np.arange(4)) & 3
    return affine(blocks["d"], codes.reshape(-1, 64).astype(np.int64), -1.0 * blocks["d"])


def _q4_0(blocks, tables):
    return affine(blocks["d"], nibbles(blocks["qs"]), -8.0 * blocks["d"])


def _q4_1(blocks, tables):
    return affine(blocks["d"], nibbles(blocks["qs"]), blocks["m"])


def _fives(blocks):
    return nibbles(blocks["qs"]) + 16 * bit_planes(blocks["qh"])


def _q5_0(blocks, tables):
    return affine(blocks["d"], _fives(blocks), -16.0 * blocks["d"])


def _q5_1(blocks, tables):
    return affine(blocks["d"], _fives(blocks), blocks["m"])


def _q8_0(blocks, tables):
    return affine(blocks["d"], blocks["qs"])


def _mxfp4(blocks, tables):
    scale = np.exp2(blocks["e"].astype(np.float64) - 127)
    e2m1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    return affine(scale, np.concatenate([e2m1, -e2m1])[nibbles(blocks["qs"])])


def _iq4_nl(blocks, tables):
    return affine(blocks["d"], tables["kvalues_iq4nl"][nibbles(blocks["qs"])])


def _iq4_xs(blocks, tables):
    low = nibbles(blocks["scales_l"], interleaved=True)
    high = blocks["scales_h"][:, None] >> (2 * np.arange(8)) & 3
    scales = (low | high << 4).astype(np.int64) - 32
    values = tables["kvalues_iq4nl"][nibbles(blocks["qs"].reshape(-1, 16))]
    return affine(blocks["d"], scales.repeat(32, 1) * values.reshape(-1, 256).astype(np.float64))


def _two_bits(packed):
    """256 elements of two bits: 32 bytes hold 128 of them, plane by plane."""
    planes = packed.reshape(-1, 2, 1, 32) >> (2 * np.arange(4)).reshape(4, 1) & 3
    return planes.reshape(-1, 256).astype(np.int64)


def _tq2_0(blocks, tables):
    return affine(blocks["d"], _two_bits(blocks["qs"]) - 1)


def _q2_k(blocks, tables):
    scales, minima = blocks["scales"] & 15, blocks["scales"] >> 4
    a = halves(blocks["d"]) * scales.repeat(16, 1)
    return affine(a, _two_bits(blocks["qs"]), -halves(blocks["dmin"]) * minima.repeat(16, 1))


def _q3_k(blocks, tables):
    planes = blocks["hmask"].reshape(-1, 1, 32) >> np.arange(8).reshape(8, 1) & 1
    offset = 4.0 * (1 - planes.reshape(-1, 256).astype(np.int64))
    scales = halves(blocks["d"]) * six_bit_scales(blocks["scales"]).repeat(16, 1)
    return affine(scales, _two_bits(blocks["qs"]), -scales * offset)


def _four_bits(packed):
    """256 elements of four bits: 32 bytes hold 64 of them, low halves first."""
    return nibbles(packed.reshape(-1, 32)).reshape(-1, 256)


def _q4_k(blocks, tables):
    scales, minima = six_bit_pairs(blocks["scales"])
    a = halves(blocks["d"]) * scales.repeat(32, 1)
    return affine(a, _four_bits(blocks["qs"]), -halves(blocks["dmin"]) * minima.repeat(32, 1))


def _q5_k(blocks, tables):
    scales, minima = six_bit_pairs(blocks["scales"])
    planes = blocks["qh"].reshape(-1, 1, 32) >> np.arange(8).reshape(8, 1) & 1
    numbers = _four_bits(blocks["qs"]) + 16 * planes.reshape(-1, 256).astype(np.int64)
    a = halves(blocks["d"]) * scales.repeat(32, 1)
    return affine(a, numbers, -halves(blocks["dmin"]) * minima.repeat(32, 1))


def _q6_k(blocks, tables):
    low = nibbles(blocks["ql"].reshape(-1, 64)).reshape(-1, 256)
    scales = halves(blocks["d"]) * blocks["scales"].repeat(16, 1)
    return affine(scales, low + 16 * _two_bits(blocks["qh"]), -32.0 * scales)


FORMATS: dict[str, Format] = {
    "q1_0": Format(128, [("d", HALF), ("qs", BYTE, 16)], _q1_0),
    "q2_0": Format(64, [("d", HALF), ("qs", BYTE, 16)], _q2_0),
    "q4_0": Format(32, [("d", HALF), ("qs", BYTE, 16)], _q4_0),
    "q4_1": Format(32, [("d", HALF), ("m", HALF), ("qs", BYTE, 16)], _q4_1),
    "q5_0": Format(32, [("d", HALF), ("qh", BYTE, 4), ("qs", BYTE, 16)], _q5_0),
    "q5_1": Format(32, [("d", HALF), ("m", HALF), ("qh", BYTE, 4), ("qs", BYTE, 16)], _q5_1),
    "q8_0": Format(32, [("d", HALF), ("qs", SIGNED, 32)], _q8_0),
    "mxfp4": Format(32, [("e", BYTE), ("qs", BYTE, 16)], _mxfp4),
    "tq2_0": Format(256, [("qs", BYTE, 64), ("d", HALF)], _tq2_0),
    "q2_K": Format(
        256, [("scales", BYTE, 16), ("qs", BYTE, 64), ("d", HALF), ("dmin", HALF)], _q2_k
    ),
    "q3_K": Format(
        256, [("hmask", BYTE, 32), ("qs", BYTE, 64), ("scales", BYTE, 12), ("d", HALF)], _q3_k
    ),
    "q4_K": Format(
        256, [("d", HALF), ("dmin", HALF), ("scales", BYTE, 12), ("qs", BYTE, 128)], _q4_k
    ),
    "q5_K": Format(
        256,
        [("d", HALF), ("dmin", HALF), ("scales", BYTE, 12), ("qh", BYTE, 32), ("qs", BYTE, 128)],
        _q5_k,
    ),
    "q6_K": Format(
        256, [("ql", BYTE, 128), ("qh", BYTE, 64), ("scales", SIGNED, 16), ("d", HALF)], _q6_k
    ),
    "iq4_nl": Format(32, [("d", HALF), ("qs", BYTE, 16)], _iq4_nl),
    "iq4_xs": Format(
        256,
        [("d", HALF), ("scales_h", np.uint16), ("scales_l", BYTE, 4), ("qs", BYTE, 128)],
        _iq4_xs,
    ),
    **{name: Format(256, fields, decode) for name, (fields, decode) in code_books.FORMATS.items()},
}


def decode(name: str, blocks: np.ndarray, tables: dict[str, np.ndarray]) -> Decoded:
    """Values and magnitudes of rows of blocks, shape ``(..., elements)``."""
    decoded = FORMATS[name].decode(blocks.reshape(-1), tables)
    return tuple(array.reshape(*blocks.shape[:-1], -1) for array in decoded)


def random_blocks(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Blocks of random bits whose scales are moderate numbers.

    Parameters
    ----------
    shape : tuple of int
        In elements; the last is a multiple of the block's width.
    """
    form = FORMATS[name]
    count = (*shape[:-1], shape[-1] // form.width)
    bits = rng.integers(0, 256, (*count, form.dtype.itemsize), np.uint8)
    blocks = bits.view(form.dtype)[..., 0]
    scale = rng.uniform(0.5, 2, count) * rng.choice([-1, 1], count) / 64
    for field in ("d", "m", "dmin"):
        if field in form.dtype.names:
            blocks[field] = scale
            scale = scale[..., ::-1] / 2
    if name == "mxfp4":
        blocks["e"] = rng.integers(119, 128, count)
    if name == "iq1_m":
        code_books.set_iq1_m_scale(blocks, scale)
    return blocks
