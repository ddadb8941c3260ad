"""Parameter lists of builders, ``"float x, raw T y"``, and what their types are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.dtypes import SCALARS
from metalloid.errors import ArgumentError
from metalloid.kernels.metal_kernel_checks import check_names
from metalloid.kernels.operands import Operand

#: dtype by MSL's name of the type; NumPy's names are taken, too. A complex number is a float2.
_DTYPES: dict[str, np.dtype[Any]] = {
    **{name: s.dtype for s in SCALARS if s.name != "double" for name in (s.name, s.numpy_name)},
    "float2": np.dtype(np.complex64),
    "complex64": np.dtype(np.complex64),
}
_MSL_NAMES = {
    **{scalar.dtype: scalar.name for scalar in SCALARS if scalar.name != "double"},
    np.dtype(np.complex64): "float2",
}
_PLACEHOLDER = re.compile(r"[A-Z]")
#: Kinds of Python's numbers; where nothing else says what type they are, the last one does.
_KINDS = "biufc"


@dataclass(frozen=True)
class BuilderParameter:
    """One parameter: ``raw T x``.

    Attributes
    ----------
    name : str
    type : str
        In MSL, or a placeholder of one letter.
    is_raw : bool
        The body indexes it itself.
    """

    name: str
    type: str
    is_raw: bool = False

    @property
    def is_placeholder(self) -> bool:
        """Whether the arguments say what its type is."""
        return self.type not in _DTYPES

    def __str__(self) -> str:
        return f"{'raw ' if self.is_raw else ''}{self.type} {self.name}"


def parse_parameters(
    where: str, what: str, text: Any, taken: Sequence[str] = ()
) -> tuple[BuilderParameter, ...]:
    """The parameters of a list such as ``"float x, raw T y"``.

    Raises
    ------
    ArgumentError
        If it is none, or a name cannot be declared.

    Examples
    --------
    >>> [str(p) for p in parse_parameters("f", "in_params", "float32 x, raw T y")]
    ['float x', 'raw T y']
    """
    if not isinstance(text, str):
        raise ArgumentError(f"[{where}] {what} expects a string like 'float x, T y', got {text!r}.")
    parameters = [
        _parse(where, what, declaration) for declaration in text.split(",") if text.strip()
    ]
    check_names(what, [parameter.name for parameter in parameters], where, taken)
    return tuple(parameters)


def _parse(where: str, what: str, declaration: str) -> BuilderParameter:
    words = declaration.split()
    is_raw = words[:1] == ["raw"]
    words = words[is_raw:]
    if len(words) != 2:
        raise ArgumentError(
            f"[{where}] {what}: {declaration.strip()!r} is not a parameter. "
            "Write a type and a name: 'float x'."
        )
    kind, name = words
    if kind in _DTYPES:
        kind = element_type(_DTYPES[kind])
    elif not _PLACEHOLDER.fullmatch(kind):
        raise ArgumentError(
            f"[{where}] {what}: {kind!r} is not an MSL scalar type. "
            "Write one, or a capital letter for a type that follows from the arguments."
        )
    return BuilderParameter(name, kind, is_raw)


def element_type(dtype: np.dtype[Any]) -> str:
    """The MSL name of the type of elements of `dtype`."""
    return _MSL_NAMES[dtype]


def check_dtype(label: str, dtype: np.dtype[Any]) -> None:
    """Raise ArgumentError for a dtype that MSL does not have."""
    if dtype not in _MSL_NAMES:
        nearest = {"c": "complex64", "f": "float32"}.get(dtype.kind)
        hint = f" Convert it: x.astype(numpy.{nearest})." if nearest else ""
        raise ArgumentError(f"{label} has dtype {dtype}, which MSL does not support.{hint}")


def resolve_types(
    where: str, parameters: Iterable[BuilderParameter], operands: Sequence[Operand | None]
) -> dict[str, np.dtype[Any]]:
    """The dtype of each type in a parameter list, placeholders by what was given for them.

    Parameters
    ----------
    operands : sequence of Operand or None
        A value for each parameter; None where there is none yet.

    Raises
    ------
    ArgumentError
        If values do not agree with their types or with each other.
    """
    pairs = list(zip(parameters, operands, strict=True))
    types: dict[str, np.dtype[Any]] = {}
    givers: dict[str, str] = {}
    for parameter, operand in pairs:
        if not parameter.is_placeholder:
            types[parameter.type] = _DTYPES[parameter.type]
        if operand is None or operand.is_weak:
            continue
        check_dtype(operand.label, operand.dtype)
        required = types.setdefault(parameter.type, operand.dtype)
        if operand.dtype != required:
            giver = givers.get(parameter.type)
            because = (
                f"{parameter.type}, which {giver} makes {required}" if giver else str(required)
            )
            raise ArgumentError(
                f"{operand.label} expects {because}; got {operand.dtype}. "
                f"Convert it: x.astype({_expression(required)})."
            )
        givers.setdefault(parameter.type, repr(parameter.name))
    weak: dict[str, np.dtype[Any]] = {}
    for parameter, operand in pairs:
        if operand is not None and parameter.type not in types:
            known = weak.get(parameter.type, operand.dtype)
            weak[parameter.type] = max(known, operand.dtype, key=lambda d: _KINDS.index(d.kind))
    types |= weak
    for parameter, _ in pairs:
        if parameter.type not in types:
            raise ArgumentError(
                f"[{where}] cannot infer the type {parameter.type} of {parameter.name!r}. "
                "Pass the output array, too, or write a type."
            )
    return types


def _expression(dtype: np.dtype[Any]) -> str:
    return f"ml_dtypes.{dtype}" if dtype.kind == "V" else f"numpy.{dtype}"
