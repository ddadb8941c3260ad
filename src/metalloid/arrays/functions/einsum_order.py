"""The order of the products of an einsum: optimal for few operands, greedy for many."""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Collection, Sequence
from typing import Any

from metalloid.arrays.functions.einsum_text import Label

#: Up to this many terms, every order is tried: there are 18 orders of four.
_MAX_EXHAUSTIVE = 4

Extents = dict[Label, int]
#: Indices of operands that are multiplied. The product is appended to the remaining operands.
Step = tuple[int, ...]


def best_path(terms: Sequence[Collection[Label]], output_labels: frozenset[Label],
              extents: Extents) -> list[Step]:  # fmt: skip
    """Return which two terms to multiply, repeatedly, until one is left."""
    path: list[Step] = []
    while len(terms) > 1:
        _, pair = _cheapest(terms, output_labels, extents)
        path.append(pair)
        terms = after(terms, pair, output_labels)
    return path


def after(terms: Sequence[Collection[Label]], step: Step,
          output_labels: frozenset[Label]) -> list[Collection[Label]]:  # fmt: skip
    """Return the terms after a step: the remaining ones and the product."""
    rest = [term for k, term in enumerate(terms) if k not in step]
    product = frozenset[Label]().union(*(terms[k] for k in step))
    return [*rest, product & output_labels.union(*rest)]


def _cheapest(terms: Sequence[Collection[Label]], output_labels: frozenset[Label],
              extents: Extents) -> tuple[int, Step]:  # fmt: skip
    """Return the cost of a path, and its first pair of terms.

    For few terms every order is tried, and the cost is the total number of multiplications. For
    many terms the pair is chosen whose product adds the fewest elements to the operands.
    """
    best = None
    for pair in itertools.combinations(range(len(terms)), 2):
        a, b = (terms[k] for k in pair)
        rest = after(terms, pair, output_labels)
        if len(terms) > _MAX_EXHAUSTIVE:
            cost = volume(rest[-1], extents) - volume(a, extents) - volume(b, extents)
        else:
            cost = volume({*a, *b}, extents)
            if len(rest) > 1:
                cost += _cheapest(rest, output_labels, extents)[0]
        if best is None or cost < best[0]:
            best = cost, pair
    assert best is not None
    return best


def volume(labels: Collection[Label], extents: Extents) -> int:
    """Return the number of elements of a tensor with these labels."""
    return math.prod(extents[label] for label in labels)


def checked_path(text: str, path: Sequence[Any], operands: int) -> list[Step]:
    """Validate a path that the caller passed, from `einsum_path` or from NumPy.

    Raises
    ------
    ValueError
        If the steps do not combine all operands into one.
    """
    steps = [tuple(map(operator.index, step)) for step in path if step != "einsum_path"]
    left = operands
    for step in steps:
        if not step or len({*step}) < len(step) or not all(0 <= k < left for k in step):
            raise ValueError(f"[einsum] {text!r}: invalid step {step} for {left} operands.")
        left -= len(step) - 1
    if left != 1:
        raise ValueError(f"[einsum] {text!r}: the path {path} leaves {left} operands.")
    return steps


def report(terms: Sequence[Collection[Label]], path: Sequence[Step],
           output_labels: Collection[Label], extents: Extents) -> str:  # fmt: skip
    """Describe what every step multiplies, and its number of multiplications."""
    result = frozenset(output_labels)
    lines, total = [], 0
    all_at_once = volume(frozenset[Label]().union(*terms), extents)
    for step in path:
        chosen = [terms[k] for k in step]
        times = volume(frozenset[Label]().union(*chosen), extents)
        total += times
        terms = after(terms, step, result)
        product = output_labels if len(terms) == 1 else terms[-1]
        lines.append(f"  {step}: {','.join(map(_word, chosen))}->{_word(product)}, {times}")
    return "\n".join([f"{total} multiplications, in one sum {all_at_once}", *lines])


def _word(labels: Collection[Label]) -> str:
    """Labels as text; numbered labels belong to an ellipsis."""
    ordered = labels if isinstance(labels, tuple) else sorted(labels, key=lambda k: (
        isinstance(k, str), k))  # fmt: skip
    word = "".join(k if isinstance(k, str) else "." for k in ordered)
    return re.sub(r"\.+", "...", word)
