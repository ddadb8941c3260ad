"""Formats of textures and settings of samplers as constants of a variant.

A texture's format is known when it is bound, not when its kernel is compiled. Code that looks for
it at every texel has no good vector form. So there is a variant in which all that texture functions
do is called for each lane, and launches of many threads get one for the formats of their textures
and the settings of their samplers. Its name has a part like ``textures:0.t1040:2.s28``: the word of
parameter 0 has these bits besides its address, and parameter 2 is a sampler with this word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from metalloid.msl.signature import Signature
from metalloid.runtime.textures.descriptor import read_descriptor

#: Launches with the same formats and settings have had so many threads before they get a variant.
FEW_THREADS = 1 << 14
#: So many of these variants a kernel may have.
MAX_VARIANTS = 32

_PREFIX = "textures"
# As in texture_memory.h.
_FORMAT_SHIFT, _HAS_ONE_LEVEL, _SMALL_TEXTURE = 55, 1 << 52, 0x100
_SMALL_BYTES = 2**31


class TextureVariants:
    """Which launches of a kernel get a variant for their textures and samplers.

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
        self._threads: dict[str, int] = {}  # of launches so far

    def of_launch(self, words: Sequence[int], threads: int) -> str:
        """The part of a variant's name for a launch with these words; empty if it gets none."""
        if not self._textures:
            return ""
        name = ":".join([_PREFIX, *self._parts(words)])
        if name not in self._threads and len(self._threads) >= MAX_VARIANTS:
            return ""
        self._threads[name] = all_threads = self._threads.get(name, 0) + threads
        return name if all_threads >= FEW_THREADS else ""

    def _parts(self, words: Sequence[int]) -> Iterator[str]:
        for position in self._textures:
            word = words[position]
            code, levels = read_descriptor(word) if word else (0, [])
            if all(level.extent < _SMALL_BYTES for level in levels):
                code |= _SMALL_TEXTURE
            bits = code << _FORMAT_SHIFT | (_HAS_ONE_LEVEL if len(levels) == 1 else 0)
            yield f"{position}.t{bits:x}"
        for position in self._samplers:
            yield f"{position}.s{words[position]:x}"


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


def definitions(are_known: bool, by_lane: bool) -> str:
    """C++ that tells the standard library which code it has for textures."""
    return "".join(
        f'extern "C" const bool mtl_textures_{name} = {str(holds).lower()};\n'
        for name, holds in (("are_known", are_known), ("by_lane", by_lane))
    )


def says_textures_are_known(text: str) -> bool:
    """Whether C++ has the definitions of a variant that knows its textures."""
    return definitions(are_known=True, by_lane=False) in text
