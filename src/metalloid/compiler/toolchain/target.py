"""The target of a device: flags, and the flags of each math mode."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple, get_args

MathMode = Literal["safe", "relaxed", "fast"]
MATH_MODES: tuple[MathMode, ...] = get_args(MathMode)

_NO_CONTRACTION = ("-ffp-contract=off",)
_RELAXED = (
    "-ffp-contract=fast",
    "-fassociative-math",
    "-freciprocal-math",
    "-fno-signed-zeros",
    "-fno-trapping-math",
)
_MATH_FLAGS: dict[MathMode, tuple[str, ...]] = {
    "safe": _NO_CONTRACTION,
    "relaxed": _RELAXED,
    "fast": (*_RELAXED, "-D__METALLOID_MATH_FAST__=1"),
}


class Target(NamedTuple):
    """A machine that clang can compile MSL for.

    Attributes
    ----------
    name : str
        For people: ``"x86_64"``, ``"sm_90"``.
    flags : tuple of str
        clang flags that choose it.
    entry_header : Path
        Header by which the device calls kernels; it includes ``kernel_entry.h``. Part of the
        precompiled header.
    identity : str
        Everything else the generated code depends on, such as the CPU model that
        ``-march=native`` selects; part of the cache key.
    vectors : str
        The widest vector instructions of a CPU, by their usual name: ``"AVX2"``, ``"NEON"``.
    prefetches_in_loops : bool
        Whether loops along arrays gain by prefetches.
    gathers : bool
        Whether gathers take less time than a load for each lane.
    """

    name: str
    flags: tuple[str, ...]
    entry_header: Path
    identity: str = ""
    vectors: str = ""
    prefetches_in_loops: bool = True
    gathers: bool = True

    @property
    def triple(self) -> str:
        """The target triple: ``"x86_64-unknown-linux-gnu"``."""
        return self.flags[self.flags.index("-target") + 1]


def math_flags(mode: MathMode) -> tuple[str, ...]:
    """Clang flags of a math mode.

    ``safe`` is IEEE arithmetic, operation by operation; ``relaxed`` may contract and reassociate
    but keeps infinities and NaNs; ``fast`` uses the shorter functions of ``metal::fast`` besides.
    (Metal's fast mode may also assume that there are no NaNs. Real kernels start their maxima
    from -INFINITY all the same, so here it does not.)
    """
    return _MATH_FLAGS[mode]
