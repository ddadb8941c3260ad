"""Messages about accesses outside of their objects, the same on every device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from metalloid.msl.layout import Layout
from metalloid.msl.signature import Signature


class AccessedObject(NamedTuple):
    """The object of an access.

    Attributes
    ----------
    word : int
        Position of the parameter; -1 of a variable.
    slot : int
        Offset, in the parameter's memory, of the pointer to it; -1 if the parameter points to it.
    name : str
        Of a variable; empty if it is unknown.
    """

    word: int
    slot: int = -1
    name: str = ""


def describe_access(
    signature: Signature,
    target: AccessedObject,
    start: int,
    nbytes: int,
    extent: int,
    *,
    writes: bool,
    position: Sequence[Any] | None,
) -> tuple[str, tuple[str, int] | None, str]:
    """Describe an access outside: in words, its file and line, and the line with a caret.

    Parameters
    ----------
    start, nbytes : int
        Its offset in the object, and size.
    extent : int
        Of the object, in bytes.
    position : sequence or None
        File, line, column and text of the line, if they are known.
    """
    name, element = repr(target.name) if target.name else "an array", nbytes
    if target.word >= 0:
        known = (*signature.arguments, *signature.threadgroup)
        parameter = next((p for p in known if p.position == target.word), None)
        if parameter is not None:
            path, layout = _pointer_in(parameter.name, parameter.layout, target.slot)
            name, element = repr(path), layout.bytes or nbytes
    act = "write to" if writes else "read of"
    if start % element == 0 and extent % element == 0:
        count = extent // element
        size = f"{count} element{'s' * (count != 1)}"
        reason = f"{act} index {start // element} of {name}, which has {size}"
    else:
        reason = f"{act} bytes {start} to {start + nbytes} of {name}, which has {extent} bytes"
    if position is None:
        return reason, None, ""
    file, line, column, text = position
    caret = f"\n    {text}\n    {' ' * (column - 1)}^" if text.strip() else ""
    return reason, (file, line), caret


def _pointer_in(path: str, layout: Layout, slot: int) -> tuple[str, Layout]:
    """The path and layout of the pointer at an offset in a parameter's memory; -1 for itself."""
    if slot < 0 or not layout.members:
        is_array = slot >= 0 and layout.count
        return (f"{path}[{slot // 8}]" if is_array else path), layout
    member = max(
        (each for each in layout.members if each.offset <= slot), key=lambda each: each.offset
    )
    path, slot = f"{path}.{member.name}" if member.name else path, slot - member.offset
    if member.form != "value":
        return (f"{path}[{slot // 8}]" if member.count else path), member
    if member.count:
        number, slot = divmod(slot, member.bytes)
        path = f"{path}[{number}]"
    return _pointer_in(path, member, slot)
