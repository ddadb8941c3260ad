"""Elements of arrays as bytes of a file, and back."""

from __future__ import annotations

from typing import IO

import numpy as np

from metalloid.arrays.ir.dtypes import DType, bool_

_BLOCK = 2**20


def to_bytes(values: np.ndarray) -> memoryview:
    """The elements in row-major order and little-endian."""
    plain = np.asarray(values, order="C")
    if plain.dtype.kind != "V":  # bfloat16 has the order of the machine only
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    return plain.reshape(-1).view(np.uint8).data


def to_elements(data: bytearray, dtype: DType) -> np.ndarray:
    """The elements that bytes of a file stand for, along one axis, in the machine's byte order."""
    flat: np.ndarray = np.frombuffer(data, dtype)
    if dtype == bool_:
        return np.not_equal(flat.view(np.uint8), 0)  # kernels want bytes of 0 or 1
    return flat if dtype.kind == "V" else flat.astype(dtype.newbyteorder("="), copy=False)


def read_bytes(file: IO[bytes], nbytes: int, where: str) -> bytearray:
    """So many bytes. Memory grows with what is there, whatever a header says.

    Raises
    ------
    ValueError
        If the file ends before that.
    """
    data = bytearray()
    while len(data) < nbytes:
        block = file.read(min(nbytes - len(data), _BLOCK))
        if not block:
            raise ValueError(f"[load] {where} ends after {len(data)} of {nbytes} bytes.")
        data += block
    return data
