"""Types of parameters and of their members, as clang sees them.

``parameter_layout.h`` leaves them in the compiled module as a table of numbers.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from metalloid.dtypes import ScalarType, scalar_of

_FORMS = ("value", "pointer", "reference", "texture", "sampler", "absent", "tensor")
_SPACES = ("thread", "device", "constant", "threadgroup")
_KINDS = ("O", "b", "i", "u", "f", "V")
_READ_ONLY = 3  # where the table says it, after the length of a name, and the name
_ACCESSES = ("sample", "read", "write", "read_write")
#: Kinds of textures in the order of `texture_kind` in texture_base.h.
TEXTURE_KINDS = (
    "1d", "1d_array", "2d", "2d_array", "3d", "cube", "cube_array", "2d_ms", "buffer",
)  # fmt: skip


class TextureType(NamedTuple):
    """The declared type of a texture parameter.

    Attributes
    ----------
    kind : str
        ``"2d"`` for ``texture2d`` and ``depth2d``; one of `TEXTURE_KINDS`.
    element : str
        ``"float"``, ``"half"``, ``"uint"`` ...
    access : str
        ``"sample"``, ``"read"``, ``"write"`` or ``"read_write"``.
    is_depth : bool
    """

    kind: str
    element: str
    access: str
    is_depth: bool

    def __str__(self) -> str:
        family = "depth" if self.is_depth else "texture_" if self.kind == "buffer" else "texture"
        return f"{family}{self.kind}<{self.element}, access::{self.access}>"


@dataclass(frozen=True)
class Layout:
    """A parameter's or member's type.

    Attributes
    ----------
    form : str
        ``"pointer"``, ``"reference"``, ``"texture"``, ``"sampler"``, ``"tensor"``, ``"value"``, or
        ``"absent"`` for a parameter that a function constant leaves out.
    space : str
        ``"device"``, ``"constant"`` or ``"threadgroup"``.
    read_only : bool
    kind : str
        As in `ScalarType`; ``"O"`` for structs and void. Like what follows, of the value, or of
        what a pointer points to.
    scalar_bytes, lanes, columns : int
        A ``float3x4`` has scalars of 4 bytes, 4 lanes in 3 columns.
    bytes, alignment : int
        Of one element: a ``uint3`` takes 16 bytes.
    name : str
        Of a member; empty for parameters.
    offset : int
        Of a member in its struct, in bytes.
    count : int
        Elements of an array; 0 for what is no array.
    texture : TextureType or None
    rank : int
        Dimensions of a tensor.
    members : tuple of Layout
        Of the struct that it is or points to, if that is known.
    id : int or None
        The ``[[id(n)]]`` of a member, if the text says one.
    """

    form: str
    space: str
    read_only: bool
    kind: str
    scalar_bytes: int
    lanes: int
    columns: int
    bytes: int
    alignment: int
    name: str = ""
    offset: int = 0
    count: int = 0
    texture: TextureType | None = None
    rank: int = 0
    members: tuple[Layout, ...] = ()
    id: int | None = field(default=None, compare=False)

    @functools.cached_property
    def scalar(self) -> ScalarType | None:
        """The scalar type; None for structs."""
        return None if self.kind == "O" else scalar_of(self.kind, self.scalar_bytes)

    @functools.cached_property
    def holds_resources(self) -> bool:
        """Whether members of what it is, or points to, are pointers, textures or samplers."""
        return any(m.form != "value" or m.holds_resources for m in self.members)

    def __str__(self) -> str:
        """The type in MSL's words, as far as it is known: structs have no names here."""
        if self.texture is not None:
            text = str(self.texture)
        elif self.form == "sampler":
            text = self.form
        elif self.form == "tensor":
            constness = "const " if self.read_only and self.space != "constant" else ""
            element = self.scalar.name if self.scalar else "struct"
            text = f"tensor<{constness}{self.space} {element}, dextents<int, {self.rank}>>"
        else:
            text = self.scalar.name if self.scalar else "struct"
            text += f"{self.columns}x{self.lanes}" if self.columns > 1 else ""
            text += str(self.lanes) if self.lanes > 1 and self.columns == 1 else ""
            if self.form != "value":
                constness = "const " if self.read_only and self.space != "constant" else ""
                text = f"{constness}{self.space} {text}{'*' if self.form == 'pointer' else '&'}"
        return f"{text}[{self.count}]" if self.count else text


def read_layouts(numbers: Sequence[int]) -> Iterator[Layout]:
    """The layouts of a kernel's parameters, from the module's table."""
    stream = iter(numbers)
    while (layout := _read_layout(stream)) is not None:
        yield layout


def with_written(numbers: Sequence[int], positions: Collection[int]) -> list[int]:
    """The table, whose parameters at these positions are not read-only.

    Kernels may cast const away and write, as the memory of arguments is not const: what they write
    there has to reach the caller, too.
    """
    result = list(numbers)
    stream = iter(numbers)
    start, position = 0, 0
    while _read_layout(stream) is not None:
        if position in positions:
            result[start + numbers[start] + _READ_ONLY] = 0
        start, position = len(numbers) - operator.length_hint(stream), position + 1
    return result


def _read_layout(stream: Iterator[int]) -> Layout | None:
    length = next(stream, None)
    if length is None:
        return None
    name = "".join(chr(next(stream)) for _ in range(length))
    form, space, read_only, offset, count, texture, id_ = (next(stream) for _ in range(7))
    kind, scalar_bytes, lanes, columns, size, alignment = (next(stream) for _ in range(6))
    members = [_read_layout(stream) for _ in range(next(stream))]
    return Layout(
        form=_FORMS[form],
        space=_SPACES[space],
        read_only=bool(read_only),
        kind=_KINDS[kind],
        scalar_bytes=scalar_bytes,
        lanes=lanes,
        columns=columns,
        bytes=size,
        alignment=alignment,
        name=name,
        offset=offset,
        count=count,
        texture=_texture_type(texture, _KINDS[kind], scalar_bytes)
        if _FORMS[form] == "texture"
        else None,
        rank=texture if _FORMS[form] == "tensor" else 0,
        members=tuple(member for member in members if member is not None),
        id=id_ - 1 if id_ else None,
    )


def _texture_type(bits: int, kind: str, scalar_bytes: int) -> TextureType:
    return TextureType(
        TEXTURE_KINDS[bits & 0xFF],
        scalar_of(kind, scalar_bytes).name,
        _ACCESSES[bits >> 16],
        bool(bits >> 8 & 1),
    )
