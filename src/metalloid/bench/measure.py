"""Time several things so that they can be compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

Clock = Callable[[], float]


def in_turns(
    actions: Sequence[Callable[[], object]],
    repeat: int = 9,
    clock: Clock = time.perf_counter,
    pause: float = 0,
) -> list[list[float]]:
    """Seconds of each run of each action; they take turns, so that noise meets all of them.

    Parameters
    ----------
    actions : sequence of callables
        Each runs once more before, to be compiled and to have its memory at hand.
    repeat : int
    clock : callable
        `time.process_time` does not count what other processes took from an action that runs on one
        thread.
    pause : float
        Seconds before each turn, for thread pools that spin for a while when their work has ended.

    Examples
    --------
    >>> [len(runs) for runs in in_turns([list, dict], repeat=3)]
    [3, 3]
    """
    for action in actions:
        action()
    taken: list[list[float]] = [[] for _ in actions]
    for _ in range(repeat):
        for own, action in zip(taken, actions, strict=True):
            time.sleep(pause)
            started = clock()
            action()
            own.append(clock() - started)
    return taken


def medians(
    actions: Sequence[Callable[[], object]],
    repeat: int = 9,
    clock: Clock = time.perf_counter,
    pause: float = 0,
) -> list[float]:
    """The median of each action's runs `in_turns`.

    Examples
    --------
    >>> quick, slow = medians([lambda: None, lambda: sum(range(100_000))])
    >>> quick < slow
    True
    """
    return [statistics.median(runs) for runs in in_turns(actions, repeat, clock, pause)]
