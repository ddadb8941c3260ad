"""Random numbers of calls like earlier ones: their nodes are made without the generator's methods.

A draw is a structural function of the next key of the generator's sequence, and of parameters.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir import native
from metalloid.arrays.ir.dtypes import type_rules
from metalloid.numpy.array import ndarray, numpy_function, wrap
from metalloid.numpy.known_calls import KnownCalls, Watched


class _Taken:
    """A sequence whose next keys have been taken.

    Attributes
    ----------
    used : int
        Number of keys that are used.
    """

    def __init__(self, taken: list[Array], keys: Any) -> None:
        self._taken, self._keys, self.used = taken, keys, 0

    def next(self) -> Array:
        """Return the next key."""
        self.used += 1
        is_taken = self.used <= len(self._taken)
        return self._taken[self.used - 1] if is_taken else self._keys.next()


class _Draw:
    """Calls of a method, most of which use as many keys as the latest one."""

    def __init__(self, method: Callable[..., Any], arrays: int) -> None:
        self._ordinary, self._arrays, self._keys = numpy_function(method), arrays, 1
        self._known: dict[int, KnownCalls] = {}  # by number of keys

    def known(self, count: int) -> KnownCalls:
        """Known calls that use so many keys."""
        return self._known.setdefault(count, KnownCalls(count + self._arrays))

    def __call__(self, generator: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        keys = generator._base._keys
        taken, number = keys.take(self._keys)
        given = [*(wrap(key._node) for key in taken), *args]
        result = native.known_call(self.known(len(taken)).calls, tuple(given), options)
        if result is not None:
            return result
        other, sequence = copy.copy(generator), _Taken(taken, keys)
        other._base = copy.copy(generator._base)
        other._base._keys = sequence
        watched = Watched()
        try:
            with watched:
                result = self._ordinary(other, *args, **options)
        finally:
            unused = len(taken) - sequence.used
            if unused > 0:
                keys.give_back(number, unused)
        if not unused and all(x.ndim for x in args if type(x) is ndarray):
            self.known(len(taken)).learn(tuple(given), options, result, watched)
        self._keys = max(sequence.used, 1)
        return result


def known_draw(method: Callable[..., Any], arrays: int = 0) -> Callable[..., Any]:
    """A method of a generator as `numpy_function`, whose calls may be known.

    Parameters
    ----------
    arrays : int
        Number of the first arguments that may be arrays whose elements the method does not read,
        unless they have no axes.
    """
    drawn = _Draw(method, arrays)

    @functools.wraps(method)
    def draw(self: Any, *args: Any, **options: Any) -> Any:
        if type_rules.are_chosen:
            return method(self, *args, **options)
        return drawn(self, args, options)

    return draw
