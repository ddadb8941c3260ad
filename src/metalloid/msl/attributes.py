"""``[[...]]`` attributes: which mean something to Metal, which to clang, and where they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass

from metalloid.msl.integers import integer_value
from metalloid.msl.tokens import TokenStream

_CLANG_OWN = re.compile(
    r"(?:clang|gnu|__gnu__|_Clang)\s*::(?!\s*optnone)"
    r"|(?:nodiscard|maybe_unused|fallthrough|likely|unlikely|deprecated|noreturn)\b"
)
_CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?$", re.S)
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


@dataclass(frozen=True)
class Attribute:
    """One attribute of Metal, such as ``buffer(0)``.

    Attributes
    ----------
    name : str
        ``"buffer"``.
    argument : str
        Text between its parentheses, ``"0"``; empty without.
    position, end : int
        Tokens of the whole ``[[...]]`` it stands in, from the first bracket to after the last.
    """

    name: str
    argument: str
    position: int
    end: int

    @property
    def string(self) -> str:
        """The argument as a string literal (adjacent literals joined)."""
        return "".join(_STRING.findall(self.argument))

    @property
    def index(self) -> int | None:
        """The argument as an integer, if it is one."""
        return integer_value(self.argument)


def lower_attributes(stream: TokenStream) -> list[Attribute]:
    """Collect Metal's attributes and take them out of the text; those of clang stay."""
    attributes: list[Attribute] = []
    end = 0
    for position in stream.where("["):
        inner = stream.next(position)
        is_attribute = (
            position >= end
            and stream.text(inner) == "["
            and position in stream.partner
            and stream.previous(stream.partner[position]) == stream.partner.get(inner)
        )
        if not is_attribute:
            continue
        end = stream.partner[position] + 1
        remaining: list[str] = []
        for start, stop in stream.split_commas(inner + 1, stream.partner[inner]):
            text = stream.source(start, stop)
            call = _CALL.match(text)
            if _CLANG_OWN.match(text):
                remaining.append(text)
            elif call:
                attributes.append(Attribute(call[1], call[2] or "", position, end))
        # Only the first bracket may be written over: strings inside are no values.
        stream.blank(position, end)
        stream.remove(inner, end)
        if remaining:
            stream.replace(position, f"[[{', '.join(remaining)}]]")
    return attributes
