"""Time several things so that they can be compared."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence

Clock = Callable[[], float]

_TURN = 0.002  # seconds, at least
_MAX_RUNS = 100


def in_turns(
    actions: Sequence[Callable[[], object]],
    repeat: int = 9,
    clock: Clock = time.perf_counter,
    pause: float = 0,
    warm: float = 0,
) -> list[list[float]]:
    """Seconds per run of each action; they take turns, so that noise meets all of them.

    The order changes from turn to turn, deterministically.

    A turn of a quick action is several runs: what happens before the first, such as a launch from
    Python whose code has left the caches, is not what is to be measured.

    Parameters
    ----------
    actions : sequence of callables
        Each runs twice more before, to be compiled and to have its memory at hand.
    repeat : int
        Turns.
    clock : callable
        `time.process_time` does not count what other processes took from an action that runs on one
        thread.
    pause : float
        Seconds before each turn, for thread pools that spin for a while when their work has ended.
    warm : float
        Seconds of runs after the pause that do not count: a processor that slept is slow, and so
        are threads that did.

    Examples
    --------
    >>> [len(turns) for turns in in_turns([list, dict], repeat=3)]
    [3, 3]
    """
    runs = []
    for action in actions:
        action()
        seconds = _seconds(action, 1, clock)
        runs.append(1 + int(_TURN / max(seconds, _TURN / _MAX_RUNS)))
    taken: list[list[float]] = [[] for _ in actions]
    turns = list(zip(taken, actions, runs, strict=True))
    order = random.Random(0)
    for _ in range(repeat):
        # After AVX-512 code a processor is slower for a while: no program shall always run next.
        order.shuffle(turns)
        for own, action, number in turns:
            if pause:
                time.sleep(pause)
            begun = time.perf_counter()
            while time.perf_counter() - begun < warm:
                action()
            own.append(_seconds(action, number, clock))
    return taken


def _seconds(action: Callable[[], object], number: int, clock: Clock) -> float:
    started = clock()
    for _ in range(number):
        action()
    return (clock() - started) / number


def medians(
    actions: Sequence[Callable[[], object]],
    repeat: int = 9,
    clock: Clock = time.perf_counter,
    pause: float = 0,
    warm: float = 0,
) -> list[float]:
    """The median of each action's turns, see `in_turns`.

    Examples
    --------
    >>> quick, slow = medians([lambda: None, lambda: sum(range(100_000))])
    >>> quick < slow
    True
    """
    return [statistics.median(runs) for runs in in_turns(actions, repeat, clock, pause, warm)]
