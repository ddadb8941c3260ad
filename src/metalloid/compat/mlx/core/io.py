"""Files of arrays: npy, npz, safetensors, gguf."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

import metalloid as mtl
from metalloid.arrays.files.npy import read_npy, read_npz, write_npy, write_npz
from metalloid.arrays.files.safetensors import read_safetensors, write_safetensors
from metalloid.compat.mlx.core import gguf
from metalloid.compat.mlx.core.array import array, wrap
from metalloid.compat.mlx.core.ops.wrapping import with_stream
from metalloid.runtime.atomic_file import atomic_file

__all__ = [
    "load", "save", "save_gguf", "save_safetensors", "savez", "savez_compressed",
]  # fmt: skip

_FORMATS = ("npy", "npz", "safetensors", "gguf")
#: Types of safetensors that MLX has as bits.
_EIGHT_BITS = dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0"), np.dtype(np.uint8))


@contextmanager
def _writable(file: Any, suffix: str) -> Iterator[IO[bytes]]:
    """A file to write to: a path, which gets the suffix, or an open file."""
    if isinstance(file, str | os.PathLike):
        path = Path(os.fspath(file))
        if path.suffix != suffix:
            path = path.with_name(path.name + suffix)
        with atomic_file(path) as opened:
            yield opened
        return
    if not hasattr(file, "write"):
        raise ValueError("[save] Input must be a file-like object, or string")
    buffer = io.BytesIO()
    yield buffer
    file.write(buffer.getvalue())


@contextmanager
def _readable(file: Any) -> Iterator[IO[bytes]]:
    """A file on disk, which readers may map."""
    if isinstance(file, str | os.PathLike):
        try:
            opened = open(file, "rb")  # noqa: SIM115
        except OSError as error:
            raise RuntimeError(f"[load] Failed to open file {os.fspath(file)}: {error}") from None
        with opened:
            yield opened
        return
    if not hasattr(file, "read"):
        raise ValueError("[load] Input must be a file-like object, or string")
    with tempfile.TemporaryFile() as copy:
        copy.write(file.read())
        copy.seek(0)
        yield copy


def _array(value: Any, where: str) -> mtl.Array:
    if isinstance(value, array):
        return value._a
    raise TypeError(f"{where}(): incompatible function arguments: {type(value).__name__}.")


def save(file: Any, arr: array) -> None:
    """Save an array as npy."""
    values = np.asarray(_array(arr, "save"))
    with _writable(file, ".npy") as opened:
        write_npy(opened, values)


def savez(file: Any, *args: Any, **kwargs: Any) -> None:
    """Save arrays as npz."""
    named = _named(args, kwargs)
    with _writable(file, ".npz") as opened:
        write_npz(opened, named)


def savez_compressed(file: Any, *args: Any, **kwargs: Any) -> None:
    """Save arrays as a compressed npz."""
    named = _named(args, kwargs)
    with (
        _writable(file, ".npz") as opened,
        zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, values in named.items():
            buffer = io.BytesIO()
            write_npy(buffer, np.asarray(values))
            archive.writestr(f"{name}.npy", buffer.getvalue())


def _named(args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    for k in range(len(args)):
        if f"arr_{k}" in kwargs:
            raise ValueError(f"Cannot use un-named variables and keyword arr_{k}")
    named = {f"arr_{k}": value for k, value in enumerate(args)} | dict(kwargs)
    return {name: _array(value, "savez") for name, value in named.items()}


def save_safetensors(file: Any, arrays: dict[str, array],
                     metadata: dict[str, str] | None = None) -> None:  # fmt: skip
    """Save arrays as safetensors."""
    if not isinstance(arrays, dict):
        raise TypeError("save_safetensors(): incompatible function arguments.")
    named = {name: _array(value, "save_safetensors") for name, value in arrays.items()}
    with _writable(file, ".safetensors") as opened:
        write_safetensors(opened, named, metadata)


def save_gguf(file: Any, arrays: dict[str, array],
              metadata: dict[str, Any] | None = None) -> None:  # fmt: skip
    """Save arrays as gguf."""
    named = {name: _array(value, "save_gguf") for name, value in arrays.items()}
    plain = {key: _plain_metadata(value) for key, value in (metadata or {}).items()}
    with _writable(file, ".gguf") as opened:
        gguf.write_gguf(opened, {name: np.asarray(x) for name, x in named.items()}, plain)


def _plain_metadata(value: Any) -> Any:
    if isinstance(value, array):
        return np.asarray(value._a)
    if isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    ):
        return value
    raise TypeError(
        f"save_gguf(): incompatible function arguments: metadata of {type(value).__name__}."
    )


@with_stream
def load(file: Any, /, format: str | None = None, return_metadata: bool = False) -> Any:
    """Load an array, or arrays by name."""
    if format is None:
        name = os.fspath(file) if isinstance(file, str | os.PathLike) else getattr(file, "name", "")
        format = Path(str(name)).suffix.removeprefix(".")
    if return_metadata and format not in ("safetensors", "gguf"):
        raise ValueError("[load] metadata not supported for format " + format)
    if format not in _FORMATS:
        raise ValueError(f"[load] Unknown file format {format}")
    if format == "gguf" and not isinstance(file, str | os.PathLike):
        raise ValueError("[load] Loading gguf from a file-like object is not supported.")
    with _readable(file) as opened:
        where = repr(getattr(file, "name", str(file)))
        try:
            return _loaded(opened, format, where, return_metadata)
        except ValueError as error:
            raise RuntimeError(str(error)) from None


def _loaded(file: IO[bytes], format: str, where: str, return_metadata: bool) -> Any:
    metadata: dict[str, Any] = {}
    if format == "npy":
        array_read = read_npy(file, where)
        if array_read.dtype == np.complex128:
            raise ValueError(f"[load] {where} has elements of type complex128.")
        return wrap(mtl.asarray(array_read))
    if format == "npz":
        values = read_npz(file, where)
    elif format == "safetensors":
        values, metadata = read_safetensors(file, where, _EIGHT_BITS)
    else:
        values, metadata = gguf.read_gguf(file, where)
        metadata = {key: wrap(mtl.asarray(v)) if isinstance(v, np.ndarray) else v
                    for key, v in metadata.items()}  # fmt: skip
    arrays = {name: wrap(mtl.asarray(values.pop(name))) for name in list(values)}
    return (arrays, metadata) if return_metadata else arrays
