"""Messages about accesses outside of their objects, the same on every device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from metalloid.errors import KernelFault
from metalloid.msl.layout import Layout
from metalloid.msl.signature import Signature
from metalloid.runtime.launch.program import Size


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


def describe_site(
    signature: Signature, site: Mapping[str, Any], offset: int, extent: int
) -> tuple[str, tuple[str, int] | None, str]:
    """Describe the access of a site that has failed.

    Parameters
    ----------
    site : mapping
        Of the table of checks (`compiler.bounds.table`).
    offset, extent : int
        Of the site and of its object, in bytes.
    """
    distance, nbytes, writes, position = next(
        (
            access for access in site["accesses"]
            if not 0 <= offset + access[0] <= extent - access[1]
        ),
        site["accesses"][0],
    )  # fmt: skip
    target = AccessedObject(site["word"], site["slot"], site["name"])
    return describe_access(
        signature, target, offset + distance, nbytes, extent, writes=writes, position=position
    )


def outside_error(
    kernel: str,
    description: tuple[str, tuple[str, int] | None, str],
    threadgroup: Size,
    thread: Size,
    others: int = 0,
) -> KernelFault:
    """The error of an access.

    Parameters
    ----------
    kernel : str
        The kernel's name.
    description : tuple
        Of the access, as `describe_access` gives it.
    others : int
        Threads with such accesses besides this one.
    """
    reason, location, advice = description
    file, line = location or (None, None)
    at = f"{file}:{line}: " if file else ""
    more = f", and in at least {others} more thread{'s' * (others != 1)}" if others else ""
    return KernelFault(
        f"[{kernel}] {at}{reason}, in thread {thread} of threadgroup {threadgroup}{more}.{advice}",
        kernel=kernel, reason=reason, threadgroup=threadgroup, thread=thread, file=file, line=line,
    )  # fmt: skip


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
