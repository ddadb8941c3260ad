"""Arrays in files: NumPy's formats, and safetensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from metalloid.arrays.array_object import Array
from metalloid.arrays.creation import asarray
from metalloid.arrays.types import ALL
from metalloid.kernels import load as kernels

_TYPES = {"BOOL": "bool", "BF16": "bfloat16"} | {
    f"{letter}{bits}": f"{word}{bits}"
    for letter, word in (("I", "int"), ("U", "uint"), ("F", "float"), ("C", "complex"))
    for bits in (8, 16, 32, 64)
}
_CODES = {name: code for code, name in _TYPES.items()}
_ALIGNMENT = 8


def save(path: str | os.PathLike[str], arrays: Array | Mapping[str, Array]) -> None:
    """Write an array, or several by name, to a file.

    Parameters
    ----------
    path : path-like
        ``.npy`` for one array, ``.npz`` or ``.safetensors`` for several.

    Raises
    ------
    ValueError
        For another suffix, or if the number of arrays does not fit it.

    Examples
    --------
    >>> import metalloid as mtl, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> mtl.save(file, {"w": mtl.arange(3)})
    >>> mtl.load(file)
    {'w': array([0, 1, 2], dtype=int64)}
    """
    suffix = Path(path).suffix
    if suffix not in _WRITERS:
        raise ValueError(f"[save] {os.fspath(path)!r} is no .npy, .npz or .safetensors file.")
    if (suffix == ".npy") != isinstance(arrays, Array):
        raise ValueError(f"[save] a {suffix} file holds {_HOLDS[suffix]}.")
    _WRITERS[suffix](Path(path), arrays)


def load(path: str | os.PathLike[str], function_name: str | None = None, **options: Any) -> Any:
    """Read what a file holds: arrays, or a kernel as a function from arrays to arrays.

    Parameters
    ----------
    path : path-like
        ``.npy``: an array; ``.npz`` and ``.safetensors``: a dict of arrays; ``.metal``: a kernel,
        see `LoadedFunction`.
    function_name : str, optional
        Which kernel; not needed if the file has one only.
    **options
        ``device=``, and for kernels all that `library` takes.

    Raises
    ------
    FileNotFoundError
    ValueError
        If the file is not what its suffix says.
    CompileError, AttributeError
        Of a kernel: see `library`; if there is no such function, the text lists those there are.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> square = mtl.load("examples/square.metal")
    >>> square(np.array([1, 2, 3], dtype=np.float32))
    array([1., 4., 9.], dtype=float32)
    """
    reader = _READERS.get(Path(path).suffix)
    if reader is None or function_name is not None:
        return kernels.load(path, function_name, **options)
    found = reader(Path(path))
    if isinstance(found, dict):
        return {name: asarray(array, **options) for name, array in found.items()}
    return asarray(found, **options)


def _write_npy(path: Path, array: Array) -> None:
    np.save(path, np.asarray(array))


def _write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    contents: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez(path, **contents)


def _write_safetensors(path: Path, arrays: Mapping[str, Array]) -> None:
    header, parts, start = {}, [], 0
    for name, array in arrays.items():
        values = np.ascontiguousarray(np.asarray(array))
        header[name] = {
            "dtype": _CODES[str(values.dtype)],
            "shape": list(array.shape),
            "data_offsets": [start, start + values.nbytes],
        }
        parts.append(values.tobytes())
        start += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def _read_npy(path: Path) -> np.ndarray:
    array: np.ndarray = np.load(path, allow_pickle=False)
    return array


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as contents:
        return dict(contents)


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    contents = path.read_bytes()
    size = int.from_bytes(contents[:8], "little")
    try:
        header = json.loads(contents[8 : 8 + size])
    except ValueError:
        raise ValueError(f"[load] {os.fspath(path)!r} is no safetensors file.") from None
    data = memoryview(contents)[8 + size :]
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype = _TYPES.get(entry["dtype"])
        known = {str(own): own for own in ALL}
        if dtype not in known:
            raise ValueError(
                f"[load] {name!r} has elements of {entry['dtype']}, which arrays lack."
            )
        first, end = entry["data_offsets"]
        if not 0 <= first <= end <= len(data):
            raise ValueError(f"[load] {name!r} lies beyond the end of {os.fspath(path)!r}.")
        found[name] = np.frombuffer(data[first:end], known[dtype]).reshape(entry["shape"])
    return found


_HOLDS = {".npy": "one array", ".npz": "arrays by name", ".safetensors": "arrays by name"}
_WRITERS: dict[str, Any] = {
    ".npy": _write_npy, ".npz": _write_npz, ".safetensors": _write_safetensors}  # fmt: skip
_READERS: dict[str, Any] = {
    ".npy": _read_npy, ".npz": _read_npz, ".safetensors": _read_safetensors}  # fmt: skip
