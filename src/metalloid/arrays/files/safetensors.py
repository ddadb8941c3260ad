"""safetensors: a JSON header, followed by the little-endian elements of all arrays.

The format is described at https://github.com/huggingface/safetensors#format. Reading checks its
requirements: names are unique, and the arrays fill the file without gaps or overlaps.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from metalloid.arrays.files.element_bytes import read_bytes, to_bytes, to_elements
from metalloid.arrays.ir.dtypes import ALL, DType, bfloat16, bool_

#: Types by the names of the format, such as "F32". It has no complex128.
_TYPES: dict[str, DType] = {"BF16": bfloat16, "BOOL": bool_} | {
    f"{dtype.kind.upper()}{8 * dtype.itemsize}": dtype
    for dtype in ALL
    if dtype.kind in "iufc" and dtype.str != "<c16"
}
_CODES = {dtype: code for code, dtype in _TYPES.items()}
_METADATA = "__metadata__"
_LENGTH_BYTES = 8
_MAX_HEADER = 100_000_000  # the format's limit
_MAX_AXES = 64
_MAX_EXTENT = 2**63 - 1


def write_safetensors(
    file: IO[bytes], arrays: Mapping[str, Any], metadata: Mapping[str, str] | None
) -> None:
    """Write arrays by name; each is evaluated when it is written.

    Raises
    ------
    ValueError
        If the format does not support a type or a name, or metadata are not strings.
    """
    header: dict[str, Any] = {}
    if metadata is not None:
        try:
            "".join(item for pair in metadata.items() for item in pair).encode()
        except (TypeError, UnicodeEncodeError):
            raise ValueError(
                f"[save] metadata must map strings to Unicode strings, got {metadata!r:.80}."
            ) from None
        header[_METADATA] = dict(metadata)
    for name, array in arrays.items():
        if name == _METADATA:
            raise ValueError(f"[save] a .safetensors file reserves the name {name!r}.")
        if array.dtype not in _CODES:
            raise ValueError(
                f"[save] safetensors does not support {array.dtype}, the type of {name!r}. "
                "Use .npz, or save the real and imaginary parts."
            )
        header[name] = {"dtype": _CODES[array.dtype], "shape": list(array.shape)}
    # Align elements to multiples of their size for readers: the widest first.
    order = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    start = 0
    for name in order:
        end = start + math.prod(arrays[name].shape) * arrays[name].dtype.itemsize
        header[name]["data_offsets"] = [start, end]
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    if len(text) > _MAX_HEADER:
        raise ValueError(
            f"[save] the names and metadata take {len(text)} bytes; a .safetensors file allows "
            f"{_MAX_HEADER}."
        )
    file.write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
    for name in order:
        file.write(to_bytes(np.asarray(arrays[name])))


def read_safetensors(file: IO[bytes], where: str, more_types: Mapping[str, DType] | None = None,
                     ) -> tuple[dict[str, np.ndarray], dict[str, str]]:  # fmt: skip
    """Read all arrays by name, and the metadata.

    Parameters
    ----------
    more_types : mapping, optional
        How to read elements of types that metalloid's arrays do not have, by code.

    Raises
    ------
    ValueError
        If the file is malformed or a type is not supported.
    """
    available = os.fstat(file.fileno()).st_size - _LENGTH_BYTES
    size = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if not 0 < size <= min(available, _MAX_HEADER):
        raise ValueError(f"[load] {where} is not a safetensors file, or is incomplete.")
    header = _parsed(bytes(read_bytes(file, size, where)), where)
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"[load] the metadata of {where} is not a mapping of strings to strings.")
    entries = {name: _entry(name, entry, where, more_types or {}) for name, entry in header.items()}
    arrays: dict[str, np.ndarray] = {}
    end = 0
    for name in sorted(entries, key=lambda name: entries[name][2]):
        dtype, shape, (start, stop) = entries[name]
        if start != end or stop > available - size:
            what = "overlaps or leaves a gap" if start != end else "lies beyond the end"
            raise ValueError(f"[load] {name!r} in {where} {what} (bytes {start} to {stop}).")
        flat = to_elements(read_bytes(file, stop - start, where), dtype)
        arrays[name] = flat.reshape(shape)
        end = stop
    if end != available - size:
        raise ValueError(
            f"[load] {where} has {available - size - end} bytes that belong to no array."
        )
    return {name: arrays[name] for name in entries}, metadata


def _parsed(text: bytes, where: str) -> dict[str, Any]:
    """Parse the header."""
    try:
        header = json.loads(text.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"[load] {where} is not a safetensors file: its header is not JSON ({error})."
        ) from None
    if not isinstance(header, dict):
        raise ValueError(f"[load] the header of {where} does not name arrays.")
    return header


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object, with unique names."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice")
    return members


def _entry(name: str, entry: Any, where: str, more_types: Mapping[str, DType],
           ) -> tuple[DType, tuple[int, ...], tuple[int, int]]:  # fmt: skip
    """Return type, shape and byte range of one array."""
    try:
        code, shape, (start, stop) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        is_plain = isinstance(code, str) and all(
            type(n) is int and 0 <= n <= _MAX_EXTENT for n in (start, stop, *shape)
        )
    except (KeyError, TypeError, ValueError):
        is_plain = False
    if not is_plain or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"[load] the header of {where} does not say where {name!r} is.")
    dtype = _TYPES.get(code) or more_types.get(code)
    if dtype is None:
        raise ValueError(
            f"[load] {name!r} in {where} has elements of unsupported type {code[:40]}."
        )
    nbytes = math.prod(shape) * dtype.itemsize
    extent = math.prod(max(n, 1) for n in shape) * dtype.itemsize
    if nbytes != stop - start or extent > _MAX_EXTENT or len(shape) > _MAX_AXES:
        raise ValueError(
            f"[load] {name!r} in {where}, {dtype} of shape {shape}, does not fit the bytes from "
            f"{start} to {stop}."
        )
    return dtype, shape, (start, stop)
