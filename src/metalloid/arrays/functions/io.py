"""Save and load arrays: npy, npz and safetensors files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.files.npy import read_npy, read_npz, write_npy, write_npz
from metalloid.arrays.files.safetensors import read_safetensors, write_safetensors
from metalloid.arrays.functions.creation import asarray
from metalloid.arrays.ir.dtypes import as_dtype
from metalloid.arrays.ir.operands import to_numpy
from metalloid.kernels import load as kernels
from metalloid.runtime.atomic_file import atomic_file

_HOLDS = {".npy": "one array", ".npz": "arrays by name", ".safetensors": "arrays by name"}


def save(path: str | os.PathLike[str], arrays: Any, *,
         metadata: Mapping[str, str] | None = None) -> None:  # fmt: skip
    """Save an array, or several by name, to a file.

    The write is atomic: a temporary file is synced to disk and renamed. After an error the old file
    is unchanged. A new version keeps its permissions.

    Parameters
    ----------
    path : path-like
        ``.npy`` for one array, ``.npz`` or ``.safetensors`` for several.
    arrays : array or dict of arrays
        Also arrays of NumPy and lists of numbers. Nothing is pickled.
    metadata : dict of str to str, optional
        Strings to store in a ``.safetensors`` file.

    Raises
    ------
    ValueError
        If the suffix is unknown, does not match the number of arrays, or the format does not
        support a name or a type: safetensors has no complex128.
    TypeError
        If an array is not numeric, or a name is not a string.
    OSError
        If the file cannot be written.

    Notes
    -----
    NumPy reads bfloat16 from ``.npy`` and ``.npz`` files as ``V2``: ``.view(ml_dtypes.bfloat16)``.

    Examples
    --------
    >>> import metalloid as mtl, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> mtl.save(file, {"w": mtl.arange(3)}, metadata={"step": "100"})
    >>> mtl.load(file)
    {'w': array([0, 1, 2], dtype=int64)}
    """
    target = Path(path)
    suffix = target.suffix
    if suffix not in _HOLDS:
        raise ValueError(f"[save] {os.fspath(path)!r} is not an .npy, .npz or .safetensors file.")
    if (suffix == ".npy") == isinstance(arrays, Mapping):
        raise ValueError(f"[save] a {suffix} file holds {_HOLDS[suffix]}.")
    if metadata is not None and suffix != ".safetensors":
        raise ValueError(f"[save] a {suffix} file has no metadata; use a .safetensors file.")
    if suffix == ".npy":
        array = _with_elements(arrays)
        with atomic_file(target) as file:
            write_npy(file, np.asarray(array))
        return
    named = {_checked_name(name): _with_elements(x) for name, x in arrays.items()}
    with atomic_file(target) as file:
        if suffix == ".npz":
            write_npz(file, named)
        else:
            write_safetensors(file, named, metadata)


def _with_elements(value: Any) -> Any:
    """Convert a value to an `Array` or a NumPy array of a supported type."""
    if isinstance(value, Array):
        return value
    array = to_numpy(value, "save")
    return array.astype(as_dtype(array.dtype), copy=False)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"[save] names of arrays must be strings, got {name!r:.60}.")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"[save] the name {name!r:.60} is not valid Unicode.") from None
    return name


def load(path: str | os.PathLike[str], function_name: str | None = None, *,
         return_metadata: bool = False, **options: Any) -> Any:  # fmt: skip
    """Load arrays, or a kernel as a function of arrays, from a file.

    Parameters
    ----------
    path : path-like
        ``.npy`` for one array, ``.npz`` or ``.safetensors`` for a dict of arrays, ``.metal`` for
        a kernel; see `LoadedFunction`.
    function_name : str, optional
        Name of the kernel; optional if the file has only one.
    return_metadata : bool, optional
        Whether to return a pair: the arrays, and the dict of strings that is stored in a
        ``.safetensors`` file.
    **options
        ``device=``, and for kernels the options of `library`.

    Raises
    ------
    OSError
        If the file cannot be read: FileNotFoundError, PermissionError ...
    ValueError
        If the file does not match its suffix, is damaged, or holds unsupported types. Headers are
        checked before memory is allocated, and nothing is unpickled, so files from untrusted
        sources are safe.
    CompileError, AttributeError
        For kernels: see `library`. The message lists the kernels of the file.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> square = mtl.load("examples/square.metal")
    >>> square(np.array([1, 2, 3], dtype=np.float32))
    array([1., 4., 9.], dtype=float32)
    """
    suffix = Path(path).suffix
    if return_metadata and suffix != ".safetensors":
        raise ValueError(f"[load] {os.fspath(path)!r} has no metadata: not a .safetensors file.")
    if suffix not in _HOLDS or function_name is not None:
        return kernels.load(path, function_name, **options)
    where = repr(os.fspath(path))
    with open(path, "rb") as file:
        if suffix == ".npy":
            return asarray(read_npy(file, where), **options)
        values, metadata = (
            (read_npz(file, where), {}) if suffix == ".npz" else read_safetensors(file, where)
        )
    arrays = {name: asarray(values.pop(name), **options) for name in list(values)}
    return (arrays, metadata) if return_metadata else arrays
