"""Division of Fourier transforms by MLX: radices, threads, and error bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mlx_tree.agreement import ceildiv

#: In the order in which MLX tries them.
RADICES = (13, 11, 8, 7, 6, 5, 4, 3, 2)
#: Numbers that a threadgroup transforms at least, if need be by several transforms.
_MIN_PER_GROUP, _MAX_PER_GROUP = 256, 4096


def stockham(n: int) -> list[int]:
    """The radices of the stages of a transform of `n` numbers."""
    radices, rest = [], n
    small_power = n & (n - 1) == 0 and n < 512
    for radix in RADICES:
        while rest % radix == 0 and rest > 1 and not (small_power and radix > 4):
            radices.append(radix)
            rest //= radix
    assert rest == 1, f"{n} has a prime factor beyond 13"
    return radices


@dataclass(frozen=True)
class Plan:
    """One transform: its size, its stages, and those of Rader's inner transform.

    Attributes
    ----------
    n : int
        What is transformed at once: for Bluestein's algorithm more than the length.
    prime : int
        The factor that Rader's algorithm takes; 1 without.
    """

    n: int
    prime: int = 1
    radices: list[int] = field(init=False)
    rader_radices: list[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "radices", stockham(self.n // self.prime))
        inner = stockham(self.prime - 1) if self.prime > 1 else []
        object.__setattr__(self, "rader_radices", inner)

    @property
    def per_thread(self) -> int:
        """Numbers that a thread handles: one butterfly or a few."""
        used = sorted({*self.radices, *self.rader_radices})
        if 7 in used and (11 in used or 13 in used):
            return 7
        if 11 in used and 13 in used:
            return 11
        if len(used) == 1:
            return used[0]
        if len(used) == 2 and (11 in used or 13 in used):
            return sum(used) // 2
        return used[1]

    @property
    def threads(self) -> int:
        """Threads of one transform."""
        return ceildiv(self.n, self.per_thread)

    def per_group(self, coalesced: bool = False) -> int:
        """Transforms of one threadgroup; `coalesced` where they are columns of a matrix."""
        count = max(_MIN_PER_GROUP // self.n, 1)
        return max(count, min(4, _MAX_PER_GROUP // self.n)) if coalesced else count

    def constants(self, inverse: bool) -> dict[str, int | bool]:
        """Function constants."""
        return {
            "inv_": inverse, "is_power_of_2_": self.n & (self.n - 1) == 0,
            "elems_per_thread_": self.per_thread, "rader_m_": self.n // self.prime,
            **{f"radix_{r}_steps_": self.radices.count(r) for r in RADICES},
            **{f"rader_{r}_steps_": self.rader_radices.count(r) for r in RADICES},
        }  # fmt: skip

    def error(self, unit: float) -> float:
        """Error relative to the norm, for numbers whose operations err by `unit`."""
        # Rader's algorithm transforms forth and back, with a product between.
        inner = 2 * _stages_error(self.rader_radices, unit) + 8 * unit if self.prime > 1 else 0
        outer = [*self.radices, self.prime] if self.prime > 1 else self.radices
        return inner + _stages_error(outer, unit)


def _stages_error(radices: list[int], unit: float) -> float:
    """In each stage a twiddle, its powers, and a sum."""
    # The angle, up to 2 pi, is rounded four times in float; sine and cosine err by four ulps of
    # one, and are rounded to the type of the numbers.
    twiddle = (4 * 2 * np.pi + 4 * 2) * 2.0**-24 + unit
    return sum((radix - 1) * (twiddle + 2 * unit) + radix * unit for radix in radices)


def rader_constants(prime: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The transformed roots of unity, and the powers of a primitive root and of its inverse."""
    order = prime - 1
    root = next(
        r for r in range(2, prime) if len({pow(r, e, prime) for e in range(order)}) == order
    )
    powers = np.array([pow(root, e, prime) for e in range(order)], np.int16)
    inverse = np.array([pow(root, -e, prime) for e in range(order)], np.int16)
    return np.fft.fft(np.exp(-2j * np.pi * inverse / prime)), powers, inverse


def bluestein_constants(length: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The transformed chirp that is convolved with, and the chirp that is multiplied by."""
    squares = np.arange(-length + 1, length) ** 2 % (2 * length)
    chirp = np.exp(1j * np.pi * squares / length)
    return np.fft.fft(chirp, n), chirp[length - 1 :].conj()
