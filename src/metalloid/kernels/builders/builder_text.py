"""The MSL source of builders: how a kernel declares its arguments and finds their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.kernels.builders.builder_parameters import BuilderParameter, element_type
from metalloid.kernels.operands import Operand

#: Names that the texts of builders use themselves.
RESERVED_NAMES = ("i", "layout", "element_at", "Layout")


@dataclass(frozen=True)
class Argument:
    """A parameter of a builder and the form in which its value comes.

    Attributes
    ----------
    name, type : str
    form : str
        ``"number"``, ``"raw"`` (the body indexes it), ``"flat"`` (element i is the i-th), or
        ``"strided"``.
    is_written : bool
    """

    name: str
    type: str
    form: str
    is_written: bool = False

    @classmethod
    def of(
        cls,
        parameter: BuilderParameter,
        operand: Operand,
        extents: tuple[int, ...],
        strides: tuple[int, ...],
        is_written: bool,
    ) -> Argument:
        """The argument whose elements lie at `strides`."""
        is_flat = operand.start == 0 and strides in ((), (1,)) and len(extents) == len(strides)
        form = "flat" if is_flat else "strided"
        if parameter.is_raw:
            form = "raw"
        elif operand.is_number:
            form = "number"
        return cls(parameter.name, parameter.type, form, is_written)

    @property
    def memory(self) -> str:
        """Name of the kernel's own parameter."""
        return self.name if self.form in ("raw", "number") else f"{self.name}_memory"

    def declaration(self) -> str:
        """The kernel's parameter, without its attribute."""
        if self.form == "number":
            return f"constant {self.type} &{self.memory}"
        return f"device {'' if self.is_written else 'const '}{self.type} *{self.memory}"

    def element(self, index: str, position: str) -> str:
        """The statement that makes its element known by its name; empty if the body does that.

        Parameters
        ----------
        index : str
            Its number, for flat arguments.
        position : str
            Where it lies, for all others.
        """
        if self.form in ("number", "raw"):
            return ""
        kind = f"device {self.type} &" if self.is_written else f"const {self.type} "
        return f"{kind}{self.name} = {self.memory}[{index if self.form == 'flat' else position}];"


def typedefs(parameters: Sequence[BuilderParameter], types: Mapping[str, np.dtype[Any]]) -> str:
    """The typedefs of the placeholders."""
    used = dict.fromkeys(p.type for p in parameters if p.is_placeholder)
    return "".join(f"typedef {element_type(types[name])} {name};\n" for name in used)


def signature(arguments: Sequence[str], ids: Sequence[str]) -> str:
    """Parameters between the parentheses, buffers numbered in their order."""
    buffers = [f"{text} [[buffer({index})]]" for index, text in enumerate(arguments)]
    return ",\n    ".join([*buffers, *ids])


def layout_struct(fields: Mapping[str, np.ndarray]) -> str:
    """``struct Layout`` of a kernel's shapes and strides; empty without any."""
    if not fields:
        return ""
    lines = "".join(
        f"  {'uint' if values.dtype == np.uint32 else 'long'} {name}[{values.size}];\n"
        for name, values in fields.items()
    )
    return f"struct Layout {{\n{lines}}};\n"


def layout_value(fields: Mapping[str, np.ndarray]) -> Any:
    """The value of ``struct Layout``."""
    kinds = [(name, values.dtype, values.shape) for name, values in fields.items()]
    value = np.zeros((), np.dtype(kinds, align=True))
    for name, values in fields.items():
        value[name] = values
    return value[()]
