"""Sorts of rows by the functions of NumPy, which use AVX-512 or AVX2, as launches."""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.host_calls import HostProgram
from metalloid.runtime.devices.libraries import Sorts
from metalloid.runtime.launch.launches import Arguments, Launch
from metalloid.runtime.launch.program import Size

#: Types whose sorts are vectorised.
_TYPES = frozenset(("float32", "float64", "int32", "int64", "uint32", "uint64"))
#: Of NumPy's C API: functions of the table, and the first sort among a type's functions, after its
#: 21 casts and 12 others (`PyArray_ArrFuncs`; https://numpy.org/doc/stable/reference/c-api).
_GET_VERSION, _GET_FUNCTIONS, _SORT = 0, 365, 33
_VERSION_2 = 0x02000000
_WORDS = 7
_ONE: Size = (1, 1, 1)
_PROGRAM = HostProgram("sort", lambda: native_library.runtime().sort_rows, _WORDS)


class HostSorts(Sorts):
    """The sorts of NumPy."""

    def rows(self, dtype: str, rows: int, length: int, descending: bool) -> Launch | None:
        """See `Sorts.rows`."""
        function = _function(dtype)
        if not function:
            return None
        arguments = Arguments(_WORDS)
        arguments.words[2:] = [rows, length, np.dtype(dtype).itemsize, descending, function]
        return Launch(_PROGRAM, arguments, _ONE, _ONE)


@functools.cache
def _function(dtype: str) -> int:
    """The address of the sort of a type; 0 if it is not known."""
    if dtype not in _TYPES:
        return 0
    try:
        capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    except AttributeError:
        return 0
    get_table = ctypes.pythonapi.PyCapsule_GetPointer
    get_table.restype, get_table.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = ctypes.cast(get_table(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[_GET_VERSION])()
    if version < _VERSION_2:
        return 0
    get_functions = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[_GET_FUNCTIONS])
    functions = ctypes.cast(get_functions(np.dtype(dtype)), ctypes.POINTER(ctypes.c_void_p))
    return functions[_SORT] or 0
