"""Arguments as PyObjC takes them: it is strict about types, and these are its errors."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

import numpy as np

from metalloid.compat.memory import bytes_of

_T = TypeVar("_T")
_END = 2**64


def unsigned(value: Any) -> int:
    """A number of 64 bits without sign."""
    if type(value) is int and 0 <= value < _END:
        return value
    try:
        number = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise ValueError(f"depythonifying 'unsigned long long', got '{kind}'") from None
    if not 0 <= number < _END:
        raise ValueError(f"depythonifying 'unsigned long long', got {number}")
    return number


def text(value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise ValueError(f"depythonifying 'NSString', got '{type(value).__name__}'")
    return value


def optional_text(value: Any) -> str | None:
    """A string, or None."""
    return None if value is None else text(value)


def instance(value: Any, kind: type[_T]) -> _T:
    """An object of a class, not None."""
    if not isinstance(value, kind):
        raise ValueError(f"depythonifying '{kind.__name__}', got '{type(value).__name__}'")
    return value


def leading_bytes(value: Any, length: int) -> np.ndarray:
    """The first `length` bytes of an object with the buffer protocol."""
    contents = bytes_of(value)
    if contents is None:
        try:  # what does not lie in one piece is put together in the order of its axes
            contents = np.frombuffer(memoryview(value).tobytes(), np.uint8)
        except TypeError:
            raise ValueError(f"depythonifying 'pointer', got '{type(value).__name__}'") from None
    if length > contents.nbytes:
        raise ValueError(f"depythonifying {length} bytes, got {contents.nbytes}")
    return contents[:length]
