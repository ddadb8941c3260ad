"""Run launches in many orders of their threads, and compare the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError, MetalloidError
from metalloid.runtime.launch.schedules import scheduled_launches
from metalloid.settings import settings


@dataclass(frozen=True)
class Outcome:
    """A result, and the seeds of the schedules that lead to it.

    Attributes
    ----------
    result : object
        What the function returned, with copies as NumPy arrays; None if it raised an error.
    error : MetalloidError or None
        What it raised.
    seeds : tuple of int
    """

    result: Any
    error: MetalloidError | None
    seeds: tuple[int, ...]

    def describe_seeds(self) -> str:
        """The seeds in words."""
        more = len(self.seeds) - 1
        return f"seed {self.seeds[0]}" + (f" and {more} other{'s' * (more > 1)}" if more else "")


@dataclass(frozen=True)
class Exploration:
    """The results of a function under many schedules.

    Attributes
    ----------
    outcomes : tuple of Outcome
        Different results, in the order in which they were met.
    """

    launch: Callable[[], Any]
    outcomes: tuple[Outcome, ...]

    @property
    def differs(self) -> bool:
        """Whether the result depends on the schedule."""
        return len(self.outcomes) > 1

    def replay(self, seed: int) -> Any:
        """Run the function again in the order of a seed, and return what it returns."""
        with settings.scope(schedule=seed):
            return self.launch()

    def __repr__(self) -> str:
        count = sum(len(outcome.seeds) for outcome in self.outcomes)
        first, *others = self.outcomes
        if not others:
            return f"<Exploration: {count} schedules have the same result: {_shown(first)}>"
        lines = [f"<Exploration: {count} schedules have {len(self.outcomes)} different results"]
        lines.append(f"  {first.describe_seeds()}: {_shown(first)}")
        lines += [
            f"  {other.describe_seeds()}: {_difference(first, other)}"
            for other in others[:_MAX_SHOWN]
        ]
        if len(others) > _MAX_SHOWN:
            lines.append(f"  and {len(others) - _MAX_SHOWN} more")
        return "\n".join(lines) + ">"


_MAX_SHOWN = 8


def explore(launch: Callable[[], Any], seeds: int | Iterable[int] = 100) -> Exploration:
    """Run a function whose launches on the CPU take their threads in many orders.

    Each seed is a schedule: an order of the threadgroups, of the simdgroups between two barriers,
    and of the accesses of threads. The result of a kernel without data races is the same for all,
    unless it uses atomic functions whose order matters, such as sums of floats.

    Parameters
    ----------
    launch : callable
        Without parameters. It makes new arrays for what its kernels write, and returns an array, or
        a tuple, a list or a dictionary of arrays.
    seeds : int or iterable of int, optional
        The seeds, or their number: ``range(seeds)``.

    Returns
    -------
    Exploration
        Its ``outcomes`` are the different results with their seeds; ``replay(seed)`` repeats one.

    Raises
    ------
    ArgumentError
        If no launch runs on the CPU, or the result of two runs with the same seed differs.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> lib = mtl.library('''
    ... kernel void reverse(device float* x, uint i [[thread_position_in_grid]],
    ...                     uint n [[threads_per_grid]]) { x[i] = x[n - 1 - i]; }
    ... ''', device="cpu")
    >>> def reversed_numbers():
    ...     x = np.arange(4, dtype=np.float32)
    ...     lib.reverse(x, threads=4)
    ...     return x
    >>> exploration = mtl.explore(reversed_numbers, seeds=20)
    >>> exploration.differs
    True
    >>> last = exploration.outcomes[-1]
    >>> bool(np.all(exploration.replay(last.seeds[0]) == last.result))
    True
    """
    numbers = range(seeds) if isinstance(seeds, int) else list(seeds)
    if not numbers or any(not 0 <= seed < 2**64 for seed in numbers):
        raise ArgumentError(
            "[explore] seeds must be a number of seeds, or seeds from 0 to 2**64 - 1; "
            f"got {seeds!r}."
        )
    outcomes: dict[Any, Outcome] = {}
    before = scheduled_launches()
    for seed in numbers:
        outcome = _run(launch, seed)
        key = _key(outcome)
        if not outcomes:
            if scheduled_launches() == before:
                raise ArgumentError(
                    "[explore] the function made no launch on the CPU. Use kernels of "
                    'mtl.library(..., device="cpu").'
                )
            if _key(_run(launch, seed)) != key:
                raise ArgumentError(
                    f"[explore] two runs with the seed {seed} have different results. Let the "
                    "function make new arrays for what its kernels write."
                )
        if key in outcomes:
            known = outcomes[key]
            outcome = Outcome(known.result, known.error, (*known.seeds, seed))
        outcomes[key] = outcome
    return Exploration(launch, tuple(outcomes.values()))


def _run(launch: Callable[[], Any], seed: int) -> Outcome:
    with settings.scope(schedule=seed):
        try:
            return Outcome(_copied(launch()), None, (seed,))
        except ArgumentError:  # no schedule makes it right
            raise
        except MetalloidError as error:
            return Outcome(None, error, (seed,))


def _copied(result: Any) -> Any:
    """A result with copies of its arrays."""
    if isinstance(result, Mapping):
        return {name: _copied(value) for name, value in result.items()}
    if isinstance(result, tuple | list):
        return [_copied(value) for value in result]
    if result is None:
        raise ArgumentError("[explore] the function must return the arrays to compare, got None.")
    return np.array(result)


def _leaves(result: Any, path: str = "result") -> Iterable[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays of a result, each with the text of an expression for it."""
    if isinstance(result, dict):
        for name, value in result.items():
            yield from _leaves(value, f"{path}[{name!r}]")
    elif isinstance(result, list):
        for index, value in enumerate(result):
            yield from _leaves(value, f"{path}[{index}]")
    else:
        yield path, result


def _key(outcome: Outcome) -> Any:
    """The same for equal results, bit for bit; for errors of one kind at one line."""
    if outcome.error is not None:
        return type(outcome.error), getattr(outcome.error, "line", None)
    return tuple(
        (path, array.dtype.str, array.shape, array.tobytes())
        for path, array in _leaves(outcome.result)
    )


def _shown(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"{type(outcome.error).__name__}: {str(outcome.error).splitlines()[0]}"
    return ", ".join(
        np.array2string(array, threshold=6, edgeitems=2, precision=6)
        for _, array in _leaves(outcome.result)
    )


def _difference(first: Outcome, other: Outcome) -> str:
    """The first element that differs, and how many do."""
    if first.error is not None or other.error is not None:
        return _shown(other)
    for (path, one), (_, another) in zip(
        _leaves(first.result), _leaves(other.result), strict=False
    ):
        if one.shape != another.shape or one.dtype != another.dtype:
            return _shown(other)
        differ = np.flatnonzero(_bits(one) != _bits(another))
        if differ.size:
            at = np.unravel_index(differ[0], one.shape)
            index = ", ".join(map(str, at))
            number = f"{differ.size} of {one.size} elements differ"
            where = f"{path}[{index}]" if at else path
            return f"{where} is {another[at]}, not {one[at]} ({number})"
    return _shown(other)


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements as bytes, which tell NaNs and zeros apart."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(f"V{flat.dtype.itemsize}")
