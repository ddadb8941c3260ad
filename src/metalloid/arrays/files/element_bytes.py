"""Conversion between elements of arrays and bytes of files."""

from __future__ import annotations

from typing import IO

import numpy as np

from metalloid.arrays.ir.dtypes import DType, bool_

_BLOCK = 2**20


def to_bytes(values: np.ndarray) -> memoryview:
    """Return the elements in row-major order and little-endian."""
    plain = np.asarray(values, order="C")
    if plain.dtype.kind != "V":  # bfloat16 has native byte order only
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    return plain.reshape(-1).view(np.uint8).data


def to_elements(data: bytearray, dtype: DType) -> np.ndarray:
    """Return the elements that bytes encode, along one axis, in native byte order."""
    flat: np.ndarray = np.frombuffer(data, dtype)
    if dtype == bool_:
        return np.not_equal(flat.view(np.uint8), 0)  # kernels require bytes of 0 or 1
    return flat if dtype.kind == "V" else flat.astype(dtype.newbyteorder("="), copy=False)


def read_bytes(file: IO[bytes], nbytes: int, where: str) -> bytearray:
    """Read `nbytes` bytes; memory grows with the data, whatever a header claims.

    Raises
    ------
    ValueError
        If the file is too short.
    """
    data = bytearray()
    while len(data) < nbytes:
        block = file.read(min(nbytes - len(data), _BLOCK))
        if not block:
            raise ValueError(f"[load] {where} ends after {len(data)} of {nbytes} bytes.")
        data += block
    return data
