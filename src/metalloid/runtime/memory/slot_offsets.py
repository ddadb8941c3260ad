"""Where objects of our classes store their slots, for native functions that read them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any


def offsets_of(cls: type, slots: Sequence[str]) -> Any:
    """Offsets of the slots in objects of a class, found by storing values; None if unclear."""
    size = cls.__basicsize__ // ctypes.sizeof(ctypes.c_void_p)
    offsets = []
    for slot in slots:
        instance: Any = object.__new__(cls)
        value = object()
        setattr(instance, slot, value)
        words = (ctypes.c_size_t * size).from_address(id(instance))
        indices = [k for k, word in enumerate(words) if word == id(value)]
        if len(indices) != 1:
            return None
        offsets.append(indices[0] * ctypes.sizeof(ctypes.c_void_p))
    return (ctypes.c_uint64 * len(offsets))(*offsets)
