"""Results of the functions of simdgroups and quadgroups, lane by lane, in plain NumPy.

A model takes the values of one group's lanes, the filling, and which lanes are active, and returns
the results and in which lanes they are defined: the active ones. A lane that is not active reads as
0, which the specification leaves open and Apple's GPUs do. Sums and products are exact: float64, or
integers modulo 2^bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from judges import is_floating


@dataclass(frozen=True)
class LaneFunction:
    """A function: its call in MSL, and its model.

    Attributes
    ----------
    text : str
        With ``{g}`` for ``simd`` or ``quad``, operands ``a`` and ``f``, and ``lane``.
    model : callable
    exact : bool
        Whether floats come out without rounding.
    kinds : str
        ``"any"``, ``"integer"`` or ``"scale"``, values near one, whose products stay in range.
    """

    text: str
    model: Callable
    exact: bool = True
    kinds: str = "any"


def widened(values):
    return values.astype(np.float64) if is_floating(values.dtype) else values


def reduction(function):
    """A reduction of the active lanes, the same for all of them."""

    def model(values, filling, active):
        some = widened(values)[active]
        with np.errstate(over="ignore"):
            result = function.reduce(some, axis=0, dtype=some.dtype)
        return np.broadcast_to(result, values.shape), active

    return model


def prefix(function, identity, inclusive):
    """A prefix of the active lanes up to this one."""

    def model(values, filling, active):
        wide = widened(values)
        result = np.zeros_like(wide)
        running = np.full(values.shape[1:], identity, wide.dtype)
        with np.errstate(over="ignore"):
            for lane in np.flatnonzero(active):
                after = function(running, wide[lane], dtype=wide.dtype)
                result[lane] = after if inclusive else running
                running = after
        return result, active

    return model


def move(source_of):
    """A lane's value goes to another: `source_of` lanes and their number, -1 for one's own."""

    def model(values, filling, active):
        width = len(values)
        lanes = np.arange(width)
        source = np.broadcast_to(source_of(lanes, width), (width,))
        source = np.where(source < 0, lanes, source)
        return of_active(values, active)[source], active

    return model


def of_active(values, active):
    """The values that other lanes read."""
    return np.where(active.reshape(-1, *(1,) * (values.ndim - 1)), values, 0).astype(values.dtype)


def first_active(values, filling, active):
    first = np.argmax(active)
    return np.broadcast_to(values[first], values.shape), active


def fill(up, delta, modulo=None):
    """The lanes without a source take those at the other end of the filling."""

    def model(values, filling, active):
        width = len(values)
        size = modulo or width
        lanes = np.arange(width)
        index = lanes % size - delta if up else lanes % size + delta
        filled = (index < 0) | (index >= size)
        source = lanes - lanes % size + index % size
        shape = (width,) + (1,) * (values.ndim - 1)
        given = (of_active(of, active)[source] for of in (filling, values))
        return np.where(filled.reshape(shape), *given), active

    return model


def lane_functions(width):
    """All functions on values, for groups of `width` lanes."""
    near, far = (1, 2) if width == 4 else (1, 11)
    half = width // 2
    return [
        LaneFunction("{g}_sum(a)", reduction(np.add), exact=False),
        LaneFunction("{g}_product(a)", reduction(np.multiply), exact=False, kinds="scale"),
        LaneFunction("{g}_min(a)", reduction(np.minimum)),
        LaneFunction("{g}_max(a)", reduction(np.maximum)),
        LaneFunction("{g}_prefix_inclusive_sum(a)", prefix(np.add, 0, True), exact=False),
        LaneFunction("{g}_prefix_exclusive_sum(a)", prefix(np.add, 0, False), exact=False),
        LaneFunction("{g}_prefix_inclusive_product(a)", prefix(np.multiply, 1, True), exact=False, kinds="scale"),
        LaneFunction("{g}_prefix_exclusive_product(a)", prefix(np.multiply, 1, False), exact=False, kinds="scale"),
        LaneFunction("{g}_and(a)", reduction(np.bitwise_and), kinds="integer"),
        LaneFunction("{g}_or(a)", reduction(np.bitwise_or), kinds="integer"),
        LaneFunction("{g}_xor(a)", reduction(np.bitwise_xor), kinds="integer"),
        LaneFunction("{g}_broadcast_first(a)", first_active),
        LaneFunction("{g}_broadcast(a, 0)", move(lambda lane, n: 0)),
        LaneFunction(f"{{g}}_broadcast(a, {far})", move(lambda lane, n: far)),
        LaneFunction(f"{{g}}_shuffle(a, {near})", move(lambda lane, n: near)),
        LaneFunction(f"{{g}}_shuffle(a, (lane * 3 + 1) % {width})", move(lambda lane, n: (lane * 3 + 1) % n)),
        LaneFunction("{g}_shuffle_xor(a, 1)", move(lambda lane, n: lane ^ 1)),
        LaneFunction(f"{{g}}_shuffle_xor(a, {half})", move(lambda lane, n: lane ^ half)),
        LaneFunction(f"{{g}}_shuffle_up(a, {far})", move(lambda lane, n: np.maximum(lane - far, -1))),
        LaneFunction("{g}_shuffle_up(a, 0)", move(lambda lane, n: lane)),
        LaneFunction(f"{{g}}_shuffle_down(a, {far})", move(lambda lane, n: np.where(lane + far < n, lane + far, -1))),
        LaneFunction(f"{{g}}_shuffle_rotate_up(a, {far})", move(lambda lane, n: (lane - far) % n)),
        LaneFunction(f"{{g}}_shuffle_rotate_down(a, {far})", move(lambda lane, n: (lane + far) % n)),
        LaneFunction(f"{{g}}_shuffle_and_fill_up(a, f, {far})", fill(True, far)),
        LaneFunction(f"{{g}}_shuffle_and_fill_down(a, f, {far})", fill(False, far)),
        LaneFunction(f"{{g}}_shuffle_and_fill_up(a, f, 1, {half})", fill(True, 1, half)),
        LaneFunction(f"{{g}}_shuffle_and_fill_down(a, f, 1, {half})", fill(False, 1, half)),
    ]  # fmt: skip
