"""Flat arrays of floats or unsigned integers, in memory that kernels use."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

import metalloid as mtl

_TYPES = {"f": np.float32, "I": np.uint32}


class MetalArray:
    """A copy of a list or an `array.array`, on a device.

    Parameters
    ----------
    gpu_device : Device
        ``gpu.device``.
    data : list or array.array
        Of typecode ``'f'`` or ``'I'``; lists become floats.
    length : int, optional
        With `buffer`: elements of it.
    buffer : Buffer, optional
        Memory to use instead of a copy of `data`.
    typecode : str
        With `buffer`: what is in it.

    Raises
    ------
    TypeError
        For anything else, NumPy's arrays among it.

    Examples
    --------
    >>> MetalArray(mtl.Device(), [1, 2.5]).to_list()
    [1.0, 2.5]
    """

    def __init__(self, gpu_device: Any, data: Any, length: int | None = None, buffer: Any = None,
                 typecode: str = "f") -> None:  # fmt: skip
        self.gpu_device = gpu_device
        if buffer is not None:
            self.buffer, self.length, self.typecode = buffer, int(length or 0), typecode
            return
        if isinstance(data, list):
            data = array("f", data)
        if not isinstance(data, array):
            raise TypeError("MetalArray expects list or array('f').")
        if data.typecode not in _TYPES:
            raise TypeError("MetalArray only supports array('f') or array('I') for now.")
        self.length, self.typecode = len(data), data.typecode
        contents = np.frombuffer(data, _TYPES[data.typecode]) if len(data) else np.empty(0)
        self.buffer = mtl.Buffer(contents.astype(_TYPES[data.typecode]), gpu_device)

    def to_array(self) -> array[Any]:
        """The elements as an `array.array` of the same typecode."""
        return array(self.typecode, np.asarray(self.buffer).tobytes()[: 4 * self.length])

    def to_list(self) -> list[Any]:
        """The elements as a list."""
        return self.to_array().tolist()
