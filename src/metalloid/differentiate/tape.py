"""Pushes and pops of the tape: words of a thread, interleaved with those of other threads."""

from __future__ import annotations

from collections.abc import Iterator

from metalloid.differentiate.program.types import Type

_SLOT = "tape[ulong({}) * tape_threads + tape_thread]"
_BITS = {"float": 32, "int": 32, "uint": 32, "long": 64, "ulong": 64}


def words_of(type_: Type) -> int:
    """Words of 32 bits of a variable."""
    words = type_.lanes * (2 if type_.scalar in ("long", "ulong") else 1)
    for extent in type_.extents:
        words *= extent
    return words


def push_lines(name: str, type_: Type) -> Iterator[str]:
    """Statements that push a variable."""
    for part in _parts(name, type_):
        if _BITS.get(type_.scalar) == 64:
            for word in (f"uint({part})", f"uint(ulong({part}) >> 32)"):
                yield f"{_SLOT.format('top++')} = {word};"
        else:
            yield f"{_SLOT.format('top++')} = {_word(part, type_)};"


def pop_lines(name: str, type_: Type) -> Iterator[str]:
    """Statements that pop it."""
    slot = _SLOT.format("--top")
    for part in reversed(list(_parts(name, type_))):
        if _BITS.get(type_.scalar) == 64:
            yield f"{part} = {type_.scalar}({slot}) << 32;"
            yield f"{part} |= {type_.scalar}({slot});"
        elif type_.is_float:
            value = f"as_type<float>({slot})"
            yield f"{part} = {value if type_.scalar == 'float' else f'{type_.scalar}({value})'};"
        else:
            yield f"{part} = {type_.scalar}({slot});"


def _word(part: str, type_: Type) -> str:
    if type_.is_float:
        return f"as_type<uint>({part if type_.scalar == 'float' else f'float({part})'})"
    return f"uint({part})"


def _parts(name: str, type_: Type) -> Iterator[str]:
    """The scalars of a variable."""
    if type_.extents:
        inner = Type(type_.scalar, type_.lanes, type_.extents[1:])
        for index in range(type_.extents[0]):
            yield from _parts(f"{name}[{index}]", inner)
    elif type_.lanes > 1:
        for lane in "xyzw"[: type_.lanes]:
            yield f"{name}.{lane}"
    else:
        yield name
