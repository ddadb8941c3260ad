"""Sums of products in Einstein's notation, as products of two operands at a time."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from metalloid.arrays.array_object import Array
from metalloid.arrays.build import to_node
from metalloid.arrays.elementwise import multiply
from metalloid.arrays.layout import Ints
from metalloid.arrays.linear import diagonal_of, matmul
from metalloid.arrays.movement import moved_axes
from metalloid.arrays.node import Node, cast, permute, reshape
from metalloid.arrays.statistics_nodes import reduced, without
from metalloid.arrays.types import float32, kind_of, promote

#: What an axis is called: a letter, or a number from the end for the axes of an ellipsis.
Label = str | int
Labels = tuple[Label, ...]
#: Terms of which every order is tried: 18 orders of four.
_FEW = 4


class Term(NamedTuple):
    """An operand, and what its axes are called."""

    node: Node
    labels: Labels


def einsum(subscripts: str, /, *operands: Any) -> Array:
    """Sums of products of elements whose axes have the same letters.

    Parameters
    ----------
    subscripts : str
        ``"ij,jk->ik"``: a letter for each axis of each operand, and the letters of the result.
        Letters that are not in the result are summed over. ``...`` stands for any other axes.
        Without ``->`` the result has those, and the letters that occur once, sorted.
    *operands : Array
        Extents of 1 broadcast.

    Raises
    ------
    ValueError
        If letters and shapes do not fit.

    Notes
    -----
    Two operands are multiplied at a time, in the order that takes fewest multiplications; of more
    than four those first whose product is smallest in comparison with them (D. G. A. Smith and
    J. Gray, "opt_einsum", Journal of Open Source Software 3(26), 2018). What does not take a matrix
    product fuses with other expressions.

    Examples
    --------
    >>> import metalloid as mtl
    >>> x = mtl.asarray([[1, 2], [3, 4]])
    >>> mtl.einsum("ij,jk->ik", x, x)
    array([[ 7, 10],
           [15, 22]], dtype=int64)
    >>> mtl.einsum("ii", x)
    array(5, dtype=int64)
    """
    if not isinstance(subscripts, str):
        kind = type(subscripts).__name__
        raise TypeError(f"[einsum] wants a text like 'ij,jk->ik' before the arrays, got {kind}.")
    nodes = [to_node(x, "einsum") for x in operands]
    labels, wanted = _read(subscripts, [node.shape for node in nodes])
    extents = _extents(subscripts, labels, [node.shape for node in nodes])
    dtype = functools.reduce(promote, (node.dtype for node in nodes))
    if kind_of(dtype) == "b":
        raise TypeError("[einsum] has no meaning for bool. Convert to an integer type.")
    wide = float32 if kind_of(dtype) == "f" and dtype.itemsize == 2 else dtype
    terms = [
        _single(Term(cast(node, wide), own), extents)
        for node, own in zip(nodes, labels, strict=True)
    ]
    result = frozenset(wanted)
    while len(terms) > 1:
        _, (first, second) = _cheapest([term.labels for term in terms], result, extents)
        b, a = terms.pop(second), terms.pop(first)
        terms.append(_product(a, b, result.union(*(term.labels for term in terms))))
    return Array(cast(_ordered(_summed(terms[0], wanted), wanted), dtype))


# -- the text


def _read(text: str, shapes: Sequence[Ints]) -> tuple[list[Labels], Labels]:
    """What the axes of the operands and of the result are called."""
    inputs, arrow, output = text.replace(" ", "").partition("->")
    words = inputs.split(",")
    for letter in itertools.chain(*(word.replace("...", "") for word in (*words, output))):
        if not letter.isalpha():
            raise ValueError(f"[einsum] {text!r}: {letter!r} is no letter.")
    if len(words) != len(shapes):
        raise ValueError(f"[einsum] {text!r} names {len(words)} operands, got {len(shapes)}.")
    labels = [
        _labels(text, word, k, len(shapes[k]) - len(word.replace("...", "")))
        for k, word in enumerate(words)
    ]
    others = sorted({label for own in labels for label in own if isinstance(label, int)})
    if not arrow:
        letters = Counter(label for own in labels for label in own if isinstance(label, str))
        wanted: Labels = (*others, *sorted(k for k, times in letters.items() if times == 1))
    elif others and "..." not in output:
        raise ValueError(f"[einsum] {text!r}: the result names no '...', operands have it.")
    else:
        before, _, after = output.partition("...")
        wanted = (*before, *others, *after) if "..." in output else tuple(output)
    for label in wanted:
        if wanted.count(label) > 1:
            raise ValueError(f"[einsum] {text!r}: the result names {label!r} twice.")
        if not any(label in own for own in labels):
            raise ValueError(f"[einsum] {text!r}: no operand has {label!r} of the result.")
    return labels, wanted


def _labels(text: str, word: str, operand: int, others: int) -> Labels:
    """The labels of an operand with `others` axes that have no letter."""
    before, dots, after = word.partition("...")
    if others < 0 or (others and not dots) or "." in after:
        letters = len(word.replace(".", ""))
        raise ValueError(
            f"[einsum] {text!r}: {word!r} does not fit operand {operand}, which has "
            f"{letters + others} axes."
        )
    return (*before, *range(-others, 0), *after)


def _extents(text: str, labels: Sequence[Labels], shapes: Sequence[Ints]) -> dict[Label, int]:
    """How long the axes of each label are, together."""
    extents: dict[Label, int] = {}
    for operand, (own, shape) in enumerate(zip(labels, shapes, strict=True)):
        for label, extent in zip(own, shape, strict=True):
            known = extents.setdefault(label, extent)
            if extent not in (1, known) and known != 1:
                name = f"{label!r}" if isinstance(label, str) else "an axis of '...'"
                raise ValueError(
                    f"[einsum] {text!r}: {name} is {known} long, but {extent} in operand "
                    f"{operand} of shape {shape}."
                )
            if known == 1:
                extents[label] = extent
    return extents


# -- the products


def _single(term: Term, extents: dict[Label, int]) -> Term:
    """With each label once, and without the axes that broadcast."""
    node, labels = term
    short = [k for k, n in enumerate(node.shape) if n == 1 and extents[labels[k]] != 1]
    node = without(node, tuple(short))
    labels = tuple(label for k, label in enumerate(labels) if k not in short)
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            node = diagonal_of(moved_axes(node, (first, second), (-2, -1)))
            rest = (k for k in range(len(labels)) if k not in (first, second))
            labels = (*(labels[k] for k in rest), label)
    return Term(node, labels)


def _cheapest(terms: Sequence[Collection[Label]], wanted: frozenset[Label],
              extents: dict[Label, int]) -> tuple[int, tuple[int, int]]:  # fmt: skip
    """Which two of several terms to multiply first, and the price of it.

    Of few terms every order is tried, and the price is the number of multiplications of all of
    them. Of many the pair is taken whose product adds fewest elements to what there is.
    """
    best = None
    for pair in itertools.combinations(range(len(terms)), 2):
        a, b = (terms[k] for k in pair)
        rest = [term for k, term in enumerate(terms) if k not in pair]
        product = {*a, *b}.intersection(wanted.union(*rest))
        if len(terms) > _FEW:
            price = _volume(product, extents) - _volume(a, extents) - _volume(b, extents)
        else:
            price = _volume({*a, *b}, extents)
            if rest:
                price += _cheapest([*rest, product], wanted, extents)[0]
        if best is None or price < best[0]:
            best = price, pair
    assert best is not None
    return best


def _volume(labels: Collection[Label], extents: dict[Label, int]) -> int:
    return math.prod(extents[label] for label in labels)


def _product(a: Term, b: Term, needed: frozenset[Label]) -> Term:
    """Two terms multiplied, and summed over what nobody needs any more."""
    a, b = _summed(a, needed.union(b.labels)), _summed(b, needed.union(a.labels))
    shared = [label for label in a.labels if label in b.labels]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    left = [label for label in a.labels if label not in shared]
    right = [label for label in b.labels if label not in shared]
    if inner and (left or right):
        first, second = _ordered(a, [*batch, *left, *inner]), _ordered(b, [*batch, *inner, *right])
        extents = first.shape[: len(batch)]
        rows, columns = first.shape[len(batch) : -len(inner)], second.shape[len(batch + inner) :]
        depth = math.prod(first.shape[-len(inner) :])
        product = matmul(
            Array(reshape(first, (*extents, math.prod(rows), depth))),
            Array(reshape(second, (*extents, depth, math.prod(columns)))),
        )._node
        return Term(reshape(product, (*extents, *rows, *columns)), (*batch, *left, *right))
    together = (*batch, *left, *right, *inner)
    sides = [
        reshape(_ordered(term, [k for k in together if k in term.labels]),
                tuple(_extent(term, k) for k in together))
        for term in (a, b)
    ]  # fmt: skip
    return _summed(Term(multiply(*map(Array, sides))._node, together), needed)


def _extent(term: Term, label: Label) -> int:
    return term.node.shape[term.labels.index(label)] if label in term.labels else 1


def _summed(term: Term, needed: Collection[Label]) -> Term:
    """Summed over labels that are not needed, in the type that it has."""
    axes = tuple(k for k, label in enumerate(term.labels) if label not in needed)
    if not axes:
        return term
    labels = tuple(label for label in term.labels if label in needed)
    return Term(reduced(term.node, "sum", axes, False), labels)


def _ordered(term: Term, labels: Sequence[Label]) -> Node:
    """The axes in the order of labels."""
    return permute(term.node, tuple(term.labels.index(label) for label in labels))
