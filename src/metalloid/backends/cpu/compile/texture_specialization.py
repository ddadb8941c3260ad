"""Texture specialization: formats of textures and settings of samplers as constants of a variant.

A texture's format is known when it is bound, not when its kernel is compiled. Code that tests the
format at every texel has no good vector form. So each kernel has a general variant, which calls all
texture functions lane by lane. Launches of many threads get a specialized one, for the formats of
their textures and the settings of their samplers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from metalloid.msl.signature import Signature

#: Launches with the same formats and settings get a variant after this many threads.
FEW_THREADS = 1 << 14
#: The maximum number of specialized variants of a kernel.
MAX_VARIANTS = 32

# As in texture_memory.h.
_FORMAT_SHIFT, _HAS_ONE_LEVEL, _SMALL_TEXTURE = 55, 1 << 52, 0x100
_SMALL_BYTES = 2**31


class KnownWord(NamedTuple):
    """Bits of a parameter's word that are constants of a variant.

    Attributes
    ----------
    position : int
        Of the word.
    bits : int
        Of a texture those besides its address, of a sampler all.
    is_sampler : bool

    Examples
    --------
    >>> str(KnownWord(2, 0x28, is_sampler=True)), KnownWord.parse("t0.1040").bits == 0x1040
    ('s2.28', True)
    """

    position: int
    bits: int
    is_sampler: bool

    def __str__(self) -> str:
        return f"{'s' if self.is_sampler else 't'}{self.position}.{self.bits:x}"

    @classmethod
    def parse(cls, text: str) -> KnownWord:
        """The word that prints as `text`.

        Raises
        ------
        ValueError
            If there is none.
        """
        position, bits = text[1:].split(".")
        if text[0] not in "st":
            raise ValueError(f"unknown resource word: {text!r}")
        return cls(int(position), int(bits, 16), text[0] == "s")


class TextureVariants:
    """Which launches of a kernel get a variant for their textures and samplers.

    Parameters
    ----------
    signature : Signature
    """

    def __init__(self, signature: Signature) -> None:
        arguments = signature.arguments
        # The code of a kernel cannot specialize resources in arrays and structs.
        may_be_known = not any(p.layout.count or p.layout.holds_resources for p in arguments)
        known = arguments if may_be_known else ()
        self._textures = tuple(p.position for p in known if p.layout.form == "texture")
        self._samplers = tuple(p.position for p in known if p.layout.form == "sampler")
        self._threads: dict[tuple[KnownWord, ...], int] = {}  # of launches so far

    def of_launch(self, words: Sequence[int], threads: int) -> tuple[KnownWord, ...]:
        """`Variant.textures` for a launch with these words; empty if it gets none."""
        if not self._textures:
            return ()
        known = tuple(self._known(words))
        if known not in self._threads and len(self._threads) >= MAX_VARIANTS:
            return ()
        self._threads[known] = all_threads = self._threads.get(known, 0) + threads
        return known if all_threads >= FEW_THREADS else ()

    def _known(self, words: Sequence[int]) -> Iterator[KnownWord]:
        from metalloid.runtime.textures.descriptor import read_descriptor  # here: few need it

        for position in self._textures:
            word = words[position]
            code, levels = read_descriptor(word) if word else (0, [])
            if all(level.extent < _SMALL_BYTES for level in levels):
                code |= _SMALL_TEXTURE
            bits = code << _FORMAT_SHIFT | (_HAS_ONE_LEVEL if len(levels) == 1 else 0)
            yield KnownWord(position, bits, is_sampler=False)
        for position in self._samplers:
            yield KnownWord(position, words[position], is_sampler=True)


def known_words(textures: Iterable[KnownWord]) -> dict[int, str]:
    """C++ of the words that a variant knows, by position.

    Examples
    --------
    >>> known_words([KnownWord(1, 0x2a, is_sampler=True)])
    {1: '(void*)0x2aul'}
    """
    words: dict[int, str] = {}
    for known in textures:
        text = f"0x{known.bits:x}ul"
        if not known.is_sampler:
            address = f"(ulong)words[{known.position}] & metalloid::texture_address_mask"
            text = f"(({address}) | {text})"
        words[known.position] = f"(void*){text}"
    return words


def definitions(are_known: bool, by_lane: bool) -> str:
    """C++ that tells the standard library which code it has for textures."""
    return "".join(
        f'extern "C" const bool mtl_textures_{name} = {str(holds).lower()};\n'
        for name, holds in (("are_known", are_known), ("by_lane", by_lane))
    )


def says_textures_are_known(text: str) -> bool:
    """Whether C++ has the definitions of a variant that knows its textures."""
    return definitions(are_known=True, by_lane=False) in text
