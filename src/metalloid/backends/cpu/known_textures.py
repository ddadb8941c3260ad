"""Textures and samplers of a launch as constants of a variant.

A texture's format is known when it is bound, not when its kernel is compiled. Code that has to ask
for it at every texel has no good vector form, so a launch of many threads gets a variant for the
formats of its textures and the settings of its samplers. Its name has a part like
``textures:0.t1040:2.s28``: the word of parameter 0 has these bits besides its address, and
parameter 2 is a sampler with this word.
"""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.msl.signature import Signature
from metalloid.runtime.texture_memory import read_descriptor

_PREFIX = "textures"
# As in texture_memory.h.
_FORMAT_SHIFT, _HAS_ONE_LEVEL, _SMALL_TEXTURE = 55, 1 << 52, 0x100
_SMALL = 2**31


class TextureParameters:
    """The parameters of a kernel that take textures and samplers.

    Parameters
    ----------
    signature : Signature
    """

    def __init__(self, signature: Signature) -> None:
        arguments = signature.arguments
        # Of what lies in arrays and structs the code of a kernel knows nothing.
        may_be_known = not any(p.layout.count or p.layout.holds_resources for p in arguments)
        known = arguments if may_be_known else ()
        self._textures = tuple(p.position for p in known if p.layout.form == "texture")
        self._samplers = tuple(p.position for p in known if p.layout.form == "sampler")

    def __bool__(self) -> bool:
        return bool(self._textures)

    def of_launch(self, words: Sequence[int]) -> str:
        """The part of a variant's name for a launch with these words."""
        parts = [_PREFIX]
        for position in self._textures:
            word = words[position]
            code, levels = read_descriptor(word) if word else (0, [])
            if all(level.extent < _SMALL for level in levels):
                code |= _SMALL_TEXTURE
            bits = code << _FORMAT_SHIFT | (_HAS_ONE_LEVEL if len(levels) == 1 else 0)
            parts.append(f"{position}.t{bits:x}")
        parts += [f"{position}.s{words[position]:x}" for position in self._samplers]
        return ":".join(parts)


def known_words(variant: str) -> dict[int, str]:
    """C++ of the words that a variant knows, by position.

    Examples
    --------
    >>> known_words("whole_32_textures:1.s2a")
    {1: '(void*)0x2aul'}
    """
    found: dict[int, str] = {}
    for manner in variant.split("_"):
        prefix, *parts = manner.split(":")
        for part in parts if prefix == _PREFIX else ():
            position, word = part.split(".")
            text = f"0x{word[1:]}ul"
            if word[0] == "t":
                address = f"(ulong)words[{position}] & metalloid::texture_address_mask"
                text = f"(({address}) | {text})"
            found[int(position)] = f"(void*){text}"
    return found


def definition(are_known: bool) -> str:
    """C++ that tells the standard library which of the two it is."""
    return f'extern "C" const bool mtl_textures_are_known = {str(are_known).lower()};\n'
