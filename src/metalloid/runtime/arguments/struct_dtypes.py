"""NumPy's dtypes of parameters, and whether the dtypes of arrays match them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from metalloid.msl.layout import Layout

_WORD: np.dtype[Any] = np.dtype(np.uint64)  # a pointer, texture or sampler in a struct


def dtype_of(layout: Layout) -> np.dtype[Any]:
    """The dtype of one element of a parameter.

    `void` and structs with unknown members are bytes. A ``float3`` is four numbers, with the last
    one as padding; as a member of a struct it is three.
    """
    if layout.scalar is not None:
        rows = layout.bytes // layout.columns // layout.scalar_bytes
        shape = (layout.columns, rows) if layout.columns > 1 else (rows,)
        return layout.scalar.dtype if shape == (1,) else np.dtype((layout.scalar.dtype, shape))
    if not layout.members or any(not member.name for member in layout.members):
        return np.dtype((np.void, layout.bytes))
    return np.dtype(
        {
            "names": [member.name for member in layout.members],
            "formats": [_member(member) for member in layout.members],
            "offsets": [member.offset for member in layout.members],
            "itemsize": layout.bytes,
        }
    )


def _member(layout: Layout) -> np.dtype[Any]:
    if layout.form != "value":
        element = _WORD
    elif layout.lanes == 3 and layout.columns == 1 and not layout.count and layout.scalar:
        element = np.dtype((layout.scalar.dtype, (3,)))
    else:
        element = dtype_of(layout)
    return np.dtype((element, (layout.count,))) if layout.count else element


def is_incompatible(layout: Layout, dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` has a field of a member's name, but with another offset or type.

    Other fields are ignored: they may be padding, or a differently named struct.
    """
    fields = dict(dtype.fields or {})
    return any(
        member.name in fields and not _fits(member, *fields[member.name][:2])
        for member in layout.members
    )


def _fits(member: Layout, field: np.dtype[Any], offset: int) -> bool:
    if offset != member.offset:
        return False
    required = _member(member)
    if member.form == "value" and member.members and not member.count:
        return field.itemsize == required.itemsize and not is_incompatible(member, field)
    expected, given = required.base, field.base
    if expected.fields or given.kind in "VSO" or expected.kind == "V":
        return field.itemsize <= _padded_bytes(member)
    if given.kind == "c" or expected.kind == "b":  # pairs of floats; a bool is a byte
        return field.itemsize <= _padded_bytes(member)
    return expected == given and field.itemsize <= _padded_bytes(member)


def _padded_bytes(member: Layout) -> int:
    """Bytes of a member, with the padding of a vector of three."""
    each = member.bytes if member.form == "value" else _WORD.itemsize
    return each * max(member.count, 1)


def layout_text(layout: Layout) -> str:
    """The members of a struct with their offsets: ``float x at 0, float4 v at 16; 32 bytes``."""
    members = ", ".join(f"{member} {member.name} at {member.offset}" for member in layout.members)
    return f"{members}; {layout.bytes} bytes"


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The same for a structured dtype."""
    return f"{', '.join(_field_texts(dtype))}; {dtype.itemsize} bytes"


def _field_texts(dtype: np.dtype[Any]) -> Iterator[str]:
    for name in dtype.names or ():
        fields: Any = dtype.fields
        field, offset = fields[name][:2]
        shape = "".join(f"[{extent}]" for extent in field.shape)
        yield f"{field.base.name}{shape} {name} at {offset}"
