"""NumPy's formats: ``.npy`` for an array, ``.npz`` (a zip archive of them) for several by name.

bfloat16, which NumPy does not know, is written as bytes of the same size (``V2``), as NumPy and JAX
do. Input is not trusted: headers are checked against the length of the file before memory is
allocated, and nothing is unpickled.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import math
import os
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from metalloid.arrays.files.element_bytes import read_bytes, to_bytes, to_elements
from metalloid.arrays.ir.dtypes import ALL, DType, bfloat16

_MAGIC = b"\x93NUMPY"
_LENGTH_FORMATS = {1: "<H", 2: "<I"}  # of the header's length, by version
_MAX_HEADER = 10_000  # NumPy's limit
_MAX_AXES = 64
_MAX_BYTES = 2**63 - 1
_SUFFIX = ".npy"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # as NumPy writes
#: Names of this many bytes or more overflow the 16-bit length field of zip archives.
_NAME_LIMIT = 2**16
_PLAIN_TYPE = re.compile(r"[<>|=]?[?biufcV]\d*")
_BFLOAT16_AS_BYTES = np.dtype("V2")
#: Exceptions of ``zipfile`` for malformed archives, and for unsupported encryption or
#: compression.
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError,
               struct.error, UnicodeDecodeError, KeyError, OverflowError)  # fmt: skip


def write_npy(file: IO[bytes], values: np.ndarray) -> None:
    """Write one array."""
    is_bfloat16 = values.dtype == bfloat16
    header = {
        "descr": _BFLOAT16_AS_BYTES.str if is_bfloat16 else values.dtype.newbyteorder("<").str,
        "fortran_order": False,
        "shape": values.shape,
    }
    np.lib.format.write_array_header_1_0(file, header)
    file.write(to_bytes(values))


def write_npz(file: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write arrays by name; each is evaluated when it is written.

    Raises
    ------
    ValueError
        If the format does not support a name.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            _check_name(name)
            info = zipfile.ZipInfo("array")  # the constructor would change some names
            info.filename = name + _SUFFIX
            info.external_attr = 0o644 << 16
            with archive.open(info, "w", force_zip64=True) as entry:
                write_npy(entry, np.asarray(array))


def _check_name(name: str) -> None:
    if "\0" in name:
        raise ValueError(f"[save] an .npz file cannot hold the name {name!r}: it contains NUL.")
    if len((name + _SUFFIX).encode()) >= _NAME_LIMIT:
        raise ValueError(
            f"[save] an .npz file cannot hold the name {name[:20]!r}... of {len(name)} characters: "
            f"names must be shorter than {_NAME_LIMIT} bytes."
        )


def read_npy(file: IO[bytes], where: str) -> np.ndarray:
    """Read one array.

    Raises
    ------
    ValueError
        If the file is malformed or its type is not supported.
    """
    available = os.fstat(file.fileno()).st_size
    return _read_array(file, available, where)


def read_npz(file: IO[bytes], where: str) -> dict[str, np.ndarray]:
    """Read all arrays by name.

    Raises
    ------
    ValueError
        If the archive or an array is malformed.
    """
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                name = info.orig_filename.removesuffix(_SUFFIX)
                if name in arrays:
                    raise ValueError(f"[load] {where} holds two arrays named {name!r}.")
                arrays[name] = _read_entry(archive, info, where)
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # a disk error, not malformed content
            raise
        raise _malformed(where, error) from None
    except _ZIP_ERRORS as error:
        raise _malformed(where, error) from None
    return arrays


def _read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> np.ndarray:
    name = info.orig_filename
    if not name.endswith(_SUFFIX):
        raise ValueError(f"[load] {where} holds {name!r}, which is not an .npy file.")
    where = f"{name.removesuffix(_SUFFIX)!r} in {where}"
    if info.compress_type not in _COMPRESSIONS:
        raise ValueError(f"[load] {where} uses a compression other than deflate.")
    with archive.open(info) as entry:
        array = _read_array(entry, info.file_size, where)
        if entry.read(1):  # reading to the end verifies the checksum
            raise ValueError(f"[load] {where} is longer than its header says.")
    return array


def _malformed(where: str, error: Exception) -> ValueError:
    return ValueError(f"[load] {where} is not an .npz file, or is damaged ({error}).")


# -- one array


def _read_array(file: IO[bytes], available: int, where: str) -> np.ndarray:
    """Read an array of at most `available` bytes, including its header."""
    dtype, is_fortran, shape, used = _read_header(file, where)
    nbytes, remaining = math.prod(shape) * dtype.itemsize, available - used
    if nbytes > remaining or math.prod(max(n, 1) for n in shape) * dtype.itemsize > _MAX_BYTES:
        raise ValueError(
            f"[load] the header of {where} declares {dtype} of shape {shape}, but {remaining} "
            "bytes follow it: it is damaged or incomplete."
        )
    flat = to_elements(read_bytes(file, nbytes, where), dtype)
    return flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)


def _read_header(file: IO[bytes], where: str) -> tuple[DType, bool, tuple[int, ...], int]:
    """Return type, order, shape, and the number of bytes read."""
    start = file.read(len(_MAGIC) + 2)
    version = start[len(_MAGIC) :]
    if start[: len(_MAGIC)] != _MAGIC or len(version) < 2 or version[0] not in _LENGTH_FORMATS:
        raise ValueError(f"[load] {where} is not an .npy file of version 1 or 2.")
    form = _LENGTH_FORMATS[version[0]]
    size = file.read(struct.calcsize(form))
    length = struct.unpack(form, size)[0] if len(size) == struct.calcsize(form) else _MAX_HEADER + 1
    text = file.read(length) if length <= _MAX_HEADER else b""
    used = len(start) + len(size) + len(text)
    try:
        header = _literal(text.decode("latin1"))
        dtype, is_fortran, shape = header["descr"], header["fortran_order"], header["shape"]
        is_plain = set(header) == {"descr", "fortran_order", "shape"} and (
            isinstance(is_fortran, bool)
            and isinstance(shape, tuple)
            and len(shape) <= _MAX_AXES
            and all(type(n) is int and n >= 0 for n in shape)
        )
    except (KeyError, TypeError):
        is_plain = False
    if not is_plain:
        raise ValueError(f"[load] the header of {where} is damaged.")
    return _known_type(dtype, where), is_fortran, shape, used


def _literal(text: str) -> Any:
    """Evaluate a header; Python 2 wrote long integers with an L."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of Python's parser
        for form in (text, re.sub(r"(?<=\d)L", "", text)):
            with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError,
                                     RecursionError):  # fmt: skip
                return ast.literal_eval(form.strip())
    return None


def _known_type(descr: Any, where: str) -> DType:
    dtype = None
    if isinstance(descr, str) and _PLAIN_TYPE.fullmatch(descr):
        try:
            dtype = np.dtype(descr)
        except (TypeError, ValueError):
            dtype = None
    if dtype == _BFLOAT16_AS_BYTES:
        return bfloat16
    if dtype is None or dtype.newbyteorder("=") not in ALL:
        raise ValueError(f"[load] {where} has elements of unsupported type {descr!r:.60}.")
    return dtype
