"""Fourier transforms: Stockham's, Rader's, Bluestein's, and those too large for one threadgroup."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import FLOAT, HALF, Family, assert_within, ceildiv, roundoff
from mlx_tree.fft_plan import Plan, bluestein_constants, rader_constants
from mlx_tree.products import poisoned

_NAME = re.compile(
    r"(?P<form>fft|rader_fft|bluestein_fft|four_step)_mem_(?P<memory>\d+)"
    r"_(?P<source>float2|float|complex32_t)_(?P<result>float2|float|complex32_t)"
    r"(?:_(?P<step>[01])_(?P<real>true|false))?$"
)
#: Sizes whose numbers fill the threadgroup memory that an entry has: powers of two and others.
_STOCKHAM = {256: (64, 60, 210), 512: (512, 330), 1024: (1024, 1001), 2048: (2048, 1820),
             4096: (4096, 4004)}  # fmt: skip
_RADER = {256: (34, 17), 512: (340, 17), 1024: (812, 29), 2048: (1547, 17), 4096: (2176, 17)}
_BLUESTEIN = {256: 47, 512: 167, 1024: 509, 2048: 1019, 4096: 2039}
_TWIDDLES = 584
#: Size of the transforms of the step that an entry does not make.
_OTHER_STEP = 16


@dataclass(frozen=True)
class Numbers:
    """The types of an entry: complex or real ones of 16 or 32 bits."""

    source: str
    result: str

    @property
    def dtype(self) -> np.dtype:
        """Type of the components."""
        return HALF if self.source == "complex32_t" else FLOAT

    @property
    def packs_pairs(self) -> bool:
        """Whether two real sequences are transformed as one complex one."""
        return "float" in (self.source, self.result)

    def components(self, numbers: np.ndarray) -> np.ndarray:
        """Complex numbers as pairs of components of their type."""
        return np.stack([numbers.real, numbers.imag], axis=-1).astype(self.dtype)

    def stored(self, numbers: np.ndarray, kind: str) -> np.ndarray:
        """`numbers` in memory as the type `kind`."""
        real = numbers.real.astype(FLOAT)
        return real if kind == "float" else self.components(numbers)

    def result_memory(self, shape, kind: str) -> np.ndarray:
        """Memory for a result of the type `kind`."""
        return poisoned(shape if kind == "float" else (*shape, 2), self.dtype)


def _argument(array: np.ndarray) -> np.ndarray:
    """Structs of two halves are filled from bytes."""
    return array.view(np.uint8) if array.dtype == HALF else array


def _numbers(array: np.ndarray, kind: str) -> np.ndarray:
    exact = array.astype(np.float64)
    return exact if kind == "float" else exact[..., 0] + 1j * exact[..., 1]


def _random(rng, shape, numbers: Numbers) -> np.ndarray:
    """Complex numbers that have the type's precision."""
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return _numbers(numbers.components(values), "float2")


def _assert_near(actual, exact, error: float) -> None:
    assert not np.isnan(actual).any(), "not all results were written"
    distance = np.linalg.norm(actual - exact) / np.linalg.norm(exact)
    assert distance <= error, f"relative error {distance:.3g}, allowed {error:.3g}"


def _problem(rng, numbers: Numbers, plan: Plan, length: int, inverse: bool):
    """The input, the number of results, and the exact ones."""
    # A threadgroup with fewer transforms than it has room for reads and writes past their end
    # unless threads divide them evenly.
    fits = plan.n % plan.per_thread == 0
    batch = plan.per_group() + 2 if fits else 2 * plan.per_group()
    if numbers.result == "float":
        spectrum = np.fft.rfft(rng.normal(size=(batch, length)))
        source = _numbers(numbers.components(spectrum), "float2")
        return source, length, np.fft.irfft(source, length)
    source = _random(rng, (batch, length), numbers)
    if numbers.source == "float":
        return source.real, length // 2 + 1, np.fft.rfft(source.real)
    return source, length, (np.fft.ifft if inverse else np.fft.fft)(source)


def run(kernel, plan: Plan, numbers: Numbers, source, results: int, **facts) -> np.ndarray:
    """Transform the rows of `source`; an odd number of them leaves a threadgroup part empty."""
    batch, per_group = len(source), plan.per_group()
    groups = ceildiv(batch, per_group)
    if numbers.packs_pairs:
        groups = ceildiv(groups, 2)
    out = numbers.result_memory((batch, results), numbers.result)
    with mtl.config.scope(strict_barriers=False):
        kernel(
            **{"in": _argument(numbers.stored(source, numbers.source)), "out": _argument(out)},
            batch_size=batch, **{"n": plan.n, **facts},
            threads=(groups, per_group, plan.threads), group_size=(1, per_group, plan.threads),
        )  # fmt: skip
    return _numbers(out, numbers.result)


def _directions(numbers: Numbers) -> tuple[bool, ...]:
    return (numbers.result == "float",) if numbers.packs_pairs else (False, True)


def check_stockham(library, name: str, numbers: Numbers, n: int, rng, prime: int = 1) -> None:
    """Transforms of one size, by Rader's algorithm if there is a `prime`."""
    plan = Plan(n, prime)
    facts: dict[str, object] = {}
    if prime > 1:
        roots, powers, inverse_powers = rader_constants(prime)
        facts = {"raders_b_q": numbers.components(roots), "raders_g_q": powers,
                 "raders_g_minus_q": inverse_powers, "rader_n": prime}  # fmt: skip
    error = plan.error(roundoff(numbers.dtype)) * (2 if numbers.packs_pairs else 1)
    for inverse in _directions(numbers):
        source, results, exact = _problem(rng, numbers, plan, n, inverse)
        kernel = library.function(name, plan.constants(inverse))
        _assert_near(run(kernel, plan, numbers, source, results, **facts), exact, error)


def check_bluestein(library, name: str, numbers: Numbers, length: int, rng) -> None:
    """Transforms as a convolution by a chirp, whose twiddles may be given."""
    n = 1 << (2 * length - 2).bit_length()
    plan, unit = Plan(n), roundoff(numbers.dtype)
    convolved, chirp = bluestein_constants(length, n)
    # Forth and back, with three products; the middle one amplifies what was wrong before.
    error = (2 * plan.error(unit) + 12 * unit) * np.abs(convolved).max() / np.sqrt(length)
    error *= 2 if numbers.packs_pairs else 1
    has_table = n == 4096 and (numbers.source, numbers.result) == ("float2", "float2")
    for inverse in _directions(numbers):
        for table in (False, True) if has_table else (False,):
            constants = plan.constants(inverse) | {"use_bluestein_twiddle_table_": table}
            after = _twiddles() if table else np.zeros(0)
            facts = {"w_q": numbers.components(np.concatenate([convolved, after])),
                     "w_k": numbers.components(chirp), "length": length}  # fmt: skip
            source, results, exact = _problem(rng, numbers, plan, length, inverse)
            kernel = library.function(name, constants)
            _assert_near(run(kernel, plan, numbers, source, results, **facts), exact, error)


def _twiddles() -> np.ndarray:
    """Twiddle factors of the later stages of 4096 numbers by radix 8."""
    return np.concatenate([np.exp(-2j * np.pi * np.arange(p) / (8 * p)) for p in (8, 64, 512)])


def check_twiddles(kernel) -> None:
    out = poisoned((_TWIDDLES, 2), np.float32)
    kernel(out, threads=_TWIDDLES)
    exact = _twiddles()
    # The angle is rounded four times; the functions err by four ulps of one.
    error = (4 * 2 * np.pi + 8) * 2.0**-24
    assert_within(out, np.stack([exact.real, exact.imag], axis=-1), error)


def check_four_step(library, name: str, numbers: Numbers, memory: int, step: int, real: bool, rng):
    """Columns of a matrix and their twiddles first; then its rows, written as columns."""
    n = memory // 4
    down, across = (n, _OTHER_STEP) if step == 0 else (_OTHER_STEP, n)
    total, plan, unit = down * across, Plan(n), roundoff(numbers.dtype)
    error = plan.error(unit) + (0 if step else 60 * 2.0**-24 + 4 * unit)
    inverses = ((numbers.source == "float2" and step == 0) or numbers.result == "float",)
    for inverse in inverses if real else (False, True):
        source, results, exact = _four_step_problem(rng, numbers, (2, down, across), step, real,
                                                    inverse)  # fmt: skip
        kernel = library.function(name, plan.constants(inverse))
        per_group = plan.per_group(coalesced=True)
        batch = 2 * total // n
        out = numbers.result_memory((2, results), numbers.result)
        with mtl.config.scope(strict_barriers=False):
            kernel(
                **{"in": _argument(numbers.stored(source, numbers.source)), "out": _argument(out)},
                n1=down, n2=across, batch_size=batch,
                threads=(ceildiv(batch, per_group), per_group, plan.threads),
                group_size=(1, per_group, plan.threads),
            )  # fmt: skip
        _assert_near(_numbers(out, numbers.result), exact, error)


def _four_step_problem(rng, numbers: Numbers, shape, step: int, real: bool, inverse: bool):
    """The input of a step, how many numbers it writes for each transform, and which."""
    batch, down, across = shape
    total = down * across
    if step == 1:
        source = _random(rng, (batch, down, across), numbers)
        exact = np.fft.fft(source).swapaxes(1, 2).reshape(batch, total)
        # Reduced types have been scaled in part by the first step.
        exact = exact.conj() / (across if numbers.dtype == HALF else total) if inverse else exact
        if numbers.result == "float":
            return source, total, exact.real
        written = total // 2 + 1 if real else total
        return source, written, exact[:, :written]
    source = _random(rng, (batch, total), numbers)
    read = source
    if real and not inverse:
        read = source = source.real
    elif real:
        read = np.fft.rfft(source.real)
        read = _numbers(numbers.components(read), "float2")
        source = np.concatenate([read, read[:, -2:0:-1].conj()], axis=1)
    source = source.conj() if inverse else source
    columns = np.fft.fft(source.reshape(shape), axis=1)
    twiddles = np.exp(-2j * np.pi * np.outer(np.arange(down), np.arange(across)) / total)
    exact = (columns * twiddles).reshape(batch, total)
    return read, total, exact / down if numbers.dtype == HALF and inverse else exact


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    if name == "generate_bluestein_twiddles":
        check_twiddles(library.function(name))
        return
    parts = _NAME.match(name)
    assert parts, name
    numbers, memory = Numbers(parts["source"], parts["result"]), int(parts["memory"])
    if parts["form"] == "four_step":
        step, real = int(parts["step"]), parts["real"] == "true"
        check_four_step(library, name, numbers, memory, step, real, rng)
    elif parts["form"] == "bluestein_fft":
        check_bluestein(library, name, numbers, _BLUESTEIN[memory], rng)
    elif parts["form"] == "rader_fft":
        n, prime = _RADER[memory]
        check_stockham(library, name, numbers, n, rng, prime)
    else:
        for n in _STOCKHAM[memory]:
            check_stockham(library, name, numbers, n, rng)


FAMILIES = (Family("fft", ("fft.metal",), check),)
