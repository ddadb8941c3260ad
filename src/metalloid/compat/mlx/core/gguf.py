"""Files in the format GGUF, version 3: header, metadata, types and offsets of arrays, elements."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

_MAGIC = b"GGUF"
_ALIGNMENT = 32
_MAX_COUNT = 2**24
_MAX_AXES = 8
#: Types of elements by code.
_TYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype("<f4"), 1: np.dtype("<f2"), 24: np.dtype("<i1"), 25: np.dtype("<i2"),
    26: np.dtype("<i4"), 27: np.dtype("<i8"), 28: np.dtype("<f8"),
}  # fmt: skip
_CODES = {dtype: code for code, dtype in _TYPES.items() if dtype.itemsize < 8}
#: Quantised types: bytes and layout of a block of 32 elements.
_BLOCK = 32
_QUANTISED = {2: ("q4_0", 18), 3: ("q4_1", 20), 8: ("q8_0", 34)}
#: Types of metadata by code.
_SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "|b1",
            10: "<u8", 11: "<i8", 12: "<f8"}  # fmt: skip
_STRING, _ARRAY = 8, 9


class _Reader:
    """Values of a file, one after the other."""

    def __init__(self, file: IO[bytes], where: str) -> None:
        self._file, self._where = file, where

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        data = self._file.read(count)
        if len(data) < count:
            raise ValueError(f"[load_gguf] {self._where} is incomplete.")
        return data

    def number(self, code: str) -> Any:
        """The next number, in a format of `struct`."""
        return struct.unpack(code, self.bytes(struct.calcsize(code)))[0]

    def count(self, limit: int = _MAX_COUNT) -> int:
        """The next 64-bit number, which must be small."""
        value = int(self.number("<Q"))
        if value > limit:
            raise ValueError(f"[load_gguf] {self._where} is malformed: a count is {value}.")
        return value

    def string(self) -> str:
        """The next string."""
        return self.bytes(self.count()).decode("utf-8", "replace")

    def value(self, code: int) -> Any:
        """The next value of metadata."""
        if code == _STRING:
            return self.string()
        if code != _ARRAY:
            return self._numbers(code, 1).reshape(())
        item, count = self.number("<I"), self.count()
        if item == _STRING:
            return [self.string() for _ in range(count)]
        if item == _ARRAY:
            raise ValueError(f"[load_gguf] {self._where} has metadata of nested arrays.")
        return self._numbers(item, count)

    def _numbers(self, code: int, count: int) -> np.ndarray:
        if code not in _SCALARS:
            raise ValueError(f"[load_gguf] {self._where} has metadata of unknown type {code}.")
        dtype = np.dtype(_SCALARS[code])
        return np.frombuffer(self.bytes(count * dtype.itemsize), dtype).copy()


def read_gguf(file: IO[bytes], where: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read all arrays by name, and the metadata.

    Raises
    ------
    ValueError
        If the file is malformed, or a type is not supported.
    """
    reader = _Reader(file, where)
    if reader.bytes(4) != _MAGIC:
        raise ValueError(f"[load_gguf] {where} is no GGUF file.")
    version = reader.number("<I")
    if version not in (2, 3):
        raise ValueError(f"[load_gguf] {where} has version {version}; 2 and 3 are supported.")
    tensors, pairs = reader.count(), reader.count()
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = reader.string()
        metadata[key] = reader.value(reader.number("<I"))
    entries = [_entry(reader, where) for _ in range(tensors)]
    alignment = int(metadata.get("general.alignment", _ALIGNMENT))
    if not 0 < alignment <= 2**16:
        raise ValueError(f"[load_gguf] {where} has an alignment of {alignment}.")
    start = -(-file.tell() // alignment) * alignment
    arrays: dict[str, np.ndarray] = {}
    for name, code, shape, offset in entries:
        file.seek(start + offset)
        arrays.update(_read(reader, name, code, shape, where))
    return arrays, metadata


def _entry(reader: _Reader, where: str) -> tuple[str, int, tuple[int, ...], int]:
    name, axes = reader.string(), reader.number("<I")
    if axes > _MAX_AXES:
        raise ValueError(f"[load_gguf] {name!r} in {where} has {axes} axes.")
    shape = tuple(reader.count(2**40) for _ in range(axes))[::-1]
    return name, reader.number("<I"), shape, reader.count(2**50)


def _read(reader: _Reader, name: str, code: int, shape: tuple[int, ...],
          where: str) -> dict[str, np.ndarray]:  # fmt: skip
    size = math.prod(shape)
    if code in _TYPES:
        dtype = _TYPES[code]
        data = reader.bytes(size * dtype.itemsize)
        return {name: np.frombuffer(data, dtype).reshape(shape).copy()}
    if code not in _QUANTISED or not shape or shape[-1] % _BLOCK:
        raise ValueError(f"[load_gguf] {name!r} in {where} has an unsupported type {code}.")
    kind, nbytes = _QUANTISED[code]
    blocks = np.frombuffer(reader.bytes(size // _BLOCK * nbytes), np.uint8).reshape(-1, nbytes)
    weights, scales, biases = _unpacked(blocks, kind)
    prefix = name.removesuffix(".weight")
    groups = (*shape[:-1], shape[-1] // _BLOCK)
    return {
        name: weights.reshape((*shape[:-1], -1)),
        f"{prefix}.scales": scales.reshape(groups),
        f"{prefix}.biases": biases.reshape(groups),
    }


def _unpacked(blocks: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words, scales and biases of MLX's affine quantisation in groups of 32."""
    scales = blocks[:, :2].copy().view("<f2")[:, 0]
    if kind == "q8_0":
        values = (blocks[:, 2:].view(np.int8).astype(np.int16) + 128).astype(np.uint8)
        return values.copy().view("<u4"), scales, (-128 * scales.astype(np.float32)).astype("f2")
    start = 4 if kind == "q4_1" else 2
    packed = blocks[:, start:]
    values = np.concatenate([packed & 15, packed >> 4], axis=1)
    words = (values[:, 0::2] | values[:, 1::2] << 4).astype(np.uint8).copy().view("<u4")
    if kind == "q4_1":
        return words, scales, blocks[:, 2:4].copy().view("<f2")[:, 0]
    return words, scales, (-8 * scales.astype(np.float32)).astype("f2")


def write_gguf(file: IO[bytes], arrays: Mapping[str, np.ndarray],
               metadata: Mapping[str, Any]) -> None:  # fmt: skip
    """Write arrays by name, and metadata.

    Raises
    ------
    ValueError
        If the format has no such type.
    """
    for name, values in arrays.items():
        if values.dtype not in _CODES:
            raise ValueError(
                f"[save_gguf] {name!r} has type {values.dtype}, which the format does not have."
            )
    file.write(_MAGIC + struct.pack("<IQQ", 3, len(arrays), len(metadata)))
    for key, value in metadata.items():
        file.write(_string(key) + _value(key, value))
    offset = 0
    for name, values in arrays.items():
        shape = values.shape[::-1]
        file.write(_string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape))
        file.write(struct.pack("<IQ", _CODES[values.dtype], offset))
        offset += -(-values.nbytes // _ALIGNMENT) * _ALIGNMENT
    file.write(b"\0" * (-file.tell() % _ALIGNMENT))
    for values in arrays.values():
        data = np.ascontiguousarray(values).tobytes()
        file.write(data + b"\0" * (-len(data) % _ALIGNMENT))


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(key: str, value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    if isinstance(value, list):
        items = b"".join(map(_string, value))
        return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + items
    codes = {np.dtype(text): code for code, text in _SCALARS.items()}
    code = codes.get(value.dtype)
    if code is None or value.ndim > 1:
        raise ValueError(
            f"[save_gguf] the metadata {key!r} of type {value.dtype} and shape {value.shape} "
            "cannot be stored."
        )
    if not value.ndim:
        return struct.pack("<I", code) + bytes(value.tobytes())
    return struct.pack("<IIQ", _ARRAY, code, value.size) + bytes(value.tobytes())
