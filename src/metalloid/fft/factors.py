"""Factorisation of transform lengths."""

from __future__ import annotations

import functools
import itertools
import math

#: Radices of the stages in fourier.metal, the most efficient first.
RADICES = (8, 4, 2, 3, 5, 7, 11, 13)
_MAX_PASSES = 3


def radices_of(length: int) -> tuple[int, ...] | None:
    """Return the radices of a transform; None if a prime factor has no stage.

    Examples
    --------
    >>> radices_of(48), radices_of(17)
    ((8, 2, 3), None)
    """
    stages = []
    for radix in RADICES:
        while length % radix == 0:
            length //= radix
            stages.append(radix)
    return tuple(stages) if length == 1 else None


@functools.lru_cache(maxsize=256)
def split(length: int, max_length: int, preferred: int) -> tuple[int, ...] | None:
    """Factorise a length into as few, similar lengths of at most `max_length` as possible.

    None if it has a large prime factor. If more than one length is necessary, lengths are at most
    `preferred`, unless that takes more than three.

    Examples
    --------
    >>> split(1000, 2048, 512), split(2**20, 2048, 1024), split(97, 2048, 512)
    ((1000,), (1024, 1024), None)
    """
    if radices_of(length) is None:
        return None
    if length <= max_length:
        return (length,)
    for limit, count in itertools.product((preferred, max_length), range(2, _MAX_PASSES + 1)):
        lengths = _factorized(length, count, limit)
        if lengths is not None:
            return lengths
    raise ValueError(f"[fft] a row of {length} numbers requires more than {_MAX_PASSES} passes.")


def _factorized(length: int, count: int, max_length: int) -> tuple[int, ...] | None:
    if count == 1:
        return (length,) if length <= max_length else None
    target = length ** (1 / count)
    divisors = [d for d in range(2, min(max_length, length) + 1) if length % d == 0]
    for first in sorted(divisors, key=lambda d: abs(math.log(d / target))):
        rest = _factorized(length // first, count - 1, max_length)
        if rest is not None:
            return (first, *rest)
    return None
