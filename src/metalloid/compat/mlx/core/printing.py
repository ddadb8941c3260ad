"""The text of arrays, as MLX prints it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "PrintOptions", "get_printoptions", "printoptions", "set_printoptions",
]  # fmt: skip

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_EDGE = 3


class PrintOptions:
    """Options of printing.

    Attributes
    ----------
    precision : int
        Digits after the point; -1 for as many as six significant digits need.
    """

    def __init__(self, precision: int = -1) -> None:
        self.precision = precision


_options = PrintOptions()


def set_printoptions(precision: int = -1) -> None:
    """Set the digits that arrays are printed with."""
    _options.precision = precision


def get_printoptions() -> PrintOptions:
    """The current options of printing."""
    return PrintOptions(_options.precision)


class printoptions:
    """A context with other options of printing."""

    def __init__(self, precision: int = -1) -> None:
        self._precision = precision

    def __enter__(self) -> PrintOptions:
        self._before = _options.precision
        _options.precision = self._precision
        return get_printoptions()

    def __exit__(self, *_: object) -> None:
        _options.precision = self._before


def text_of(values: np.ndarray) -> str:
    """The text of an array."""
    name = values.dtype.name
    number = _formats(values)
    text = number(values[()]) if not values.ndim else _rows(values, number, 0)
    return f"array({text}, dtype={name})"


def _rows(values: np.ndarray, number: Any, axis: int) -> str:
    is_last = values.ndim == 1
    count = len(values)
    shown = (
        [*range(_EDGE), None, *range(count - _EDGE, count)] if count > 2 * _EDGE else range(count)
    )
    items = [
        "..." if k is None else number(values[k]) if is_last else _rows(values[k], number, axis + 1)
        for k in shown
    ]
    return f"[{(', ' if is_last else ',' + chr(10) + ' ' * (7 + axis)).join(items)}]"


def _formats(values: np.ndarray) -> Any:
    if values.dtype.kind == "c":
        return _complex
    if values.dtype.kind == "f" or values.dtype == _BFLOAT16:
        return _float
    return str


def _float(value: Any) -> str:
    digits = _options.precision
    return f"{float(value):g}" if digits < 0 else f"{float(value):.{digits}f}"


def _complex(value: Any) -> str:
    imaginary = value.imag
    if imaginary >= 0 or np.isnan(imaginary):
        return f"{_float(value.real)}+{_float(imaginary)}j"
    return f"{_float(value.real)}-{_float(-imaginary)}j"
