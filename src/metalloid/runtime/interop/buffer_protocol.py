"""The buffer protocol for classes written in Python, also before Python 3.12.

Since Python 3.12 a method ``__buffer__(flags)`` is enough (PEP 688). Before, ``memoryview`` takes
only types with a C slot. `BufferExporter` is then such a type, whose slot calls that method.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    #: Base of classes with a method ``__buffer__``.
    BufferExporter = object
else:
    _GET_BUFFER_SLOT = 1  # Py_bf_getbuffer
    _DEFAULT_FLAGS, _BASE_FLAG = 1 << 18, 1 << 10  # Py_TPFLAGS_DEFAULT, Py_TPFLAGS_BASETYPE

    class _Slot(ctypes.Structure):
        _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))

    class _Spec(ctypes.Structure):
        _fields_ = (
            ("name", ctypes.c_char_p),
            ("basicsize", ctypes.c_int),
            ("itemsize", ctypes.c_int),
            ("flags", ctypes.c_uint),
            ("slots", ctypes.POINTER(_Slot)),
        )

    def _get_buffer(exporter: Any, view: int, flags: int) -> int:
        # The view that is filled belongs to the memoryview, which keeps the memory alive.
        try:
            memory = exporter.__buffer__(flags)
            return int(_py_get_buffer(memory, view, flags))
        except BaseException:  # must not reach C: the caller says what -1 means
            return -1

    _getter = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    _py_get_buffer = _getter(("PyObject_GetBuffer", ctypes.pythonapi))
    _slot_value = _getter(_get_buffer)  # lives as long as the type

    def _make_type() -> Any:
        slots = (_Slot * 2)(_Slot(_GET_BUFFER_SLOT, ctypes.cast(_slot_value, ctypes.c_void_p)))
        name = b"metalloid.runtime.interop.buffer_protocol.BufferExporter"
        spec = _Spec(name, object.__basicsize__, 0, _DEFAULT_FLAGS | _BASE_FLAG, slots)
        make = ctypes.pythonapi.PyType_FromSpec
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p,)
        return make(ctypes.addressof(spec))

    BufferExporter = _make_type()
