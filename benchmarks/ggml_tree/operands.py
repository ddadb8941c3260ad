"""Random operands of every type ggml stores, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ggml_tree.formats import FORMATS, decode, random_blocks
from ggml_tree.source import Source

FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
#: For patterns of kernel names.
TYPES = "|".join(sorted((*FLOATS, *FORMATS), key=len, reverse=True))


@dataclass(frozen=True)
class Operand:
    """An array as a kernel gets it and as an oracle does.

    Attributes
    ----------
    stored : array
        Floats or blocks; its sizes and strides go to the kernel.
    values, magnitudes : array of float64
        The elements, and what rounding errors in computing them are relative to.
    """

    stored: np.ndarray
    values: np.ndarray
    magnitudes: np.ndarray

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.values.shape[-1]

    def buffer(self, slack: int = 64) -> np.ndarray:
        """The bytes, with rows of NaN after them: kernels look at rows they do not use."""
        raw = self.stored.reshape(-1).view(np.uint8)
        row = raw.size // max(1, self.stored.size // self.stored.shape[-1])
        return np.concatenate([raw, np.full(slack * row, 255, np.uint8)])


def operand(type_: str, shape: tuple[int, ...], rng: np.random.Generator, source: Source):
    """A random operand; floats have few bits, so that half holds them exactly."""
    if type_ in FLOATS:
        values = rng.integers(-16, 17, shape) / 8
        return Operand(values.astype(FLOATS[type_]), values, np.abs(values))
    blocks = random_blocks(type_, shape, rng)
    return Operand(blocks, *decode(type_, blocks, source.tables))
