"""Functions of the host as launches between those of kernels, and the sorts of NumPy among them.

A call by Python takes some 20 microseconds there; these take none.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metalloid.backends.cpu.runtime import native_library
from metalloid.backends.cpu.runtime.faults import INTERRUPTED, error_of
from metalloid.runtime.devices.libraries import Sorts
from metalloid.runtime.launch.launches import Arguments, Launch
from metalloid.runtime.launch.program import Size

_CALL = 32  # the flag of a job
#: Types whose sorts are vectorised.
_TYPES = frozenset(("float32", "float64", "int32", "int64", "uint32", "uint64"))
#: Of NumPy's C API: functions of the table, and the first sort among a type's functions, after its
#: 21 casts and 12 others (`PyArray_ArrFuncs`; https://numpy.org/doc/stable/reference/c-api).
_GET_VERSION, _GET_FUNCTIONS, _SORT = 0, 365, 33
_VERSION_2 = 0x02000000
_SORT_WORDS = 7
_ONE: Size = (1, 1, 1)


class _Signature(NamedTuple):
    name: str


class HostProgram:
    """The program of a launch that calls a function, as far as repeaters and profiles use programs.

    Parameters
    ----------
    name : str
    entry : callable
        Returns the address of an `mtl_call` of the native runtime.
    words : int
        Number of words that it takes.
    """

    logs = False
    origin = None
    is_sanitized = False
    compile_checked = None

    def __init__(self, name: str, entry: Callable[[], int], words: int) -> None:
        self.signature, self.words_of_jobs, self._entry = _Signature(name), words, entry

    def assume_nothing_of_contents(self) -> None:
        """Nothing: the call reads no numbers from memory."""

    def job(self, arguments: Arguments, grid: Size, group: Size) -> bytes:
        """See `CpuProgram.job`. The job has no threadgroups."""
        count = self.words_of_jobs
        head = native_library.HEAD.pack(
            self._entry(), _CALL, count, 0, *grid[1:], *group, 0, 0, 0, arguments.limit_ns
        )
        return head + bytes((ctypes.c_int64 * count)(*arguments.words))

    def failure(self, outcome: native_library.Outcome, grid: Size, group: Size) -> BaseException:
        """See `CpuProgram.failure`."""
        if outcome.status == INTERRUPTED:
            return native_library.runtime().interruption()
        name = self.signature.name
        return error_of(outcome, name, lambda at: (at, at), group, lambda address: None)


_SORT_ROWS = HostProgram("sort", lambda: native_library.runtime().sort_rows, _SORT_WORDS)


class HostSorts(Sorts):
    """The sorts of NumPy."""

    def rows(self, dtype: str, rows: int, length: int, descending: bool) -> Launch | None:
        """See `Sorts.rows`."""
        function = _sort_function(dtype)
        if not function:
            return None
        arguments = Arguments(_SORT_WORDS)
        arguments.words[2:] = [rows, length, np.dtype(dtype).itemsize, descending, function]
        return Launch(_SORT_ROWS, arguments, _ONE, _ONE)


@functools.cache
def _sort_function(dtype: str) -> int:
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
