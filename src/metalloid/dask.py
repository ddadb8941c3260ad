"""Arrays as chunks of Dask's arrays: more data than memory, and more than one machine.

``import metalloid.dask`` registers them, in this process; Dask's workers do so by an entry point.
``dask.config.set({"array.backend": "metalloid"})`` lets ``dask.array.ones`` and other functions
that create arrays make such chunks. docs/scaling.md shows programs.
"""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array import dispatch
from dask.array.backends import ArrayBackendEntrypoint
from dask.array.chunk_types import register_chunk_type
from dask.sizeof import sizeof

import metalloid as mtl
from metalloid.arrays.array import Array


def _bytes_of(array: Array) -> int:
    return array.nbytes


def _percentile(array: Any, q: Any, method: Any = "linear") -> tuple[Any, int]:
    """The percentiles of a chunk, and the number of elements by which Dask weights them."""
    return np.percentile(array, q, method=method), array.size


def _to_numpy(array: Array, **options: Any) -> np.ndarray:
    return np.asarray(array)


sizeof.register(Array, _bytes_of)
dispatch.percentile_lookup.register(Array, _percentile)
dispatch.to_numpy_dispatch.register(Array, _to_numpy)
dispatch.empty_lookup.register(Array, mtl.empty)
register_chunk_type(Array)


class MetalloidBackend(ArrayBackendEntrypoint):  # type: ignore[misc]  # Any
    """Creates arrays of Dask with chunks of metalloid, as the setting ``array.backend`` asks."""

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """Return the function that converts a chunk."""
        return mtl.asarray

    @classmethod
    def to_backend(cls, data: da.Array, **options: Any) -> da.Array:
        """Convert the chunks of an array."""
        if isinstance(data._meta, Array):
            return data
        meta = mtl.asarray(data._meta)
        return data.map_blocks(mtl.asarray, meta=meta, **options)

    @staticmethod
    def ones(*args: Any, meta: Any = None, **options: Any) -> da.Array:
        """See `dask.array.ones`."""
        return _created(da.ones, args, meta, options)

    @staticmethod
    def zeros(*args: Any, meta: Any = None, **options: Any) -> da.Array:
        """See `dask.array.zeros`."""
        return _created(da.zeros, args, meta, options)

    @staticmethod
    def empty(*args: Any, meta: Any = None, **options: Any) -> da.Array:
        """See `dask.array.empty`."""
        return _created(da.empty, args, meta, options)

    @staticmethod
    def full(*args: Any, meta: Any = None, **options: Any) -> da.Array:
        """See `dask.array.full`."""
        return _created(da.full, args, meta, options)

    @staticmethod
    def arange(*args: Any, like: Any = None, **options: Any) -> da.Array:
        """See `dask.array.arange`."""
        like = mtl.empty(()) if like is None else like
        with dask.config.set({"array.backend": "numpy"}):
            return da.arange(*args, like=like, **options)


def _created(function: Any, args: Any, meta: Any, options: dict[str, Any]) -> da.Array:
    """An array whose chunks have the type of `meta`: Dask calls NumPy's functions on it."""
    meta = mtl.empty(()) if meta is None else meta
    with dask.config.set({"array.backend": "numpy"}):
        return function(*args, meta=meta, **options)


__all__ = ["MetalloidBackend"]
