"""In which order to multiply several operands: of few the best, of many a good one."""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Collection, Sequence
from typing import Any

from metalloid.arrays.functions.einsum_text import Label

#: Terms of which every order is tried: 18 orders of four.
_MAX_EXHAUSTIVE = 4

Extents = dict[Label, int]
#: Places of operands that are multiplied; their product comes behind those that are left.
Step = tuple[int, ...]


def best_path(terms: Sequence[Collection[Label]], wanted: frozenset[Label],
              extents: Extents) -> list[Step]:  # fmt: skip
    """Which two of the terms to multiply, until one is left."""
    path: list[Step] = []
    while len(terms) > 1:
        _, pair = _cheapest(terms, wanted, extents)
        path.append(pair)
        terms = after(terms, pair, wanted)
    return path


def after(terms: Sequence[Collection[Label]], step: Step,
          wanted: frozenset[Label]) -> list[Collection[Label]]:  # fmt: skip
    """The terms behind a step: those it leaves, and the product."""
    rest = [term for k, term in enumerate(terms) if k not in step]
    product = frozenset[Label]().union(*(terms[k] for k in step))
    return [*rest, product & wanted.union(*rest)]


def _cheapest(terms: Sequence[Collection[Label]], wanted: frozenset[Label],
              extents: Extents) -> tuple[int, Step]:  # fmt: skip
    """Which two of several terms to multiply first, and the price of it.

    Of few terms every order is tried, and the price is the number of multiplications of all of
    them. Of many the pair is taken whose product adds fewest elements to what there is.
    """
    best = None
    for pair in itertools.combinations(range(len(terms)), 2):
        a, b = (terms[k] for k in pair)
        rest = after(terms, pair, wanted)
        if len(terms) > _MAX_EXHAUSTIVE:
            cost = volume(rest[-1], extents) - volume(a, extents) - volume(b, extents)
        else:
            cost = volume({*a, *b}, extents)
            if len(rest) > 1:
                cost += _cheapest(rest, wanted, extents)[0]
        if best is None or cost < best[0]:
            best = cost, pair
    assert best is not None
    return best


def volume(labels: Collection[Label], extents: Extents) -> int:
    """How many elements there are."""
    return math.prod(extents[label] for label in labels)


def checked_path(text: str, path: Sequence[Any], operands: int) -> list[Step]:
    """The steps that somebody wants, `einsum_path` or NumPy's.

    Raises
    ------
    ValueError
        If they do not make one of all operands.
    """
    steps = [tuple(map(operator.index, step)) for step in path if step != "einsum_path"]
    left = operands
    for step in steps:
        if not step or len({*step}) < len(step) or not all(0 <= k < left for k in step):
            raise ValueError(f"[einsum] {text!r}: the step {step} of a path for {left} operands.")
        left -= len(step) - 1
    if left != 1:
        raise ValueError(f"[einsum] {text!r}: a path {path} that leaves {left} operands.")
    return steps


def report(terms: Sequence[Collection[Label]], path: Sequence[Step], wanted: Collection[Label],
           extents: Extents) -> str:  # fmt: skip
    """What every step multiplies, and how often."""
    result = frozenset(wanted)
    lines, total = [], 0
    all_at_once = volume(frozenset[Label]().union(*terms), extents)
    for step in path:
        chosen = [terms[k] for k in step]
        times = volume(frozenset[Label]().union(*chosen), extents)
        total += times
        terms = after(terms, step, result)
        product = wanted if len(terms) == 1 else terms[-1]
        lines.append(f"  {step}: {','.join(map(_word, chosen))}->{_word(product)}, {times}")
    return "\n".join([f"{total} multiplications, in one sum {all_at_once}", *lines])


def _word(labels: Collection[Label]) -> str:
    """Labels as in a text: numbered axes are those of an ellipsis."""
    ordered = labels if isinstance(labels, tuple) else sorted(labels, key=lambda k: (
        isinstance(k, str), k))  # fmt: skip
    word = "".join(k if isinstance(k, str) else "." for k in ordered)
    return re.sub(r"\.+", "...", word)
